//! Makes JavaScript of TypeScript: types are replaced by blanks, so that lines and columns stay as they are, and an `enum` by an object. It
//! reads the part of the language that mappings of WSO2's editor use. Other constructs with a meaning at run time (`namespace`, decorators)
//! stay in the text, and the engine reports them as errors of syntax.

use crate::tokens::{Token, TokenKind, brackets, is_before_operand, typed_tokens};
use std::ops::Range;

/// Deepest nesting of types.
const MAX_DEPTH: usize = 64;
/// Most words of an `import` or of the heading of a type.
const MOST_WORDS: usize = 200;

/// The parts of a file of TypeScript.
#[derive(Debug)]
pub struct Module {
    /// The JavaScript: the text with blanks for types, imports and `export`.
    pub code: String,
    /// The names that it imports.
    pub imports: Vec<Import>,
    /// Its interfaces and type aliases, in order.
    pub types: Vec<Declared>,
    /// The functions that it declares at the top level.
    pub functions: Vec<Function>,
}

/// An imported name.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    /// The module, as written.
    pub from: String,
    /// The name in that module; `*`: the whole module.
    pub name: String,
    /// The name in this file.
    pub local: String,
}

/// An interface or a type alias.
#[derive(Debug)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// The comments before it.
    pub comment: String,
    /// The type.
    pub shape: Shape,
}

/// The signature of a function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type of the first parameter.
    pub parameter: Shape,
    /// The type of its result.
    pub returns: Shape,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any value, or a type that is not read.
    Any,
    /// `null` or `undefined`.
    Nothing,
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An array of these.
    List(Box<Shape>),
    /// An object with these members, in order.
    Members(Vec<(String, Shape)>),
    /// The interface or alias of that name.
    Named(String),
}

/// Reads a file. Text that is not understood stays as it is.
pub fn read(text: &str) -> Module {
    let mut reader = Reader::new(text);
    reader.run();
    let mut code = String::with_capacity(text.len());
    let mut blank = reader.blank.iter().peekable();
    let mut enums = reader.enums.into_iter().peekable();
    for (at, c) in text.char_indices() {
        if let Some((_, object)) = enums.next_if(|(place, _)| *place == at) {
            code.push_str(&object);
        }
        while blank.next_if(|range| range.end <= at).is_some() {}
        let is_blank = blank.peek().is_some_and(|range| range.contains(&at));
        code.push(if is_blank && !matches!(c, '\n' | '\r') { ' ' } else { c });
    }
    Module { code, imports: reader.imports, types: reader.types, functions: reader.functions }
}

struct Reader<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// See [`brackets`].
    brackets: Vec<Option<usize>>,
    /// In order.
    blank: Vec<Range<usize>>,
    /// The places of enumerations, and the objects that stand there instead.
    enums: Vec<(usize, String)>,
    /// Tokens before this one are read.
    done: usize,
    imports: Vec<Import>,
    types: Vec<Declared>,
    functions: Vec<Function>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        // `>>` may close two lists of types.
        let mut all = Vec::new();
        for token in typed_tokens(text) {
            if matches!(&text[token.at.clone()], ">>" | ">>>") {
                all.extend(token.at.map(|at| Token {
                    kind: TokenKind::Mark,
                    at: at..at + 1,
                    after_break: false,
                }));
            } else {
                all.push(token);
            }
        }
        let brackets = brackets(text, &all);
        let (blank, enums) = (Vec::new(), Vec::new());
        let (imports, types, functions) = (Vec::new(), Vec::new(), Vec::new());
        Reader { text, tokens: all, brackets, blank, enums, done: 0, imports, types, functions }
    }

    /// The word or mark at an index; behind the last one `""`.
    fn word(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| &self.text[token.at.clone()])
    }

    fn is(&self, at: usize, kind: TokenKind) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == kind)
    }

    fn is_after_break(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.after_break)
    }

    fn closing(&self, at: usize) -> Option<usize> {
        self.brackets.get(at).copied().flatten().filter(|&other| other > at)
    }

    /// Whether the token before ends an operand.
    fn is_behind_operand(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        match self.tokens[before].kind {
            TokenKind::Word => !is_before_operand(self.word(before)),
            TokenKind::Literal | TokenKind::Markup => true,
            TokenKind::Mark => matches!(self.word(before), ")" | "]" | "}"),
        }
    }

    fn begins_statement(&self, at: usize) -> bool {
        at == 0 || self.is_after_break(at) || matches!(self.word(at - 1), ";" | "}" | "{" | "export")
    }

    /// Blanks the tokens from `at` up to, not including, `end`.
    fn blank(&mut self, at: usize, end: usize) {
        if at < end && end <= self.tokens.len() {
            self.blank.push(self.tokens[at].at.start..self.tokens[end - 1].at.end);
        }
        self.done = self.done.max(end);
    }

    fn run(&mut self) {
        let mut depth = 0usize;
        for at in 0..self.tokens.len() {
            match self.word(at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if at >= self.done {
                self.token(at, depth);
            }
        }
        self.blank.sort_by_key(|range| range.start);
    }

    fn token(&mut self, at: usize, depth: usize) {
        let next = self.word(at + 1);
        match self.word(at) {
            "import" if self.begins_statement(at) && !matches!(next, "(" | ".") => self.import(at),
            "export" if self.begins_statement(at) => {
                let end = match next {
                    "default" => at + 2,
                    "{" => self.statement_end(at),
                    _ => at + 1,
                };
                self.blank(at, end);
            }
            "declare" if self.begins_statement(at) && self.is(at + 1, TokenKind::Word) => {
                self.blank(at, self.statement_end(at));
            }
            "interface" if self.begins_statement(at) && self.is(at + 1, TokenKind::Word) => {
                let open = (at + 2..at + MOST_WORDS).find(|&index| self.word(index) == "{");
                if let Some((shape, end)) = open.and_then(|open| self.shape(open, 0)) {
                    self.declare(at, shape);
                    self.blank(at, end);
                }
            }
            "type" if self.begins_statement(at) && self.is(at + 1, TokenKind::Word) => {
                let equals = (at + 2..at + MOST_WORDS).find(|&index| self.word(index) == "=");
                if let Some((shape, end)) = equals.and_then(|equals| self.shape(equals + 1, 0)) {
                    self.declare(at, shape);
                    self.blank(at, end + usize::from(self.word(end) == ";"));
                }
            }
            "enum" if self.begins_statement(at) && self.word(at + 2) == "{" => self.enumeration(at),
            "const" if self.begins_statement(at) && next == "enum" && self.word(at + 3) == "{" => {
                self.blank(at, at + 1);
                self.enumeration(at + 1);
            }
            "function" => self.function(at, depth == 0),
            "catch" => {
                self.parameters(at + 1);
            }
            "let" | "const" | "var" => {
                let end = self.closing(at + 1).unwrap_or(at + 1) + 1;
                let colon = end + usize::from(self.word(end) == "!");
                if self.word(colon) == ":"
                    && let Some((_, behind)) = self.shape(colon + 1, 0)
                {
                    self.blank(end, behind);
                }
            }
            "(" if !self.is_behind_operand(at) || self.word(at - 1) == "async" => self.arrow(at),
            "as" | "satisfies" if self.is_behind_operand(at) && !self.is_after_break(at) => {
                if let Some((_, end)) = self.shape(at + 1, 0) {
                    self.blank(at, end);
                }
            }
            "!" if self.is_behind_operand(at) && !self.is_after_break(at) && self.word(at - 1) != "}" => {
                self.blank(at, at + 1);
            }
            // Of a call, or of an operand: `f<T>(a)`, `<T>a`, `<T>(a: T) => a`.
            "<" if !self.is_behind_operand(at) || self.is(at - 1, TokenKind::Word) => {
                if let Some((_, end)) = self.list_of_types(at, 0)
                    && (!self.is_behind_operand(at) || self.word(end) == "(")
                {
                    self.blank(at, end);
                }
            }
            _ => {}
        }
    }

    /// Puts an object in the place of an enumeration. A member without a value is one more than the number before it.
    fn enumeration(&mut self, at: usize) {
        let Some(close) = self.closing(at + 2) else { return };
        let (mut object, mut number, mut index) = (format!("var {}={{", self.word(at + 1)), 0, at + 3);
        while index < close {
            let name = self.word(index);
            let mut end = index + 1;
            while end < close && self.word(end) != "," {
                end = self.closing(end).unwrap_or(end) + 1;
            }
            let value = match self.word(index + 1) {
                "=" if index + 2 < end => {
                    self.text[self.tokens[index + 2].at.start..self.tokens[end - 1].at.end].to_owned()
                }
                _ => i64::to_string(&number),
            };
            number = value.parse::<i64>().map_or(number, |value| value.saturating_add(1));
            object.push_str(&format!("{name}:{value},"));
            index = end + 1;
        }
        object.push_str("};");
        self.enums.push((self.tokens[at].at.start, object));
        self.blank(at, close + 1);
    }

    /// The first token behind the statement that begins at `at`.
    fn statement_end(&self, at: usize) -> usize {
        let mut index = at + 1;
        while index < self.tokens.len() {
            if self.word(index) == ";" {
                return index + 1;
            }
            if self.is_after_break(index) {
                return index;
            }
            index = self.closing(index).unwrap_or(index) + 1;
        }
        self.tokens.len()
    }

    fn import(&mut self, at: usize) {
        let Some(source) = (at + 1..at + MOST_WORDS).find(|&index| self.is(index, TokenKind::Literal)) else {
            return;
        };
        let from = unquoted(self.word(source));
        let mut index = at + 1;
        let types_only = self.word(index) == "type";
        while index < source && !types_only {
            let name = self.word(index);
            if !matches!(name, "{" | "}" | "," | "from") {
                let (local, end) = match self.word(index + 1) {
                    "as" => (self.word(index + 2), index + 3),
                    _ => (name, index + 1),
                };
                let (name, local) = (name.to_owned(), local.to_owned());
                self.imports.push(Import { from: from.clone(), name, local });
                index = end;
            } else {
                index += 1;
            }
        }
        self.blank(at, source + 1 + usize::from(self.word(source + 1) == ";"));
    }

    fn declare(&mut self, at: usize, shape: Shape) {
        let first = if at > 0 && self.word(at - 1) == "export" { at - 1 } else { at };
        let before = first.checked_sub(1).map_or(0, |before| self.tokens[before].at.end);
        let comment = self.text[before..self.tokens[first].at.start].to_owned();
        self.types.push(Declared { name: self.word(at + 1).to_owned(), comment, shape });
    }

    fn function(&mut self, at: usize, outermost: bool) {
        let mut index = at + 1 + usize::from(self.word(at + 1) == "*");
        let name = if self.is(index, TokenKind::Word) { self.word(index) } else { "" };
        index += usize::from(!name.is_empty());
        if self.word(index) == "<"
            && let Some((_, end)) = self.list_of_types(index, 0)
        {
            self.blank(index, end);
            index = end;
        }
        let Some((parameter, end)) = self.parameters(index) else { return };
        let mut returns = Shape::Any;
        if self.word(end) == ":"
            && let Some((shape, behind)) = self.shape(end + 1, 0)
        {
            returns = shape;
            self.blank_ahead(end, behind);
        }
        if outermost && !name.is_empty() {
            self.functions.push(Function { name: name.to_owned(), parameter, returns });
        }
    }

    /// Blanks tokens that lie behind some that are not read yet.
    fn blank_ahead(&mut self, at: usize, end: usize) {
        let done = self.done;
        self.blank(at, end);
        self.done = done;
    }

    fn arrow(&mut self, at: usize) {
        let Some(end) = self.closing(at).map(|index| index + 1) else { return };
        let returns = match self.word(end) {
            "=>" => None,
            // `a ? (b) : c` is a condition.
            ":" if at == 0 || self.word(at - 1) != "?" => {
                let behind = self.shape(end + 1, 0).map(|(_, index)| index);
                let Some(behind) = behind.filter(|&index| self.word(index) == "=>") else { return };
                Some(behind)
            }
            _ => return,
        };
        if self.parameters(at).is_some()
            && let Some(behind) = returns
        {
            self.blank_ahead(end, behind);
        }
    }

    /// Blanks the types of a list of parameters that opens at `at`; answers with the type of the first and the index behind it.
    fn parameters(&mut self, at: usize) -> Option<(Shape, usize)> {
        let close = self.closing(at).filter(|_| self.word(at) == "(")?;
        let (mut first, mut blank, mut index) = (None, Vec::new(), at + 1);
        while index < close {
            index += usize::from(self.word(index) == "...");
            index = self.closing(index).unwrap_or(index) + 1;
            let begin = index;
            index += usize::from(self.word(index) == "?");
            let mut shape = Shape::Any;
            if self.word(index) == ":" {
                (shape, index) = self.shape(index + 1, 0)?;
            }
            blank.push((begin, index));
            first.get_or_insert(shape);
            // A value that it has otherwise.
            while index < close && self.word(index) != "," {
                index = self.closing(index).unwrap_or(index) + 1;
            }
            index += 1;
        }
        for (begin, end) in blank {
            self.blank_ahead(begin, end);
        }
        Some((first.unwrap_or(Shape::Any), close + 1))
    }

    /// The first of the types in angle brackets that open at `at`, and the index behind them.
    fn list_of_types(&self, at: usize, depth: usize) -> Option<(Shape, usize)> {
        let (first, mut index) = self.shape(at + 1, depth + 1)?;
        loop {
            match self.word(index) {
                "," if self.word(index + 1) == ">" => return Some((first, index + 2)),
                // What a parameter is bound to.
                "," | "extends" | "=" => index = self.shape(index + 1, depth + 1)?.1,
                ">" => return Some((first, index + 1)),
                _ => return None,
            }
        }
    }

    /// The type that begins at a token, and the index behind it.
    fn shape(&self, at: usize, depth: usize) -> Option<(Shape, usize)> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut at = at + usize::from(matches!(self.word(at), "|" | "&"));
        let mut all = Vec::new();
        loop {
            let (shape, end) = self.single(at, depth)?;
            all.push(shape);
            match self.word(end) {
                "|" | "&" => at = end + 1,
                _ => return Some((united(all), end)),
            }
        }
    }

    /// A type without `|`.
    fn single(&self, at: usize, depth: usize) -> Option<(Shape, usize)> {
        if depth > MAX_DEPTH {
            return None;
        }
        let word = self.word(at);
        let (mut shape, mut end) = match word {
            "keyof" | "typeof" | "readonly" | "unique" | "infer"
                if self.is(at + 1, TokenKind::Word) || word == "readonly" =>
            {
                let (shape, end) = self.single(at + 1, depth + 1)?;
                return Some((if word == "readonly" { shape } else { Shape::Any }, end));
            }
            "{" => (self.members(at, depth)?, self.closing(at)? + 1),
            "[" => (Shape::List(Box::new(Shape::Any)), self.closing(at)? + 1),
            "(" => {
                let end = self.closing(at)? + 1;
                if self.word(end) == "=>" {
                    return Some((Shape::Any, self.shape(end + 1, depth + 1)?.1));
                }
                (self.shape(at + 1, depth + 1)?.0, end)
            }
            "new" => return Some((Shape::Any, self.shape(at + 1, depth + 1)?.1)),
            "-" => (Shape::Number, at + 2),
            _ if self.is(at, TokenKind::Literal) => match word.starts_with(['"', '\'', '`']) {
                true => (Shape::Text, at + 1),
                false => (Shape::Number, at + 1),
            },
            _ if self.is(at, TokenKind::Word) => self.named(at, depth)?,
            _ => return None,
        };
        while self.word(end) == "[" && !self.is_after_break(end) {
            let close = self.closing(end)?;
            shape = if close == end + 1 { Shape::List(Box::new(shape)) } else { Shape::Any };
            end = close + 1;
        }
        Some((shape, end))
    }

    fn named(&self, at: usize, depth: usize) -> Option<(Shape, usize)> {
        let mut end = at + 1;
        while self.word(end) == "." && self.is(end + 1, TokenKind::Word) {
            end += 2;
        }
        if self.word(end) == "is" && !self.is_after_break(end) {
            return Some((Shape::Boolean, self.shape(end + 1, depth + 1)?.1));
        }
        let mut item = None;
        if self.word(end) == "<" {
            let (first, behind) = self.list_of_types(end, depth)?;
            (item, end) = (Some(first), behind);
        }
        let shape = match (self.word(at), item) {
            ("Array" | "ReadonlyArray", Some(item)) => Shape::List(Box::new(item)),
            (_, Some(_)) => Shape::Any,
            ("string" | "String" | "Date", _) => Shape::Text,
            ("number" | "Number" | "bigint", _) => Shape::Number,
            ("boolean" | "Boolean" | "true" | "false", _) => Shape::Boolean,
            ("null" | "undefined" | "void" | "never", _) => Shape::Nothing,
            ("any" | "unknown" | "object" | "Object", _) => Shape::Any,
            (name, None) => Shape::Named(name.to_owned()),
        };
        Some((shape, end))
    }

    /// The members between the braces that open at `at`.
    fn members(&self, at: usize, depth: usize) -> Option<Shape> {
        let close = self.closing(at)?;
        let (mut members, mut index) = (Vec::new(), at + 1);
        while index < close {
            if self.word(index) == "readonly" && !matches!(self.word(index + 1), ":" | "?") {
                index += 1;
            }
            let named = self.is(index, TokenKind::Word) || self.is(index, TokenKind::Literal);
            let name = unquoted(self.word(index));
            let mut end = self.closing(index).unwrap_or(index) + 1;
            end += usize::from(self.word(end) == "?");
            if self.word(end) == "(" {
                end = self.closing(end)? + 1;
            }
            if self.word(end) == ":" {
                let (shape, behind) = self.shape(end + 1, depth + 1)?;
                if named {
                    members.push((name, shape));
                }
                end = behind;
            }
            index = end;
        }
        Some(Shape::Members(members))
    }
}

/// One type of several that a value may have.
fn united(all: Vec<Shape>) -> Shape {
    let mut shapes = all.into_iter().filter(|shape| *shape != Shape::Nothing);
    let Some(first) = shapes.next() else { return Shape::Nothing };
    if shapes.all(|other| other == first) { first } else { Shape::Any }
}

/// A name or a string without its quotes.
fn unquoted(word: &str) -> String {
    let inner = word.strip_prefix(['"', '\'']).and_then(|rest| rest.strip_suffix(['"', '\'']));
    inner.map_or_else(|| word.to_owned(), |text| text.replace('\\', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let made = read(text).code;
        assert!(made.contains("={") || made.chars().count() == text.chars().count(), "{text}");
        made.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn types_are_blanked_and_what_runs_stays() {
        for (text, wanted) in [
            ("import * as u from './u';\nvar a = 1", "var a = 1"),
            ("declare var P: any;\ndeclare let q: { a: number }\nvar a", "var a"),
            (
                "export default function f<T>(a: T, b?: number, ...c: string[]): T[] { return [a] }",
                "function f (a , b , ...c ) { return [a] }",
            ),
            (
                "export function f({ a, b }: { a: number; b: Array<Array<string>> } = {}): x is T { }",
                "function f({ a, b } = {}) { }",
            ),
            (
                "const f = (a: number, b = g(1, 2)): Promise<void> => a ? (b) : c",
                "const f = (a , b = g(1, 2)) => a ? (b) : c",
            ),
            (
                "x.map((i: I): { a: number } => { return { a: i.a as number } })",
                "x.map((i ) => { return { a: i.a } })",
            ),
            (
                "let a: string | null = null, b = a!.length + (c as number)",
                "let a = null, b = a .length + (c )",
            ),
            (
                "for (const [k, v] of Object.entries(m) as [string, number][]) { if (!k || !v) {} }",
                "for (const [k, v] of Object.entries(m) ) { if (!k || !v) {} }",
            ),
            (
                "a.reduce<Record<string, number>>((s: any, i) => s, {} as Record<string, number>)",
                "a.reduce ((s , i) => s, {} )",
            ),
            (
                "try {} catch (e: unknown) {} a < b; c > (d); a !== b",
                "try {} catch (e ) {} a < b; c > (d); a !== b",
            ),
            (
                "type A = { a: 1 } | 'b';\ninterface B<T> extends C { a(): T }\nvar type = 1, as = 2; as = type",
                "var type = 1, as = 2; as = type",
            ),
            (
                "var o = { as: 1, type: 2, interface: 3 }; o.as; o!['as']; x = y\n!z",
                "var o = { as: 1, type: 2, interface: 3 }; o.as; o ['as']; x = y !z",
            ),
            ("var t = `${a as b}`, r = /a: b/", "var t = `${a as b}`, r = /a: b/"),
            (
                "l.push(<string>i['a'], <Array<any>>b); return <any>(c) < d",
                "l.push( i['a'], b); return (c) < d",
            ),
            (
                "const f = <T,>(x: T): T => <T>x; g = <A, B extends C>(a: A) => a",
                "const f = (x ) => x; g = (a ) => a",
            ),
            (
                "export enum C { Red = 'R', Green = f(1, 2), }\nconst enum N { A, B = 5, 'c d' }\nvar enumeration",
                "var C={Red:'R',Green:f(1, 2),}; var N={A:0,B:5,'c d':6,}; var enumeration",
            ),
        ] {
            assert_eq!(code(text), wanted);
        }
    }

    #[test]
    fn what_is_declared_is_known() {
        let module = read(
            "import { a as b, c } from \"x\";\n/* of it */\nexport interface In {\n 'first name': string\n n?: (number | null)\n list: { t: string[] }[]\n \
             [key: string]: unknown\n of: Array<Other>, both: string | number; is: 'x' | 'y'\n readonly flag: true\n}\ntype Out = Other[]\n\
             function f(i: In, j: number): Out { function inner(x: string) {} }",
        );
        let import =
            |name: &str, local: &str| Import { from: "x".into(), name: name.into(), local: local.into() };
        assert_eq!(module.imports, [import("a", "b"), import("c", "c")]);
        let named = |name: &str| Shape::Named(name.into());
        let list = |shape: Shape| Shape::List(Box::new(shape));
        let member = |name: &str, shape: Shape| (name.to_owned(), shape);
        assert_eq!(module.types[0].comment.trim(), "/* of it */");
        assert_eq!(
            module.types[0].shape,
            Shape::Members(vec![
                member("first name", Shape::Text),
                member("n", Shape::Number),
                member("list", list(Shape::Members(vec![member("t", list(Shape::Text))]))),
                member("of", list(named("Other"))),
                member("both", Shape::Any),
                member("is", Shape::Text),
                member("flag", Shape::Boolean),
            ])
        );
        assert_eq!((module.types[1].name.as_str(), &module.types[1].shape), ("Out", &list(named("Other"))));
        let functions: Vec<_> =
            module.functions.iter().map(|f| (f.name.as_str(), &f.parameter, &f.returns)).collect();
        assert_eq!(functions, [("f", &named("In"), &named("Out"))]);
    }

    #[test]
    fn anything_is_read_without_panic_and_in_bounded_time() {
        for text in [
            "interface A {".repeat(3_000),
            "type A = ".to_owned() + &"(".repeat(20_000),
            "type A = ".to_owned() + &"readonly ".repeat(20_000),
            "let a: A<".to_owned() + &"B<".repeat(5_000) + &">".repeat(5_000),
            "type A = ".to_owned() + &"{a:".repeat(3_000) + &"}".repeat(3_000),
            "((((".repeat(3_000) + "): a => b",
            "export export import import declare as as ! ! < < catch function function(".to_owned(),
            "enum enum {{ enum a { enum b { const enum c { , , = }".to_owned(),
            "<".repeat(20_000),
            "(<a".repeat(20_000),
            "größe as ! é".to_owned(),
        ] {
            read(&text);
        }
    }
}
