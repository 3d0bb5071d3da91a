//! `dbreport`: writes to a database.

use crate::database::{self, CONNECTION, DATA_SOURCE, NEEDS, PARAMETER, SQL, STATEMENT, TRANSACTION, Work};
use config::Element;
use flow::{Children, Compiled, Compiler, Context, Definition, Family, Mediator, Moves, Need, Page, Step};
use message::Value;
use std::sync::Arc;

/// `<dbreport><connection><pool>…</pool></connection><statement>…</statement>+</dbreport>`
pub const DEFINITION: Definition = Definition {
    name: "dbreport",
    summary: "Writes to a database.",
    attributes: &[TRANSACTION],
    children: Children::Elements(&["connection", "statement"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "Its statements run in order on one connection of a [data source](../sql.md), with parameters as those of [dblookup](dblookup.md). How many rows
the last one changed is in the property `DBREPORT_MODIFIED_RAW_COUNT`; no row is no error.

Each statement is committed when it has run. If the pool has `autocommit` `false`, all of them are committed together at the end of the step, or none
is. Within a [transaction](transaction.md) they are committed with it; `useTransaction=\"true\"` requires one.

The step waits without holding a worker. A message that is given up closes its connection.",
    inside: &[CONNECTION, DATA_SOURCE, STATEMENT, SQL, PARAMETER],
    needs: NEEDS,
    refused: &[
        ("<dbreport><statement><sql>a</sql></statement></dbreport>", "`dbreport` needs a `connection` with a `pool`"),
        (
            "<dbreport><connection><pool><dsName>none</dsName></pool></connection><statement><sql>a</sql></statement></dbreport>",
            "there is no data source `none`",
        ),
        (
            "<dbreport><connection><pool><driver>d</driver><url>jdbc:sqlite::memory:</url></pool></connection><statement><sql>a</sql><result name=\"a\" column=\"1\"/></statement></dbreport>",
            "`result` cannot stand inside of `statement`",
        ),
    ],
    faults: &[
        ("0", "there is no connection, the database refuses the statement, a parameter has no value of its type, or `useTransaction` finds no transaction"),
        ("601000", "a parameter reads the body, and it is not what its content type says"),
    ],
};

struct Report(Arc<Work>);

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(Report(Arc::new(database::compile(element, compiler, false)?))))
}

impl Mediator for Report {
    fn passes_on(&self) -> bool {
        self.need() >= Need::Prefix
    }

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
        Step::Wait(Box::pin(self.0.run(context, true, |_, ran, context| {
            let count = i64::try_from(ran.affected).unwrap_or(i64::MAX);
            context.properties.set("DBREPORT_MODIFIED_RAW_COUNT", Value::Integer(count));
            Ok(())
        })))
    }
}
