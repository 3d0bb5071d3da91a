//! What stands in the place of a step that WSO2 accepts and that can only fail: a fault for each message, so that the rest
//! of the artifact serves.

use diagnostics::{Diagnostic, Span};
use flow::{Compiled, Compiler, Context, Fault, Flow, Mediator, Need};

struct Failing {
    message: String,
    detail: String,
}

/// Warns and gives such a step. `message` becomes the fault's, `label` says more at the place.
pub(crate) fn failing(
    rule: &'static str,
    message: impl Into<String>,
    place: Span,
    label: impl Into<String>,
    compiler: &mut Compiler<'_>,
) -> Compiled {
    let (message, label) = (message.into(), label.into());
    let found = Diagnostic::warning(rule, message.clone()).at(place, label.clone());
    compiler.diagnostics.push(found.help("messages that come here fault"));
    Some(Box::new(Failing { message, detail: label }))
}

/// A step without effect, in the place of one that can have none.
pub(crate) fn nothing() -> Compiled {
    Some(Box::new(Nothing))
}

struct Nothing;

impl Mediator for Nothing {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Next)
    }
}

impl Mediator for Failing {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn reason(&self) -> String {
        self.message.clone()
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Err(Fault::new(self.message.clone()).because(self.detail.clone()))
    }
}
