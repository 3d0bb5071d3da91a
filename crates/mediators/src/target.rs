//! `<target>` of `clone` and `iterate`: where a copy of the message goes.

use config::{Element, Key};
use flow::endpoint::Destination;
use flow::reference::EndpointRef;
use flow::{Branch, BranchTarget, Compiler, Context, Fault, Flow, ListId, Need, Parts, SequenceRef};
use std::sync::Arc;

/// See the module.
pub(crate) struct Target {
    to: Option<Arc<str>>,
    soap_action: Option<Arc<str>>,
    way: Way,
}

enum Way {
    Inline(ListId),
    Named(SequenceRef),
    Endpoint(Arc<EndpointRef>),
    Nothing,
}

impl Target {
    /// Reads `<target [to] [soapAction] [sequence] [endpoint]>`; `None` after a recorded error.
    ///
    /// The first of these is used: inline sequence, named sequence, inline endpoint, named endpoint.
    pub(crate) fn compile(element: &Element, label: String, compiler: &mut Compiler<'_>) -> Option<Target> {
        for attribute in element.attributes() {
            let allowed = ["to", "soapAction", "sequence", "endpoint"];
            let local = &*attribute.name.local;
            if attribute.name.namespace.is_empty() && !allowed.contains(&local) {
                compiler.warning(
                    "unknown-attribute",
                    format!("`target` has no attribute `{local}`"),
                    attribute.name_span,
                    "this has no effect; expected to, soapAction, sequence or endpoint",
                );
            }
        }
        let way = if let Some(sequence) = element.child("sequence") {
            Way::Inline(compiler.list(sequence, label))
        } else if element.attribute("sequence").is_some() {
            Way::Named(compiler.sequence(element, "sequence")?)
        } else if let Some(endpoint) = element.child("endpoint") {
            Way::Endpoint(compiler.endpoint(endpoint)?)
        } else if let Some(endpoint) = element.attribute("endpoint") {
            Way::Endpoint(compiler.endpoint_key(&Key::of(endpoint)))
        } else {
            Way::Nothing
        };
        let text = |name: &str| element.attr(name).map(Arc::from);
        Some(Target { to: text("to"), soap_action: text("soapAction"), way })
    }

    /// Warns of a target without a sequence and an endpoint; a child that is not known is reported where it is.
    pub(crate) fn warn_if_empty(&self, element: &Element, compiler: &mut Compiler<'_>) {
        if matches!(self.way, Way::Nothing) && element.elements().all(|child| child.is("description")) {
            let label = "expected `sequence` or `endpoint`: nothing happens with what comes here";
            compiler.warning("missing-element", "the `target` is empty", element.start_tag(), label);
        }
    }

    /// The list inside, for `busbar explain`.
    pub(crate) fn list(&self) -> Option<ListId> {
        match &self.way {
            Way::Inline(list) => Some(*list),
            Way::Named(sequence) => sequence.known(),
            _ => None,
        }
    }

    /// What of the message decides where it goes. An endpoint reads for itself.
    pub(crate) fn need(&self) -> Need {
        match &self.way {
            Way::Named(sequence) => sequence.need(),
            _ => Need::Nothing,
        }
    }

    /// Sends the message itself on its way, for mediators that choose one target.
    pub(crate) fn flow(&self, context: &mut Context) -> Result<Flow, Fault> {
        if let Some(to) = &self.to {
            context.addressing.to = Some(to.to_string());
        }
        if let Some(action) = &self.soap_action {
            context.soap_action = Some(action.to_string());
        }
        Ok(match &self.way {
            Way::Inline(list) => Flow::Enter(*list),
            Way::Named(sequence) => Flow::Enter(sequence.resolve(context)?),
            Way::Endpoint(reference) => {
                Flow::Send(Destination { reference: Some(Arc::clone(reference)), ..Destination::implicit() })
            }
            Way::Nothing => Flow::Next,
        })
    }

    /// Whether a message goes on to somewhere, or where only it can say.
    pub(crate) fn passes_on(&self) -> bool {
        self.to.is_some() || matches!(self.way, Way::Endpoint(_) | Way::Named(SequenceRef::Dynamic(_)))
    }

    /// The endpoint that the copy goes to, for `busbar explain`.
    pub(crate) fn endpoint(&self) -> Option<Arc<EndpointRef>> {
        match &self.way {
            Way::Endpoint(reference) => Some(Arc::clone(reference)),
            _ => None,
        }
    }

    /// Sends a copy on its way.
    pub(crate) fn branch(&self, mut context: Box<Context>) -> Branch {
        if let Some(to) = &self.to {
            context.addressing.to = Some(to.to_string());
        }
        if let Some(action) = &self.soap_action {
            context.soap_action = Some(action.to_string());
        }
        let target = match &self.way {
            Way::Inline(list) => BranchTarget::List(*list),
            Way::Named(sequence) => match sequence.resolve(&mut context) {
                Ok(list) => BranchTarget::List(list),
                Err(fault) => BranchTarget::Failed(Box::new(fault)),
            },
            Way::Endpoint(reference) => BranchTarget::Endpoint(Destination {
                reference: Some(Arc::clone(reference)),
                ..Destination::implicit()
            }),
            Way::Nothing => BranchTarget::Nothing,
        };
        Branch { context, target }
    }
}

/// The parts of a split. The first one is made at once, so that what is wrong with all of them fails once, in the message itself.
///
/// # Errors
/// The first one failed: why, and that copy, which has the payload that was moved into it.
pub(crate) fn parts(
    mut parts: impl Iterator<Item = Branch> + Send + 'static,
) -> Result<Parts, (Box<Fault>, Box<Context>)> {
    match parts.next() {
        Some(Branch { target: BranchTarget::Failed(fault), context }) => Err((fault, context)),
        first => Ok(Box::new(first.into_iter().chain(parts))),
    }
}

/// The names of the properties that relate the copies of one split, with the mediator's `id`.
pub(crate) struct Correlation {
    /// `messageSequence[.id]`: `i/n`.
    pub(crate) sequence: Arc<str>,
    /// `aggregateCorelation[.id]`: the id of the message that was split. The spelling is Synapse's.
    pub(crate) id: Arc<str>,
}

/// `aggregateCorelation` without an `id`.
const ANY: &str = "aggregateCorelation";

impl Correlation {
    /// The names for the element's `id`.
    pub(crate) fn of(element: &Element) -> Correlation {
        let name = |base: &str| match element.attr("id") {
            Some(id) => Arc::from(format!("{base}.{id}")),
            None => Arc::from(base),
        };
        Correlation { sequence: name("messageSequence"), id: name(ANY) }
    }

    /// The message is split: its copies from now on belong together.
    pub(crate) fn begin(&self, context: &mut Context) {
        // Every copy also has the name without an id: an aggregate without one collects all copies.
        let any = Arc::from(ANY);
        context.begin_split(&[&any, &self.id]);
    }

    /// Marks copy `index` (from 0) of `count`.
    pub(crate) fn mark(&self, copy: &mut Context, original: &message::Value, index: usize, count: usize) {
        copy.properties.set(Arc::clone(&self.sequence), message::Value::from(format!("{index}/{count}")));
        if &*self.id != ANY {
            copy.properties.set(ANY, original.clone());
        }
        copy.properties.set(Arc::clone(&self.id), original.clone());
    }
}

/// The attributes that every mediator with targets has.
pub(crate) const ID: flow::Attribute = flow::Attribute {
    name: "id",
    required: false,
    values: flow::Values::Text,
    default: "",
    meaning: "relates the copies to the `aggregate` with the same id",
};

/// See [`ID`].
pub(crate) const CONTINUE_PARENT: flow::Attribute = flow::Attribute {
    name: "continueParent",
    required: false,
    values: flow::Values::Boolean,
    default: "false",
    meaning: "whether the original message goes on after this mediator",
};

/// See [`ID`].
pub(crate) const SEQUENTIAL: flow::Attribute = flow::Attribute {
    name: "sequential",
    required: false,
    values: flow::Values::Boolean,
    default: "false",
    meaning: "one copy after the other instead of all at once",
};

/// Whether an attribute is `true`, as Java's `Boolean.parseBoolean` reads it.
pub(crate) fn is_true(element: &Element, name: &str) -> bool {
    element.attr(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// `<target>` on a reference page.
pub(crate) const TARGET: flow::Inside = flow::Inside::new(
    "target+",
    "where a copy goes",
    &[
        flow::Attribute::optional("sequence", flow::Values::Key, "the sequence it goes through"),
        flow::Attribute::optional("endpoint", flow::Values::Key, "the endpoint it goes to"),
        flow::Attribute::optional("to", flow::Values::Text, "its To address"),
        flow::Attribute::optional("soapAction", flow::Values::Text, "its SOAP action"),
    ],
);

/// See [`TARGET`].
pub(crate) const TARGET_SEQUENCE: flow::Inside =
    flow::Inside::new("target/sequence?", "the sequence, in place", &[]).with("mediator*");

/// See [`TARGET`].
pub(crate) const TARGET_ENDPOINT: flow::Inside =
    flow::Inside::new("target/endpoint?", "the endpoint, in place", &[]).with("…");
