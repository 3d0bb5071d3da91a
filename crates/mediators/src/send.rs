//! `send`: hands the message to an endpoint; its answer goes to the receiving sequence, the out sequence or main.

use config::Element;
use flow::endpoint::Destination;
use flow::reference::EndpointRef;
use flow::{
    Attribute, Branch, BranchTarget, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow,
    Inside, ListId, Mediator, Moves, Need, Page, SequenceRef, Split, Step, Values,
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
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "The message goes to the endpoint, and the flow ends: mediators after `send` do not run (in the dialect of Apache Synapse they do, on a
copy). Without an endpoint a request goes to its To address, and a response to the client.

The answer begins a flow of its own: in the sequence that `receive` names, else in the out sequence of the proxy or resource, else in the main sequence
if the request came from there; without any of them it goes to the client at once. It has the properties and variables of the request. With the
property `OUT_ONLY` there is no answer, and the client gets 202.

The body is relayed while it arrives, unless a step has read it, the endpoint needs another format, or it may have to be sent again (load
balancing, failover). `buildmessage=\"true\"` receives the whole body first.

An answer with status 4xx or 5xx is no fault. Failures of sending are in the table of [faults](../mediation.md#faults);
[endpoints](../mediation.md#endpoints) describes how endpoints are chosen, suspended and retried.",
    inside: &[
        Inside::new("endpoint?", "where it is sent", &[Attribute::optional("key", Values::Key, "a named endpoint")]).with("…"),
    ],
    needs: &[
        (Need::Headers, "the body is sent as it comes"),
        (
            Need::Whole,
            "`buildmessage` is true, the endpoint wants SOAP or plain XML or may send it again, or an expression on the body names the endpoint or \
             the sequence for the answer",
        ),
    ],
    refused: &[
        ("<send buildmessage=\"yes\"/>", "`buildmessage` should not be `yes`"),
        ("<send receive=\"none\"/>", "there is no sequence `none`"),
        ("<send><endpoint key=\"none\"/></send>", "there is no endpoint `none`"),
    ],
    faults: &[
        ("0", "`receive` names a sequence that does not exist, there is no endpoint and the To address is not a URL, or answers are sent on again and again (more than 100 times)"),
        (
            "101503",
            "the endpoint cannot be reached; 303001 while it is suspended, 101505 and other codes of \
             [faults](../mediation.md#faults) for what else goes wrong there",
        ),
        ("101504", "the endpoint does not answer in time"),
        ("305100", "the endpoint that is named does not exist"),
    ],
};

struct Send {
    endpoint: Option<Arc<EndpointRef>>,
    receive: Option<Arc<SequenceRef>>,
    build: bool,
    /// Apache Synapse: the flow goes on behind it, while the message is under way.
    continues: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let endpoint = match element.child("endpoint") {
        Some(endpoint) => Some(compiler.endpoint(endpoint)?),
        None => None,
    };
    let receive = compiler.sequence(element, "receive").map(Arc::new);
    let build = flow::truth(element, "buildmessage", false);
    let continues = compiler.services.settings.synapse_dialect;
    Some(Box::new(Send { endpoint, receive, build, continues }))
}

impl Send {
    fn destination(&self, receive: Option<ListId>) -> Destination {
        Destination { receive, reference: self.endpoint.clone(), ..Destination::implicit() }
    }
}

impl Mediator for Send {
    fn moves(&self) -> Moves {
        if self.continues { Moves::Never } else { Moves::Long }
    }

    fn need(&self) -> Need {
        let receive = self.receive.as_ref().map_or(Need::Nothing, |sequence| sequence.need());
        if self.build { Need::Whole } else { receive.max(Need::Headers) }
    }

    fn reason(&self) -> String {
        match self.receive.as_deref() {
            _ if self.build => "buildmessage=\"true\"".into(),
            Some(SequenceRef::Dynamic(expression)) if expression.need().is_whole() => expression.reason(),
            _ => "hands the body on as it is".into(),
        }
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.endpoint.iter().cloned().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let receive = self.receive.as_ref().map(|sequence| sequence.resolve(context)).transpose()?;
        Ok(Flow::Send(self.destination(receive)))
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if !self.continues || !context.has_steps_ahead() {
            return Step::Done(self.mediate(context));
        }
        Step::Wait(Box::pin(async move {
            context.receive_body().await?;
            let receive = match self.receive.clone() {
                Some(sequence) => {
                    Some(flow::work_out(context, move |context| sequence.resolve(context)).await?)
                }
                None => None,
            };
            let target = BranchTarget::Endpoint(self.destination(receive));
            let branch = Branch { context: context.branch(), target };
            Ok(Flow::Split(Split::at_once(std::iter::once(branch), true)))
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
        let response = synapse.ask("POST", "/", &[("Content-Type", "text/xml")], "<a/>");
        assert_eq!(
            (response.body.as_str(), response.headers.get("X-Behind")),
            ("<answer/>", Some("behind:1"))
        );
    }
}
