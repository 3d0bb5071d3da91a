//! A report as Markdown: its texts and tables.

use super::{Block, Page, Table};

pub(super) fn write(page: &Page) -> String {
    let mut text = format!("# {}\n", page.title);
    for section in &page.sections {
        text.push_str(&format!("\n## {}\n", section.title));
        for block in &section.blocks {
            match block {
                Block::Text(paragraph) => text.push_str(&format!("\n{paragraph}\n")),
                Block::List(lines) => {
                    text.push('\n');
                    lines.iter().for_each(|line| text.push_str(&format!("* {line}\n")));
                }
                Block::Table(table) => text.push_str(&format!("\n{}", write_table(table))),
                Block::Code(code) => text.push_str(&format!("\n```sh\n{}\n```\n", code.trim_end())),
                Block::Charts(_) | Block::Folded(..) => {}
            }
        }
    }
    text
}

/// Aligned, so that it can be read as it is.
fn write_table(table: &Table) -> String {
    let heads: Vec<&str> = table.heads.iter().map(|head| head.trim_end_matches(':')).collect();
    let cell = |text: &str| text.replace('|', "\\|");
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells =
                table.rows.iter().filter_map(|row| row.get(at)).map(|text| cell(text).chars().count());
            cells.chain([heads[at].chars().count(), 3]).max().unwrap_or(3)
        })
        .collect();
    let right = |at: usize| table.heads[at].ends_with(':');
    let pad = |at: usize, text: &str| {
        let fill = " ".repeat(widths[at].saturating_sub(text.chars().count()));
        if right(at) { format!("{fill}{text}") } else { format!("{text}{fill}") }
    };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(heads.iter().enumerate().map(|(at, head)| pad(at, head)).collect());
    let rule: Vec<String> =
        (0..heads.len()).map(|at| "-".repeat(widths[at] + 1) + if right(at) { ":" } else { "-" }).collect();
    text.push_str(&format!("|{}|\n", rule.join("|")));
    for row in &table.rows {
        text.push_str(&line(
            (0..heads.len()).map(|at| pad(at, &cell(row.get(at).map_or("", String::as_str)))).collect(),
        ));
    }
    text
}
