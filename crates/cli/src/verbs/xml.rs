//! `busbar xml`: Checks, writes or canonicalises an XML document.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use xml::{Document, Dtd, FileResolver, Limits, ParseOptions, c14n};

/// Checks, writes or canonicalises an XML document.
///
/// Without an option the document is written again. A document that is not well-formed is an error with its
/// line and column, and the exit code 1.
#[derive(clap::Args)]
pub struct Args {
    /// The document; standard input when missing or `-`.
    input: Option<PathBuf>,
    /// Only checks that it is well-formed.
    #[arg(long, conflicts_with = "c14n")]
    check: bool,
    /// Writes the canonical form.
    #[arg(long, value_enum)]
    c14n: Option<Algorithm>,
    /// Keeps comments in the canonical form.
    #[arg(long, requires = "c14n")]
    with_comments: bool,
    /// Exclusive canonical form: prefixes handled as in the inclusive one (`#default`: the default namespace).
    #[arg(long, requires = "c14n", value_delimiter = ',', value_name = "PREFIX,…")]
    inclusive_namespaces: Vec<String>,
    /// Canonical form of the nodes this XPath 1.0 expression selects.
    #[arg(long, requires = "c14n", value_name = "EXPR")]
    xpath: Option<String>,
    /// A prefix for the expression.
    #[arg(long, value_name = "PREFIX=URI", value_parser = binding)]
    ns: Vec<(String, String)>,
    /// What of a document type declaration is read. Without it a DOCTYPE is refused, as in messages.
    #[arg(long, value_enum)]
    dtd: Option<DtdPart>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Algorithm {
    /// Canonical XML 1.0.
    #[value(name = "1.0")]
    V10,
    /// Canonical XML 1.1.
    #[value(name = "1.1")]
    V11,
    /// Exclusive XML Canonicalization 1.0.
    Exclusive,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum DtdPart {
    /// The internal subset.
    Internal,
    /// The internal and the external subset and external entities, from local files.
    External,
}

fn binding(text: &str) -> Result<(String, String), String> {
    let (prefix, uri) = text.split_once('=').ok_or("expected PREFIX=URI")?;
    Ok((prefix.to_owned(), uri.to_owned()))
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match output(&args) {
        Ok(out) => match std::io::stdout().lock().write_all(&out) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(message) => {
            eprintln!("busbar xml: {message}");
            ExitCode::FAILURE
        }
    }
}

fn output(args: &Args) -> Result<Vec<u8>, String> {
    let path = args.input.as_ref().filter(|p| p.as_os_str() != "-");
    let name = path.map_or_else(|| "stdin".to_owned(), |p| p.display().to_string());
    let mut bytes = Vec::new();
    match path {
        Some(path) => bytes = std::fs::read(path).map_err(|e| format!("{name}: {e}"))?,
        None => {
            std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    let options = ParseOptions {
        limits: Limits::trusted(),
        dtd: match args.dtd {
            None => Dtd::Refuse,
            Some(DtdPart::Internal) => Dtd::Internal,
            Some(DtdPart::External) => Dtd::External(Arc::new(FileResolver::default())),
        },
        base_uri: path.map(|p| p.to_string_lossy().into_owned()),
        ..ParseOptions::default()
    };
    let doc = Document::parse(bytes, &options).map_err(|e| format!("{name}:{e}"))?;
    let mut out = Vec::new();
    if args.check {
        return Ok(out);
    }
    let Some(algorithm) = args.c14n else {
        let options = xml::WriteOptions { declaration: true, ..xml::WriteOptions::default() };
        xml::write(&doc, Document::ROOT, &options, &mut out);
        out.push(b'\n');
        return Ok(out);
    };
    let options = c14n::Options {
        algorithm: match algorithm {
            Algorithm::V10 => c14n::Algorithm::Inclusive10,
            Algorithm::V11 => c14n::Algorithm::Inclusive11,
            Algorithm::Exclusive => c14n::Algorithm::Exclusive,
        },
        comments: args.with_comments,
        inclusive_prefixes: args.inclusive_namespaces.clone(),
    };
    match &args.xpath {
        None => c14n::canonicalize(&doc, Document::ROOT, &options, &mut out),
        Some(path) => c14n::canonicalize_set(&doc, &select(&doc, path, &args.ns)?, &options, &mut out),
    }
    Ok(out)
}

/// The nodes an expression selects.
fn select(doc: &Document, path: &str, ns: &[(String, String)]) -> Result<c14n::NodeSet, String> {
    let namespaces = ns.to_vec();
    let options = xpath::CompileOptions { namespaces: &namespaces, ..xpath::CompileOptions::default() };
    let expression = xpath::Expression::compile(path, &options).map_err(|e| e.render(path))?;
    let value = expression.evaluate(&xpath::Context::root(doc)).map_err(|e| e.render(path))?;
    let xpath::Value::NodeSet(nodes) = value else {
        return Err("--xpath: the expression selects no nodes".into());
    };
    let mut set = c14n::NodeSet::default();
    for n in nodes.iter() {
        // Namespace nodes are numbered: `xml` first, then what is in scope.
        match n.namespace {
            0 => set.add(n.id),
            1 => set.add_namespace(n.id, "xml"),
            i => {
                if let Some((prefix, _)) = doc.in_scope_namespaces(n.id).get(i as usize - 2) {
                    set.add_namespace(n.id, prefix);
                }
            }
        }
    }
    Ok(set)
}
