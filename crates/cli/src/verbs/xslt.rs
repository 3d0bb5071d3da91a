//! `busbar xslt`: transforms a document with an XSLT stylesheet.

use clap::ValueEnum;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use xml::{Document, Dtd, Limits, ParseOptions};
use xslt::{
    CompileOptions, FileResolver, FileResults, Processor, Results, RunOptions, Stylesheet, XsltError,
};

/// Transforms a document with an XSLT stylesheet.
#[derive(clap::Args)]
pub struct Args {
    /// The stylesheet, or a document that names its own in `<?xml-stylesheet?>`.
    stylesheet: PathBuf,
    /// The document; standard input by default.
    input: Option<PathBuf>,
    /// A stylesheet parameter, as an untyped value; NAME is `local` or `{uri}local`.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// The language version to behave as; by default that of the stylesheet. 2.0 is the least: a stylesheet of version 3.0 has 3.0 then.
    #[arg(long, value_name = "VERSION")]
    processor: Option<ProcessorArg>,
    /// Begins at this named template (`local` or `{uri}local`); without INPUT there is no document then.
    #[arg(long, value_name = "NAME")]
    initial_template: Option<String>,
    /// Begins in this mode: `local`, `{uri}local`, `#unnamed` or `#default`.
    #[arg(long, value_name = "NAME")]
    initial_mode: Option<String>,
    /// Whether to run on the stream of the document instead of a tree.
    #[arg(long, default_value = "auto")]
    stream: Stream,
    /// Where `xsl:result-document` writes its files; the current directory by default.
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
    /// A directory below which the stylesheet may read files while it runs (`doc()`, `unparsed-text()`): no others then, but its modules and INPUT.
    #[arg(long = "root", value_name = "DIRECTORY")]
    roots: Vec<PathBuf>,
    /// Lets `xsl:evaluate` run: expressions that are made at run time.
    #[arg(long)]
    allow_evaluate: bool,
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
    #[value(name = "3.0")]
    V3,
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
    let failed = |message: String| vec![message];
    let dtd = match args.dtd {
        None => Dtd::Refuse,
        Some(DtdArg::Internal) => Dtd::Internal,
        Some(DtdArg::External) => Dtd::External(Arc::new(xml::FileResolver::default())),
    };
    // A stylesheet may declare entities, as in a configuration.
    let of_stylesheet = args.dtd.map_or(Dtd::Complete, |_| dtd.clone());
    let mut params = Vec::new();
    let mut static_parameters = Vec::new();
    for param in &args.params {
        let (name, value) = param
            .split_once('=')
            .ok_or_else(|| failed(format!("--param {param}: name=value is expected")))?;
        params.push((name, xpath::Value::from(value)));
        static_parameters.push((name.to_owned(), value.to_owned()));
    }
    let resolver = FileResolver::default();
    let began = Instant::now();
    let uri = absolute(&args.stylesheet);
    let source =
        std::fs::read(&args.stylesheet).map_err(|e| failed(format!("{}: {e}", args.stylesheet.display())))?;
    let options = CompileOptions {
        uri: &uri,
        resolver: &resolver,
        dtd: &of_stylesheet,
        processor: match args.processor {
            Some(ProcessorArg::V1) => Processor::V1,
            Some(ProcessorArg::V2) => Processor::V2,
            Some(ProcessorArg::V3) => Processor::V3,
            None => Processor::ByStylesheet,
        },
        results: true,
        evaluate: args.allow_evaluate,
        static_parameters: &static_parameters,
        ..CompileOptions::default()
    };
    let stylesheet = Stylesheet::compile(&source, &options)
        .map_err(|errors| errors.iter().map(XsltError::to_string).collect::<Vec<_>>())?;
    let compiled = began.elapsed();

    let streaming = stylesheet.streaming();
    if args.stats {
        report(&streaming);
    }
    let began = Instant::now();
    let input_uri = args.input.as_deref().map_or_else(String::new, absolute);
    let no_input = args.initial_template.is_some() && args.input.is_none();
    let mut input = match no_input {
        true => Input::nothing(),
        false => Input::open(args.input.as_deref()).map_err(failed)?,
    };
    let messages = |text: &str| eprintln!("{text}");
    let results = match &args.results {
        Some(directory) => Some(FileResults::below(directory).map_err(failed)?),
        None => FileResults::below(Path::new(".")).ok(),
    };
    let documents = documents(args, &stylesheet).map_err(failed)?;
    let run = RunOptions {
        resolver: &documents,
        dtd: &dtd,
        messages: Some(&messages),
        results: results.as_ref().map(|results| results as &dyn Results),
        input_uri: &input_uri,
        initial_template: args.initial_template.as_deref(),
        initial_mode: args.initial_mode.as_deref(),
        no_input,
        ..RunOptions::default()
    };
    let streams = match args.stream {
        Stream::Never => false,
        _ if args.initial_template.is_some() || args.initial_mode.is_some() => {
            if args.stream == Stream::Always {
                return Err(failed(
                    "only what begins at the document streams: leave out --stream always".into(),
                ));
            }
            false
        }
        Stream::Always if args.dtd.is_some() => {
            return Err(failed(
                "a document whose DTD is read does not stream: leave out --dtd or --stream always".into(),
            ));
        }
        Stream::Always => true,
        // What is small runs on a tree: then nothing is written if it fails.
        Stream::Auto => {
            args.dtd.is_none() && streaming.whole.is_none() && input.is_large().map_err(failed)?
        }
    };
    if streams {
        let insist = args.stream == Stream::Always;
        let stats = stylesheet
            .transform_stream(&mut input, &Limits::trusted(), &params, &run, insist, &mut std::io::stdout())
            .map_err(|error| failed(error.to_string()))?;
        std::io::stdout().flush().map_err(|e| failed(format!("standard output: {e}")))?;
        results.map_or(Ok(()), FileResults::commit).map_err(failed)?;
        if args.stats {
            eprintln!(
                "compiled in {compiled:?}, streamed {} bytes in {:?}, at most {} bytes held at once",
                stats.read,
                began.elapsed(),
                stats.window
            );
        }
        return Ok(());
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|e| failed(format!("{}: {e}", input.name)))?;
    let size = bytes.len();
    let parse = ParseOptions {
        limits: Limits::trusted(),
        dtd: dtd.clone(),
        base_uri: (!input_uri.is_empty()).then(|| input_uri.clone()),
        strip_space: stylesheet.strip_space(),
        ..ParseOptions::default()
    };
    let input = match no_input {
        true => Document::new(),
        false => Document::parse(bytes, &parse).map_err(|error| failed(format!("{}:{error}", input.name)))?,
    };
    let parsed = began.elapsed();

    let began = Instant::now();
    let run = RunOptions { stripped: true, ..run };
    let mut out = Vec::new();
    stylesheet
        .transform_to(&input, Document::ROOT, &params, &run, &mut out)
        .map_err(|error| failed(error.to_string()))?;
    let transformed = began.elapsed();
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(&out)
        .and_then(|()| stdout.flush())
        .map_err(|e| failed(format!("standard output: {e}")))?;
    results.map_or(Ok(()), FileResults::commit).map_err(failed)?;
    if args.stats {
        eprintln!(
            "compiled in {compiled:?}, parsed {size} bytes in {parsed:?}, transformed in {transformed:?} to {} bytes",
            out.len()
        );
    }
    Ok(())
}

/// Reads what the stylesheet asks for while it runs.
fn documents(args: &Args, stylesheet: &Stylesheet) -> Result<FileResolver, String> {
    if args.roots.is_empty() {
        return Ok(FileResolver::default());
    }
    if let Some(root) = args.roots.iter().find(|root| !root.is_dir()) {
        return Err(format!("--root {}: there is no such directory", root.display()));
    }
    if matches!(args.dtd, Some(DtdArg::External)) {
        return Err("--dtd external reads any file: it cannot be given with --root".into());
    }
    let own = stylesheet.modules().iter().map(PathBuf::from).chain(args.input.clone());
    Ok(FileResolver::below(args.roots.iter().cloned().chain(own)))
}

/// Documents up to this size run on a tree unless streaming is asked for.
const LARGE: usize = 4 << 20;

/// The document to be read: what was looked at, and the rest.
struct Input {
    name: String,
    begin: std::io::Cursor<Vec<u8>>,
    rest: Box<dyn Read + Send>,
}

impl Input {
    fn open(path: Option<&Path>) -> Result<Input, String> {
        let (name, rest): (String, Box<dyn Read + Send>) = match path {
            None => ("standard input".into(), Box::new(std::io::stdin())),
            Some(path) => {
                let file = std::fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
                (path.display().to_string(), Box::new(file))
            }
        };
        Ok(Input { name, begin: std::io::Cursor::default(), rest })
    }

    /// No document.
    fn nothing() -> Input {
        let rest: Box<dyn Read + Send> = Box::new(std::io::empty());
        Input { name: String::new(), begin: std::io::Cursor::default(), rest }
    }

    /// Whether there is more than [`LARGE`].
    fn is_large(&mut self) -> Result<bool, String> {
        let begin = self.begin.get_mut();
        let taken = (&mut self.rest).take(LARGE as u64).read_to_end(begin);
        taken.map_err(|e| format!("{}: {e}", self.name))?;
        Ok(begin.len() == LARGE)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.begin.read(buffer)? {
            0 => self.rest.read(buffer),
            n => Ok(n),
        }
    }
}

/// Which templates stream, to standard error.
fn report(streaming: &xslt::Streaming) {
    match &streaming.whole {
        None => eprintln!("streams: memory depends on depth, and on what templates need whole"),
        Some(why) => eprintln!("does not stream: {why}"),
    }
    let width = streaming.templates.iter().map(|t| t.title.chars().count()).max().unwrap_or(0);
    for template in &streaming.templates {
        let outcome = match (&streaming.whole, &template.buffers) {
            (_, Some(why)) => format!("needs its node whole: {why}"),
            (Some(_), None) => "would stream".to_owned(),
            (None, None) => "streams".to_owned(),
        };
        eprintln!("  {:width$}  {}  {outcome}", template.title, template.place);
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}
