//! The text of a statement: the positions of its parameters, and its form for each database.

use crate::url::Dialect;
use std::sync::Arc;
use std::time::Duration;

/// A statement whose parameters are question marks, ready for one database.
#[derive(Clone, Debug)]
pub struct Statement {
    text: Arc<str>,
    parameters: usize,
    longest: Option<Duration>,
}

impl Statement {
    /// Parses a text with question marks as in JDBC. Those within quotes and comments do not count, `??` is a question mark of the
    /// database. `{call p(?)}` becomes the procedure call of the database.
    pub fn new(text: &str, dialect: Dialect) -> Statement {
        let text = call(text.trim().trim_end_matches(';'), dialect);
        let mut out = String::with_capacity(text.len() + 8);
        let mut parameters = 0;
        for part in parts(&text, dialect) {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Question => {
                    parameters += 1;
                    match dialect {
                        Dialect::Postgres => out += &format!("${parameters}"),
                        Dialect::SqlServer => out += &format!("@P{parameters}"),
                        Dialect::MySql | Dialect::Sqlite => out.push('?'),
                    }
                }
                Part::Escaped => out.push('?'),
                Part::Named(name) => {
                    out.push(':');
                    out.push_str(name);
                }
            }
        }
        Statement { text: out.into(), parameters, longest: None }
    }

    /// Sets its time limit, which counts if it is shorter than that of its data source.
    pub fn within(self, longest: Option<Duration>) -> Statement {
        Statement { longest, ..self }
    }

    /// Its time limit.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.longest
    }

    /// The text for the database.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The number of its parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
    }
}

/// A text with `:name` parameters, as in data services, and `?` beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The text with question marks.
    pub text: String,
    /// For each question mark the name in its place; `None`: it was a question mark.
    pub names: Vec<Option<String>>,
    /// The positions of the question marks in the text.
    marks: Vec<usize>,
}

/// The replacement of a question mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// This many parameters, separated by commas; 0: NULL.
    Marks(usize),
    /// A text as it is. It becomes part of the statement: the caller has checked it.
    Text(String),
    /// Nothing, without the comma before or after it.
    Drop,
}

impl Named {
    /// Parses the text; `is_parameter` tells which names are parameters.
    pub fn new(text: &str, dialect: Dialect, is_parameter: impl Fn(&str) -> bool) -> Named {
        let (mut out, mut names) = (String::with_capacity(text.len()), Vec::new());
        let mut marks = Vec::new();
        for part in parts(text, dialect) {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Escaped => out.push_str("??"),
                Part::Question => {
                    marks.push(out.len());
                    out.push('?');
                    names.push(None);
                }
                Part::Named(name) if is_parameter(name) => {
                    marks.push(out.len());
                    out.push('?');
                    names.push(Some(name.to_owned()));
                }
                Part::Named(name) => {
                    out.push(':');
                    out.push_str(name);
                }
            }
        }
        Named { text: out, names, marks }
    }

    /// What stands before a question mark, counted from 0.
    pub fn before(&self, mark: usize) -> &str {
        self.marks.get(mark).and_then(|&at| self.text.get(..at)).unwrap_or_default()
    }

    /// Appends to the text, in front of its final semicolon.
    pub fn append(&mut self, more: &str) {
        self.text.truncate(self.text.trim_end().trim_end_matches(';').len());
        self.text.push_str(more);
    }

    /// Makes `{? = call f(…)}` a query of the function whose value is in this column. Its first question mark is no parameter any more.
    /// `false`: it is another text, and stays as it is.
    pub fn select_function(&mut self, column: &str, dialect: Dialect) -> bool {
        let inside = |text: &str| -> Option<(usize, usize)> {
            let end = text.trim_end().trim_end_matches(';').trim_end().strip_suffix('}')?.len();
            let first = self.marks.first().copied()?;
            let is_first = text.get(..first)?.trim() == "{";
            let rest = text.get(first + 1..end)?.trim_start().strip_prefix('=')?.trim_start();
            let word = rest.get(..4)?;
            let name = rest.get(4..)?.trim_start();
            let is_call = is_first && word.eq_ignore_ascii_case("call") && !name.trim().is_empty();
            is_call.then_some((end - name.len(), end))
        };
        let Some((from, end)) = inside(&self.text) else { return false };
        let select = match dialect {
            // The value of a function is the column of its alias; where it has OUT parameters, they are columns of their own.
            Dialect::Postgres => "SELECT * FROM ",
            _ => "SELECT ",
        };
        let column = match dialect {
            Dialect::MySql => format!("`{}`", column.replace('`', "``")),
            Dialect::SqlServer => format!("[{}]", column.replace(']', "]]")),
            Dialect::Postgres | Dialect::Sqlite => format!("\"{}\"", column.replace('"', "\"\"")),
        };
        self.text = format!("{select}{} AS {column}", self.text[from..end].trim_end());
        self.names.remove(0);
        self.marks.remove(0);
        self.marks.iter_mut().for_each(|mark| *mark = *mark - from + select.len());
        true
    }

    /// The text with each question mark, by its number from 0, replaced.
    pub fn filled(&self, fill: impl Fn(usize) -> Fill) -> String {
        let (mut out, mut from, mut drops_comma) = (String::with_capacity(self.text.len()), 0, false);
        for (number, &at) in self.marks.iter().enumerate() {
            let before = &self.text[from..at];
            let before = match before.trim_start().strip_prefix(',').filter(|_| drops_comma) {
                Some(rest) => rest.trim_start(),
                None => before,
            };
            out.push_str(before);
            drops_comma = false;
            match fill(number) {
                Fill::Marks(0) => out.push_str("NULL"),
                Fill::Marks(count) => {
                    out.push('?');
                    (1..count).for_each(|_| out.push_str(",?"));
                }
                Fill::Text(text) => out.push_str(&text),
                Fill::Drop => match out.trim_end().strip_suffix(',').map(str::len) {
                    Some(length) => out.truncate(length),
                    None => drops_comma = true,
                },
            }
            from = at + 1;
        }
        let rest = &self.text[from..];
        let rest = rest.trim_start().strip_prefix(',').filter(|_| drops_comma).unwrap_or(rest);
        out.push_str(rest);
        out
    }
}

/// `{call p(?)}` and `{? = call f(?)}`.
fn call(text: &str, dialect: Dialect) -> String {
    let inside = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::trim);
    let Some(inside) = inside else { return text.to_owned() };
    let (function, rest) = match inside.strip_prefix('?') {
        Some(rest) => (true, rest.trim_start().trim_start_matches('=').trim_start()),
        None => (false, inside),
    };
    let is_call = rest.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("call"));
    match rest.get(4..) {
        // PostgreSQL's procedures without results are called, its functions selected.
        Some(rest) if is_call && function => format!("SELECT{rest}"),
        Some(rest) if is_call && dialect == Dialect::Postgres => format!("SELECT * FROM{rest}"),
        Some(rest) if is_call && dialect == Dialect::SqlServer => execute(rest),
        Some(rest) if is_call => format!("CALL{rest}"),
        _ => text.to_owned(),
    }
}

/// ` p(?, ?)` as Transact-SQL has it, without the brackets.
fn execute(call: &str) -> String {
    let inside = call.trim().strip_suffix(')').and_then(|rest| rest.split_once('('));
    let (name, parameters) = inside.unwrap_or((call, ""));
    format!("EXEC {} {}", name.trim(), parameters.trim()).trim_end().to_owned()
}

enum Part<'a> {
    Text(&'a str),
    /// `?`
    Question,
    /// `??`
    Escaped,
    /// `:name`
    Named(&'a str),
}

/// Splits a text at its parameters.
fn parts(text: &str, dialect: Dialect) -> Vec<Part<'_>> {
    let bytes = text.as_bytes();
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        let after = bytes.get(at + 1).copied();
        match byte {
            b'\'' | b'"' | b'`' => at = quoted(bytes, at, backslashes(bytes, at, dialect)),
            b'-' if after == Some(b'-') => at = line_end(bytes, at, dialect),
            b'[' if dialect == Dialect::SqlServer => at = bracketed(bytes, at),
            b'#' if dialect == Dialect::MySql => at = find(bytes, at, b"\n"),
            b'/' if after == Some(b'*') => at = comment(bytes, at, dialect),
            b'$' if dialect == Dialect::Postgres => at = dollars(bytes, at),
            b'?' => {
                parts.push(Part::Text(&text[from..at]));
                let escaped = after == Some(b'?');
                parts.push(if escaped { Part::Escaped } else { Part::Question });
                at += if escaped { 2 } else { 1 };
                from = at;
            }
            // The cast operator of PostgreSQL.
            b':' if after == Some(b':') => at += 2,
            b':' if after.is_some_and(|next| next.is_ascii_alphabetic() || next == b'_') => {
                let length = bytes[at + 1..].iter().take_while(|&&byte| is_name(byte)).count();
                parts.push(Part::Text(&text[from..at]));
                parts.push(Part::Named(&text[at + 1..at + 1 + length]));
                at += 1 + length;
                from = at;
            }
            _ => at += 1,
        }
    }
    parts.push(Part::Text(&text[from..]));
    parts
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a backslash escapes a quote: in MySQL, and in `E'…'` of PostgreSQL.
fn backslashes(bytes: &[u8], at: usize, dialect: Dialect) -> bool {
    match dialect {
        Dialect::MySql => bytes[at] != b'`',
        Dialect::Postgres => {
            let before = at.checked_sub(1).map(|at| bytes[at]);
            let apart = at < 2 || !is_name(bytes[at - 2]);
            bytes[at] == b'\'' && matches!(before, Some(b'e' | b'E')) && apart
        }
        Dialect::Sqlite | Dialect::SqlServer => false,
    }
}

/// The end of the quoted text at `at`. A doubled quote ends one and begins another, which has the same effect.
fn quoted(bytes: &[u8], at: usize, backslashes: bool) -> usize {
    let quote = bytes[at];
    let mut at = at + 1;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if backslashes => at += 1,
            byte if byte == quote => break,
            _ => {}
        }
    }
    at.min(bytes.len())
}

/// The end of a line comment; for PostgreSQL a carriage return ends it too.
fn line_end(bytes: &[u8], at: usize, dialect: Dialect) -> usize {
    let ends = |byte: &u8| *byte == b'\n' || (dialect == Dialect::Postgres && *byte == b'\r');
    bytes[at..].iter().position(ends).map_or(bytes.len(), |found| at + found + 1)
}

/// The end of `[name]` of SQL Server, in which `]]` is a bracket.
fn bracketed(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    loop {
        at = find(bytes, at, b"]");
        if bytes.get(at) != Some(&b']') {
            return at;
        }
        at += 1;
    }
}

/// The position after the next `end`, or the end of the text.
fn find(bytes: &[u8], at: usize, end: &[u8]) -> usize {
    let found = bytes[at..].windows(end.len()).position(|window| window == end);
    found.map_or(bytes.len(), |found| at + found + end.len())
}

/// The end of a block comment, which PostgreSQL and SQL Server nest.
fn comment(bytes: &[u8], at: usize, dialect: Dialect) -> usize {
    let (mut depth, mut at) = (0_usize, at);
    let nests = matches!(dialect, Dialect::Postgres | Dialect::SqlServer);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) if depth == 0 || nests => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    break;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// The end of `$tag$ … $tag$`, or the position after the `$`.
fn dollars(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at + 1..].iter().take_while(|&&byte| is_name(byte)).count();
    let tag = &bytes[at..(at + length + 2).min(bytes.len())];
    let is_tag = tag.len() == length + 2 && tag.last() == Some(&b'$');
    let begins = at.checked_sub(1).is_none_or(|before| !is_name(bytes[before]));
    let is_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    if is_tag && begins && !is_digit { find(bytes, at + tag.len(), tag) } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Dialect::{MySql, Postgres, SqlServer, Sqlite};

    #[test]
    fn question_marks_are_found_where_they_are_parameters() {
        for (dialect, text, wanted, count) in [
            (Postgres, "select a from t where b=? and c = ?;", "select a from t where b=$1 and c = $2", 2),
            (Sqlite, "select '?', \"?\", 'it''s ?' where a=?", "select '?', \"?\", 'it''s ?' where a=?", 1),
            (
                MySql,
                "select 'a\\'?', `?` where a=? # ?\n and b=?",
                "select 'a\\'?', `?` where a=? # ?\n and b=?",
                2,
            ),
            (Postgres, "select E'a\\'?' , 'a\\' , ?", "select E'a\\'?' , 'a\\' , $1", 1),
            (Postgres, "select 1 -- ?\n , /* ? /* ? */ ? */ ?", "select 1 -- ?\n , /* ? /* ? */ ? */ $1", 1),
            (Postgres, "select 1 -- ?\r , ?", "select 1 -- ?\r , $1", 1),
            (MySql, "select 1 /* ? /* ? */ , ?", "select 1 /* ? /* ? */ , ?", 1),
            (Postgres, "select $$ ? $$, $a$ ? $$ $a$, ?", "select $$ ? $$, $a$ ? $$ $a$, $1", 1),
            (Postgres, "select a ?? 'k' where b=?", "select a ? 'k' where b=$1", 1),
            (MySql, "{call p(?, ?)}", "CALL p(?, ?)", 2),
            (Postgres, "{? = call f(?)}", "SELECT f($1)", 1),
            (SqlServer, "{call dbo.p(?, ?)}", "EXEC dbo.p @P1, @P2", 2),
            (SqlServer, "{call p}", "EXEC p", 0),
            (SqlServer, "{call p()}", "EXEC p", 0),
            (
                SqlServer,
                "select [a?]]?], '?' from #t where b=?",
                "select [a?]]?], '?' from #t where b=@P1",
                1,
            ),
            (SqlServer, "select /* /* ? */ ? */ ?", "select /* /* ? */ ? */ @P1", 1),
            (Postgres, "select 'unended ?", "select 'unended ?", 0),
            (Sqlite, "", "", 0),
        ] {
            let statement = Statement::new(text, dialect);
            assert_eq!((&**statement.text(), statement.parameters()), (wanted, count), "{text}");
        }
    }

    #[test]
    fn names_are_parameters() {
        let named =
            Named::new("select a::int, ':b' from t where c=:c and d=:d or c=:c and e=?", Postgres, |name| {
                name != "d"
            });
        assert_eq!(named.text, "select a::int, ':b' from t where c=? and d=:d or c=? and e=?");
        assert_eq!(named.names, [Some("c".to_owned()), Some("c".to_owned()), None]);
    }

    #[test]
    fn functions_are_selected() {
        let selected = |text: &str, dialect| {
            let mut named = Named::new(text, dialect, |_| true);
            named.select_function("a\"b", dialect).then(|| named.filled(|_| Fill::Marks(2)))
        };
        for (text, dialect, wanted) in [
            ("{? = call f(?, :a)}", Postgres, Some("SELECT * FROM f(?,?, ?,?) AS \"a\"\"b\"")),
            (" {:r=CALL  s.f()} ;", Sqlite, Some("SELECT s.f() AS \"a\"\"b\"")),
            ("{ ? = call f(?) }", MySql, Some("SELECT f(?,?) AS `a\"b`")),
            ("{? = call f(?)}", SqlServer, Some("SELECT f(?,?) AS [a\"b]")),
            ("{call f(?)}", MySql, None),
            ("{? = call }", MySql, None),
            ("{? = call", MySql, None),
            ("{? = é}", MySql, None),
            ("{? = callé}", MySql, Some("SELECT é AS `a\"b`")),
            ("{}", MySql, None),
            ("select ?", MySql, None),
        ] {
            assert_eq!(selected(text, dialect).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn question_marks_are_filled() {
        let mut named = Named::new("{call f(:a, ?, :b)} -- ?", Postgres, |_| true);
        let text = |fills: [Fill; 3]| named.filled(|at| fills[at].clone());
        let marks = Fill::Marks;
        assert_eq!(text([marks(1), marks(3), marks(0)]), "{call f(?, ?,?,?, NULL)} -- ?");
        assert_eq!(text([marks(1), Fill::Text("'x?'".into()), marks(1)]), "{call f(?, 'x?', ?)} -- ?");
        assert_eq!(text([Fill::Drop, marks(1), Fill::Drop]), "{call f(?)} -- ?");
        assert_eq!(text([marks(1), Fill::Drop, marks(1)]), "{call f(?, ?)} -- ?");
        assert_eq!(text([Fill::Drop, Fill::Drop, Fill::Drop]), "{call f()} -- ?");
        named = Named::new("insert into t values (?); ", Postgres, |_| true);
        named.append(" RETURNING *");
        assert_eq!(named.text, "insert into t values (?) RETURNING *");
    }
}
