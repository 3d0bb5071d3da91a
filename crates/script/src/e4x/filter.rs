//! Filters, `x.(condition)`: the items of a list for which the condition holds. A name in it is a child of the item; if the item has
//! none of that name, a variable; and if there is none either, nothing.
//!
//! | written | becomes |
//! |---|---|
//! | `x.(…)` | `x["()"]($item$ => (…))` |
//! | `price > 3` in it | `XML.named($item$, "price", () => price) > 3` |
//! | `name()`, `f(a)` in it | `XML.called($item$, "name", () => name)()`, … |
//! | `@id`, `*::a`, `ns::a` in it | `$item$["@id"]`, `$item$["*::a"]`, … |

use super::{Refused, Translation};
use crate::tokens::TokenKind;

/// The item that a filter looks at.
const ITEM: &str = "$item$";

/// Words that are no names of children.
const WORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "undefined",
    "NaN",
    "Infinity",
    "this",
    "new",
    "typeof",
    "instanceof",
    "in",
    "void",
    "delete",
    "XML",
    "mc",
    "arguments",
];

impl Translation<'_> {
    /// Begins a filter at its dot; answers the token to go on with.
    pub(super) fn filter(&mut self, dot: usize) -> Result<usize, Refused> {
        let open = dot + 1;
        let Some(close) = self.brackets[open] else {
            return Err(Refused {
                at: self.tokens[open].at.start,
                message: "this filter `x.(…)` does not end".to_owned(),
                help: "its closing bracket is missing",
            });
        };
        self.copy_to(self.tokens[dot].at.start);
        let function = (open..close).find(|&at| matches!(self.word(at), "function" | "=>" | "{"));
        match function {
            // Its parameters would be taken for children.
            Some(function) => {
                self.out.push_str("[\"()\"](() => ");
                let message =
                    "a function or an object inside of a filter `x.(…)` is not executable here".to_owned();
                let help = "write a loop: `for each (var item in x) { if (item.@id == 3) … }`";
                self.done = self.tokens[open].at.end;
                self.refuse(open + 1..close, function, message, help);
                self.copy_to(self.tokens[close].at.end);
                Ok(close + 1)
            }
            None => {
                self.out.push_str(&format!("[\"()\"]({ITEM} => ("));
                self.done = self.tokens[open].at.end;
                self.filters.push(close);
                Ok(open + 1)
            }
        }
    }

    /// Ends the inmost filter at its closing bracket.
    pub(super) fn end_filter(&mut self) {
        if let Some(close) = self.filters.pop() {
            self.copy_to(self.tokens[close].at.start);
            self.out.push(')');
        }
    }

    /// A name inside of a filter that stands for something of the item; answers the token behind it.
    pub(super) fn name_in_filter(&mut self, at: usize) -> Result<Option<usize>, Refused> {
        let (word, before, after) = (self.word(at), self.word(at - 1), self.word(at + 1));
        if matches!(before, "." | ".." | "?." | "::" | "@" | "new") {
            return Ok(None);
        }
        if word == "@" || (after == "::" && (word == "*" || self.tokens[at].kind == TokenKind::Word)) {
            let Some((key, last)) = self.selector(at, ".")? else { return Ok(None) };
            self.copy_to(self.tokens[at].at.start);
            self.out.push_str(ITEM);
            self.out.push_str(&key);
            self.done = self.tokens[last].at.end;
            return Ok(Some(last + 1));
        }
        if self.tokens[at].kind != TokenKind::Word || WORDS.contains(&word) {
            return Ok(None);
        }
        let of = if after == "(" { "called" } else { "named" };
        self.replace(at, &format!("XML.{of}({ITEM}, \"{word}\", () => {word})"));
        Ok(Some(at + 1))
    }
}
