//! `send`: hands the message to an endpoint; its answer goes to the receiving sequence, the out sequence or main.

use config::Element;
use flow::endpoint::{Destination, EndpointRef};
use flow::{
    Attribute, Branch, BranchTarget, Children, Compiled, Compiler, Context, Definition, Fault, Flow,
    Mediator, Need, Page, SequenceRef, Split, Step, Values,
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
    page: Page::UNWRITTEN,
    compile,
};

struct Send {
    endpoint: Option<Arc<EndpointRef>>,
    receive: Option<SequenceRef>,
    build: bool,
    /// Apache Synapse: the flow goes on behind it, while the message is under way.
    continues: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let endpoint = match element.child("endpoint") {
        Some(endpoint) => Some(compiler.endpoint(endpoint)?),
        None => None,
    };
    let receive = compiler.sequence(element, "receive");
    let build = element.attr("buildmessage") == Some("true");
    let continues = compiler.services.settings.synapse_dialect;
    Some(Box::new(Send { endpoint, receive, build, continues }))
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

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if !self.continues || !context.has_steps_ahead() {
            return Step::Done(self.mediate(context));
        }
        Step::Wait(Box::pin(async move {
            context.receive_body().await?;
            let flow = self.mediate(context)?;
            let Flow::Send(destination) = flow else { return Ok(flow) };
            let target = BranchTarget::Endpoint(destination);
            let branches = vec![Branch { context: context.branch(), target }];
            Ok(Flow::Split(Split::at_once(branches, true)))
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use flow::testing;

    #[test]
    fn the_flow_ends_with_it_but_goes_on_in_apache_synapse() {
        let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<answer/>");
        let text = format!(
            r#"<in><send><endpoint><address uri="{backend}"/></endpoint></send>
            <property name="behind" value="1" scope="operation"/></in>
            <out><property name="x" expression="concat('behind:', get-property('operation', 'behind'))"/>
            <header name="X-Behind" expression="$ctx:x" scope="transport"/><send/></out>"#
        );
        let registry = registry(testing::endpoints);
        let wso2 = testing::main(&registry, &text).ask("POST", "/", &[("Content-Type", "text/xml")], "<a/>");
        assert_eq!((wso2.body.as_str(), wso2.headers.get("X-Behind")), ("<answer/>", Some("behind:")));
        let synapse = testing::synapse(&registry, &text);
        let answer = synapse.ask("POST", "/", &[("Content-Type", "text/xml")], "<a/>");
        assert_eq!((answer.body.as_str(), answer.headers.get("X-Behind")), ("<answer/>", Some("behind:1")));
    }
}
