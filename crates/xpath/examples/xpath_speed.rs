//! Time per evaluation on the tree and on the stream, on a SOAP message of about 1 KB, beside libxml2 (through lxml, when
//! Python has it) in the same run. `cargo run --profile quick -p busbar-xpath --example xpath_speed`

use busbar_xpath::{CompileOptions, Context, Decision, Expression, StreamAs, StreamContext};
use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

const EXPRESSIONS: [&str; 12] = [
    "//m:order[1]/m:symbol = 'IBM'",
    "/s:Envelope/s:Body/m:getQuote/m:request/m:symbol",
    "string(/s:Envelope/s:Body/m:getQuote/m:request/m:symbol)",
    "//m:symbol = 'IBM'",
    "//m:symbol",
    "boolean(//m:nothing)",
    "count(//*)",
    "//*[local-name()='symbol']",
    "//m:order[@type='limit']/m:symbol",
    "(//m:order)[last()]/m:symbol",
    "sum(//m:quantity) > 100",
    "concat(//m:symbol, '-', //m:quantity)",
];

fn message() -> String {
    let mut orders = String::new();
    for (i, symbol) in ["IBM", "MSFT", "SUN"].iter().enumerate() {
        let quantity = 10 * (i + 1);
        orders.push_str(&format!(
            "<m:order type=\"limit\" id=\"{i}\"><m:symbol>{symbol}</m:symbol><m:quantity>{quantity}</m:quantity>\
             <m:price currency=\"USD\">123.45</m:price></m:order>"
        ));
    }
    format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:m=\"http://services.samples\">\
         <s:Header><m:id>urn:uuid:0b5a5f2e-0001</m:id><m:to>http://localhost:9000/services/SimpleStockQuoteService</m:to>\
         </s:Header><s:Body><m:getQuote><m:request><m:symbol>IBM</m:symbol></m:request>{orders}\
         <m:comment>An order as clients send it, with some text in it.</m:comment></m:getQuote></s:Body></s:Envelope>"
    )
}

/// Nanoseconds per call: the best of several rounds.
fn time(mut f: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let n = 20_000;
        let start = Instant::now();
        for _ in 0..n {
            f();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(n));
    }
    best
}

const LXML: &str = r#"
import sys, time
from lxml import etree
lines = sys.stdin.read().split('\n')
doc = etree.fromstring(lines[0].encode())
ns = {'s': 'http://schemas.xmlsoap.org/soap/envelope/', 'm': 'http://services.samples'}
for e in lines[1:]:
    if not e: continue
    x = etree.XPath(e, namespaces=ns)
    best = 1e9
    for _ in range(7):
        t = time.perf_counter()
        for _ in range(5000): x(doc)
        best = min(best, (time.perf_counter() - t) / 5000)
    print(best * 1e9)
"#;

fn lxml(message: &str) -> Option<Vec<f64>> {
    let mut child = Command::new("python3")
        .args(["-c", LXML])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let input = format!("{message}\n{}", EXPRESSIONS.join("\n"));
    child.stdin.take()?.write_all(input.as_bytes()).ok()?;
    let out = String::from_utf8(child.wait_with_output().ok()?.stdout).ok()?;
    let times: Vec<f64> = out.lines().filter_map(|l| l.parse().ok()).collect();
    (times.len() == EXPRESSIONS.len()).then_some(times)
}

fn main() {
    let message = message();
    let doc = xml::Document::parse(message.clone().into_bytes(), &xml::ParseOptions::default())
        .expect("well-formed");
    let namespaces = [("s", "http://schemas.xmlsoap.org/soap/envelope/"), ("m", "http://services.samples")];
    let options = CompileOptions { namespaces: &namespaces, ..CompileOptions::default() };
    let reference = lxml(&message);
    println!("message of {} bytes; nanoseconds per evaluation", message.len());
    println!(
        "{:>8} {:>8} {:>12} {:>8} {:>8}  expression",
        "value", "boolean", "stream+token", "lxml", "ratio"
    );
    for (i, src) in EXPRESSIONS.iter().enumerate() {
        let e = Expression::compile(src, &options).expect("compiles");
        let cx = Context::root(&doc);
        let value = time(|| {
            black_box(e.evaluate(black_box(&cx)).expect("evaluates"));
        });
        let boolean = time(|| {
            black_box(e.evaluate_boolean(black_box(&cx)).expect("evaluates"));
        });
        let mut tokenizer = xml::Tokenizer::new(xml::Limits::default());
        let stream = e.streaming_as(StreamAs::Boolean, StreamContext::Document).ok().map(|plan| {
            time(|| {
                tokenizer.reset();
                let mut run = plan.start(&()).expect("starts");
                run.read(&mut tokenizer, message.as_bytes()).expect("well-formed");
                black_box(run.decision() != Decision::Undecided);
            })
        });
        let lxml = reference.as_ref().map(|r| r[i]);
        let shown = |n: Option<f64>| n.map_or("-".to_string(), |n| format!("{n:.0}"));
        let ratio = lxml.map_or("-".to_string(), |l| format!("{:.1}", l / value));
        println!("{value:>8.0} {boolean:>8.0} {:>12} {:>8} {ratio:>8}  {src}", shown(stream), shown(lxml));
    }
}
