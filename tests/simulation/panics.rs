//! A mediator that panics now and then: at once, on a compute thread, or after a wait.

use crate::random::Random;
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Mediator, Moves, Need,
    Page, Step, Values,
};
use std::cell::RefCell;

/// What its panics say.
pub const EXPECTED: &str = "a panic of the simulation";

thread_local! {
    /// While it is stormy: which of its calls panic.
    static STORM: RefCell<Option<Random>> = const { RefCell::new(None) };
}

/// From now on it panics by chance; `None`: never.
pub fn storm(random: Option<Random>) {
    STORM.set(random);
}

/// `<panic how="at once|elsewhere|later"/>`
pub static PANIC: Definition = Definition {
    name: "panic",
    summary: "Panics now and then.",
    attributes: &[Attribute::optional("how", Values::Text, "When, and on which thread.")],
    children: Children::None,
    page: Page {
        family: Family::Extension,
        semantics: "",
        inside: &[],
        needs: &[],
        refused: &[],
        faults: &[],
    },
    compile,
};

enum Panic {
    AtOnce,
    Elsewhere,
    Later,
}

fn compile(element: &Element, _: &mut Compiler<'_>) -> Compiled {
    Some(Box::new(match element.attr("how") {
        Some("elsewhere") => Panic::Elsewhere,
        Some("later") => Panic::Later,
        _ => Panic::AtOnce,
    }))
}

fn perhaps() {
    let now = STORM.with_borrow_mut(|storm| storm.as_mut().is_some_and(|random| random.one_in(12)));
    assert!(!now, "{EXPECTED}");
}

impl Mediator for Panic {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn moves(&self) -> Moves {
        match self {
            Panic::Elsewhere => Moves::Always,
            _ => Moves::Never,
        }
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        perhaps();
        Ok(Flow::Next)
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        match self {
            Panic::Later => Step::Wait(Box::pin(async {
                tokio::time::sleep(std::time::Duration::from_millis(3)).await;
                perhaps();
                Ok(Flow::Next)
            })),
            _ => Step::Done(self.mediate(context)),
        }
    }
}
