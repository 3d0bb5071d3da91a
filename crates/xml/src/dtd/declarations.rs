//! The grammar of the subsets ([28a]-[83]).
//!
//! A parameter entity between declarations is a subset by itself. One inside a declaration (allowed outside the
//! internal subset only) is replaced in the text of that declaration before the declaration is read.

use super::{AttributeDecl, AttributeKind, DtdState, Entity, Value, within};
use crate::error::{ErrorKind, Res, end, fault, limit, syntax};
use crate::lex::{self, Reference};
use crate::{Limits, is_space};
use std::rc::Rc;

const WHAT: &str = "the document type declaration";

/// Reads along a text.
pub(super) struct Cursor<'a> {
    pub input: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(input: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { input, at }
    }

    pub fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    pub fn starts_with(&self, prefix: &[u8]) -> bool {
        self.input[self.at..].starts_with(prefix)
    }

    pub fn eat(&mut self, word: &[u8]) -> bool {
        let is = self.starts_with(word);
        if is {
            self.at += word.len();
        }
        is
    }

    pub fn skip_space(&mut self) -> bool {
        let start = self.at;
        self.at = lex::spaces(self.input, start);
        self.at > start
    }

    pub fn need_space(&mut self) -> Res<()> {
        if self.skip_space() { Ok(()) } else { self.unexpected("expected white space") }
    }

    pub fn unexpected<T>(&self, message: &'static str) -> Res<T> {
        if self.at >= self.input.len() { end(WHAT, self.at) } else { syntax(message, self.at) }
    }

    fn nmtoken(&mut self, limits: &Limits) -> Res<&'a str> {
        let e = lex::name(self.input, self.at, limits, WHAT)?;
        let token = lex::text(&self.input[self.at..e]);
        if !token.chars().all(crate::is_name_char) {
            return syntax(format!("`{token}` is not a name token"), self.at);
        }
        self.at = e;
        Ok(token)
    }

    pub fn name(&mut self, limits: &Limits) -> Res<&'a str> {
        let start = self.at;
        let name = self.nmtoken(limits)?;
        if !crate::is_name(name) {
            return syntax(format!("`{name}` is not a name"), start);
        }
        Ok(name)
    }

    /// A name without colon, as Namespaces wants those of entities and notations.
    fn ncname(&mut self, limits: &Limits) -> Res<&'a str> {
        let start = self.at;
        let name = self.name(limits)?;
        if name.contains(':') {
            return fault(ErrorKind::Namespace, format!("a colon in the name `{name}`"), start);
        }
        Ok(name)
    }

    /// A quoted literal: the offsets of its content.
    fn literal(&mut self) -> Res<(usize, usize)> {
        let quote = match self.peek() {
            Some(q @ (b'"' | b'\'')) => q,
            _ => return self.unexpected("expected a quoted literal"),
        };
        let start = self.at + 1;
        match memchr::memchr(quote, &self.input[start..]) {
            Some(len) => {
                self.at = start + len + 1;
                Ok((start, start + len))
            }
            None => end(WHAT, self.input.len()),
        }
    }

    /// `SYSTEM …` or `PUBLIC …` ([75]); the system literal may be missing after PUBLIC in notations ([83]).
    pub fn external_id(&mut self, need_system: bool) -> Res<(Option<String>, Option<String>)> {
        let text = |c: &Cursor<'_>, (a, b): (usize, usize)| lex::text(&c.input[a..b]).to_owned();
        if self.eat(b"SYSTEM") {
            self.need_space()?;
            let literal = self.literal()?;
            return Ok((Some(text(self, literal)), None));
        }
        if !self.eat(b"PUBLIC") {
            return self.unexpected("expected `SYSTEM` or `PUBLIC`");
        }
        self.need_space()?;
        let (a, b) = self.literal()?;
        let allowed = |b: &u8| b.is_ascii_alphanumeric() || b" \r\n-'()+,./:=?;!*#@$_%".contains(b);
        if let Some(i) = self.input[a..b].iter().position(|b| !allowed(b)) {
            return syntax("a character that is not allowed in a public identifier", a + i);
        }
        let public = text(self, (a, b)).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let spaced = self.skip_space();
        if !matches!(self.peek(), Some(b'"' | b'\'')) && !need_system {
            return Ok((None, Some(public)));
        }
        if !spaced {
            return self.unexpected("expected white space");
        }
        let literal = self.literal()?;
        Ok((Some(text(self, literal)), Some(public)))
    }
}

impl DtdState {
    /// A subset from `at`. The `internal` one ends at its `]` (returns the offset after it), others at the end
    /// of the input. `inside`: parameter entities may stand inside declarations.
    pub(super) fn subset(&mut self, input: &[u8], at: usize, internal: bool, inside: bool) -> Res<usize> {
        let mut c = Cursor::new(input, at);
        // Conditional sections that are open.
        let mut included = 0;
        loop {
            c.skip_space();
            let Some(b) = c.peek() else {
                if internal || included > 0 {
                    return end(WHAT, c.at);
                }
                return Ok(c.at);
            };
            if b == b']' && internal {
                return Ok(c.at + 1);
            }
            if b == b']' && included > 0 && c.eat(b"]]>") {
                included -= 1;
                continue;
            }
            if b == b'%' {
                self.between(&mut c)?;
            } else if c.starts_with(b"<!--") {
                c.at = lex::comment(input, c.at + 4, 0)? + 3;
            } else if c.starts_with(b"<?") {
                c.at = lex::pi(input, c.at + 2, 0, &self.limits)?.end;
            } else if c.starts_with(b"<![") && !internal && (inside || self.outside) {
                if self.conditional(&mut c)? {
                    included += 1;
                }
            } else if c.starts_with(b"<!") {
                if inside {
                    let start = c.at;
                    let mut text = String::new();
                    c.at = self.expand(input, start, &mut text)?;
                    let mut inner = Cursor::new(text.as_bytes(), 0);
                    let done =
                        self.declaration(&mut inner, true).map_err(|f| within(*f, "a declaration", start));
                    done?;
                    if inner.at != text.len() {
                        return syntax("expected the end of a declaration", start);
                    }
                } else {
                    self.declaration(&mut c, false)?;
                }
            } else {
                return syntax("expected a declaration", c.at);
            }
        }
    }

    /// A parameter entity between declarations.
    fn between(&mut self, c: &mut Cursor<'_>) -> Res<()> {
        let at = c.at;
        c.at += 1;
        let name = c.ncname(&self.limits)?;
        if !c.eat(b";") {
            return c.unexpected("expected `;` at the end of a reference");
        }
        let Some((text, base)) = self.parameter(name, at)? else { return Ok(()) };
        let outer =
            (std::mem::replace(&mut self.base_of_entity, base), std::mem::replace(&mut self.outside, true));
        let result = self.subset(text.as_bytes(), 0, false, true);
        (self.base_of_entity, self.outside) = outer;
        self.leave();
        result.map(|_| ()).map_err(|f| within(*f, &format!("the parameter entity `{name}`"), at))
    }

    /// Appends the declaration at `at` with its parameter entities replaced; quoted text stays.
    fn expand(&mut self, input: &[u8], at: usize, out: &mut String) -> Res<usize> {
        let mut p = at;
        loop {
            let run = p;
            while p < input.len() && !matches!(input[p], b'"' | b'\'' | b'%' | b'>') {
                p += 1;
            }
            out.push_str(lex::text(&input[run..p]));
            let Some(&b) = input.get(p) else { return Ok(p) };
            match b {
                b'>' => {
                    out.push('>');
                    return Ok(p + 1);
                }
                b'%' if input.get(p + 1).is_some_and(|&b| !is_space(b) && b != b'%') => {
                    let mut c = Cursor::new(input, p + 1);
                    let name = c.ncname(&self.limits)?;
                    if !c.eat(b";") {
                        return c.unexpected("expected `;` at the end of a reference");
                    }
                    out.push(' ');
                    if let Some((text, _)) = self.parameter(name, p)? {
                        let mut rest = 0;
                        while rest < text.len() {
                            let result = self.expand(text.as_bytes(), rest, out);
                            match result {
                                Ok(e) => rest = e,
                                Err(f) => {
                                    self.leave();
                                    return Err(f);
                                }
                            }
                        }
                        self.leave();
                    }
                    out.push(' ');
                    p = c.at;
                }
                b'%' => {
                    out.push('%');
                    p += 1;
                }
                quote => {
                    let Some(len) = memchr::memchr(quote, &input[p + 1..]) else {
                        return end(WHAT, input.len());
                    };
                    out.push_str(lex::text(&input[p..p + len + 2]));
                    p += len + 2;
                }
            }
        }
    }

    /// A conditional section ([61]); whether its content is to be read.
    fn conditional(&mut self, c: &mut Cursor<'_>) -> Res<bool> {
        let start = c.at;
        c.at += 3;
        c.skip_space();
        let keyword = if c.eat(b"%") {
            let name = c.ncname(&self.limits)?;
            if !c.eat(b";") {
                return c.unexpected("expected `;` at the end of a reference");
            }
            match self.parameter(name, start)? {
                Some((text, _)) => {
                    self.leave();
                    text.trim_ascii().to_owned()
                }
                None => String::from("IGNORE"),
            }
        } else {
            c.name(&self.limits)?.to_owned()
        };
        c.skip_space();
        if !c.eat(b"[") {
            return c.unexpected("expected `[`");
        }
        match keyword.as_str() {
            "INCLUDE" => Ok(true),
            "IGNORE" => {
                let mut depth = 1;
                while depth > 0 {
                    let rest = &c.input[c.at..];
                    let Some(i) = memchr::memchr2(b'<', b']', rest) else { return end(WHAT, c.input.len()) };
                    c.at += i;
                    if c.eat(b"<![") {
                        depth += 1;
                    } else if c.eat(b"]]>") {
                        depth -= 1;
                    } else {
                        c.at += 1;
                    }
                }
                Ok(false)
            }
            _ => syntax("expected `INCLUDE` or `IGNORE`", start),
        }
    }

    /// One markup declaration ([29]).
    fn declaration(&mut self, c: &mut Cursor<'_>, inside: bool) -> Res<()> {
        if c.eat(b"<!ELEMENT") {
            self.element(c)?;
        } else if c.eat(b"<!ATTLIST") {
            self.attlist(c)?;
        } else if c.eat(b"<!ENTITY") {
            self.entity_decl(c, inside)?;
        } else if c.eat(b"<!NOTATION") {
            c.need_space()?;
            c.ncname(&self.limits)?;
            c.need_space()?;
            c.external_id(false)?;
        } else {
            return c.unexpected("expected a declaration");
        }
        c.skip_space();
        if c.eat(b">") { Ok(()) } else { c.unexpected("expected `>` at the end of a declaration") }
    }

    fn element(&mut self, c: &mut Cursor<'_>) -> Res<()> {
        c.need_space()?;
        c.name(&self.limits)?;
        c.need_space()?;
        if c.eat(b"EMPTY") || c.eat(b"ANY") {
            return Ok(());
        }
        if !c.eat(b"(") {
            return c.unexpected("expected `EMPTY`, `ANY` or a content model");
        }
        c.skip_space();
        if c.eat(b"#PCDATA") {
            return self.mixed(c);
        }
        self.model(c)
    }

    /// `(#PCDATA | a | b)*` ([51]), after `#PCDATA`.
    fn mixed(&mut self, c: &mut Cursor<'_>) -> Res<()> {
        let mut names = false;
        loop {
            c.skip_space();
            if c.eat(b")") {
                let star = c.eat(b"*");
                return if names && !star {
                    syntax("expected `*` behind mixed content", c.at)
                } else {
                    Ok(())
                };
            }
            if !c.eat(b"|") {
                return c.unexpected("expected `|` or `)`");
            }
            c.skip_space();
            c.name(&self.limits)?;
            names = true;
        }
    }

    /// A content model of elements ([47]), after its first `(`; without recursion.
    fn model(&mut self, c: &mut Cursor<'_>) -> Res<()> {
        // The separator of each open group, once known.
        let mut groups: Vec<Option<u8>> = vec![None];
        loop {
            c.skip_space();
            if c.eat(b"(") {
                if groups.len() >= self.limits.depth {
                    return limit("depth", self.limits.depth, c.at);
                }
                groups.push(None);
                continue;
            }
            c.name(&self.limits)?;
            if matches!(c.peek(), Some(b'?' | b'*' | b'+')) {
                c.at += 1;
            }
            // After a particle: separators and ends.
            loop {
                c.skip_space();
                match c.peek() {
                    Some(b')') => {
                        c.at += 1;
                        if matches!(c.peek(), Some(b'?' | b'*' | b'+')) {
                            c.at += 1;
                        }
                        groups.pop();
                        if groups.is_empty() {
                            return Ok(());
                        }
                    }
                    Some(b @ (b',' | b'|')) => {
                        if groups.last_mut().is_some_and(|group| *group.get_or_insert(b) != b) {
                            return syntax("`,` and `|` in one group", c.at);
                        }
                        c.at += 1;
                        break;
                    }
                    _ => return c.unexpected("expected `,`, `|` or `)`"),
                }
            }
        }
    }

    fn attlist(&mut self, c: &mut Cursor<'_>) -> Res<()> {
        c.need_space()?;
        let element = c.name(&self.limits)?;
        loop {
            let spaced = c.skip_space();
            if c.peek() == Some(b'>') {
                return Ok(());
            }
            if !spaced {
                return c.unexpected("expected white space");
            }
            let name = c.name(&self.limits)?;
            c.need_space()?;
            let kind = self.attribute_type(c)?;
            let cdata = kind == AttributeKind::Cdata;
            c.need_space()?;
            let default = self.attribute_default(c, cdata)?;
            // After something unread, declarations no longer count (XML 1.0, 5.1). The first one binds.
            if self.unread_declarations() {
                continue;
            }
            let list = self.attributes.entry(element.into()).or_default();
            if !list.iter().any(|a| a.name == name)
                && let Some(list) = Rc::get_mut(list)
            {
                list.push(AttributeDecl { name: name.to_owned(), default, kind });
            }
        }
    }

    /// Whether declarations are only checked: an entity that could have changed them was not read.
    fn unread_declarations(&self) -> bool {
        // An external subset comes last, whatever its content is.
        self.unread && !self.standalone && self.facts.system_id.is_none()
    }

    /// An attribute type ([54]).
    fn attribute_type(&mut self, c: &mut Cursor<'_>) -> Res<AttributeKind> {
        if c.eat(b"CDATA") {
            return Ok(AttributeKind::Cdata);
        }
        if c.eat(b"IDREFS") || c.eat(b"IDREF") {
            return Ok(AttributeKind::Reference);
        }
        for keyword in [&b"ENTITIES"[..], b"ENTITY", b"NMTOKENS", b"NMTOKEN"] {
            if c.eat(keyword) {
                return Ok(AttributeKind::Other);
            }
        }
        if c.eat(b"ID") {
            return Ok(AttributeKind::Id);
        }
        let notation = c.eat(b"NOTATION");
        if notation {
            c.need_space()?;
        }
        if !c.eat(b"(") {
            return c.unexpected("expected an attribute type");
        }
        loop {
            c.skip_space();
            if notation {
                c.ncname(&self.limits)?;
            } else {
                c.nmtoken(&self.limits)?;
            }
            c.skip_space();
            if c.eat(b")") {
                return Ok(AttributeKind::Other);
            }
            if !c.eat(b"|") {
                return c.unexpected("expected `|` or `)`");
            }
        }
    }

    /// A default ([60]), normalised.
    fn attribute_default(&mut self, c: &mut Cursor<'_>, cdata: bool) -> Res<Option<String>> {
        if c.eat(b"#REQUIRED") || c.eat(b"#IMPLIED") {
            return Ok(None);
        }
        if c.eat(b"#FIXED") {
            c.need_space()?;
        }
        let (from, to) = c.literal()?;
        let mut value = String::new();
        let limits = self.limits.clone();
        lex::attribute_value(c.input, from, to, &limits, &mut value, &mut |name, at, out| {
            self.entity_in_value(name, at, out)
        })?;
        if !cdata {
            lex::collapse(&mut value, 0);
        }
        Ok(Some(value))
    }

    fn entity_decl(&mut self, c: &mut Cursor<'_>, inside: bool) -> Res<()> {
        c.need_space()?;
        let parameter = c.eat(b"%");
        if parameter {
            c.need_space()?;
        }
        let name = c.ncname(&self.limits)?;
        c.need_space()?;
        let value = if matches!(c.peek(), Some(b'"' | b'\'')) {
            let (from, to) = c.literal()?;
            Value::Internal(self.entity_value(c.input, from, to, inside)?.into())
        } else {
            let (system, public) = c.external_id(true)?;
            let system = system.unwrap_or_default();
            let spaced = c.skip_space();
            if c.starts_with(b"NDATA") {
                if parameter || !spaced {
                    return syntax("unexpected `NDATA`", c.at);
                }
                c.at += 5;
                c.need_space()?;
                c.ncname(&self.limits)?;
                if !self.unread_declarations() {
                    self.facts.unparsed.entry(name.into()).or_insert((system, public));
                }
                Value::Unparsed
            } else {
                Value::External { system, public, base: self.base_of_entity.clone() }
            }
        };
        if self.unread_declarations() {
            return Ok(());
        }
        let table = if parameter { &mut self.parameter } else { &mut self.general };
        let entity = Entity { value, outside: self.outside };
        table.entry(name.into()).or_insert(entity);
        Ok(())
    }

    /// The replacement text of an entity (XML 1.0, 4.5): character and parameter entity references replaced.
    fn entity_value(&mut self, input: &[u8], from: usize, to: usize, inside: bool) -> Res<String> {
        let mut out = String::with_capacity(to - from);
        let mut p = from;
        while p < to {
            let e = memchr::memchr3(b'&', b'%', b'\r', &input[p..to]).map_or(to, |i| p + i);
            out.push_str(lex::text(&input[p..e]));
            p = e;
            match input[..to].get(p) {
                None => break,
                Some(b'&') => {
                    let part = &input[..to];
                    let (reference, e) = match lex::byte(part, p + 1, WHAT) {
                        Ok(b'#') => lex::char_reference(part, p),
                        _ => lex::reference(part, p, &self.limits),
                    }
                    .or_else(|_| syntax("not a reference in an entity value", p))?;
                    match reference {
                        Reference::Char(c) if part[p + 1] == b'#' => out.push(c),
                        _ => {
                            let name = lex::text(&part[p + 1..e - 1]);
                            if !crate::is_ncname(name) {
                                return syntax(format!("`{name}` is not the name of an entity"), p + 1);
                            }
                            out.push_str(lex::text(&part[p..e]));
                        }
                    }
                    p = e;
                }
                Some(b'%') => {
                    let mut c = Cursor::new(&input[..to], p + 1);
                    let Ok(name) = c.ncname(&self.limits) else { return syntax("`%` in an entity value", p) };
                    if !c.eat(b";") {
                        return syntax("expected `;` at the end of a reference", c.at);
                    }
                    if !inside {
                        return syntax("a parameter entity inside a declaration of the internal subset", p);
                    }
                    if let Some((text, _)) = self.parameter(name, p)? {
                        out.push_str(&text);
                        self.leave();
                    }
                    p = c.at;
                }
                Some(_) => {
                    out.push('\n');
                    p += 1 + usize::from(input[..to].get(p + 1) == Some(&b'\n'));
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Dtd, ParseOptions, Resolver, to_string};
    use std::sync::Arc;

    struct Files;
    impl Resolver for Files {
        fn resolve(
            &self,
            system: &str,
            _: Option<&str>,
            _: Option<&str>,
        ) -> Result<(Vec<u8>, String), String> {
            let text = match system {
                "ext.dtd" => {
                    "<?xml encoding='UTF-8'?><!ENTITY % a 'CDATA'><![INCLUDE[<!ATTLIST a x %a; 'd'>]]><![IGNORE[<!x]]><!ENTITY e '<b/>'>"
                }
                "ext.ent" => "<?xml encoding='UTF-8'?>text<c/>",
                _ => return Err(format!("no file `{system}`")),
            };
            Ok((text.into(), system.to_owned()))
        }
    }

    #[test]
    fn declarations_are_used() {
        let internal = ParseOptions { dtd: Dtd::Internal, ..ParseOptions::default() };
        let external = ParseOptions { dtd: Dtd::External(Arc::new(Files)), ..ParseOptions::default() };
        for (text, options, want) in [
            (
                "<!DOCTYPE a [<!ENTITY e 'x&#38;amp;y'>]><a b='&e;'>&e;</a>",
                &internal,
                Some("<a b=\"x&amp;y\">x&amp;y</a>"),
            ),
            (
                "<!DOCTYPE a [<!ENTITY e '<b>&f;</b>'><!ENTITY f 'z'>]><a>1&e;2</a>",
                &internal,
                Some("<a>1<b>z</b>2</a>"),
            ),
            ("<!DOCTYPE a [<!ENTITY e '<b>'>]><a>&e;</b></a>", &internal, None),
            ("<!DOCTYPE a [<!ENTITY e '</a>'>]><a>&e;", &internal, None),
            ("<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>", &internal, None),
            ("<!DOCTYPE a [<!ENTITY e '&e;'>]><a b='&e;'/>", &internal, None),
            ("<!DOCTYPE a [<!ENTITY e '&#60;'>]><a b='&e;'/>", &internal, None),
            (
                "<!DOCTYPE a [<!ATTLIST a x CDATA ' d ' y NMTOKEN ' e '>]><a/>",
                &internal,
                Some("<a x=\" d \" y=\"e\"/>"),
            ),
            (
                "<!DOCTYPE a [<!ATTLIST a y NMTOKENS #IMPLIED>]><a y='  p   q '/>",
                &internal,
                Some("<a y=\"p q\"/>"),
            ),
            (
                "<!DOCTYPE a [<!ATTLIST a xmlns CDATA #FIXED 'urn:a'>]><a/>",
                &internal,
                Some("<a xmlns=\"urn:a\"/>"),
            ),
            ("<!DOCTYPE a SYSTEM 'ext.dtd'><a>&e;</a>", &internal, Some("<a/>")),
            ("<!DOCTYPE a SYSTEM 'ext.dtd'><a>&e;</a>", &external, Some("<a x=\"d\"><b/></a>")),
            ("<!DOCTYPE a SYSTEM 'none.dtd'><a/>", &external, None),
            (
                "<!DOCTYPE a [<!ENTITY e SYSTEM 'ext.ent'>]><a>&e;&e;</a>",
                &external,
                Some("<a>text<c/>text<c/></a>"),
            ),
            ("<!DOCTYPE a [<!ENTITY e SYSTEM 'ext.ent'>]><a b='&e;'/>", &external, None),
            ("<!DOCTYPE a [<!ENTITY % p '<!ENTITY e \"v\">'>%p;]><a>&e;</a>", &internal, Some("<a>v</a>")),
            ("<!DOCTYPE a [<!ENTITY % p 'v'><!ENTITY e '%p;'>]><a>&e;</a>", &internal, None),
            (
                "<!DOCTYPE a [<!ELEMENT a (b,(c|d)*,e?)+><!ELEMENT b (#PCDATA|c)*><!ELEMENT c EMPTY>]><a/>",
                &internal,
                Some("<a/>"),
            ),
            ("<!DOCTYPE a [<!ELEMENT a (b,c|d)>]><a/>", &internal, None),
            ("<!DOCTYPE a [<!ELEMENT a (#PCDATA|c)>]><a/>", &internal, None),
            (
                "<!DOCTYPE a [<!NOTATION n PUBLIC 'p'><!ENTITY u SYSTEM 's' NDATA n>]><a>&u;</a>",
                &internal,
                None,
            ),
        ] {
            let got = Document::parse(text.to_owned(), options).map(|d| to_string(&d, Document::ROOT));
            assert_eq!(got.as_deref().ok(), want, "{text}: {got:?}");
        }
    }

    #[test]
    fn expansion_is_bounded() {
        let mut text = String::from("<!DOCTYPE a [<!ENTITY e0 'lollollollollol'>");
        for i in 1..20 {
            text += &format!("<!ENTITY e{i} '{}'>", format!("&e{};", i - 1).repeat(10));
        }
        text += "]>";
        let options = ParseOptions { dtd: Dtd::Internal, ..ParseOptions::default() };
        for body in ["<a>&e19;</a>", "<a b='&e19;'/>"] {
            let e = Document::parse(format!("{text}{body}"), &options).unwrap_err();
            assert!(e.message.contains("`entity_expansion`"), "{e}");
        }
    }

    #[test]
    fn ids() {
        let text = "<!DOCTYPE a [<!ATTLIST b i ID #IMPLIED>]><a><b i=' x '/><b i='y' xml:id='z'/></a>";
        let options = ParseOptions { dtd: Dtd::Internal, ..ParseOptions::default() };
        let mut doc = Document::parse(text, &options).unwrap();
        let (x, y) = (doc.element_by_id("x").unwrap(), doc.element_by_id("y").unwrap());
        assert_eq!(doc.element_by_id("z"), Some(y));
        assert_eq!(doc.attribute(x, "", "i"), Some("x"));
        doc.detach(x);
        assert_eq!(doc.element_by_id("x"), None);
    }
}
