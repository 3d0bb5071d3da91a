//! `dblookup`: reads the first row of a query into properties.

use crate::database::{self, CONNECTION, DATA_SOURCE, NEEDS, PARAMETER, SQL, STATEMENT, TRANSACTION, Work};
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Inside, Mediator, Moves, Need,
    Page, Step, Values,
};
use std::sync::Arc;

/// `<dblookup><connection><pool>…</pool></connection><statement>…</statement>+</dblookup>`
pub const DEFINITION: Definition = Definition {
    name: "dblookup",
    summary: "Reads the first row of a query into properties.",
    attributes: &[TRANSACTION],
    children: Children::Elements(&["connection", "statement"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "Its statements run in order on one connection of a [data source](../sql.md). Each is prepared once for each connection, and its parameters are bound by
their types: nothing of a message ever becomes part of a statement. An empty text, or none, is NULL.

Only the first row of the result counts. Each `result` names a column by its label (ignoring case) or by its number from 1, and becomes a property of default scope, a text
as Java writes the value (`true`, `12.50`, `2026-11-23 10:15:30.0`). If the column is NULL, or there is no row, the property stays as it was.

The step waits without holding a worker. A message that is given up closes its connection. Within a [transaction](transaction.md) the statements run on
its connection; otherwise, if the pool has `autocommit` `false`, they are rolled back at the end of the step.",
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
    needs: NEEDS,
    refused: &[
        ("<dblookup><statement><sql>a</sql></statement></dblookup>", "`dblookup` needs a `connection` with a `pool`"),
        (
            "<dblookup><connection><pool><dsName>none</dsName></pool></connection><statement><sql>a</sql></statement></dblookup>",
            "there is no data source `none`",
        ),
        (
            "<dblookup><connection><pool><driver>d</driver><url>jdbc:oracle:thin:@h:1521:x</url></pool></connection><statement><sql>a</sql></statement></dblookup>",
            "there is no driver for Oracle here",
        ),
        (
            "<dblookup><connection><pool><driver>d</driver><url>jdbc:sqlite::memory:</url></pool></connection><statement><sql>select ?</sql></statement></dblookup>",
            "the statement has 1 question marks, and 0 parameters",
        ),
        (
            "<dblookup><connection><pool><driver>d</driver><url>jdbc:sqlite::memory:</url></pool></connection><statement><sql>select ?</sql><parameter value=\"1\" type=\"INT\"/></statement></dblookup>",
            "`parameter` needs a `type` of JDBC",
        ),
    ],
    faults: &[
        ("0", "there is no connection, the database refuses the statement, a parameter has no value of its type, or the result has no such column"),
        ("601000", "a parameter reads the body, and it is not what its content type says"),
    ],
};

struct Lookup(Arc<Work>);

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(Lookup(Arc::new(database::compile(element, compiler, true)?))))
}

impl Mediator for Lookup {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        self.0.need()
    }

    fn reason(&self) -> String {
        self.0.reason()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(self.0.run(context, false, |statement, ran, context| match ran.first {
            Some(row) => statement.keep(row, context),
            None => Ok(()),
        })))
    }
}
