//! Speed on order messages, against xsltproc (libxslt) in the same run.
//!
//! `cargo run --profile quick -p busbar-xslt --example xslt_speed`
//!
//! Two stylesheets turn an order message whose names are written backwards into the right one: `rename` has a template
//! rule per element, `foreach` one template with a loop. Ours is timed as a whole (parse, transform, serialise) and
//! the transformation alone (to bytes); xsltproc's figure is `--repeat --timing --noout`: parse and transform, nothing
//! written. The results are checked against xsltproc's.

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};
use xml::{Document, ParseOptions};

const RENAME: &str = r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://services.samples/xsd">
<xsl:output method="xml" omit-xml-declaration="yes"/>
<xsl:template match="soapenv:Envelope"><soapenv:Envelope><xsl:apply-templates/></soapenv:Envelope></xsl:template>
<xsl:template match="soapenv:Body"><soapenv:Body><xsl:apply-templates/></soapenv:Body></xsl:template>
<xsl:template match="m:skcotSyub"><m:buyStocks><xsl:apply-templates/></m:buyStocks></xsl:template>
<xsl:template match="redro"><order><xsl:apply-templates/></order></xsl:template>
<xsl:template match="lobmys"><symbol><xsl:value-of select="."/></symbol></xsl:template>
<xsl:template match="DIreyub"><buyerID><xsl:value-of select="."/></buyerID></xsl:template>
<xsl:template match="ecirp"><price><xsl:value-of select="."/></price></xsl:template>
<xsl:template match="emulov"><volume><xsl:value-of select="."/></volume></xsl:template>
</xsl:stylesheet>"#;

const FOREACH: &str = r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://services.samples/xsd">
<xsl:output method="xml" omit-xml-declaration="yes"/>
<xsl:template match="/"><soapenv:Envelope><soapenv:Body><xsl:apply-templates select="//m:skcotSyub"/></soapenv:Body></soapenv:Envelope></xsl:template>
<xsl:template match="m:skcotSyub"><m:buyStocks><xsl:for-each select="redro"><order><symbol><xsl:value-of select="lobmys"/></symbol><buyerID><xsl:value-of select="DIreyub"/></buyerID><price><xsl:value-of select="ecirp"/></price><volume><xsl:value-of select="emulov"/></volume></order></xsl:for-each></m:buyStocks></xsl:template>
</xsl:stylesheet>"#;

fn message(size: usize) -> String {
    let mut text = String::from(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body>\
         <m:skcotSyub xmlns:m=\"http://services.samples/xsd\">",
    );
    let mut at = 0;
    while text.len() + 150 < size || at == 0 {
        let _ = write!(
            text,
            "<redro><lobmys>IBM</lobmys><DIreyub>asankha</DIreyub><ecirp>{}.34</ecirp><emulov>{}</emulov></redro>",
            140 + at % 50,
            2000 + at % 900
        );
        at += 1;
    }
    text.push_str("</m:skcotSyub></soapenv:Body></soapenv:Envelope>");
    text
}

fn main() {
    // For a profiler: `xslt_speed rename 102400 COUNT` transforms only.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, size, count] = arguments.as_slice() {
        let source = if name == "foreach" { FOREACH } else { RENAME };
        let sheet = Stylesheet::compile(source.as_bytes(), &CompileOptions::default()).expect("compiles");
        let input = message(size.parse().expect("a size"));
        let doc = Document::parse(input.into_bytes(), &ParseOptions::default()).expect("parses");
        let mut out = Vec::new();
        for _ in 0..count.parse().expect("a count") {
            out.clear();
            sheet
                .transform_to(&doc, Document::ROOT, &[], &RunOptions::default(), &mut out)
                .expect("transforms");
        }
        return;
    }
    let folder = std::env::temp_dir().join(format!("xslt_speed_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    println!(
        "{:8} {:>8} {:>12} {:>12} {:>12} {:>9} {:>9}",
        "sheet", "bytes", "whole ns", "run ns", "libxslt ns", "whole x", "run x"
    );
    for (name, source) in [("rename", RENAME), ("foreach", FOREACH)] {
        let sheet_file = folder.join(format!("{name}.xsl"));
        std::fs::write(&sheet_file, source).expect("written");
        let sheet = Stylesheet::compile(source.as_bytes(), &CompileOptions::default()).expect("compiles");
        for size in [1 << 10, 10 << 10, 100 << 10, 1 << 20] {
            let input = message(size);
            let input_file = folder.join(format!("{size}.xml"));
            std::fs::write(&input_file, &input).expect("written");
            let bytes: Vec<u8> = input.into_bytes();
            let parse = ParseOptions::default();
            let run = RunOptions::default();
            let doc = Document::parse(bytes.clone(), &parse).expect("parses");
            let mut out = Vec::new();
            let only = time(|| {
                out.clear();
                sheet.transform_to(&doc, Document::ROOT, &[], &run, &mut out).expect("transforms");
                black_box(out.len());
            });
            let ours = String::from_utf8_lossy(&out).into_owned();
            let whole = time(|| {
                let doc = Document::parse(bytes.clone(), &parse).expect("parses");
                out.clear();
                sheet.transform_to(&doc, Document::ROOT, &[], &run, &mut out).expect("transforms");
                black_box(out.len());
            });
            let theirs = Command::new("xsltproc").arg(&sheet_file).arg(&input_file).output();
            let Ok(theirs) = theirs else {
                println!("{name:8} {size:8} {whole:12} {only:12} (no xsltproc)");
                continue;
            };
            let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
            assert_eq!(ours.trim_end(), theirs.trim_end(), "the results differ");
            let peer = xsltproc(&sheet_file, &input_file);
            println!(
                "{name:8} {size:8} {whole:12.0} {only:12.0} {peer:12.0} {:9.1} {:9.1}",
                peer / whole,
                peer / only
            );
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

/// The median of several rounds, in ns.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let began = Instant::now();
    f();
    let once = began.elapsed().max(Duration::from_nanos(100));
    let rounds = (Duration::from_millis(20).as_nanos() / once.as_nanos()).clamp(1, 20_000) as u32;
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..rounds {
                f();
            }
            began.elapsed().as_nanos() as f64 / f64::from(rounds)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// ns per parse and transformation, the best of several runs.
fn xsltproc(sheet: &std::path::Path, input: &std::path::Path) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let output = Command::new("xsltproc")
            .args(["--repeat", "--repeat", "--noout", "--timing"])
            .arg(sheet)
            .arg(input)
            .output();
        let Ok(output) = output else { return f64::NAN };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        for line in text.lines().filter(|l| l.starts_with("Applying stylesheet")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |before: &str| {
                let at = words.iter().position(|w| *w == before)?;
                words.get(at.checked_sub(1)?)?.parse::<f64>().ok()
            };
            if let (Some(times), Some(ms)) = (number("times"), number("ms")) {
                best = best.min(ms * 1e6 / times);
            }
        }
    }
    best
}
