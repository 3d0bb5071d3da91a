//! Steps that mediators put into their lists.

use flow::{Context, Fault, Flow, ListId, Mediator, Need, SequenceRef};

/// Runs a list and goes on behind it.
pub(crate) struct Enters(pub(crate) SequenceRef);

impl Mediator for Enters {
    fn need(&self) -> Need {
        self.0.need()
    }

    fn reason(&self) -> String {
        match &self.0 {
            SequenceRef::Dynamic(expression) => expression.reason(),
            _ => String::new(),
        }
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.0.known().map(|list| (String::new(), list)).into_iter().collect()
    }

    fn passes_on(&self) -> bool {
        // Which one it is, and what it does, only a message says.
        matches!(self.0, SequenceRef::Dynamic(_))
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0.resolve(context)?))
    }
}

/// Ends the flow.
pub(crate) struct Ends;

impl Mediator for Ends {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Stop)
    }
}
