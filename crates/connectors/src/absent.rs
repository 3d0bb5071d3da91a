//! Connector operations that Busbar cannot execute. Loading reports each with its reason; a message that comes to one faults, so that the
//! rest of its artifact serves.

use crate::operation::operation;
use config::{Configuration, Element};
use diagnostics::Diagnostic;
use flow::{Compiled, Compiler, Definition, Unsupported};
use std::fmt::Write;

/// Any operation without a definition.
pub(crate) const DEFINITION: Definition = operation(
    flow::OPERATION,
    "An operation of a connector that is not executable here: a message that comes to it faults.",
    &["*"],
    compile,
);

/// What each connector needs that Busbar does not have.
const NEEDS: &[(&[&str], &str)] = &[
    (&["gmail", "smtp", "imap", "pop3"], "use `email.…`, the connector for mail servers"),
    (&["mongodb", "db", "cassandra"], "it needs a driver for its database: not in this version"),
    (
        &[
            "kafkaTransport",
            "kafkaConnector",
            "kafka",
            "rabbitmq",
            "solace",
            "pulsar",
            "nats",
            "ibmmq",
            "asb",
        ],
        "it needs a client for its broker: not in this version",
    ),
    (&["ftp", "sftp"], "it needs a file transport to other machines: not in this version"),
    (&["ai"], "it needs a client for a language model: call its HTTP interface with `http.post`"),
];

/// Why a library in the configuration does not have this operation; `None`: no library of this connector is faulty.
fn reason_in(name: &str, connector: &str, configuration: &Configuration) -> Option<String> {
    let in_use = configuration.libraries_in_use().find(|l| l.name == connector);
    if let Some(library) = in_use {
        let is_it = |operation: &&config::BrokenOperation| operation.name.as_ref().is_none_or(|n| n == name);
        let broken = library.broken.iter().find(is_it)?;
        return Some(match &broken.name {
            Some(_) => format!("its template in `{}` cannot be read: {}", library.path, broken.why),
            None => format!("a part of its library `{}` cannot be read: {}", library.path, broken.why),
        });
    }
    if let Some(library) = configuration.libraries.iter().find(|l| l.name == connector) {
        return Some(format!(
            "its library `{}` is not in use: the `status` of its import is not `enabled`",
            library.path
        ));
    }
    // The name of the library is inside of its archive, so the name of the file decides.
    let is_named = |path: &str| {
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        file.split(|letter: char| !letter.is_alphanumeric()).any(|part| part.eq_ignore_ascii_case(connector))
    };
    let broken = configuration.broken_libraries.iter().find(|files| is_named(&files.path))?;
    Some(format!("its library `{}` cannot be read: {}", broken.path, broken.why))
}

/// Why no library has this name.
fn missing(connector: &str, configuration: &Configuration) -> String {
    let library = match configuration.imports.iter().any(|i| *i.name == connector) {
        true => format!("its library is imported, and no archive of `{connector}`"),
        false => format!("no archive of a library `{connector}`"),
    };
    let broken = configuration.broken_libraries.first();
    let broken =
        broken.map(|files| format!("; `{}` cannot be read: {}", files.path, files.why)).unwrap_or_default();
    format!("{library} is in `synapse-libs` or `connectors`{broken}")
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let name = element.local();
    let connector = name.split('.').next().unwrap_or_default();
    let java = match crate::library::compile(element, compiler) {
        Some(Ok(compiled)) => return compiled,
        Some(Err(why)) => Some(why),
        None => None,
    };
    let of_library = crate::library::names(connector, compiler);
    let names = crate::definitions().map(|d| d.name).filter(|name| name.split('.').next() == Some(connector));
    let mut siblings: Vec<&str> = names.collect();
    let is_ours = !siblings.is_empty();
    siblings.extend(of_library.iter().map(String::as_str));
    let need = NEEDS.iter().find(|(names, _)| names.contains(&connector)).map(|(_, need)| *need);
    let in_configuration = reason_in(name, connector, compiler.configuration).filter(|_| !is_ours);
    let why = match (&java, in_configuration, need) {
        // The archive is there, and its Java class is the reason.
        (Some(java), _, Some(need)) => format!("{java}: {need}"),
        (Some(java), _, None) => java.clone(),
        (None, Some(why), _) => why,
        (None, None, _) if !siblings.is_empty() => {
            format!("the connector `{connector}` has no such operation here")
        }
        (None, None, Some(need)) => need.to_owned(),
        (None, None, None) => missing(connector, compiler.configuration),
    };
    let message = format!("connector operation `{name}` is not executable here");
    let mut found =
        Diagnostic::warning("unsupported-connector", format!("{message}: messages that come here fault"))
            .at(element.name_span(), why.clone());
    if java.is_some() || need.is_none() && siblings.is_empty() {
        found = found.help("use `http.…` with the interface of the service, or a script");
    }
    if java.is_none() && siblings.is_empty() {
        // For a connector that is imported, no other name is suggested.
        if !compiler.configuration.imports.iter().any(|i| *i.name == connector) {
            found = found.did_you_mean(name, crate::definitions().map(|d| d.name));
        }
    } else if java.is_none() {
        found = found.did_you_mean(name, siblings.iter().copied());
        let mut list = String::from("it has ");
        for (at, sibling) in siblings.iter().enumerate() {
            let _ = write!(list, "{}`{sibling}`", if at == 0 { "" } else { ", " });
        }
        found = found.help(list);
    }
    compiler.diagnostics.push(found);
    Some(Box::new(Unsupported::new(format!("{message}: {why}"))))
}
