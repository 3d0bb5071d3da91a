//! A bound on the time that a template runs. The engine bounds how deep macros and functions call each other (16), but a
//! loop that writes nothing would never end.
//!
//! So a template is run with a question behind the start of each loop, macro and function: may this go on? It is
//! answered with a fault where the time is over.

use freemarker::TemplateError;
use freemarker::core::Environment;
use freemarker::template::{TModel, TemplateMethodModelEx};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The name of the question; no template has it by chance.
const NAME: &str = "busbar__goes_on";

/// Directives whose content may run often, or inside of itself.
const REPEATED: &[&str] = &["list", "foreach", "items", "macro", "function"];

/// A template with its questions.
pub(super) struct Bounded {
    pub(super) text: String,
    /// Where they were put in: line and column (from 1) in the new text.
    places: Vec<(usize, usize)>,
    /// The characters of one.
    width: usize,
}

impl Bounded {
    /// Puts them in.
    pub(super) fn of(template: &str) -> Bounded {
        // `[#…]` and `<#…>`: the first tag decides for all.
        let square = match (template.find("[#"), template.find("<#")) {
            (Some(square), angle) => angle.is_none_or(|angle| square < angle),
            (None, _) => false,
        };
        let (open, close) = if square { ('[', ']') } else { ('<', '>') };
        let question = format!("{open}#if {NAME}(){close}{open}/#if{close}");
        let mut bounded = Bounded {
            text: String::with_capacity(template.len() + 64),
            places: Vec::new(),
            width: question.chars().count(),
        };
        let start = format!("{open}#");
        let mut rest = template;
        while let Some(at) = rest.find(&start) {
            bounded.text.push_str(&rest[..at]);
            rest = &rest[at..];
            let name_length = rest[2..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len() - 2);
            let name = &rest[2..2 + name_length];
            // What is not run has no questions in it.
            let literal = match name {
                _ if rest[2..].starts_with("--") => Some(format!("--{close}")),
                "noparse" => Some(format!("{open}/#noparse{close}")),
                _ => None,
            };
            if let Some(end) = literal {
                let end = rest.find(&end).map_or(rest.len(), |at| at + end.len());
                bounded.text.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            let end = end_of_tag(rest, close).unwrap_or(rest.len());
            let tag = &rest[..end];
            bounded.text.push_str(tag);
            if REPEATED.contains(&name) && tag.ends_with(close) && !tag.ends_with(&format!("/{close}")) {
                let line = bounded.text.rsplit('\n').next().unwrap_or("").chars().count();
                bounded.places.push((bounded.text.matches('\n').count() + 1, line + 1));
                bounded.text.push_str(&question);
            }
            rest = &rest[end..];
        }
        bounded.text.push_str(rest);
        bounded
    }

    /// The column of a place in the new text as one of the template.
    pub(super) fn column(&self, line: usize, column: usize) -> usize {
        let before = self.places.iter().filter(|(own, at)| *own == line && *at < column).count();
        column.saturating_sub(before * self.width).max(1)
    }
}

/// Behind the end of the tag that a text begins with: brackets and quotes in it hide their ends.
fn end_of_tag(text: &str, close: char) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (at, character) in text.char_indices().skip(2) {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(own), own_end) if own == own_end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '{') => depth += 1,
            (None, '[') => depth += 1,
            (None, ')' | '}') => depth = depth.saturating_sub(1),
            (None, own) if own == close && depth == 0 => return Some(at + own.len_utf8()),
            (None, ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Answers the questions of one run.
struct GoesOn {
    end: Instant,
    time: Duration,
    asked: Cell<u32>,
}

/// What a template asks while it runs for at most so long: to be put beside what it sees.
pub(super) fn question(time: Duration) -> (String, TModel) {
    let now = Instant::now();
    let end = now.checked_add(time).unwrap_or(now);
    (NAME.to_owned(), TModel::from_method(GoesOn { end, time, asked: Cell::new(0) }))
}

pub(super) fn too_long(time: Duration) -> String {
    format!("the template ran longer than {} ms (limits.script_time)", time.as_millis())
}

impl TemplateMethodModelEx for GoesOn {
    fn exec(&self, _: &mut Environment<'_>, _: Vec<TModel>) -> Result<TModel, TemplateError> {
        let asked = self.asked.get().wrapping_add(1);
        self.asked.set(asked);
        if asked.is_multiple_of(64) && Instant::now() > self.end {
            return Err(TemplateError::misc(too_long(self.time)));
        }
        Ok(TModel::from_boolean(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_stand_behind_what_repeats() {
        for (template, wanted) in [
            ("a", "a"),
            ("<#list x as y>${y}</#list>", "<#list x as y>?${y}</#list>"),
            ("<#list x?filter(a -> a > '>') as y>b</#list>", "<#list x?filter(a -> a > '>') as y>?b</#list>"),
            ("<#list m[\"]>\"] as y></#list>", "<#list m[\"]>\"] as y>?</#list>"),
            ("<#macro m a=\"\\\">\">b</#macro><@m/>", "<#macro m a=\"\\\">\">?b</#macro><@m/>"),
            ("[#list a[0] as y][#if y]1[/#if][/#list]", "[#list a[0] as y]?[#if y]1[/#if][/#list]"),
            (
                "<#-- <#list x as y> --><#noparse><#list x as y></#noparse>",
                "<#-- <#list x as y> --><#noparse><#list x as y></#noparse>",
            ),
            ("<#listen>", "<#listen>"),
            ("<#list", "<#list"),
            ("ü<#list x as y>é", "ü<#list x as y>?é"),
        ] {
            let bounded = Bounded::of(template);
            let plain = bounded.text.replace(&format!("<#if {NAME}()></#if>"), "?");
            assert_eq!(plain.replace(&format!("[#if {NAME}()][/#if]"), "?"), wanted);
        }
        let bounded = Bounded::of("<#list x as y>${z}");
        let column = bounded.text.find("${z}").map_or(0, |at| at + 1);
        assert_eq!((bounded.column(1, column), bounded.column(1, 3), bounded.column(2, 40)), (15, 3, 40));
    }
}
