//! Mediators that Busbar does not support. A message that comes to one faults, so that the rest of its artifact serves.

use super::Compiler;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Flow, Mediator, Need};
use crate::runtime::plan::Planned;
use config::Element;

/// The step of a mediator that the language has and Busbar does not support; `None`: the name is of no such mediator.
pub(super) fn mediator(element: &Element, compiler: &mut Compiler<'_>) -> Option<Planned> {
    let (name, why) = *compiler.registry.unsupported.iter().find(|(name, _)| *name == element.local())?;
    let message = format!("`{name}` is not executable here");
    compiler.warning(
        "unsupported-mediator",
        format!("{message}: messages that come here fault"),
        element.name_span(),
        why,
    );
    let mediator = Unsupported::new(format!("{message}: {why}"));
    Some(Planned::new(Box::new(mediator), name, element.start_tag()))
}

/// A step that cannot be executed here: each message that comes to it faults.
#[derive(Debug)]
pub struct Unsupported(String);

impl Unsupported {
    /// The step whose faults have this message.
    pub fn new(message: impl Into<String>) -> Unsupported {
        Unsupported(message.into())
    }
}

impl Mediator for Unsupported {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn reason(&self) -> String {
        "is not executable: it faults".to_owned()
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Err(Fault::new(self.0.as_str()))
    }
}
