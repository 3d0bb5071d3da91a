//! The grammar of the Jayway library.
//!
//! Differences to RFC 9535 that configurations meet: `$.` may be missing, names without quotes take every
//! character but a space, `.`, `[` and `(`, filters need brackets (`[?(…)]`), only spaces separate tokens,
//! a list in brackets is either of names or of indexes, functions may end a path, a name or `*` may follow a bracket
//! without a dot, and of what follows a bracket, `*` or a function, one last character is not read.

use super::JsonPathError;
use super::ast::{Bound, Call, Expr, Function, Operand, Operator, Query, Segment, Selector};
use super::compare::Pattern;
use super::literal::{Cursor, Parsed};

/// Reads a path, with what is remarkable about it; `open`: with `{n}` for what is given when it is run.
pub(super) fn parse(text: &str, open: bool) -> Parsed<(Query, Vec<JsonPathError>)> {
    // Spans stay those of the text as it is given.
    let end = text.trim_end().len();
    let mut c = Cursor::new(text.get(..end).unwrap_or(text));
    c.open = open;
    c.skip_blanks();
    let dots = c.text.len() - c.text.trim_end_matches('.').len();
    if dots > 1 {
        c.at = c.text.len() - dots;
        return c.error("a path cannot end with ..");
    }
    c.text = c.text.strip_suffix('.').unwrap_or(c.text);
    if c.at_end() {
        return if dots == 1 {
            Ok((Query::new(true, Vec::new()), Vec::new()))
        } else {
            c.error("the path is empty")
        };
    }
    let mut segments = Vec::new();
    if matches!(c.peek(), b'$' | b'@') {
        c.at += 1;
    } else if c.peek() == b'.' {
        // `$.` goes before what does not begin with `$`, so that a dot at the beginning is the second one.
        descendants(&mut c, Place::Top, &mut segments)?;
    } else if c.peek() != b'[' {
        name_or_function(&mut c, Place::Top, &mut segments)?;
    }
    read_segments(&mut c, Place::Top, &mut segments)?;
    if !c.at_end() {
        return c.error(format!("expected . or [{}", c.found()));
    }
    Ok((finish(true, segments), c.remarks))
}

/// Where a path stands: what ends a name depends on it.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Top,
    Filter,
    Argument,
}

impl Place {
    /// Whether `b`, before `next`, ends a name.
    fn ends_name(self, b: u8, next: u8) -> bool {
        match b {
            b' ' | b'.' | b'[' | b'(' => true,
            b')' | b'<' | b'>' | b'=' | b'~' | b'!' => self != Place::Top,
            b'&' | b'|' => self == Place::Filter && next == b,
            b',' => self == Place::Argument,
            _ => false,
        }
    }

    /// Whether one character is left of the path.
    fn is_last(self, c: &Cursor<'_>) -> bool {
        let mut rest = c.rest().chars();
        rest.next();
        match rest.as_str().as_bytes() {
            [] => true,
            [b'.' | b'[' | b'(', ..] => false,
            [b, next @ ..] => self != Place::Top && self.ends_name(*b, next.first().copied().unwrap_or(0)),
        }
    }
}

/// Settles what depends on the position in the path: lists of names are merged into one object at its end, and
/// functions at the end of a path that begins with `..` take the list of all matches.
fn finish(absolute: bool, mut segments: Vec<Segment>) -> Query {
    let begins_deep = matches!(segments.first(), Some(Segment::Descendant(_)));
    let last = segments.len().saturating_sub(1);
    for (i, segment) in segments.iter_mut().enumerate() {
        match segment {
            Segment::Child(selectors) | Segment::Descendant(selectors) if i < last => {
                if let [Selector::Members(names)] = selectors.as_mut_slice() {
                    *selectors = std::mem::take(names).into_iter().map(Selector::Name).collect();
                }
            }
            Segment::Function(call) if i == last => call.gathers = begins_deep,
            _ => {}
        }
    }
    Query::new(absolute, segments)
}

fn read_segments(c: &mut Cursor<'_>, place: Place, out: &mut Vec<Segment>) -> Parsed<()> {
    loop {
        match c.peek() {
            b'[' | b'(' if !out.is_empty() && place == Place::Top && place.is_last(c) => ignore_last(c),
            b'[' => out.push(Segment::Child(bracketed(c)?)),
            b'.' => {
                c.at += 1;
                if c.peek() == b'.' {
                    descendants(c, place, out)?;
                } else if c.take("*") {
                    out.push(Segment::Child(vec![Selector::Wildcard]));
                } else if c.peek() != b'[' {
                    // `.[0]` is `[0]`: the next round reads it.
                    name_or_function(c, place, out)?;
                }
            }
            // `[0]name` is `[0].name`.
            b if !out.is_empty() && !c.at_end() && !place.ends_name(b, c.peek_at(1)) => {
                if place.is_last(c) {
                    ignore_last(c);
                } else if c.take("*") {
                    out.push(Segment::Child(vec![Selector::Wildcard]));
                } else {
                    name_or_function(c, place, out)?;
                }
            }
            _ => return Ok(()),
        }
    }
}

/// Goes over the last character of a path, which Jayway does not read behind a bracket, `*` or a function.
fn ignore_last(c: &mut Cursor<'_>) {
    let start = c.at;
    c.next_char();
    let message = "this last character is not read".to_owned();
    c.remarks.push(JsonPathError { message, span: start..c.at });
}

/// What follows `..`, from its second dot on.
fn descendants(c: &mut Cursor<'_>, place: Place, out: &mut Vec<Segment>) -> Parsed<()> {
    c.at += 1;
    match c.peek() {
        b'[' => out.push(Segment::Descendant(bracketed(c)?)),
        b'*' => {
            c.at += 1;
            out.push(Segment::Descendant(vec![Selector::Wildcard]));
        }
        _ => {
            let mut found = Vec::with_capacity(1);
            name_or_function(c, place, &mut found)?;
            match found.pop() {
                Some(Segment::Child(selectors)) => out.push(Segment::Descendant(selectors)),
                _ => return c.error("a function cannot follow .."),
            }
        }
    }
    Ok(())
}

fn name_or_function(c: &mut Cursor<'_>, place: Place, out: &mut Vec<Segment>) -> Parsed<()> {
    let start = c.at;
    if place == Place::Top && c.peek() == b'*' {
        c.at += 1;
        out.push(Segment::Child(vec![Selector::Wildcard]));
        return Ok(());
    }
    while !c.at_end() {
        if place.ends_name(c.peek(), c.peek_at(1)) {
            break;
        }
        c.at += 1;
    }
    let name = c.text.get(start..c.at).unwrap_or("");
    if place == Place::Top && c.peek() == b' ' {
        return c.error("a name with a space needs quotes and brackets: ['a b']");
    }
    if name.is_empty() {
        return c.error(format!("expected a name{}", c.found()));
    }
    if c.peek() != b'(' {
        out.push(Segment::Child(vec![Selector::Name(name.to_owned())]));
        return Ok(());
    }
    let Some(function) = Function::by_name(name) else {
        let message = format!("there is no function {name}: the path selects nothing");
        c.remarks.push(JsonPathError { message, span: start..c.at });
        skip_arguments(c)?;
        out.push(Segment::Function(Call { function: Function::Unknown, args: Vec::new(), gathers: false }));
        return Ok(());
    };
    c.at += 1;
    let mut args = Vec::new();
    c.nested(|c| {
        c.list(")", |c| {
            args.push(match c.peek() {
                b'$' | b'@' => Operand::Query(path(c, Place::Argument)?),
                _ => Operand::Literal(c.json()?),
            });
            Ok(())
        })
    })?;
    out.push(Segment::Function(Call { function, args, gathers: false }));
    Ok(())
}

/// The arguments of a function that does not exist: that is found when the path is run.
fn skip_arguments(c: &mut Cursor<'_>) -> Parsed<()> {
    let start = c.at;
    let mut open = 0_usize;
    while let Some(next) = c.next_char() {
        match next {
            '(' => open += 1,
            ')' if open == 1 => return Ok(()),
            ')' => open -= 1,
            _ => {}
        }
    }
    c.error_from(start, "the arguments of the function are not closed")
}

/// A path that begins with `$` or `@`.
fn path(c: &mut Cursor<'_>, place: Place) -> Parsed<Query> {
    let absolute = c.peek() == b'$';
    c.at += 1;
    let mut segments = Vec::new();
    c.nested(|c| read_segments(c, place, &mut segments))?;
    Ok(finish(absolute, segments))
}

fn bracketed(c: &mut Cursor<'_>) -> Parsed<Vec<Selector>> {
    let open = c.at;
    c.expect("[")?;
    c.skip_spaces();
    let selectors = match c.peek() {
        b'\'' | b'"' => names(c)?,
        b'*' => {
            c.at += 1;
            vec![Selector::Wildcard]
        }
        b'?' => {
            c.at += 1;
            c.skip_spaces();
            c.expect("(")?;
            let expr = c.nested(or)?;
            c.skip_spaces();
            c.expect(")")?;
            vec![Selector::Filter(expr)]
        }
        b'-' | b':' | b'0'..=b'9' => return indexes(c, open),
        b'{' if c.open => return indexes(c, open),
        _ => return c.error(format!("expected a name in quotes, an index, a slice, * or ?(…){}", c.found())),
    };
    c.skip_spaces();
    c.expect("]")?;
    Ok(selectors)
}

fn names(c: &mut Cursor<'_>) -> Parsed<Vec<Selector>> {
    let quote = c.peek();
    let mut names = vec![c.string(false)?];
    loop {
        c.skip_spaces();
        if c.peek() != b',' {
            break;
        }
        c.at += 1;
        c.skip_blanks();
        if c.peek() != quote {
            return c.error("expected another name in the same quotes");
        }
        names.push(c.string(false)?);
    }
    Ok(match names.len() {
        1 => names.into_iter().map(Selector::Name).collect(),
        _ => vec![Selector::Members(names)],
    })
}

fn indexes(c: &mut Cursor<'_>, open: usize) -> Parsed<Vec<Selector>> {
    let start = c.at;
    let text = c.take_while(|b| b != b']').trim();
    if !c.take("]") {
        return c.error_from(open, "the bracket is not closed");
    }
    if c.open && text.contains('{') {
        return match given(text) {
            Some(selectors) => Ok(selectors),
            None => c.error_from(start, "not an index, a list of indexes or a slice"),
        };
    }
    let number = |text: &str| text.parse::<i32>().ok().filter(|_| !text.starts_with('+')).map(i64::from);
    let selectors = if text.contains(':') {
        let mut parts = text.split(':');
        let mut bound = || match parts.next() {
            None | Some("") => Some(None),
            Some(part) => number(part).map(Some),
        };
        let well_formed = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'-' | b':'));
        match (bound(), bound()) {
            (Some(start), Some(end)) if well_formed && (start.is_some() || end.is_some()) => {
                Some(vec![Selector::Slice { start, end, step: 1 }])
            }
            _ => None,
        }
    } else {
        text.split(',').map(|part| number(part.trim_matches(' ')).map(Selector::Index)).collect()
    };
    match selectors {
        Some(selectors) => Ok(selectors),
        None => c.error_from(start, "not an index, a list of indexes or a slice"),
    }
}

/// An index, a list of indexes or a slice with parts that are given when the path is run.
fn given(text: &str) -> Option<Vec<Selector>> {
    let bound = |text: &str| {
        let text = text.trim();
        match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(number) => number.parse().ok().map(Bound::Parameter),
            None => text.parse().ok().map(Bound::Fixed),
        }
    };
    if let Some((start, end)) = text.split_once(':') {
        let side = |text: &str| if text.trim().is_empty() { Some(None) } else { bound(text).map(Some) };
        return Some(vec![Selector::SliceOf { start: side(start)?, end: side(end)? }]);
    }
    let selector = |text: &str| {
        Some(match bound(text)? {
            Bound::Fixed(index) => Selector::Index(index),
            Bound::Parameter(number) => Selector::Parameter(number),
        })
    };
    text.split(',').map(selector).collect()
}

fn or(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let mut terms = vec![and(c)?];
    loop {
        c.skip_blanks();
        if !c.take("||") {
            return Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expr::Or(terms) });
        }
        terms.push(and(c)?);
    }
}

fn and(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let mut terms = vec![operand_of_and(c)?];
    loop {
        c.skip_blanks();
        if !c.take("&&") {
            return Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expr::And(terms) });
        }
        terms.push(operand_of_and(c)?);
    }
}

fn operand_of_and(c: &mut Cursor<'_>) -> Parsed<Expr> {
    c.skip_blanks();
    if c.take("!") {
        return c.nested(|c| Ok(Expr::Not(Box::new(operand_of_and(c)?))));
    }
    if c.take("(") {
        let inner = c.nested(or)?;
        c.skip_blanks();
        c.expect(")")?;
        return Ok(inner);
    }
    comparison(c)
}

fn comparison(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let start = c.at;
    let left = operand(c)?;
    c.skip_blanks();
    let Some(operator) = operator(c)? else {
        return match left {
            Operand::Query(query) => Ok(Expr::Exists(query)),
            _ => c.error_from(start, "a value must be compared with something"),
        };
    };
    c.skip_blanks();
    let at = c.at;
    let right = operand(c)?;
    if operator == Operator::Matches
        && matches!(left, Operand::Pattern(_)) == matches!(right, Operand::Pattern(_))
    {
        return c.error_from(at, "=~ takes a regular expression between slashes on one side");
    }
    Ok(Expr::Compare(left, operator, right))
}

fn operator(c: &mut Cursor<'_>) -> Parsed<Option<Operator>> {
    let symbols = [
        ("===", Operator::Identical),
        ("!==", Operator::NotIdentical),
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("=~", Operator::Matches),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    if let Some((_, operator)) = symbols.into_iter().find(|(token, _)| c.take(token)) {
        return Ok(Some(operator));
    }
    let start = c.at;
    let word = c.take_while(|b| b.is_ascii_alphabetic());
    Ok(Some(match word.to_ascii_lowercase().as_str() {
        "" => return Ok(None),
        "in" => Operator::In,
        "nin" => Operator::NotIn,
        "subsetof" => Operator::SubsetOf,
        "anyof" => Operator::AnyOf,
        "noneof" => Operator::NoneOf,
        "contains" => Operator::Contains,
        "all" => Operator::All,
        "size" => Operator::Size,
        "empty" => Operator::Empty,
        _ => return c.error_from(start, format!("there is no operator {word}")),
    }))
}

fn operand(c: &mut Cursor<'_>) -> Parsed<Operand> {
    match c.peek() {
        b'$' | b'@' => Ok(Operand::Query(path(c, Place::Filter)?)),
        b'/' => {
            let start = c.at;
            c.at += 1;
            let source = c.at;
            loop {
                match c.next_char() {
                    None => return c.error_from(start, "the regular expression is not closed"),
                    Some('\\') => {
                        c.next_char();
                    }
                    Some('/') => break,
                    Some(_) => {}
                }
            }
            let source = c.text.get(source..c.at - 1).unwrap_or("");
            let flags = c.take_while(|b| b.is_ascii_alphabetic());
            match Pattern::java(source, flags) {
                Ok(pattern) => Ok(Operand::Pattern(pattern)),
                Err(message) => c.error_from(start, message),
            }
        }
        b'{' if c.open && c.peek_at(1).is_ascii_digit() => {
            c.at += 1;
            let number = c.take_while(|b| b.is_ascii_digit()).parse();
            c.expect("}")?;
            match number {
                Ok(number) => Ok(Operand::Parameter(number)),
                Err(_) => c.error("there are not that many parameters"),
            }
        }
        _ => Ok(Operand::Literal(c.json()?)),
    }
}
