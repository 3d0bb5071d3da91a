//! `dblookup` and `dbreport`: SQL statements. They are read and checked; nothing runs them yet.

use config::Element;
use flow::{Attribute, Children, Compiled, Compiler, Definition, Family, Inside, Page, Values};

const TRANSACTION: Attribute =
    Attribute::optional("useTransaction", Values::Boolean, "take part in a transaction").or("false");

// What both may have inside.
const CONNECTION: Inside = Inside::new("connection", "the database", &[]);
const DATA_SOURCE: Inside = Inside::new(
    "connection/pool",
    "a data source by `dsName`, or `driver` and `url` with `user` and `password`",
    &[],
)
.with("elements");
const STATEMENT: Inside = Inside::new("statement+", "a statement", &[]);
const SQL: Inside =
    Inside::new("statement/sql", "its text, with question marks for parameters", &[]).with("text");
const PARAMETER: Inside = Inside::new(
    "statement/parameter*",
    "a parameter, in order",
    &[
        Attribute::optional("value", Values::Text, "a text"),
        Attribute::optional("expression", Values::Expression, "or an expression"),
        Attribute::required("type", Values::OneOf(TYPES), "its type in JDBC"),
    ],
);

/// `<dblookup><connection><pool>…</pool></connection><statement>…</statement>+</dblookup>`
pub const LOOKUP: Definition = Definition {
    name: "dblookup",
    summary: "Reads a row of a database into properties. It is checked, and not executable yet.",
    attributes: &[TRANSACTION],
    children: Children::Elements(&["connection", "statement"]),
    page: LOOKUP_PAGE,
    compile: |element, compiler| compile(element, compiler, true),
};

const LOOKUP_PAGE: Page = Page {
    family: Family::Extension,
    semantics: "In WSO2 it runs a statement for each message and puts columns of the first row into properties. Databases are not connected to Busbar
yet: a configuration that has it is read and checked, and an error says where it stands; the artifact around it is left out, the others
serve. Put a service in front of the database and reach it with [call](call.md).",
    inside: &[
        CONNECTION,
        DATA_SOURCE,
        STATEMENT,
        SQL,
        PARAMETER,
        Inside::new(
            "statement/result*",
            "a property of a column of the first row",
            &[
                Attribute::required("name", Values::Text, "the property"),
                Attribute::required("column", Values::Text, "the column: name or number"),
            ],
        ),
    ],
    needs: &[],
    refused: &[
        ("<dblookup><statement><sql>a</sql></statement></dblookup>", "`dblookup` needs a `connection` with a `pool`"),
        (
            "<dblookup><connection><pool><dsName>d</dsName></pool></connection><statement><sql>a</sql></statement></dblookup>",
            "`dblookup` is not executable here",
        ),
    ],
    faults: &[],
};

/// `<dbreport><connection><pool>…</pool></connection><statement>…</statement>+</dbreport>`
pub const REPORT: Definition = Definition {
    name: "dbreport",
    summary: "Writes to a database. It is checked, and not executable yet.",
    attributes: &[TRANSACTION],
    children: Children::Elements(&["connection", "statement"]),
    page: REPORT_PAGE,
    compile: |element, compiler| compile(element, compiler, false),
};

const REPORT_PAGE: Page = Page {
    family: Family::Extension,
    semantics: "In WSO2 it runs its statements for each message, to write what happened into tables. Databases are not connected to Busbar
yet: a configuration that has it is read and checked, and an error says where it stands; the artifact around it is left out, the others
serve. Put a service in front of the database and reach it with [call](call.md).",
    inside: &[CONNECTION, DATA_SOURCE, STATEMENT, SQL, PARAMETER],
    needs: &[],
    refused: &[
        ("<dbreport><statement><sql>a</sql></statement></dbreport>", "`dbreport` needs a `connection` with a `pool`"),
        (
            "<dbreport><connection><pool><dsName>d</dsName></pool></connection><statement><sql>a</sql></statement></dbreport>",
            "`dbreport` is not executable here",
        ),
    ],
    faults: &[],
};

/// Elements of `pool`.
const POOL: &[&str] = &["driver", "url", "user", "password", "dsName", "icClass", "property"];

/// Properties of `pool`.
const PROPERTIES: &[&str] = &[
    "autocommit",
    "isolation",
    "initialsize",
    "maxactive",
    "maxidle",
    "maxopenstatements",
    "maxwait",
    "minidle",
    "poolstatements",
    "testonborrow",
    "testonreturn",
    "testwhileidle",
    "validationquery",
];

/// Types of parameters, as JDBC names them.
const TYPES: &[&str] = &[
    "CHAR",
    "VARCHAR",
    "LONGVARCHAR",
    "NUMERIC",
    "DECIMAL",
    "BIT",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "REAL",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME",
    "TIMESTAMP",
];

fn compile(element: &Element, compiler: &mut Compiler<'_>, reads: bool) -> Compiled {
    connection(element, compiler);
    let mut statements = 0;
    for own in element.children_named("statement") {
        statements += 1;
        statement(own, compiler, reads);
    }
    if statements == 0 {
        missing(element, "a `statement`", compiler);
    }
    compiler.error(
        "unsupported-mediator",
        format!("`{}` is not executable here", element.local()),
        element.name_span(),
        "databases are not connected yet: put a service in front of them and `call` it",
    );
    None
}

fn connection(element: &Element, compiler: &mut Compiler<'_>) {
    let Some(pool) = element.child("connection").and_then(|own| own.child("pool")) else {
        return missing(element, "a `connection` with a `pool`", compiler);
    };
    known(pool, POOL, compiler);
    let has = |name: &str| {
        pool.child(name).is_some_and(|own| !own.text().trim().is_empty() || own.attribute("key").is_some())
    };
    if !has("dsName") && !["driver", "url"].into_iter().all(has) {
        missing(pool, "a `dsName`, or a `driver` and a `url`", compiler);
    }
    for own in pool.children_named("property") {
        match own.attribute("name") {
            Some(name) if PROPERTIES.contains(&name.value.trim()) && own.attribute("value").is_some() => {}
            _ => missing(own, &format!("a value, and a name of {}", PROPERTIES.join(", ")), compiler),
        }
    }
}

fn statement(element: &Element, compiler: &mut Compiler<'_>, reads: bool) {
    let children: &[&str] = if reads { &["sql", "parameter", "result"] } else { &["sql", "parameter"] };
    known(element, children, compiler);
    if element.child("sql").is_none_or(|sql| sql.text().trim().is_empty()) {
        missing(element, "an `sql`", compiler);
    }
    for own in element.children_named("parameter") {
        if own.attribute("expression").is_some() {
            compiler.expression(own, "expression");
        } else if own.attribute("value").is_none() {
            missing(own, "a `value` or an `expression`", compiler);
        }
        if !own.attr("type").is_some_and(|kind| TYPES.contains(&kind.trim())) {
            missing(own, &format!("a `type` of {}", TYPES.join(", ")), compiler);
        }
    }
    for own in element.children_named("result") {
        if own.attribute("name").is_none() || own.attribute("column").is_none() {
            missing(own, "a `name` and a `column`", compiler);
        }
    }
}

fn known(element: &Element, names: &[&str], compiler: &mut Compiler<'_>) {
    for child in element.elements().filter(|child| !names.contains(&child.local())) {
        let message = format!("`{}` cannot stand inside of `{}`", child.local(), element.local());
        compiler.error(
            "unknown-element",
            message,
            child.name_span(),
            format!("expected {}", names.join(", ")),
        );
    }
}

fn missing(element: &Element, what: &str, compiler: &mut Compiler<'_>) {
    let message = format!("`{}` needs {what}", element.local());
    compiler.error("missing-element", message, element.start_tag(), "it is missing or wrong here");
}

#[cfg(test)]
mod tests {
    use flow::testing;

    #[test]
    fn it_is_checked_and_reported() {
        let pool = "<connection><pool><dsName>a</dsName></pool></connection>";
        let whole = "<statement><sql>select ?</sql><parameter value='1' type='INTEGER'/><result name='a' column='1'/></statement>";
        for (name, inside, says) in [
            ("dblookup", format!("{pool}{whole}"), None),
            ("dbreport", format!("{pool}<statement><sql>a</sql></statement>"), None),
            ("dbreport", format!("{pool}{whole}"), Some("`result` cannot stand inside of `statement`")),
            ("dblookup", whole.to_owned(), Some("needs a `connection`")),
            (
                "dblookup",
                format!("<connection><pool><driver>a</driver></pool></connection>{whole}"),
                Some("needs a `dsName`"),
            ),
            ("dblookup", pool.to_owned(), Some("needs a `statement`")),
            ("dblookup", format!("{pool}<statement/>"), Some("needs an `sql`")),
            (
                "dblookup",
                format!("{pool}<statement><sql>a</sql><parameter value='1' type='INT'/></statement>"),
                Some("needs a `type`"),
            ),
            (
                "dblookup",
                format!("{pool}<statement><sql>a</sql><parameter type='BIT'/></statement>"),
                Some("needs a `value`"),
            ),
            (
                "dblookup",
                format!("{pool}<statement><sql>a</sql><parameter expression='//[' type='BIT'/></statement>"),
                Some("no valid expression"),
            ),
            (
                "dblookup",
                format!("{pool}<statement><sql>a</sql><result name='a'/></statement>"),
                Some("a `column`"),
            ),
            (
                "dblookup",
                format!(
                    "<connection><pool><dsName>a</dsName><property name='x' value='1'/></pool></connection>{whole}"
                ),
                Some("needs a value, and a name of"),
            ),
        ] {
            let tested =
                testing::main(&crate::registry(testing::endpoints), &format!("<{name}>{inside}</{name}>"));
            assert!(tested.reports(&format!("`{name}` is not executable here")), "{:?}", tested.found);
            match says {
                Some(says) => assert!(tested.reports(says), "{inside}: {:?}", tested.found),
                None => assert_eq!(tested.found.len(), 1, "{:?}", tested.found),
            }
        }
    }
}
