//! A report as one HTML file: its style and its charts are inside; it is well-formed XML, too.

use super::{Block, Page, Table};

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5b6475; --line: #d9dde5; --back: #ffffff; --band: #f4f6f9;
  --c0: #0b6bcb; --c1: #d9480f; --c2: #2b8a3e; --c3: #9c36b5; --c4: #b08900; --c5: #0c8599; --c6: #868e96; --c7: #c2255c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #353c49; --back: #14171d; --band: #1d222b;
  --c0: #4dabf7; --c1: #ff922b; --c2: #69db7c; --c3: #da77f2; --c4: #ffd43b; --c5: #3bc9db; --c6: #adb5bd; --c7: #f783ac; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 1.25rem; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.5rem; padding-top: 0.6rem; border-top: 2px solid var(--line); }
p, li { max-width: 75ch; }
nav { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; margin: 0.8rem 0; font-size: 0.95rem; }
a { color: var(--c0); }
.wide { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.28rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--band); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 1rem; margin: 1rem 0; }
figure { margin: 0; max-width: 640px; border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem; break-inside: avoid; }
figcaption { line-height: 1.3; } .u { color: var(--soft); font-size: 0.85rem; white-space: nowrap; }
.legend { display: flex; flex-wrap: wrap; gap: 0 0.9rem; margin: 0.25rem 0 0.35rem; font-size: 0.82rem; color: var(--soft); max-width: none; }
.k { display: inline-block; width: 16px; border-top: 3px solid; vertical-align: middle; margin-right: 5px; } .k.d { border-top-style: dashed; }
.b0 { border-color: var(--c0); } .b1 { border-color: var(--c1); } .b2 { border-color: var(--c2); } .b3 { border-color: var(--c3); } .b4 { border-color: var(--c4); } .b5 { border-color: var(--c5); } .b6 { border-color: var(--c6); } .b7 { border-color: var(--c7); }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: var(--soft); }
svg .g { stroke: var(--line); stroke-width: 1; } svg .l { fill: none; stroke-width: 2.2; }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); } .f4 { fill: var(--c4); } .f5 { fill: var(--c5); } .f6 { fill: var(--c6); } .f7 { fill: var(--c7); }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); } .s7 { stroke: var(--c7); }
.d { stroke-dasharray: 5 4; }
pre { background: var(--band); padding: 0.7rem; overflow-x: auto; font-size: 0.85rem; border-radius: 6px; }
details { margin: 0.8rem 0; } summary { cursor: pointer; color: var(--soft); }
@media (max-width: 520px) { body { padding: 0.8rem; } th, td { padding: 0.25rem 0.45rem; } svg { font-size: 15.5px; } figure { padding: 0.45rem; } h1 { font-size: 1.4rem; } h2 { font-size: 1.12rem; } }
@media print { @page { margin: 14mm 12mm; }
  :root { color-scheme: light; --ink: #111; --soft: #444; --line: #ccc; --back: #fff; --band: #f4f4f4; --c0: #0b6bcb; --c1: #d9480f; --c2: #2b8a3e; --c3: #9c36b5; --c4: #b08900; --c5: #0c8599; --c6: #868e96; --c7: #c2255c; }
  body { max-width: none; padding: 0; font-size: 10pt; } nav, details { display: none; } h2, figcaption, .legend { break-after: avoid; } tr, pre { break-inside: avoid; }
  thead { display: table-header-group; } table { font-size: 8pt; } th, td { padding: 0.15rem 0.4rem; } th { white-space: normal; } td { overflow-wrap: anywhere; }
  .charts { grid-template-columns: 1fr 1fr; gap: 0.5rem; } .wide { overflow: visible; } pre { white-space: pre-wrap; overflow-wrap: anywhere; } }
";

/// Text as it may stand in HTML and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

pub(super) fn write(page: &Page) -> String {
    let title = escape(&page.title);
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<nav>",
        escape(STYLE).replace("&gt;", ">").replace("&quot;", "\"")
    );
    for (number, section) in page.sections.iter().enumerate() {
        text.push_str(&format!("<a href=\"#s{number}\">{}</a> ", escape(&section.title)));
    }
    text.push_str("</nav>\n");
    for (number, section) in page.sections.iter().enumerate() {
        text.push_str(&format!("<section>\n<h2 id=\"s{number}\">{}</h2>\n", escape(&section.title)));
        section.blocks.iter().for_each(|block| write_block(&mut text, block));
        text.push_str("</section>\n");
    }
    text.push_str("</body>\n</html>\n");
    text
}

fn write_block(text: &mut String, block: &Block) {
    match block {
        Block::Text(paragraph) => text.push_str(&format!("<p>{}</p>\n", escape(paragraph))),
        Block::List(lines) => {
            text.push_str("<ul>\n");
            lines.iter().for_each(|line| text.push_str(&format!("<li>{}</li>\n", escape(line))));
            text.push_str("</ul>\n");
        }
        Block::Table(table) => write_table(text, table),
        Block::Charts(charts) => {
            text.push_str("<div class=\"charts\">\n");
            charts.iter().for_each(|chart| text.push_str(&format!("<figure>{chart}</figure>\n")));
            text.push_str("</div>\n");
        }
        Block::Folded(title, table) => {
            text.push_str(&format!("<details><summary>{}</summary>\n", escape(title)));
            write_table(text, table);
            text.push_str("</details>\n");
        }
        Block::Code(code) => text.push_str(&format!("<pre>{}</pre>\n", escape(code))),
    }
}

fn write_table(text: &mut String, table: &Table) {
    let class = |at: usize| {
        if table.heads.get(at).is_some_and(|head| head.ends_with(':')) { " class=\"n\"" } else { "" }
    };
    text.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for (at, head) in table.heads.iter().enumerate() {
        text.push_str(&format!("<th{}>{}</th>", class(at), escape(head.trim_end_matches(':'))));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            text.push_str(&format!("<td{}>{}</td>", class(at), escape(cell)));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table></div>\n");
}
