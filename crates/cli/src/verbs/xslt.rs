//! `busbar xslt`: transforms a document with an XSLT stylesheet.

use clap::ValueEnum;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use xml::{Document, Dtd, Limits, ParseOptions};
use xslt::{CompileOptions, FileResolver, Processor, RunOptions, Stylesheet, XsltError};

/// Transforms a document with an XSLT stylesheet.
#[derive(clap::Args)]
pub struct Args {
    /// The stylesheet, or a document that names its own in `<?xml-stylesheet?>`.
    stylesheet: PathBuf,
    /// The document; standard input by default.
    input: Option<PathBuf>,
    /// A stylesheet parameter, as a string.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// The language version to behave as; by default that of the stylesheet.
    #[arg(long, value_name = "VERSION")]
    processor: Option<ProcessorArg>,
    /// Whether to run on the stream of the document instead of a tree.
    #[arg(long, default_value = "auto")]
    stream: Stream,
    /// What of a document type declaration is read; by default documents that have one are refused.
    #[arg(long)]
    dtd: Option<DtdArg>,
    /// Prints times and sizes to standard error.
    #[arg(long)]
    stats: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ProcessorArg {
    #[value(name = "1.0")]
    V1,
    #[value(name = "2.0")]
    V2,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Stream {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, ValueEnum)]
enum DtdArg {
    Internal,
    External,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match transform(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errors) => {
            for error in errors {
                eprintln!("busbar xslt: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn transform(args: &Args) -> Result<(), Vec<String>> {
    let one = |message: String| vec![message];
    if args.stream == Stream::Always {
        return Err(one("streaming execution is not built yet".into()));
    }
    if matches!(args.processor, Some(ProcessorArg::V2)) {
        return Err(one("XSLT 2.0 is not built yet".into()));
    }
    let dtd = match args.dtd {
        None => Dtd::Refuse,
        Some(DtdArg::Internal) => Dtd::Internal,
        Some(DtdArg::External) => Dtd::External(Arc::new(xml::FileResolver::default())),
    };
    let mut params = Vec::new();
    for param in &args.params {
        let (name, value) =
            param.split_once('=').ok_or_else(|| one(format!("--param {param}: name=value is expected")))?;
        params.push((name, xpath::Value::from(value)));
    }
    let resolver = FileResolver::default();
    let began = Instant::now();
    let uri = absolute(&args.stylesheet);
    let source =
        std::fs::read(&args.stylesheet).map_err(|e| one(format!("{}: {e}", args.stylesheet.display())))?;
    let options = CompileOptions {
        uri: &uri,
        resolver: &resolver,
        dtd: &dtd,
        processor: match args.processor {
            Some(ProcessorArg::V1) => Processor::V1,
            _ => Processor::ByStylesheet,
        },
        ..CompileOptions::default()
    };
    let stylesheet = Stylesheet::compile(&source, &options)
        .map_err(|errors| errors.iter().map(XsltError::to_string).collect::<Vec<_>>())?;
    let compiled = began.elapsed();

    let began = Instant::now();
    let (bytes, input_uri) = match &args.input {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|e| one(format!("{}: {e}", path.display())))?;
            (bytes, absolute(path))
        }
        None => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|e| one(format!("standard input: {e}")))?;
            (bytes, String::new())
        }
    };
    let size = bytes.len();
    let parse = ParseOptions {
        limits: Limits::trusted(),
        dtd: dtd.clone(),
        base_uri: (!input_uri.is_empty()).then(|| input_uri.clone()),
        strip_space: stylesheet.strip_space(),
        ..ParseOptions::default()
    };
    let input = Document::parse(bytes, &parse).map_err(|error| {
        let name = args.input.as_ref().map_or_else(|| "standard input".into(), |p| p.display().to_string());
        one(format!("{name}:{error}"))
    })?;
    let parsed = began.elapsed();

    let began = Instant::now();
    let messages = |text: &str| eprintln!("{text}");
    let run = RunOptions {
        resolver: &resolver,
        dtd: &dtd,
        messages: Some(&messages),
        stripped: true,
        input_uri: &input_uri,
        ..RunOptions::default()
    };
    let mut out = Vec::new();
    stylesheet
        .transform_to(&input, Document::ROOT, &params, &run, &mut out)
        .map_err(|error| one(error.to_string()))?;
    let transformed = began.elapsed();
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&out).and_then(|()| stdout.flush()).map_err(|e| one(format!("standard output: {e}")))?;
    if args.stats {
        eprintln!(
            "compiled in {compiled:?}, parsed {size} bytes in {parsed:?}, transformed in {transformed:?} to {} bytes",
            out.len()
        );
    }
    Ok(())
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}
