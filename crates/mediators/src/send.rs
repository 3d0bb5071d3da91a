//! `send`: hands the message to an endpoint; its answer goes to the receiving sequence, the out sequence or main.

use config::Element;
use flow::endpoint::{Destination, EndpointRef};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need, SequenceRef,
    Values,
};
use std::sync::Arc;

/// `<send [receive="SEQ"] [buildmessage="true"]><endpoint …/>?</send>`
pub const DEFINITION: Definition = Definition {
    name: "send",
    summary: "Hands the message to an endpoint, or without one to its To address; a response goes to the client.",
    attributes: &[
        Attribute {
            name: "receive",
            required: false,
            values: Values::Key,
            default: "",
            meaning: "the sequence for the answer, instead of the out sequence",
        },
        Attribute {
            name: "buildmessage",
            required: false,
            values: Values::Boolean,
            default: "false",
            meaning: "receive the whole body before sending",
        },
    ],
    children: Children::Elements(&["endpoint"]),
    compile,
};

struct Send {
    endpoint: Option<Arc<EndpointRef>>,
    receive: Option<SequenceRef>,
    build: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let endpoint = match element.child("endpoint") {
        Some(endpoint) => Some(compiler.endpoint(endpoint)?),
        None => None,
    };
    let receive = compiler.sequence(element, "receive");
    let build = element.attr("buildmessage") == Some("true");
    Some(Box::new(Send { endpoint, receive, build }))
}

impl Mediator for Send {
    fn need(&self) -> Need {
        if self.build { Need::Whole } else { Need::Headers }
    }

    fn reason(&self) -> String {
        if self.build { "buildmessage=\"true\"".into() } else { "hands the body on as it is".into() }
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.endpoint.iter().cloned().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let receive = self.receive.as_ref().map(|sequence| sequence.resolve(context)).transpose()?;
        let reference = self.endpoint.clone();
        Ok(Flow::Send(Destination { receive, reference, ..Destination::implicit() }))
    }
}
