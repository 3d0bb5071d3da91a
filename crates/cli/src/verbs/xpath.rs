//! `busbar xpath`: Evaluates an XPath expression.

use serde_json::{Value as Json, json};
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use xpath::atomic::{Atomic, AtomicType};
use xpath::{
    CompileOptions, Context, Expression, Item, Node, StreamAs, StreamContext, StreamPlan, Value, Version,
    XPathError, node_path,
};

/// Evaluates an XPath expression.
///
/// Prints the value: of a node-set each node on a line of its own (elements as XML, the others as their value).
/// Exits with 1 on an error, with its place marked.
#[derive(clap::Args)]
pub struct Args {
    /// The expression.
    #[arg(allow_hyphen_values = true)]
    expression: String,
    /// The document; standard input when missing or `-`. From 2.0 on there is no context item where nothing comes there.
    input: Option<PathBuf>,
    /// A prefix for the expression; can be repeated.
    #[arg(long = "ns", value_name = "PREFIX=URI", value_parser = binding)]
    namespaces: Vec<(String, String)>,
    /// A variable, by the expression of its value; can be repeated.
    #[arg(long = "var", value_name = "NAME=XPATH", value_parser = binding)]
    variables: Vec<(String, String)>,
    /// Selects the context node: the first node of this expression. By default the document node.
    #[arg(long, value_name = "XPATH")]
    context: Option<String>,
    /// The version of the language.
    #[arg(long, value_enum, default_value_t = LanguageVersion::V1)]
    xpath_version: LanguageVersion,
    /// What of a document type declaration is read; without, a DOCTYPE is refused, as in messages.
    #[arg(long, value_enum)]
    dtd: Option<Dtd>,
    /// Whether the expression is decided while the document is being read.
    #[arg(long, value_enum, default_value_t = Stream::Auto)]
    stream: Stream,
    /// Print type and value as JSON, nodes as paths in document order.
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum LanguageVersion {
    /// XPath 1.0, as in the bus.
    #[value(name = "1.0")]
    V1,
    /// XPath 2.0.
    #[value(name = "2.0")]
    V2,
    /// XPath 3.1.
    #[value(name = "3.1")]
    V31,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Dtd {
    /// The internal subset.
    Internal,
    /// Also the external subset and external entities, from local files.
    External,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Stream {
    /// Where it is possible. The rest of the document is still checked.
    Auto,
    /// Refuse what needs the tree, and stop reading at the deciding byte.
    Always,
    /// Always build the tree.
    Never,
}

fn binding(s: &str) -> Result<(String, String), String> {
    let (prefix, uri) = s.split_once('=').ok_or("expected PREFIX=URI")?;
    Ok((prefix.to_string(), uri.to_string()))
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let printed = evaluate(&args).and_then(|mut out| {
        out.push(b'\n');
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&out).and_then(|()| stdout.flush()).map_err(|e| format!("error: stdout: {e}"))
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn evaluate(args: &Args) -> Result<Vec<u8>, String> {
    let version = match args.xpath_version {
        LanguageVersion::V1 => Version::V1,
        LanguageVersion::V2 => Version::V2,
        LanguageVersion::V31 => Version::V31,
    };
    let mut variables = Variables::default();
    for (name, source) in &args.variables {
        let options = CompileOptions {
            namespaces: &args.namespaces,
            library: &variables,
            version,
            ..CompileOptions::default()
        };
        let fail = |e: XPathError| format!("--var {name}: {}", e.render(source));
        let value = Expression::compile(source, &options).map_err(fail)?;
        let cx = Context { locals: &variables.values, ..Context::without_document(&()) };
        let value = value.evaluate(&cx).map_err(fail)?;
        variables.names.push(name.clone());
        variables.values.push(value);
    }
    let options = CompileOptions {
        namespaces: &args.namespaces,
        library: &variables,
        version,
        ..CompileOptions::default()
    };
    let compile = |src: &str| Expression::compile(src, &options).map_err(|e| e.render(src));
    let expression = compile(&args.expression)?;
    let context = args.context.as_deref().filter(|c| c.trim() != "/").map(compile).transpose()?;

    // What looks at no document waits for none. From 2.0 on there may be no context item: nothing comes on standard input.
    let is_version2_or_later = args.xpath_version != LanguageVersion::V1;
    let mut begin = Vec::new();
    let mut absent = args.input.is_none() && context.is_none() && !expression.needs().document;
    if args.input.is_none() && context.is_none() && is_version2_or_later && !absent {
        let mut stdin = std::io::stdin().lock();
        absent = stdin.is_terminal();
        if !absent {
            let taken = (&mut stdin).take(1 << 12).read_to_end(&mut begin);
            taken.map_err(|e| format!("error: {}: {e}", name(args)))?;
            absent = begin.is_empty();
        }
    }
    if absent {
        let node = if is_version2_or_later { Node::ABSENT } else { Node::new(xml::Document::ROOT) };
        let host = ParsedDocuments::default();
        let cx = Context { node, locals: &variables.values, ..Context::without_document(&host) };
        let value = expression.evaluate(&cx).map_err(|e| e.render(&args.expression))?;
        return print(args, &cx, &value);
    }
    let input = open(args, begin)?;

    if args.stream != Stream::Never && args.variables.is_empty() {
        let plan = match &context {
            None => expression.streaming_as(StreamAs::Value, StreamContext::Document),
            Some(_) => {
                Err(xpath::NotStreamable { reason: "--context selects in the tree".into(), span: 0..0 })
            }
        };
        match plan {
            // Document type declarations are read only into the tree.
            Ok(plan) if args.dtd.is_none() || args.stream == Stream::Always => {
                let value = stream(args, plan, input)?;
                return print(args, &Context::without_document(&()), &value);
            }
            Err(why) if args.stream == Stream::Always => {
                let error = XPathError::new(format!("not streamable: {}", why.reason), why.span);
                return Err(error.render(&args.expression));
            }
            _ => {}
        }
    }

    let doc = document(args, input)?;
    let root = Context::root(&doc);
    let node = match &context {
        None => Node::new(xml::Document::ROOT),
        Some(context) => match context.evaluate_first(&root).map_err(|e| e.render(context.source()))? {
            Some(node) => node,
            None => return Err(format!("error: --context {}: no such node", context.source())),
        },
    };
    let host = ParsedDocuments::default();
    let cx = Context { locals: &variables.values, ..Context::at(&doc, node) }.with_host(&host);
    let value = expression.evaluate(&cx).map_err(|e| e.render(&args.expression))?;
    print(args, &cx, &value)
}

/// Most documents that an expression may make.
const MAX_MADE: usize = 1 << 12;

/// The documents that the expression makes (`parse-xml()`), numbered from 1.
struct ParsedDocuments(Box<[OnceLock<xml::Document>]>);

impl Default for ParsedDocuments {
    fn default() -> ParsedDocuments {
        ParsedDocuments((0..MAX_MADE).map(|_| OnceLock::new()).collect())
    }
}

impl xpath::Host for ParsedDocuments {
    fn shared(&self) -> Option<&(dyn xpath::Host + Sync)> {
        Some(self)
    }

    fn document(&self, id: xpath::DocId) -> Option<&xml::Document> {
        self.0.get((id.0 as usize).checked_sub(1)?)?.get()
    }

    fn adopt(&self, doc: xml::Document) -> Result<Node, String> {
        if let Some(at) = self.0.iter().position(|cell| cell.get().is_none()) {
            self.0[at].get_or_init(|| doc);
            return Ok(Node::in_document(xpath::DocId(at as u32 + 1), xml::Document::ROOT));
        }
        Err(format!("an expression makes {MAX_MADE} documents at most"))
    }
}

/// The variables of the command line.
#[derive(Default)]
struct Variables {
    names: Vec<String>,
    values: Vec<Value>,
}

impl xpath::FunctionLibrary for Variables {
    fn variable(&self, prefix: &str, _: Option<&str>, local: &str) -> Option<xpath::VariableInfo> {
        let name = if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") };
        let slot = self.names.iter().rposition(|variable| *variable == name)? as u32;
        Some(xpath::VariableInfo { slot, ..xpath::VariableInfo::default() })
    }
}

fn name(args: &Args) -> String {
    args.input.as_ref().map_or("stdin".to_string(), |p| p.display().to_string())
}

/// The input; `begin`: what was read of standard input already.
fn open(args: &Args, begin: Vec<u8>) -> Result<Box<dyn Read>, String> {
    Ok(match &args.input {
        None => Box::new(std::io::Cursor::new(begin).chain(std::io::stdin().lock())),
        Some(path) if path.as_os_str() == "-" => Box::new(std::io::stdin().lock()),
        Some(path) => {
            Box::new(std::fs::File::open(path).map_err(|e| format!("error: {}: {e}", path.display()))?)
        }
    })
}

fn limits() -> xml::Limits {
    xml::Limits::trusted()
}

fn document(args: &Args, mut input: Box<dyn Read>) -> Result<xml::Document, String> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|e| format!("error: {}: {e}", name(args)))?;
    let options = xml::ParseOptions {
        limits: limits(),
        dtd: match args.dtd {
            None => xml::Dtd::Refuse,
            Some(Dtd::Internal) => xml::Dtd::Internal,
            Some(Dtd::External) => xml::Dtd::External(Arc::new(xml::FileResolver::default())),
        },
        base_uri: args.input.as_ref().map(|p| p.to_string_lossy().into_owned()),
        ..xml::ParseOptions::default()
    };
    xml::Document::parse(bytes, &options).map_err(|e| format!("error: {}: {e}", name(args)))
}

/// Evaluates while reading. With `--stream auto` the rest of the document is read as well, so that a document that is not
/// well-formed is an error as it is with the tree.
fn stream(args: &Args, plan: &StreamPlan, mut input: Box<dyn Read>) -> Result<Value, String> {
    let mut run = plan.start(&()).map_err(|e| e.render(&args.expression))?;
    let mut tokenizer = xml::Tokenizer::new(limits());
    let mut buffer = vec![0; 1 << 16];
    let wrong = |e: xml::XmlError| format!("error: {}: {e}", name(args));
    loop {
        let n = input.read(&mut buffer).map_err(|e| format!("error: {}: {e}", name(args)))?;
        let needed = run.read(&mut tokenizer, &buffer[..n]).map_err(wrong)?;
        if n == 0 {
            tokenizer.finish();
            run.drain(&mut tokenizer).map_err(wrong)?;
        }
        if run.is_decided() {
            if args.stream == Stream::Always {
                break;
            }
            tokenizer.feed(&buffer[needed..n]);
            tokenizer.skim(&xml::Interest::NOTHING).map_err(wrong)?;
        }
        if n == 0 {
            break;
        }
    }
    run.finish().map_err(|e| e.render(&args.expression))
}

/// Most members of maps and arrays that are shown: they can be shared, so that a small value has very many.
const MAX_SHOWN: usize = 1 << 20;

/// Whether the members of all maps and arrays are not too many, those within one another too.
fn can_be_shown(value: &Value, left: &mut usize) -> bool {
    let mut fits = |member: &Value| {
        let count = 1 + member.len();
        *left = left.saturating_sub(count);
        *left > 0 && can_be_shown(member, left)
    };
    value.items().all(|item| match item {
        Item::Atomic(Atomic::Map(map)) => map.entries().into_iter().all(|(_, member)| fits(member)),
        Item::Atomic(Atomic::Array(array)) => array.members().all(&mut fits),
        _ => true,
    })
}

fn print(args: &Args, cx: &Context<'_>, value: &Value) -> Result<Vec<u8>, String> {
    if !can_be_shown(value, &mut { MAX_SHOWN }) {
        return Err(format!("error: the value has more than {MAX_SHOWN} members of maps and arrays"));
    }
    // The nodes are those of the document at hand: their strings are there.
    let mut string = value.to_string_in(cx).map(|s| s.into_owned()).unwrap_or_default();
    if let (true, Some(atom)) = (args.xpath_version != LanguageVersion::V1, value.single_atomic()) {
        string = atom.to_text().into_owned();
    }
    if let Value::Sequence(_) = value {
        let texts = value.items().map(|item| Value::from(item).to_string_in(cx).map(|s| s.into_owned()));
        string = texts.collect::<Result<Vec<_>, _>>().unwrap_or_default().join(" ");
    }
    if !args.json {
        return Ok(match value {
            Value::Atomic(atom) if atom.is_function() => line(cx, Item::Atomic(atom.clone())),
            Value::NodeSet(_) | Value::Sequence(_) => {
                let lines: Vec<Vec<u8>> = value.items().map(|item| line(cx, item)).collect();
                lines.join(&b'\n')
            }
            _ => string.into_bytes(),
        });
    }
    Ok(object(cx, value, string, args.xpath_version != LanguageVersion::V1).to_string().into_bytes())
}

/// The JSON form. With XPath 2.0 atomic values have their type, and sequences list their items.
fn object(cx: &Context<'_>, value: &Value, string: String, typed: bool) -> Json {
    let kind = value.type_of().name();
    let mut object = match value {
        Value::NodeSet(set) if set.iter().any(|n| n.doc.0 != 0) => {
            let items = set.iter().map(|n| item_object(cx, &Item::Node(n), typed));
            json!({ "type": "sequence", "items": items.collect::<Vec<_>>(), "string": string })
        }
        Value::Atomic(a) if a.is_function() => item_object(cx, &Item::Atomic(a.clone()), typed),
        Value::NodeSet(set) => {
            let paths: Vec<String> = set.iter().map(|n| node_path(cx.doc, n)).collect();
            json!({ "type": kind, "nodes": paths, "string": string })
        }
        Value::Empty => json!({ "type": kind, "nodes": [], "string": string }),
        Value::Number(n) => json!({ "type": kind, "value": number(*n), "string": string }),
        Value::Boolean(b) => json!({ "type": kind, "value": b, "string": string }),
        Value::Atomic(Atomic::Integer(n)) => json!({ "type": kind, "value": n, "string": string }),
        Value::Atomic(a @ Atomic::Large(_)) => {
            json!({ "type": kind, "value": a.to_text(), "string": string })
        }
        Value::Atomic(a) if a.is_numeric() => {
            json!({ "type": kind, "value": number(a.to_double()), "string": string })
        }
        Value::Sequence(items) => {
            let items = items.iter().map(|item| item_object(cx, item, typed));
            json!({ "type": "sequence", "items": items.collect::<Vec<_>>(), "string": string })
        }
        _ => json!({ "type": kind, "value": string, "string": string }),
    };
    if let (Some(atom), true) = (value.single_atomic().filter(|atom| !atom.is_function()), typed)
        && let Some(fields) = object.as_object_mut()
    {
        fields.insert("atomic".into(), json!(format!("xs:{}", AtomicType::of(atom.kind()).name)));
        if let Atomic::Name(name) = &atom {
            fields.insert("uri".into(), json!(&*name.namespace));
        }
    }
    object
}

/// An item in its JSON form.
fn item_object(cx: &Context<'_>, item: &Item, typed: bool) -> Json {
    let members = |value: &Value| value.items().map(|item| item_object(cx, &item, typed)).collect::<Vec<_>>();
    match item {
        Item::Node(node) if node.doc.0 == 0 => json!({ "type": "node", "node": node_path(cx.doc, *node) }),
        // Of a document that the expression made.
        Item::Node(node) => {
            let Some(doc) = cx.host.document(node.doc) else { return Json::Null };
            let string = Value::from(*node).to_string_in(cx).map(|s| s.into_owned()).unwrap_or_default();
            let kind = match doc.kind(node.id) {
                _ if node.is_namespace() => "namespace",
                xml::NodeKind::Document => "document",
                xml::NodeKind::Element => "element",
                xml::NodeKind::Attribute => "attribute",
                xml::NodeKind::Text => "text",
                xml::NodeKind::Comment => "comment",
                xml::NodeKind::ProcessingInstruction => "processing-instruction",
            };
            let xml = String::from_utf8_lossy(&shown(cx, *node)).into_owned();
            let (path, name) = (node_path(doc, *node), doc.qname(node.id).into_owned());
            json!({
                "type": "node", "node": path, "foreign": true, "kind": kind, "name": name, "string": string, "xml": xml,
            })
        }
        Item::Atomic(Atomic::Map(map)) => {
            let entries = map.entries();
            let entries = entries.into_iter().map(|(key, value)| {
                json!({ "key": item_object(cx, &Item::Atomic(key.clone()), typed), "value": members(value) })
            });
            json!({ "type": "map", "entries": entries.collect::<Vec<_>>() })
        }
        Item::Atomic(Atomic::Array(array)) => {
            json!({ "type": "array", "members": array.members().map(members).collect::<Vec<_>>() })
        }
        Item::Atomic(Atomic::Function(function)) => json!({ "type": "function", "arity": function.arity() }),
        Item::Atomic(atom) => {
            let value = Value::from(atom.clone());
            object(cx, &value, atom.to_text().into_owned(), typed)
        }
    }
}

/// An item on a line of its own.
fn line(cx: &Context<'_>, item: Item) -> Vec<u8> {
    match item {
        Item::Node(node) => shown(cx, node),
        Item::Atomic(atom) if atom.is_function() => {
            item_object(cx, &Item::Atomic(atom), true).to_string().into_bytes()
        }
        Item::Atomic(atom) => atom.to_text().into_owned().into_bytes(),
    }
}

fn number(n: f64) -> Json {
    if n.is_finite() && n.fract() == 0.0 && n.abs() < 1e15 && !(n == 0.0 && n.is_sign_negative()) {
        return json!(n as i64);
    }
    if n.is_finite() { json!(n) } else { json!(xpath::number::format(n)) }
}

fn shown(cx: &Context<'_>, node: Node) -> Vec<u8> {
    let doc = if node.doc.0 == 0 { cx.doc } else { cx.host.document(node.doc).unwrap_or(cx.doc) };
    let kind = doc.kind(node.id);
    if !node.is_namespace() && matches!(kind, xml::NodeKind::Element | xml::NodeKind::Document) {
        let mut out = Vec::new();
        xml::write(doc, node.id, &xml::WriteOptions::default(), &mut out);
        return out;
    }
    Value::from(node).to_string_in(cx).map(|s| s.into_owned().into_bytes()).unwrap_or_default()
}
