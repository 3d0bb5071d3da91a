//! Our side of `bench/engines/run.py`: reads commands, one a line, fields between tabs, and answers each with a line.
//!
//! ```text
//! load   SHEET INPUT     compiles the stylesheet, reads and parses the input
//! xpath  EXPR INPUT      compiles the expression (prefixes s and m), reads and parses the input
//! write  FILE            transforms once (with parsing) and writes the result
//! time   PHASE MS        repeats the phase for so many ms of CPU time: "ok NS-PER-CALL CALLS"
//! loop   PHASE COUNT     repeats it so many times (to be counted by callgrind)
//! ```
//!
//! Phases: `parse` (into a document that is used again, as the bus does), `fresh` (into a new one), `run` (transform the
//! parsed input into bytes), `whole` (parse and run), `tree` (the expression on the parsed input), `stream` (the
//! expression while tokenizing, stopping as soon as it is decided), `tokens` (tokenize all), `quick` (the same with
//! quick-xml, names resolved and text unescaped), `serialize`.

use busbar_xslt::{CompileOptions, FileResolver, RunOptions, Stylesheet};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::path::Path;
use xml::{Document, Dtd, Limits, ParseOptions, Tokenizer};
use xpath::{Context, Expression, StreamAs, StreamContext};

/// That of the bus.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Worker {
    sheet: Option<Stylesheet>,
    expression: Option<Expression>,
    dtd: Dtd,
    parse: ParseOptions,
    bytes: Bytes,
    uri: String,
    doc: Document,
    scratch: Document,
    out: Vec<u8>,
    tokenizer: Tokenizer,
}

type Outcome<T> = Result<T, String>;

fn main() {
    let resolver = xml::FileResolver::default();
    let mut worker = Worker {
        sheet: None,
        expression: None,
        dtd: Dtd::External(std::sync::Arc::new(resolver)),
        parse: ParseOptions::default(),
        bytes: Bytes::new(),
        uri: String::new(),
        doc: Document::new(),
        scratch: Document::new(),
        out: Vec::new(),
        tokenizer: Tokenizer::default(),
    };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let fields: Vec<&str> = line.split('\t').collect();
        let reply = worker.command(&fields).unwrap_or_else(|message| format!("failed: {message}"));
        println!("{}", reply.replace('\n', " "));
        let _ = std::io::stdout().flush();
    }
}

impl Worker {
    fn command(&mut self, fields: &[&str]) -> Outcome<String> {
        match fields {
            ["load", sheet, input] => {
                self.sheet = None;
                let source = std::fs::read(sheet).map_err(|e| e.to_string())?;
                let resolver = FileResolver::default();
                let options = CompileOptions {
                    uri: &absolute(sheet),
                    resolver: &resolver,
                    dtd: &self.dtd,
                    ..CompileOptions::default()
                };
                let sheet = Stylesheet::compile(&source, &options).map_err(|e| format!("{e:?}"))?;
                self.read(input, sheet.strip_space())?;
                self.sheet = Some(sheet);
            }
            ["xpath", source, input] => {
                let namespaces = [
                    ("s", "http://schemas.xmlsoap.org/soap/envelope/"),
                    ("m", "http://services.samples/xsd"),
                ];
                let options =
                    xpath::CompileOptions { namespaces: &namespaces, ..xpath::CompileOptions::default() };
                self.expression = Some(Expression::compile(source, &options).map_err(|e| e.to_string())?);
                self.read(input, None)?;
            }
            ["write", file] => {
                self.phase("whole")?;
                std::fs::write(file, &self.out).map_err(|e| e.to_string())?;
            }
            ["time", phase, ms] => {
                let least = ms.parse::<f64>().map_err(|e| e.to_string())? * 1e6;
                let began = now();
                let (mut calls, mut batch) = (0u64, 1);
                loop {
                    for _ in 0..batch {
                        self.phase(phase)?;
                    }
                    calls += batch;
                    let spent = now() - began;
                    if spent >= least {
                        return Ok(format!("ok {} {calls}", spent / calls as f64));
                    }
                    if spent < least / 8.0 {
                        batch *= 2;
                    }
                }
            }
            ["loop", phase, count] => {
                for _ in 0..count.parse::<u64>().map_err(|e| e.to_string())? {
                    self.phase(phase)?;
                }
            }
            _ => return Err("unknown command".into()),
        }
        Ok("ok".into())
    }

    fn read(&mut self, input: &str, strip_space: Option<xml::StripSpace>) -> Outcome<()> {
        self.bytes = std::fs::read(input).map_err(|e| e.to_string())?.into();
        self.uri = absolute(input);
        self.parse = ParseOptions {
            limits: Limits::trusted(),
            dtd: self.dtd.clone(),
            base_uri: Some(self.uri.clone()),
            strip_space,
            ..ParseOptions::default()
        };
        self.doc = Document::parse(self.bytes.clone(), &self.parse).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn phase(&mut self, name: &str) -> Outcome<()> {
        match name {
            "parse" => self.parse_again()?,
            "fresh" => {
                let doc = Document::parse(self.bytes.clone(), &self.parse).map_err(|e| e.to_string())?;
                black_box(doc.node_count());
            }
            "run" => self.run(false)?,
            "whole" => {
                self.parse_again()?;
                self.run(true)?;
            }
            "tree" => {
                let expression = self.expression.as_ref().ok_or("no expression")?;
                let value = expression.evaluate_boolean(&Context::root(&self.doc));
                black_box(value.map_err(|e| e.to_string())?);
            }
            "stream" => {
                let expression = self.expression.as_ref().ok_or("no expression")?;
                let plan = expression
                    .streaming_as(StreamAs::Boolean, StreamContext::Document)
                    .map_err(|e| format!("{e:?}"))?;
                let mut run = plan.start(&()).map_err(|e| e.to_string())?;
                self.tokenizer.reset();
                // As a connection delivers it.
                for piece in self.bytes.chunks(16 << 10) {
                    run.read(&mut self.tokenizer, piece).map_err(|e| e.to_string())?;
                    if run.is_decided() {
                        break;
                    }
                }
                if !run.is_decided() {
                    self.tokenizer.finish();
                    run.drain(&mut self.tokenizer).map_err(|e| e.to_string())?;
                    run.finish().map_err(|e| e.to_string())?;
                }
                black_box(run.decision());
            }
            "tokens" => {
                self.tokenizer.reset();
                self.tokenizer.feed(&self.bytes);
                self.tokenizer.finish();
                while let Some(event) = self.tokenizer.next().map_err(|e| e.to_string())? {
                    black_box(&event);
                }
            }
            "quick" => quick(&self.bytes)?,
            "serialize" => {
                self.out.clear();
                xml::write(&self.doc, Document::ROOT, &xml::WriteOptions::default(), &mut self.out);
            }
            _ => return Err("unknown phase".into()),
        }
        Ok(())
    }

    fn parse_again(&mut self) -> Outcome<()> {
        self.scratch.clear();
        self.scratch
            .parse_into(Document::ROOT, self.bytes.clone(), &self.parse)
            .map(|_| ())
            .map_err(|e| e.to_string())
    }

    fn run(&mut self, scratch: bool) -> Outcome<()> {
        let resolver = FileResolver::default();
        let run = RunOptions {
            resolver: &resolver,
            dtd: &self.dtd,
            stripped: true,
            input_uri: &self.uri,
            ..RunOptions::default()
        };
        let sheet = self.sheet.as_ref().ok_or("no stylesheet")?;
        let doc = if scratch { &self.scratch } else { &self.doc };
        self.out.clear();
        sheet.transform_to(doc, Document::ROOT, &[], &run, &mut self.out).map_err(|e| e.to_string())
    }
}

/// What our tokenizer does, with quick-xml: namespaces resolved, end tags checked, text and attribute values unescaped.
fn quick(bytes: &[u8]) -> Outcome<()> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::NsReader::from_reader(bytes);
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Eof => return Ok(()),
            Event::Start(tag) | Event::Empty(tag) => {
                black_box(reader.resolver().resolve_element(tag.name()));
                for attribute in tag.attributes() {
                    let attribute = attribute.map_err(|e| e.to_string())?;
                    black_box(reader.resolver().resolve_attribute(attribute.key));
                    black_box(attribute.unescape_value().map_err(|e| e.to_string())?);
                }
            }
            Event::Text(text) => {
                black_box(text.decode().map_err(|e| e.to_string())?);
            }
            event => {
                black_box(&event);
            }
        }
    }
}

fn now() -> f64 {
    // Of the process: deep recursion goes on in threads with larger stacks.
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn absolute(path: &str) -> String {
    std::path::absolute(Path::new(path)).map_or_else(|_| path.to_owned(), |p| p.display().to_string())
}
