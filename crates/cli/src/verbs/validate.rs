//! `busbar validate`: Validates a document against XML Schemas or a JSON Schema.

use schema::{Draft, Files, JsonSchema, Source, Violation, XmlSchema};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Validates a document against XML Schemas or a JSON Schema.
///
/// Prints every violation with its place. Exit code 0: valid, 1: invalid or not well-formed, 2: the schema
/// itself is wrong.
#[derive(clap::Args)]
pub struct Args {
    /// Schemas: XML Schema 1.0 (several make one), or one JSON Schema; told apart by their content.
    #[arg(required = true)]
    schemas: Vec<PathBuf>,
    /// The document; standard input when `-`.
    #[arg(long, required_unless_present = "schema_only")]
    input: Option<PathBuf>,
    /// Only checks the schema.
    #[arg(long, conflicts_with = "input")]
    schema_only: bool,
    /// The draft of a JSON Schema whose `$schema` names none.
    #[arg(long, value_enum, default_value = "2020-12")]
    draft: DraftName,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum DraftName {
    #[value(name = "4")]
    Draft4,
    #[value(name = "6")]
    Draft6,
    #[value(name = "7")]
    Draft7,
    #[value(name = "2019-09")]
    Draft201909,
    #[value(name = "2020-12")]
    Draft202012,
}

impl DraftName {
    fn draft(self) -> Draft {
        match self {
            DraftName::Draft4 => Draft::Draft4,
            DraftName::Draft6 => Draft::Draft6,
            DraftName::Draft7 => Draft::Draft7,
            DraftName::Draft201909 => Draft::Draft201909,
            DraftName::Draft202012 => Draft::Draft202012,
        }
    }
}

/// Exit codes besides success.
const INVALID: u8 = 1;
const BAD_SCHEMA: u8 = 2;

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match validate(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            // To whoever reads it; when nobody does, the exit code says it.
            let _ = writeln!(std::io::stderr().lock(), "{message}");
            ExitCode::from(code)
        }
    }
}

enum Schema {
    Xml(Box<XmlSchema>),
    Json(JsonSchema),
}

fn validate(args: &Args) -> Result<(), (u8, String)> {
    let schema = load(args).map_err(|message| (BAD_SCHEMA, message))?;
    let Some(input) = args.input.as_ref().filter(|_| !args.schema_only) else { return Ok(()) };
    let invalid = |message: String| (INVALID, message);
    let (name, bytes) = read(input).map_err(invalid)?;
    let violations = match &schema {
        Schema::Xml(schema) => {
            let options = xml::ParseOptions { dtd: xml::Dtd::Internal, ..xml::ParseOptions::trusted() };
            let document =
                xml::Document::parse(bytes, &options).map_err(|error| invalid(format!("{name}:{error}")))?;
            let Some(root) = document.document_element() else {
                return Err(invalid(format!("{name}: no element")));
            };
            schema.validate(&document, root)
        }
        Schema::Json(schema) => {
            let value =
                serde_json::from_slice(&bytes).map_err(|error| invalid(format!("{name}: {error}")))?;
            schema.validate(&value)
        }
    };
    let lines: Vec<String> = violations.iter().map(|violation| located(&name, violation)).collect();
    if lines.is_empty() { Ok(()) } else { Err(invalid(lines.join("\n"))) }
}

/// A violation with the name of the document in front.
fn located(name: &str, violation: &Violation) -> String {
    if violation.line > 0 { format!("{name}:{violation}") } else { format!("{name}: {violation}") }
}

fn load(args: &Args) -> Result<Schema, String> {
    let mut sources = Vec::new();
    for path in &args.schemas {
        let (name, bytes) = read(path)?;
        sources.push(Source { name, bytes });
    }
    let together = |violations: Vec<Violation>| {
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let is_json = |source: &Source| !looks_like_xml(&source.bytes);
    match sources.iter().filter(|s| is_json(s)).count() {
        0 => XmlSchema::load(sources, &Files).map(|schema| Schema::Xml(Box::new(schema))).map_err(together),
        1 if sources.len() == 1 => {
            let source = sources.remove(0);
            JsonSchema::load(source, args.draft.draft(), &Files).map(Schema::Json).map_err(together)
        }
        _ => Err("several schemas must all be XML Schemas".to_owned()),
    }
}

/// Whether the first character is that of markup; a byte order mark and UTF-16 do not matter.
fn looks_like_xml(bytes: &[u8]) -> bool {
    let mut visible = bytes
        .iter()
        .filter(|b| !matches!(b, 0 | 0xEF | 0xBB | 0xBF | 0xFE | 0xFF | b' ' | b'\t' | b'\n' | b'\r'));
    visible.next() == Some(&b'<')
}

fn read(path: &Path) -> Result<(String, Vec<u8>), String> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| format!("standard input: {error}"))?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| format!("{name}: {}", diagnostics::io_reason(&error)))?;
    Ok((name, bytes))
}
