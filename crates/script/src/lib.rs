//! JavaScript for the script mediator: an embedded engine with limits, and the `mc` object.
//!
//! * [`Script::compile`] takes the texts of a script when the configuration loads: what is wrong is said then, with its
//!   place. E4X (XML literals, `..`, `@`) is rewritten into what the engine understands.
//! * [`run`] runs it on a message, which the bus shows as a [`Host`].
//! * Nothing that a script does is seen by the next message: see `engine`.

mod doubts;
mod e4x;
mod engine;
mod host;
mod tokens;
mod trees;
pub mod typescript;

pub use engine::{Returned, run};
pub use host::Host;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a script may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest time of one run, where its thread has no bound of its own ([`meter::within`]). Default 5 s.
    pub time: Duration,
    /// Most bytes of the engine of one thread. Default 64 MiB.
    pub memory: usize,
    /// Most bytes of the stack. Default 512 KiB.
    pub stack: usize,
    /// Limits of the XML that a script parses.
    pub xml: xml::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(5),
            memory: 64 << 20,
            stack: 512 << 10,
            xml: xml::Limits::default(),
        }
    }
}

/// A place in the texts of a script, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which text, counted from 0.
    pub source: usize,
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
    /// In the text that is evaluated, not in the function.
    evaluated: bool,
}

/// Why a script failed, or cannot be compiled.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong: what the script threw.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
    /// What to write instead; empty: there is no advice.
    pub help: &'static str,
    /// The script has no function of the name asked for.
    pub no_function: bool,
    /// A limit was hit.
    pub exhausted: bool,
}

impl Failure {
    fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), place: None, help: "", no_function: false, exhausted: false }
    }

    fn limit(message: String) -> Failure {
        Failure { exhausted: true, ..Failure::new(message) }
    }

    fn no_function() -> Failure {
        Failure { no_function: true, ..Failure::new("there is no such function") }
    }
}

/// An argument of the function of a script.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A string.
    Text(String),
    /// A number.
    Number(f64),
    /// A Boolean.
    Boolean(bool),
    /// An object or array, as JSON text.
    Json(String),
    /// Nothing.
    Null,
}

/// A script, checked and ready to be compiled by each thread.
#[derive(Debug)]
pub struct Script {
    id: u64,
    /// An expression that gives a function.
    code: String,
    /// What that function evaluates: a script whose own value counts.
    evaluated: Option<String>,
    function: Option<String>,
    /// It can share a world with others.
    shared: bool,
    reads: Reads,
    brief: bool,
    /// It may sleep.
    sleeps: bool,
    /// The classes of Java that it names and that are not here, with their places.
    missing: Vec<(Place, String)>,
    /// What of E4X cannot be had, with its place.
    refused: Vec<Failure>,
    /// What it says that was hardly meant, with its place.
    doubts: Vec<Failure>,
    /// The line of `code` where each text begins; `None` for the one that is evaluated.
    starts: Vec<Option<usize>>,
}

/// What a script reads of the message, by the names of `mc` that occur in it. Ordered from cheap to dear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Properties, headers and addresses.
    Headers,
    /// It replaces the payload without looking at it.
    Replaces,
    /// The payload.
    Payload,
}

/// What stands before the first line of a script in its function.
const OPENING: &str = "(function(){";

impl Script {
    /// Checks the texts of a script: those that it includes, and at last its own. `function`: the one to call with `mc`;
    /// without, the script itself runs and its value is that of its last expression.
    ///
    /// # Errors
    /// A text is no script, or uses what cannot be had here.
    pub fn compile(texts: &[&str], function: Option<&str>) -> Result<Script, Failure> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut translated = Vec::with_capacity(texts.len());
        let (mut shared, mut reads, mut brief) = (true, Reads::Headers, true);
        let (mut sleeps, mut missing, mut refusals) = (false, Vec::new(), Vec::new());
        let mut doubts = Vec::new();
        for (source, text) in texts.iter().enumerate() {
            let failure = |refused: e4x::Refused| Failure {
                place: Some(place_at(text, refused.at, source)),
                help: refused.help,
                ..Failure::new(refused.message)
            };
            let e4x::Translated { code, refused } = e4x::translate(text).map_err(failure)?;
            let code = code.unwrap_or_else(|| (*text).to_owned());
            engine::check(&code).map_err(|failure| wrong(failure, text, source))?;
            shared &= !e4x::changes_the_world(text);
            reads = reads.max(e4x::reads(text));
            brief &= e4x::is_brief(text);
            sleeps |= e4x::names_sleep(text);
            let classes = e4x::missing_classes(text).into_iter();
            missing.extend(classes.map(|(at, name)| (place_at(text, at, source), name)));
            refusals.extend(refused.into_iter().map(failure));
            let inline = function.is_none() && source + 1 == texts.len();
            doubts.extend(doubts::doubts(text, inline).into_iter().map(|doubt| Failure {
                place: Some(place_at(text, doubt.at, source)),
                help: doubt.help,
                ..Failure::new(doubt.message)
            }));
            translated.push(code);
        }
        if let Some(name) = function
            && !is_name(name)
        {
            return Err(Failure::new(format!("`{name}` is not a name of a function")));
        }
        let main = translated.pop().unwrap_or_default();
        let mut starts = Vec::new();
        let mut code = OPENING.to_owned();
        let mut line = 1;
        for text in &translated {
            starts.push(Some(line));
            line += text.matches('\n').count() + 1;
            code.push_str(text);
            code.push('\n');
        }
        let mut evaluated = None;
        if function.is_none() && !e4x::ends_with_setter(&main) {
            starts.push(None);
            code.push_str("return eval(arguments[0])})");
            evaluated = Some(main);
        } else {
            starts.push(Some(line));
            code.push_str(&main);
            match function {
                Some(name) => {
                    code.push_str(&format!("\n;return typeof {name}==='function'?{name}:undefined}})"))
                }
                None => code.push_str("\n})"),
            }
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let function = function.map(str::to_owned);
        let refused = refusals;
        Ok(Script {
            id,
            code,
            evaluated,
            function,
            shared,
            reads,
            brief,
            sleeps,
            missing,
            refused,
            doubts,
            starts,
        })
    }

    /// Whether it may sleep (`Thread.sleep`), which holds its thread.
    pub fn sleeps(&self) -> bool {
        self.sleeps
    }

    /// The classes of Java that it names and that are not here, with their places: using one throws.
    pub fn missing_classes(&self) -> &[(Place, String)] {
        &self.missing
    }

    /// What of E4X cannot be had, each with its place: it throws when it runs.
    pub fn refused(&self) -> &[Failure] {
        &self.refused
    }

    /// What it says that its author hardly meant, each with its place: it runs.
    pub fn doubts(&self) -> &[Failure] {
        &self.doubts
    }

    /// What it reads of the message.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// Whether it takes no longer than its message is large: without loops, functions that it calls itself, and the like, and
    /// in the world that all scripts share. Others may take as long as the limit allows.
    pub fn is_brief(&self) -> bool {
        self.brief && self.shared
    }

    /// A place of the function as one of a text.
    fn place_of(&self, place: Place) -> Place {
        if place.evaluated {
            return Place { source: self.starts.len().saturating_sub(1), ..place };
        }
        let starts = self.starts.iter().enumerate();
        let found = starts
            .filter_map(|(source, start)| Some((source, (*start)?)))
            .rfind(|(_, start)| *start <= place.line);
        let (source, start) = found.unwrap_or((0, 1));
        let shift = if place.line == 1 { OPENING.len() } else { 0 };
        Place {
            source,
            line: place.line - (start - 1).min(place.line - 1),
            column: place.column.saturating_sub(shift).max(1),
            evaluated: false,
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$'))
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
}

/// A failure to parse, with what to do where that is known.
fn wrong(failure: Failure, text: &str, source: usize) -> Failure {
    let top_level_return = failure.message.contains("return not in a function");
    let help = if top_level_return {
        "outside of a function the value of the last expression counts: end with `false;`"
    } else {
        ""
    };
    let place = failure.place.map(|place| Place { source, ..place });
    let end = || place_at(text, text.trim_end().len(), source);
    Failure { place: Some(place.unwrap_or_else(end)), help, ..failure }
}

fn place_at(text: &str, at: usize, source: usize) -> Place {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        source,
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        evaluated: false,
    }
}

#[cfg(test)]
mod tests;
