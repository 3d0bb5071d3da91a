//! Operations that are not executable here. Loading names each with what it needs; a message that comes to one faults, so that the rest
//! of its artifact serves.

use crate::operation::operation;
use config::Element;
use diagnostics::Diagnostic;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need};
use std::fmt::Write;

/// Any operation that has no definition of its own.
pub(crate) const DEFINITION: Definition = operation(
    flow::OPERATION,
    "An operation of a connector that is not executable here: a message that comes to it faults.",
    &["*"],
    compile,
);

/// What connectors need that is not here.
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
    (&["ftp", "sftp", "fileconnector"], "it needs a file transport to other machines: not in this version"),
    (&["ai"], "it needs a client for a language model: call its HTTP interface with `http.post`"),
];

struct Absent(String);

impl Mediator for Absent {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn reason(&self) -> String {
        "is not executable: it faults".to_owned()
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Err(Fault::new(self.0.as_str()))
    }
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let name = element.local();
    let connector = name.split('.').next().unwrap_or_default();
    let siblings: Vec<&str> = crate::definitions()
        .map(|own| own.name)
        .filter(|own| own.split('.').next() == Some(connector))
        .collect();
    let need = NEEDS.iter().find(|(names, _)| names.contains(&connector)).map(|(_, need)| *need);
    let why = match (need, siblings.is_empty()) {
        (_, false) => format!("the connector `{connector}` has no such operation here"),
        (Some(need), true) => need.to_owned(),
        (None, true) => {
            "it runs Java: use `http.…` with the interface of the service, or a script".to_owned()
        }
    };
    let message = format!("connector operation `{name}` is not executable here");
    let mut found =
        Diagnostic::warning("unsupported-connector", format!("{message}: messages that come here fault"))
            .at(element.name_span(), why.clone());
    if siblings.is_empty() {
        // A connector that is imported is meant, whatever its name is like.
        if !compiler.configuration.imports.iter().any(|own| *own.name == connector) {
            found = found.did_you_mean(name, crate::definitions().map(|own| own.name));
        }
    } else {
        found = found.did_you_mean(name, siblings.iter().copied());
        let mut list = String::from("it has ");
        for (at, sibling) in siblings.iter().enumerate() {
            let _ = write!(list, "{}`{sibling}`", if at == 0 { "" } else { ", " });
        }
        found = found.help(list);
    }
    compiler.diagnostics.push(found);
    Some(Box::new(Absent(format!("{message}: {why}"))))
}
