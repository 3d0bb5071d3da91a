//! Filling in a template: its nodes one after the other, its expressions on the values of the message.
//!
//! Everything that may go on for long counts its work ([`meter::spend`]); what is made is bounded in bytes, what nests in
//! depth. So a template ends, whatever it says.

mod convert;
mod evaluate;
mod variables;

pub(crate) use convert::number_format;
pub(crate) use evaluate::{missing, shown};

use crate::ast::{Body, Error, Escape, Expr, List, Node, Place};
use crate::built_in;
use crate::number::Format;
use crate::parse::Parsing;
use crate::value::{Model, Text, Value};
use std::sync::Arc;

/// Deepest nesting of nodes and expressions in each other, those of macros that are called included.
const MAX_DEPTH: usize = 600;

/// Deepest nesting of macros and functions that call each other.
const MAX_CALLS: usize = 64;

/// Most items of a sequence that is made of a range.
pub(crate) const MAX_RANGE: usize = 100_000;

/// What an item of a sequence counts for, in bytes.
const ITEM: usize = 40;

pub(crate) type Res<T> = Result<T, Error>;

/// How a body ended.
enum End<'m> {
    Normal,
    Break,
    Continue,
    Return(Option<Value<'m>>),
}

/// One turn of a `<#list>`.
struct Loop<'m> {
    names: &'m [Arc<str>],
    /// `<#items>` will name what stands here.
    pending: bool,
    source: Value<'m>,
    item: Option<Value<'m>>,
    key: Option<Value<'m>>,
    at: usize,
    last: bool,
}

/// How much is on each stack of a run. An error leaves more there, which is taken off where the run goes on behind it.
#[derive(Clone, Copy)]
struct Mark {
    depth: usize,
    calls: usize,
    locals: usize,
    current: usize,
    escaped: usize,
    lambdas: usize,
}

/// What a macro's `<#nested>` writes, and where its variables are.
#[derive(Clone, Copy)]
struct Nested<'m> {
    body: Option<&'m Body>,
    names: &'m [Arc<str>],
    scope: usize,
}

/// The variables of a macro that runs; the first one is the template.
struct Local<'m> {
    variables: Vec<(Arc<str>, Value<'m>)>,
    loops: Vec<Loop<'m>>,
    nested: Option<Nested<'m>>,
}

pub(crate) struct Run<'m> {
    template: &'m Parsing,
    model: &'m [(&'static str, Model<'m>)],
    limit: usize,
    /// Bytes that were made so far, for what is kept and what is thrown away.
    made: usize,
    depth: usize,
    calls: usize,
    locals: Vec<Local<'m>>,
    /// The one that counts now.
    current: usize,
    variables: Vec<(Arc<str>, Value<'m>)>,
    globals: Vec<(Arc<str>, Value<'m>)>,
    /// What stands for a name within `<#escape>`.
    escaped: Vec<(&'m str, &'m Expr)>,
    /// The parameters of lambdas.
    lambdas: Vec<(&'m Arc<str>, Value<'m>)>,
    escape: Escape,
    pub number_format: Option<Format>,
    /// The settings of these names; `en_US` and that of the machine by default.
    pub zone: Option<String>,
    pub locale: Option<String>,
    boolean_format: Option<(String, String)>,
    date_formats: [Option<String>; 3],
    recovered: Vec<String>,
    now: Option<i64>,
}

/// Fills a template in. `limit`: most bytes of the result.
pub(crate) fn run<'m>(
    template: &'m Parsing,
    model: &'m [(&'static str, Model<'m>)],
    limit: usize,
) -> Res<String> {
    let mut run = Run {
        template,
        model,
        limit,
        made: 0,
        depth: 0,
        calls: 0,
        locals: vec![Local { variables: Vec::new(), loops: Vec::new(), nested: None }],
        current: 0,
        variables: Vec::new(),
        globals: Vec::new(),
        escaped: Vec::new(),
        lambdas: Vec::new(),
        escape: template.escape,
        number_format: None,
        locale: None,
        zone: None,
        boolean_format: None,
        date_formats: [None, None, None],
        recovered: Vec::new(),
        now: None,
    };
    let mut out = String::new();
    run.body(&template.body, &mut out)?;
    Ok(out)
}

impl<'m> Run<'m> {
    // Limits.

    pub fn spend(&self, units: usize, place: Place) -> Res<()> {
        meter::spend(units as u64).map_err(|stop| Error::fatal(stop.to_string(), place))
    }

    /// Counts what is made.
    pub fn make(&mut self, bytes: usize, place: Place) -> Res<()> {
        self.spend(bytes >> 6, place)?;
        self.made = self.made.saturating_add(bytes);
        if bytes > self.limit {
            return Err(self.too_large(place));
        }
        let most = self.limit.saturating_mul(8);
        if self.made > most {
            return Err(Error::fatal(format!("the template makes more than {most} bytes on its way"), place));
        }
        Ok(())
    }

    fn too_large(&self, place: Place) -> Error {
        Error::fatal(format!("the result is larger than the {} bytes a flow may hold", self.limit), place)
    }

    pub fn make_items(&mut self, items: usize, place: Place) -> Res<()> {
        self.make(items.saturating_mul(ITEM), place)
    }

    fn deeper<T>(&mut self, place: Place, work: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.spend(1, place)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::fatal("the template nests too deep: does a macro call itself?", place));
        }
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn write(&mut self, text: &str, out: &mut String, place: Place) -> Res<()> {
        if out.len() + text.len() > self.limit {
            return Err(self.too_large(place));
        }
        out.push_str(text);
        self.spend(1 + (text.len() >> 6), place)
    }

    // Nodes.

    fn body(&mut self, body: &'m Body, out: &mut String) -> Res<End<'m>> {
        for node in body {
            match self.node(node, out)? {
                End::Normal => {}
                end => return Ok(end),
            }
        }
        Ok(End::Normal)
    }

    fn inner(&mut self, body: &'m Body, place: Place, out: &mut String) -> Res<End<'m>> {
        self.deeper(place, |run| run.body(body, out))
    }

    fn node(&mut self, node: &'m Node, out: &mut String) -> Res<End<'m>> {
        match node {
            Node::Text(text) => self.write(text, out, Place::default())?,
            Node::Output(expr) => {
                let value = self.value(expr)?;
                self.output(&value, expr, out)?;
            }
            Node::Number(expr, format) => {
                let number = self.number(expr)?;
                let (least, most) = format.unwrap_or((0, 3));
                let format = Format { least, most, whole: 1, ..Format::default() };
                self.write(&number.formatted(&format, self.symbols()), out, expr.place)?;
            }
            Node::If(branches, otherwise) => {
                for (test, body) in branches {
                    if self.truth(test)? {
                        return self.inner(body, test.place, out);
                    }
                }
                return self.inner(otherwise, Place::default(), out);
            }
            Node::List(list) => return self.list(list, out),
            Node::Items(names, body, place) => return self.items(names, body, *place, out),
            Node::Sep(body) => {
                let local = &self.locals[self.current];
                let last = local.loops.iter().rev().find(|turn| !turn.pending).is_none_or(|turn| turn.last);
                if !last {
                    return self.inner(body, Place::default(), out);
                }
            }
            Node::Break => return Ok(End::Break),
            Node::Continue => return Ok(End::Continue),
            Node::Assign(scope, assignments) => {
                for (target, expr) in assignments {
                    let value = self.assigned(*scope, target, expr)?;
                    self.set(*scope, &target.name, value);
                }
            }
            Node::Capture(scope, name, body) => {
                let mut captured = String::new();
                let end = self.inner(body, Place::default(), &mut captured)?;
                self.make(captured.len(), Place::default())?;
                let text = Text::Made(captured.into());
                let value = if self.escape == Escape::None { Value::Text(text) } else { Value::Markup(text) };
                self.set(*scope, name, value);
                return Ok(end);
            }
            Node::Nested(arguments, place) => return self.nested(arguments, *place, out),
            Node::Return(value) => {
                return Ok(End::Return(match value {
                    Some(value) => Some(self.value(value)?),
                    None => None,
                }));
            }
            Node::Call(call) => return self.call(call, out),
            Node::Switch(value, cases) => {
                let wanted = self.value(value)?;
                let mut found = None;
                for (at, (values, _)) in cases.iter().enumerate() {
                    for case in values.iter().flatten() {
                        let case = self.value(case)?;
                        if self.equal(&wanted, &case).unwrap_or(false) {
                            found = Some(at);
                            break;
                        }
                    }
                    if found.is_some() {
                        break;
                    }
                }
                let found = found.or_else(|| cases.iter().position(|(values, _)| values.is_none()));
                for (_, body) in cases.iter().skip(found.unwrap_or(cases.len())) {
                    match self.inner(body, value.place, out)? {
                        End::Normal => {}
                        End::Break => break,
                        end => return Ok(end),
                    }
                }
            }
            Node::Attempt(body, recover) => return self.attempt(body, recover, out),
            Node::Setting(name, value) => self.setting(name, value)?,
            Node::Stop(why, place) => {
                let why = match why {
                    Some(why) => self.text(why)?.to_string(),
                    None => "the template stopped".to_owned(),
                };
                return Err(Error::new(why, *place));
            }
            Node::Escaping(escape, body) => {
                let before = self.escape;
                self.escape = escape.unwrap_or(before);
                let end = self.inner(body, Place::default(), out);
                self.escape = before;
                return end;
            }
            Node::Compress(body) => {
                let mut inside = String::new();
                let end = self.inner(body, Place::default(), &mut inside)?;
                self.write(&compressed(&inside), out, Place::default())?;
                return Ok(end);
            }
        }
        Ok(End::Normal)
    }

    fn output(&mut self, value: &Value<'m>, expr: &'m Expr, out: &mut String) -> Res<()> {
        if let Value::Markup(text) = value {
            return self.write(text, out, expr.place);
        }
        let text = self.text_of(value, expr)?;
        match self.escape {
            Escape::None => self.write(&text, out, expr.place),
            Escape::Xml => self.write(&built_in::xml(&text), out, expr.place),
            Escape::Html => self.write(&built_in::html(&text), out, expr.place),
        }
    }

    fn attempt(&mut self, body: &'m Body, recover: &'m Body, out: &mut String) -> Res<End<'m>> {
        let (length, mark) = (out.len(), self.mark());
        let error = match self.inner(body, Place::default(), out) {
            Err(error) if !error.fatal => error,
            result => return result,
        };
        out.truncate(length);
        self.restore(mark);
        self.recovered.push(error.message);
        let end = self.inner(recover, Place::default(), out);
        self.recovered.pop();
        end
    }

    // Loops.

    fn list(&mut self, list: &'m List, out: &mut String) -> Res<End<'m>> {
        let place = list.source.place;
        let source = self.value(&list.source)?;
        let pairs = list.names.len() == 2 || (!source.is_sequence() && source.is_hash());
        if !source.is_sequence() && !source.is_hash() {
            return Err(Error::new(
                format!(
                    "`<#list>` needs a sequence or a hash, `{}` is {}",
                    shown(&list.source),
                    source.what()
                ),
                place,
            ));
        }
        let source = match pairs {
            true => self.pairs(source, &list.source)?,
            false => source,
        };
        if source.length() == Some(0) {
            return self.inner(&list.otherwise, place, out);
        }
        if !list.names.is_empty() {
            return self.turns(&list.names, source, &list.body, place, out);
        }
        let pending = Loop { names: &[], pending: true, source, item: None, key: None, at: 0, last: true };
        let current = self.current;
        let loops = self.locals[current].loops.len();
        self.locals[current].loops.push(pending);
        let end = self.inner(&list.body, place, out);
        self.locals[current].loops.truncate(loops);
        Ok(match end? {
            End::Break => End::Normal,
            end => end,
        })
    }

    /// A hash as a sequence of pairs: lists of two.
    fn pairs(&mut self, source: Value<'m>, expr: &'m Expr) -> Res<Value<'m>> {
        let Some(keys) = source.keys() else {
            return Err(Error::new(
                format!("`{}` is {} and not a hash that can be listed", shown(expr), source.what()),
                expr.place,
            ));
        };
        self.make_items(keys.len() * 3, expr.place)?;
        let mut pairs = Vec::with_capacity(keys.len());
        for key in keys {
            // A member that is null is listed, without a value.
            if let Value::Text(name) = &key {
                let value = source.member(name);
                pairs.push(Value::list([key].into_iter().chain(value).collect()));
            }
        }
        Ok(Value::list(pairs))
    }

    fn items(
        &mut self,
        names: &'m [Arc<str>],
        body: &'m Body,
        place: Place,
        out: &mut String,
    ) -> Res<End<'m>> {
        let current = self.current;
        let Some(outer) = self.locals[current].loops.iter().rposition(|turn| turn.pending) else {
            return Err(Error::new("`<#items>` stands in a `<#list>` that names no variable", place));
        };
        let source = self.locals[current].loops[outer].source.clone();
        self.turns(names, source, body, place, out)
    }

    fn turns(
        &mut self,
        names: &'m [Arc<str>],
        source: Value<'m>,
        body: &'m Body,
        place: Place,
        out: &mut String,
    ) -> Res<End<'m>> {
        let current = self.current;
        let length = source.length();
        let mut at = 0;
        let empty =
            Loop { names, pending: false, source: source.clone(), item: None, key: None, at: 0, last: false };
        let loops = self.locals[current].loops.len();
        self.locals[current].loops.push(empty);
        let mut end = Ok(End::Normal);
        while let Some(item) = source.item(at) {
            let (key, item) = match &item {
                Value::List(pair) if names.len() == 2 => (pair.first().cloned(), pair.get(1).cloned()),
                _ => (None, item.present()),
            };
            if let Some(turn) = self.locals[current].loops.last_mut() {
                (turn.key, turn.item, turn.at) = (key, item, at);
                turn.last = length.is_some_and(|length| at + 1 == length);
            }
            match self.spend(2, place).and_then(|()| self.inner(body, place, out)) {
                Ok(End::Normal | End::Continue) => {}
                Ok(End::Break) => break,
                other => {
                    end = other;
                    break;
                }
            }
            at += 1;
        }
        self.locals[current].loops.truncate(loops);
        end
    }
}

/// Runs of white space as one space, or one line break where there was one; none at the beginning and end.
fn compressed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank: Option<char> = None;
    for c in text.chars() {
        if c.is_whitespace() {
            let breaks = matches!(c, '\n' | '\r') || blank == Some('\n');
            blank = Some(if breaks { '\n' } else { ' ' });
        } else {
            out.extend(blank.take().filter(|_| !out.is_empty()));
            out.push(c);
        }
    }
    out
}
