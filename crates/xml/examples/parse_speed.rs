//! MB/s of parsing SOAP order documents to a tree and of tokenizing them: `cargo run --profile quick -p busbar-xml
//! --example parse_speed [write DIR]`. With `write`, the documents are written to DIR for other parsers.

use busbar_xml::{Document, ParseOptions, Tokenizer, WriteOptions};
use bytes::Bytes;
use std::hint::black_box;
use std::time::Instant;

/// An order of about `size` bytes.
fn order(size: usize) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\">\n  <soapenv:Header>\n    <m:trace xmlns:m=\"urn:trace\" soapenv:mustUnderstand=\"0\">abc-123</m:trace>\n  </soapenv:Header>\n  <soapenv:Body>\n    <ord:placeOrder xmlns:ord=\"http://services.samples/orders\" priority=\"normal\">\n",
    );
    let mut i = 0;
    while text.len() + 120 < size || i == 0 {
        text += &format!(
            "      <ord:order id=\"{i}\" currency=\"EUR\">\n        <ord:symbol>SYM{i}</ord:symbol>\n        <ord:quantity>{}</ord:quantity>\n        <ord:price>{}.25</ord:price>\n        <ord:note>Deliver to &quot;Smith &amp; Sons&quot; before noon</ord:note>\n      </ord:order>\n",
            i % 100,
            i * 7 % 1000
        );
        i += 1;
    }
    text + "    </ord:placeOrder>\n  </soapenv:Body>\n</soapenv:Envelope>\n"
}

fn measure(name: &str, size: usize, mut f: impl FnMut()) {
    let mut best = f64::MAX;
    let rounds = (4_000_000 / size).max(3);
    for _ in 0..9 {
        let start = Instant::now();
        for _ in 0..rounds {
            f();
        }
        best = best.min(start.elapsed().as_secs_f64() / rounds as f64);
    }
    println!("{size:>8} B  {name:<22} {:>8.1} us  {:>7.0} MB/s", best * 1e6, size as f64 / best / 1e6);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    for size in [1_000, 100_000, 1_000_000] {
        let text = order(size);
        if let (Some("write"), Some(dir)) = (args.get(1).map(String::as_str), args.get(2)) {
            std::fs::write(format!("{dir}/order-{size}.xml"), &text).expect("the folder is there");
        }
        let bytes = Bytes::from(text.clone());
        let options = ParseOptions::default();
        let n = text.len();
        measure("tree, new document", n, || {
            black_box(Document::parse(bytes.clone(), &options).expect("well-formed"));
        });
        let mut doc = Document::new();
        measure("tree, reused document", n, || {
            doc.clear();
            black_box(doc.parse_into(Document::ROOT, bytes.clone(), &options).expect("well-formed"));
        });
        let mut tokenizer = Tokenizer::default();
        measure("tokenizer, one piece", n, || {
            tokenizer.reset();
            tokenizer.feed(&bytes);
            tokenizer.finish();
            while let Some(event) = tokenizer.next().expect("well-formed") {
                black_box(event);
            }
        });
        measure("tokenizer, 16 KB pieces", n, || {
            tokenizer.reset();
            for piece in bytes.chunks(16 << 10) {
                tokenizer.feed(piece);
                while let Some(event) = tokenizer.next().expect("well-formed") {
                    black_box(event);
                }
            }
            tokenizer.finish();
            black_box(tokenizer.next().expect("well-formed"));
        });
        let mut out = Vec::new();
        measure("write", n, || {
            out.clear();
            busbar_xml::write(&doc, Document::ROOT, &WriteOptions::default(), &mut out);
            black_box(&out);
        });
        println!("          {} nodes", doc.node_count());
    }
}
