//! `$filter`, `$orderby` and keys: expressions of OData as SQL. Names are those of columns that the database reported, all values are bound.

use super::expression::{Node, Parser, Token, is_guid, tokens};
use super::model::{Column, Table, quoted};
use sql::{Dialect, Kind, Parameter};

/// The type that a value is bound as.
#[derive(Clone, Debug)]
struct Hint {
    kind: Kind,
    cast: Option<String>,
}

impl Hint {
    fn of(column: &Column) -> Hint {
        Hint { kind: column.kind, cast: column.cast.clone() }
    }

    fn plain(kind: Kind) -> Option<Hint> {
        Some(Hint { kind, cast: None })
    }
}

/// SQL with its parameters.
pub(super) struct Sql<'a> {
    table: &'a Table,
    dialect: Dialect,
    pub text: String,
    pub parameters: Vec<Parameter>,
}

/// The parameter of a literal, for a column of this type.
fn literal(text: &str, quoted: bool, kind: Kind) -> Result<Parameter, String> {
    let is_number = !quoted && text.parse::<f64>().is_ok_and(f64::is_finite);
    let wrong = |expected: &str| Err(format!("`{text}` stands in place of {expected}"));
    match kind {
        Kind::Text if quoted || !is_number => Ok(Parameter::Text(text.to_owned())),
        Kind::Text => wrong("a text"),
        Kind::Boolean => wrong("true or false"),
        Kind::TinyInt
        | Kind::SmallInt
        | Kind::Integer
        | Kind::BigInt
        | Kind::Decimal
        | Kind::Real
        | Kind::Double
            if !is_number =>
        {
            wrong("a number")
        }
        Kind::TinyInt | Kind::SmallInt | Kind::Integer | Kind::BigInt => match Kind::BigInt.parse(Some(text))
        {
            Ok(whole) => Ok(whole),
            Err(_) => Kind::Decimal.parse(Some(text)),
        },
        Kind::Bytes => Kind::Bytes.parse(Some(&standard(text))),
        _ if text.is_empty() => wrong("a value"),
        kind => kind.parse(Some(text)).map_err(|why| format!("`{text}`: {why}")),
    }
}

/// The columns of a key with their values, from the text in the parentheses of a path.
pub(super) fn key_values<'t>(table: &'t Table, text: &str) -> Result<Vec<(&'t Column, Parameter)>, String> {
    let keys: Vec<&Column> = table.keys().collect();
    if keys.is_empty() {
        return Err(format!("`{}` has no key", table.name));
    }
    let tokens = tokens(text)?;
    let mut given: Vec<(&Column, &Token)> = Vec::new();
    for part in tokens.split(|token| *token == Token::Comma) {
        match part {
            [Token::Word(name), Token::Equals, value] => {
                let column = keys.iter().find(|k| k.name == *name);
                given.push((column.ok_or_else(|| format!("`{name}` is not part of the key"))?, value));
            }
            [value] if keys.len() == 1 => given.push((keys[0], value)),
            _ => return Err("a key is a value, or NAME=VALUE with commas between".to_owned()),
        }
    }
    let is_all = given.len() == keys.len()
        && keys.iter().all(|k| given.iter().any(|(column, _)| column.name == k.name));
    if !is_all {
        let names: Vec<&str> = keys.iter().map(|k| k.name.as_str()).collect();
        return Err(format!("the key of `{}` is {}", table.name, names.join(", ")));
    }
    let of = |(column, value): (&'t Column, &Token)| {
        let parameter = match value {
            Token::Text(text) => literal(text, true, column.kind)?,
            Token::Plain(text) => literal(text, false, column.kind)?,
            Token::Word(word) if column.kind == Kind::Boolean && (word == "true" || word == "false") => {
                Parameter::Boolean(word == "true")
            }
            _ => return Err("a key is a value".to_owned()),
        };
        Ok((column, parameter))
    };
    given.into_iter().map(of).collect()
}

/// Base64url as base64.
pub(super) fn standard(text: &str) -> String {
    text.replace('-', "+").replace('_', "/")
}

impl<'a> Sql<'a> {
    pub fn new(table: &'a Table, dialect: Dialect) -> Sql<'a> {
        Sql { table, dialect, text: String::new(), parameters: Vec::new() }
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Adds a parameter for a column, with its mark.
    pub fn value(&mut self, parameter: Parameter, column: &Column) {
        self.bind(parameter, column.cast.as_deref());
    }

    fn bind(&mut self, parameter: Parameter, cast: Option<&str>) {
        match cast {
            Some(cast) => self.text.push_str(&format!("CAST(? AS {cast})")),
            None => self.text.push('?'),
        }
        self.parameters.push(parameter);
    }

    pub fn name(&mut self, column: &Column) {
        self.text.push_str(&quoted(&column.name, self.dialect));
    }

    /// A condition (`$filter`).
    pub fn condition(&mut self, text: &str) -> Result<(), String> {
        let mut parser = Parser::new(self.table, text)?;
        let node = parser.node()?;
        match parser.take() {
            None => self.truth(&node),
            Some(_) => Err("something stands behind its end".to_owned()),
        }
    }

    /// The order of rows (`$orderby`).
    pub fn order(&mut self, text: &str) -> Result<(), String> {
        let mut parser = Parser::new(self.table, text)?;
        for number in 0.. {
            if number > 0 {
                self.text.push_str(", ");
            }
            let node = parser.node()?;
            self.node(&node, None)?;
            let direction = parser.is_word(&["asc", "desc"]);
            if direction.is_some() {
                parser.take();
            }
            self.text.push_str(if direction == Some("desc") { " DESC" } else { "" });
            match parser.take() {
                None => return Ok(()),
                Some(Token::Comma) => {}
                Some(_) => return Err("a comma, `asc` or `desc` is expected".to_owned()),
            }
        }
        Ok(())
    }

    /// The condition for the key within the parentheses of a path: `1`, `'a'`, `a=1,b='x'`.
    pub fn key(&mut self, text: &str) -> Result<(), String> {
        for (number, (column, parameter)) in key_values(self.table, text)?.into_iter().enumerate() {
            self.text.push_str(if number > 0 { " AND " } else { "" });
            self.equals(column, parameter);
        }
        Ok(())
    }

    /// The condition that a column has a value.
    pub fn equals(&mut self, column: &Column, parameter: Parameter) {
        self.name(column);
        self.text.push_str(" = ");
        self.value(parameter, column);
    }

    /// The type of the values that an operand is compared with; `None`: it is a value itself.
    fn hint(&self, node: &Node) -> Option<Hint> {
        match node {
            Node::Column(at) => Some(Hint::of(&self.table.columns[*at])),
            Node::Minus(inside) => self.hint(inside),
            Node::Binary("add" | "sub" | "mul" | "div" | "mod", left, right) => {
                self.hint(left).or_else(|| self.hint(right))
            }
            Node::Binary(..) | Node::Not(_) | Node::In(..) => Hint::plain(Kind::Boolean),
            Node::Call(name, inside) => match *name {
                "contains" | "startswith" | "endswith" => Hint::plain(Kind::Boolean),
                "tolower" | "toupper" | "trim" | "concat" | "substring" => Hint::plain(Kind::Text),
                "round" | "floor" | "ceiling" => inside.first().and_then(|argument| self.hint(argument)),
                "date" => Hint::plain(Kind::Date),
                _ => Hint::plain(Kind::BigInt),
            },
            Node::Null | Node::Truth(_) | Node::Plain(_) | Node::Text(_) => None,
        }
    }

    /// A boolean expression.
    fn truth(&mut self, node: &Node) -> Result<(), String> {
        match node {
            Node::Truth(value) => {
                self.text.push_str(if *value { "1 = 1" } else { "1 = 0" });
                Ok(())
            }
            _ if self.hint(node).is_some_and(|hint| hint.kind == Kind::Boolean) => self.node(node, None),
            _ => Err("a condition is true or false".to_owned()),
        }
    }

    fn node(&mut self, node: &Node, hint: Option<&Hint>) -> Result<(), String> {
        match node {
            Node::Column(at) => {
                let table = self.table;
                self.name(&table.columns[*at]);
            }
            Node::Null => self.text.push_str("NULL"),
            Node::Truth(value) => match hint {
                Some(hint) if hint.kind != Kind::Boolean => {
                    return Err(format!("`{value}` is not a value for that"));
                }
                _ => self.bind(Parameter::Boolean(*value), None),
            },
            Node::Plain(text) | Node::Text(text) => {
                let is_quoted = matches!(node, Node::Text(_));
                let by_itself = if is_quoted { Kind::Text } else { kind_of(text) };
                let kind = hint.map_or(by_itself, |hint| hint.kind);
                let parameter = literal(text, is_quoted, kind)?;
                self.bind(parameter, hint.and_then(|hint| hint.cast.as_deref()));
            }
            Node::Not(inside) => {
                self.text.push_str("(NOT (");
                self.truth(inside)?;
                self.text.push_str("))");
            }
            Node::Minus(inside) => {
                self.text.push_str("(- ");
                self.node(inside, hint)?;
                self.text.push(')');
            }
            Node::Binary(word, left, right) => self.binary(word, left, right, hint)?,
            Node::In(left, list) => {
                let hint = self.hint(left);
                self.text.push('(');
                self.node(left, None)?;
                self.text.push_str(" IN (");
                for (number, item) in list.iter().enumerate() {
                    if number > 0 {
                        self.text.push_str(", ");
                    }
                    self.node(item, hint.as_ref())?;
                }
                // An empty list contains nothing.
                self.text.push_str(if list.is_empty() { "NULL))" } else { "))" });
            }
            Node::Call(name, arguments) => self.function(name, arguments)?,
        }
        Ok(())
    }

    fn binary(&mut self, word: &str, left: &Node, right: &Node, outer: Option<&Hint>) -> Result<(), String> {
        self.text.push('(');
        match (word, left, right) {
            ("and" | "or", ..) => {
                self.truth(left)?;
                self.text.push_str(if word == "and" { " AND " } else { " OR " });
                self.truth(right)?;
            }
            ("eq" | "ne", operand, Node::Null) | ("eq" | "ne", Node::Null, operand) => {
                self.node(operand, None)?;
                self.text.push_str(if word == "eq" { " IS NULL" } else { " IS NOT NULL" });
            }
            ("add" | "sub" | "mul" | "div" | "mod", ..) => {
                let hint = self.hint(left).or_else(|| self.hint(right)).or_else(|| outer.cloned());
                let is_number = |hint: &Hint| {
                    !matches!(
                        hint.kind,
                        Kind::Text | Kind::Boolean | Kind::Bytes | Kind::Date | Kind::Time | Kind::Timestamp
                    )
                };
                if hint.as_ref().is_some_and(|hint| !is_number(hint)) {
                    return Err(format!("`{word}` needs numbers"));
                }
                let whole = hint
                    .as_ref()
                    .is_some_and(|hint| matches!(hint.kind, Kind::SmallInt | Kind::Integer | Kind::BigInt));
                self.node(left, hint.as_ref())?;
                self.text.push_str(match (word, self.dialect) {
                    ("add", _) => " + ",
                    ("sub", _) => " - ",
                    ("mul", _) => " * ",
                    ("div", Dialect::MySql) if whole => " DIV ",
                    ("div", _) => " / ",
                    _ => " % ",
                });
                self.node(right, hint.as_ref())?;
            }
            _ => {
                let (of_left, of_right) = (self.hint(left), self.hint(right));
                let hint = of_left.clone().or_else(|| of_right.clone());
                if word == "ne" && self.dialect == Dialect::MySql {
                    self.text.push_str("NOT ");
                }
                self.node(left, hint.as_ref())?;
                // A NULL is not equal to a value.
                self.text.push_str(match (word, self.dialect) {
                    ("eq", _) => " = ",
                    ("ne", Dialect::Postgres) => " IS DISTINCT FROM ",
                    ("ne", Dialect::MySql) => " <=> ",
                    ("ne", Dialect::Sqlite | Dialect::SqlServer) => " IS NOT ",
                    ("gt", _) => " > ",
                    ("ge", _) => " >= ",
                    ("lt", _) => " < ",
                    _ => " <= ",
                });
                self.node(right, hint.as_ref())?;
            }
        }
        self.text.push(')');
        Ok(())
    }

    /// The arguments with `between` between them; texts are bound as texts.
    fn call(&mut self, name: &str, arguments: &[&Node], between: &str) -> Result<(), String> {
        self.text.push_str(name);
        self.text.push('(');
        for (number, argument) in arguments.iter().enumerate() {
            if number > 0 {
                self.text.push_str(between);
            }
            self.text_of(argument)?;
        }
        self.text.push(')');
        Ok(())
    }

    /// A text expression.
    fn text_of(&mut self, node: &Node) -> Result<(), String> {
        let is_text = match (node, self.hint(node)) {
            (Node::Text(_), _) => true,
            (_, Some(hint)) => hint.kind == Kind::Text && hint.cast.is_none(),
            _ => false,
        };
        if !is_text {
            return Err("a function of texts has something else".to_owned());
        }
        self.node(node, None)
    }

    fn function(&mut self, name: &str, arguments: &[Node]) -> Result<(), String> {
        let all: Vec<&Node> = arguments.iter().collect();
        let place = if self.dialect == Dialect::Postgres { "strpos" } else { "instr" };
        let length = if self.dialect == Dialect::Sqlite { "length" } else { "char_length" };
        match name {
            "contains" | "startswith" => {
                self.text.push('(');
                self.call(place, &all, ", ")?;
                self.text.push_str(if name == "contains" { " > 0)" } else { " = 1)" });
            }
            "endswith" => {
                self.text.push('(');
                if self.dialect == Dialect::Sqlite {
                    self.call("length", &all[1..], "")?;
                    self.text.push_str(" = 0 OR substr(");
                    self.text_of(all[0])?;
                    self.text.push_str(", -");
                } else {
                    self.text.push_str("right(");
                    self.text_of(all[0])?;
                    self.text.push_str(", ");
                }
                self.call(length, &all[1..], "")?;
                self.text.push_str(") = ");
                self.text_of(all[1])?;
                self.text.push(')');
            }
            "tolower" => self.call("lower", &all, "")?,
            "toupper" => self.call("upper", &all, "")?,
            "trim" => self.call("trim", &all, "")?,
            "concat" if self.dialect == Dialect::MySql => self.call("concat", &all, ", ")?,
            "concat" => self.call("", &all, " || ")?,
            "length" => self.call(length, &all, "")?,
            "indexof" => {
                self.text.push('(');
                self.call(place, &all, ", ")?;
                self.text.push_str(" - 1)");
            }
            "substring" => {
                let number = Hint::plain(Kind::BigInt);
                self.text.push_str("substr(");
                self.text_of(all[0])?;
                for (at, argument) in all.iter().enumerate().skip(1) {
                    self.text.push_str(if self.dialect == Dialect::Postgres { ", CAST(" } else { ", (" });
                    self.node(argument, number.as_ref())?;
                    self.text.push_str(if self.dialect == Dialect::Postgres { " AS integer)" } else { ")" });
                    self.text.push_str(if at == 1 { " + 1" } else { "" });
                }
                self.text.push(')');
            }
            "round" | "floor" | "ceiling" => {
                let hint = self.hint(all[0]);
                if hint.as_ref().is_some_and(|hint| matches!(hint.kind, Kind::Text | Kind::Boolean)) {
                    return Err(format!("`{name}` needs a number"));
                }
                if name != "round" && self.dialect == Dialect::Sqlite {
                    return self.towards(all[0], hint.as_ref(), name == "floor");
                }
                self.text.push_str(name);
                self.text.push('(');
                self.node(all[0], hint.as_ref())?;
                self.text.push(')');
            }
            "date" => self.day(all[0], "date(", ")")?,
            part => match self.dialect {
                Dialect::Sqlite => {
                    const PARTS: [(&str, &str); 6] = [
                        ("year", "Y"),
                        ("month", "m"),
                        ("day", "d"),
                        ("hour", "H"),
                        ("minute", "M"),
                        ("second", "S"),
                    ];
                    let letter = PARTS.iter().find(|(name, _)| *name == part).map_or("S", |row| row.1);
                    self.day(all[0], &format!("CAST(strftime('%{letter}', "), ") AS INTEGER)")?;
                }
                _ => self.day(all[0], &format!("floor(extract({part} from "), "))")?,
            },
        }
        Ok(())
    }

    /// The next whole number below or above, for a database without such a function: the one towards zero, and one less or more
    /// where that is on the wrong side. The operand stands there once, so that nested ones do not multiply.
    fn towards(&mut self, node: &Node, hint: Option<&Hint>, below: bool) -> Result<(), String> {
        let (sign, than) = if below { ('-', '<') } else { ('+', '>') };
        self.text +=
            &format!("(SELECT CAST(v AS INTEGER) {sign} (v {than} CAST(v AS INTEGER)) FROM (SELECT ");
        self.node(node, hint)?;
        self.text.push_str(" AS v))");
        Ok(())
    }

    /// A date or time expression, within a function.
    fn day(&mut self, node: &Node, before: &str, after: &str) -> Result<(), String> {
        let is_day = self
            .hint(node)
            .is_some_and(|hint| matches!(hint.kind, Kind::Date | Kind::Time | Kind::Timestamp));
        if !is_day {
            return Err("a function of days and times has something else".to_owned());
        }
        self.text.push_str(before);
        self.node(node, None)?;
        self.text.push_str(after);
        Ok(())
    }
}

/// The type of a literal without quotes that is compared with no column.
fn kind_of(text: &str) -> Kind {
    match () {
        () if text.parse::<i64>().is_ok() => Kind::BigInt,
        () if text.parse::<f64>().is_ok() => Kind::Decimal,
        () if is_guid(text) => Kind::Text,
        () if text.contains('T') => Kind::Timestamp,
        () if text.contains(':') => Kind::Time,
        () => Kind::Date,
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Edm;
    use super::*;

    fn table() -> Table {
        let column = |name: &str, edm, kind, key: bool| Column {
            name: name.to_owned(),
            edm,
            kind,
            cast: (edm == Edm::Guid).then(|| "uuid".to_owned()),
            nullable: !key,
            key,
        };
        Table {
            name: "items".to_owned(),
            links: Vec::new(),
            columns: vec![
                column("id", Edm::Int32, Kind::Integer, true),
                column("name", Edm::String, Kind::Text, false),
                column("price", Edm::Decimal, Kind::Decimal, false),
                column("sold", Edm::Boolean, Kind::Boolean, false),
                column("since", Edm::Date, Kind::Date, false),
                column("tag", Edm::Guid, Kind::Text, false),
            ],
        }
    }

    fn sql(text: &str, dialect: Dialect) -> Result<(String, usize), String> {
        let table = table();
        let mut sql = Sql::new(&table, dialect);
        sql.condition(text)?;
        assert_eq!(sql.text.matches('?').count(), sql.parameters.len(), "{}", sql.text);
        Ok((sql.text, sql.parameters.len()))
    }

    #[test]
    fn conditions_become_sql_with_bound_values() {
        for (text, wanted) in [
            ("price gt 1.5", "(\"price\" > ?)"),
            ("1.5 lt price", "(? < \"price\")"),
            ("name eq 'it''s' or id eq 1 and sold", "((\"name\" = ?) OR ((\"id\" = ?) AND \"sold\"))"),
            ("name eq null", "(\"name\" IS NULL)"),
            ("name ne 'a'", "(\"name\" IS DISTINCT FROM ?)"),
            ("not (id in (1,2,3))", "(NOT ((\"id\" IN (?, ?, ?))))"),
            ("contains(tolower(name),'x') eq true", "((strpos(lower(\"name\"), ?) > 0) = ?)"),
            ("endswith(name,'x')", "(right(\"name\", char_length(?)) = ?)"),
            ("price mul 2 le 3 add 4", "((\"price\" * ?) <= (? + ?))"),
            ("since ge 2026-11-23", "(\"since\" >= ?)"),
            ("year(since) eq 2026", "(floor(extract(year from \"since\")) = ?)"),
            ("tag eq 01234567-89ab-cdef-0123-456789abcdef", "(\"tag\" = CAST(? AS uuid))"),
            ("-price lt -3", "((- \"price\") < ?)"),
            ("true", "1 = 1"),
        ] {
            assert_eq!(sql(text, Dialect::Postgres).map(|c| c.0), Ok(wanted.to_owned()), "{text}");
        }
        assert_eq!(sql("name ne 'a'", Dialect::MySql).unwrap().0, "(NOT `name` <=> ?)");
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let deep = "(".repeat(300) + "sold" + &")".repeat(300);
        let long = vec!["sold"; 3000].join(" or ");
        for text in [
            "",
            "name",
            "1",
            "price gt",
            "price gt 'a'",
            "name eq 1",
            "nobody eq 1",
            "name eq 'a",
            "name eq 'a' garbage",
            "sleep(1) eq 1",
            "id eq 1; drop table items",
            "id eq 1 --",
            "\"id\" eq 1",
            "contains(id,'1')",
            "since eq soon",
            "since eq 2026-02-30",
            "(sold",
            &deep,
            &long,
        ] {
            assert!(sql(text, Dialect::Postgres).is_err(), "{text}");
        }
        // Nested functions make a statement of their own size.
        let nested = "floor(".repeat(40) + "price" + &")".repeat(40) + " eq 1";
        assert!(sql(&nested, Dialect::Sqlite).unwrap().0.len() < 100 * 40);
        // SQL within a text stays a text.
        let (text, count) = sql("name eq '''; drop table items; --'", Dialect::Sqlite).unwrap();
        assert_eq!((text.as_str(), count), ("(`name` = ?)", 1));
    }

    #[test]
    fn keys_and_orders() {
        let table = table();
        let key = |text: &str| {
            let mut sql = Sql::new(&table, Dialect::Sqlite);
            sql.key(text).map(|()| (sql.text, sql.parameters))
        };
        let one = Ok(("`id` = ?".to_owned(), vec![Parameter::BigInt(1)]));
        assert_eq!((key("1"), key("id=1")), (one.clone(), one));
        for wrong in ["", "'1'", "1,2", "name='a'", "id=1,id=1", "id eq 1", "null"] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
        let order = |text: &str| {
            let mut sql = Sql::new(&table, Dialect::Sqlite);
            sql.order(text).map(|()| sql.text)
        };
        assert_eq!(order("name desc, price,id asc").as_deref(), Ok("`name` DESC, `price`, `id`"));
        for wrong in ["", "name descending", "name,", "nobody", "(select 1)"] {
            assert!(order(wrong).is_err(), "{wrong}");
        }
    }
}
