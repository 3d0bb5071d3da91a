//! `transaction`: what `dblookup` and `dbreport` do counts together, or not at all.

use crate::database::Transaction;
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Moves, Need,
    Page, Step, Unsupported, Values,
};
use std::sync::Arc;

const ACTIONS: &[&str] = &["new", "use-existing-or-new", "fault-if-no-tx", "commit", "rollback"];

/// `<transaction action="new|use-existing-or-new|fault-if-no-tx|commit|rollback"/>`
pub const DEFINITION: Definition = Definition {
    name: "transaction",
    summary: "Begins or ends the transaction of a message.",
    attributes: &[Attribute::required("action", Values::Action(ACTIONS), "what to do")],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Quality,
    semantics: "The statements of [dblookup](dblookup.md) and [dbreport](dbreport.md) between `new` and `commit` are one transaction; `rollback` undoes them. `use-existing-or-new`
begins a transaction unless there is one, `fault-if-no-tx` faults if there is none.

A transaction is over one [data source](../sql.md), that of the first step that takes part, and keeps a connection of it until it ends. It belongs to the message
and goes with it over a `call`, into sequences and into the fault sequence, which is the place for `rollback` (also where it was `commit` that failed: that has undone it already, unless the connection broke before the answer: then nobody knows, and ERROR_MESSAGE says so); copies of the message take part in it until one of them ends it; what they do later is by itself. If a message
ends with neither `commit` nor `rollback`, the transaction is rolled back, and the log says so.

In WSO2 it is a distributed transaction of the application server, bound to a thread. Busbar has no transactions over several databases, or with
a broker: make each operation idempotent, so that it can be repeated after a later failure.",
    inside: &[],
    needs: &[(Need::Nothing, "always")],
    refused: &[
        ("<transaction action=\"suspend\"/>", "`action` cannot be `suspend`: messages that come here fault"),
        ("<transaction/>", "`transaction` needs the attribute `action`"),
    ],
    faults: &[("0", "`new` finds a transaction, `fault-if-no-tx`, `commit` or `rollback` finds none (but for `rollback` behind a `commit` that failed), or the database refuses to end it")],
};

/// The message had a transaction that could not be committed: it is over, and there is nothing left to roll back.
struct Failed;

#[derive(Clone, Copy)]
enum Action {
    New,
    UseExistingOrNew,
    Demand,
    Commit,
    RollBack,
}

fn compile(element: &Element, _: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(match element.attr("action").map(str::trim)? {
        "new" => Action::New,
        "use-existing-or-new" => Action::UseExistingOrNew,
        "fault-if-no-tx" => Action::Demand,
        "commit" => Action::Commit,
        "rollback" => Action::RollBack,
        other => return Some(Box::new(Unsupported::new(format!("a transaction has no action `{other}`")))),
    }))
}

impl Mediator for Action {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Nothing
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        let attached = context.attached::<Transaction>();
        let open = match self {
            Action::Commit | Action::RollBack => attached,
            _ => attached.filter(|transaction| !transaction.is_over()),
        };
        let begin = |context: &mut Context| {
            context.detach::<Failed>();
            let transaction = Transaction::new(context);
            context.attach(Arc::new(transaction));
            Ok(Flow::Next)
        };
        let none = || Fault::new("there is no transaction");
        Step::Done(match (self, open) {
            (Action::New, Some(_)) => Err(Fault::new("there is a transaction already")),
            (Action::New | Action::UseExistingOrNew, None) => begin(context),
            (Action::UseExistingOrNew | Action::Demand, Some(_)) => Ok(Flow::Next),
            // Fault sequences roll back, whichever step has failed.
            (Action::RollBack, None) if context.attached::<Failed>().is_some() => {
                context.detach::<Failed>();
                Ok(Flow::Next)
            }
            (Action::Demand | Action::Commit | Action::RollBack, None) => Err(none()),
            (Action::Commit | Action::RollBack, Some(transaction)) => {
                let commits = matches!(self, Action::Commit);
                return Step::Wait(Box::pin(async move {
                    context.detach::<Transaction>();
                    let ended = transaction.end(commits).await;
                    if commits && ended.is_err() {
                        context.attach(Arc::new(Failed));
                    }
                    ended.map(|()| Flow::Next)
                }));
            }
        })
    }
}
