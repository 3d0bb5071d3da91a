//! `store`: puts a copy of the message into a message store.

use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, KeyValue, ListId,
    Mediator, Moves, Need, Page, SequenceRef, Step, Values,
};
use message::Value;
use std::collections::HashMap;
use std::sync::Arc;
use stores::StoreError;

/// `<store messageStore="NAME" [sequence="SEQ"] [name="N"]/>`
pub const DEFINITION: Definition = Definition {
    name: "store",
    summary: "Puts a copy of the message into a message store; the flow goes on.",
    attributes: &[
        Attribute::required("messageStore", Values::Key, "the store"),
        Attribute::optional("sequence", Values::Key, "runs on the message before it is stored"),
        Attribute::optional("name", Values::Text, "a name, without effect"),
    ],
    children: Children::None,
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Core,
    semantics: "A copy of the message goes into the store: body, headers, method, addressing, and the properties of default and axis2 scope. The flow goes on with the
message; if nothing answers, the client gets 202 when it ends. A [message processor](../configuration.md#artifacts) takes messages out of the store, in the
order in which they came, and sends them to an endpoint or runs a sequence on them.

`sequence` runs on the message first; its changes are stored, and stay in the message. If it ends early (`drop`), the message is stored all the
same; if it fails, nothing is stored. It cannot send or answer.

The body is kept as it came: a store does not check that it is what its content type says. A store in memory holds 100,000 messages and
256 MiB at most, and all of them together half of [`limits.memory`](../settings.md#limits); a reload keeps the messages, but they are lost when the process ends. A store of the class `JDBCMessageStore` keeps them in a
[table of a database](../sql.md#message-stores). A store with the parameters
`store.producer.guaranteed.delivery.enable` (`true`) and `store.failover.message.store.name` passes messages that it cannot take to that store.",
    inside: &[],
    needs: &[(Need::Whole, "always: the message is kept")],
    refused: &[
        ("<store/>", "`store` needs the attribute `messageStore`"),
        ("<store messageStore=\"none\"/>", "there is no message store `none`"),
        ("<store messageStore=\"{//a[}\"/>", "not a valid expression"),
    ],
    faults: &[
        ("0", "there is no such store, it is full or its database refuses, or `sequence` names none, sends or answers"),
        ("601000", "the body is larger than a flow may hold"),
    ],
};

struct Store {
    store: Arc<KeyValue>,
    sequence: Option<SequenceRef>,
    /// Stores with the one that takes what they cannot (`store.failover.message.store.name`).
    failovers: HashMap<String, String>,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let store = compiler.key_value(element, "messageStore")?;
    if let (Some(name), Some(attribute)) = (store.literal(), element.attribute("messageStore"))
        && compiler.configuration.message_stores.get(name).is_none()
    {
        let names: Vec<_> = compiler.configuration.message_stores.names().map(str::to_owned).collect();
        let message = format!("there is no message store `{name}`");
        compiler.diagnostics.push(
            diagnostics::Diagnostic::warning("unknown-store", message)
                .at(attribute.value_span, "messages that come here fault")
                .did_you_mean(name, names.iter().map(String::as_str)),
        );
    }
    let sequence = match element.attribute("sequence") {
        Some(_) => Some(compiler.sequence(element, "sequence")?),
        None => None,
    };
    let failovers = compiler.configuration.message_stores.iter().filter_map(|store| {
        let on =
            store.parameter("store.producer.guaranteed.delivery.enable")?.trim().eq_ignore_ascii_case("true");
        let other = store.parameter("store.failover.message.store.name").filter(|_| on)?;
        Some((store.name.value.clone(), other.trim().to_owned()))
    });
    let failovers = failovers.collect();
    Some(Box::new(Store { store: Arc::new(store), sequence, failovers }))
}

impl Mediator for Store {
    fn passes_on(&self) -> bool {
        true
    }

    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "keeps a copy of the message".to_owned()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        let list = self.sequence.as_ref().and_then(SequenceRef::known);
        list.map(|list| ("sequence".to_owned(), list)).into_iter().collect()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(async move {
            if let Some(sequence) = &self.sequence {
                let list = sequence.resolve(context)?;
                // Whether it ends early makes no difference.
                flow::run_list(context, list).await?;
                context.receive_body().await?;
            }
            let key = Arc::clone(&self.store);
            let name = match key.literal() {
                Some(_) => key.resolve(context)?,
                None => flow::work_out(context, move |context| key.resolve(context)).await?,
            };
            let name = name.unwrap_or_default();
            let Some(store) = context.plan().store(name.trim()) else {
                return Err(Fault::new(format!("Unknown message store {}", name.trim())));
            };
            let message = match context.payload.is_changed() {
                // It has to be written.
                true => flow::work_out(context, Context::to_stored).await?,
                false => context.to_stored()?,
            };
            if let Err(error) = store.store(message).await {
                let other =
                    self.failovers.get(name.trim()).and_then(|failover| context.plan().store(failover));
                if let Some(other) = other {
                    tracing::warn!(message_id = %context.message_id(), place = context.place(), "the message goes to the store {}: {error}", other.name());
                    if other.store(context.to_stored()?).await.is_ok() {
                        return Ok(Flow::Next);
                    }
                }
                let status = if matches!(error, StoreError::TooLarge { .. }) { 413 } else { 503 };
                context.properties.set("HTTP_SC", Value::from("500"));
                let message = format!("Failed to store message in the message store {}", store.name());
                // Also where a fault sequence ends without an answer, nobody may be told that it was accepted.
                return Err(Fault { status, ..Fault::new(message) }.because(error.to_string()));
            }
            Ok(Flow::Next)
        }))
    }
}

#[cfg(test)]
mod tests {
    use flow::Context;
    use flow::testing::{self, Tested};
    use std::io::{Read, Write};
    use std::sync::Arc;
    use stores::Message;

    const JSON: (&str, &str) = ("Content-Type", "application/json");

    fn tested(mediators: &str) -> Tested {
        let tested = testing::main(&crate::registry(testing::endpoints), mediators);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested
    }

    /// What waits in the store `s`.
    fn waiting(tested: &Tested) -> Vec<Arc<Message>> {
        let store = tested.bus.plan().store("s").expect("there is a store");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        runtime.block_on(async {
            let mut all = Vec::new();
            while let Some(message) = store.peek().await.expect("memory can be reached") {
                assert!(store.ack(&message.id).await.expect("memory can be reached"));
                all.push(message);
            }
            all
        })
    }

    fn empty() -> Message {
        Message {
            id: String::new(),
            message_id: String::new(),
            method: message::Method::Post,
            target: String::new(),
            soap: None,
            to: None,
            action: None,
            soap_action: None,
            headers: message::Headers::new(),
            body: bytes::Bytes::new(),
            properties: message::Properties::new(),
            axis2: message::Properties::new(),
        }
    }

    #[test]
    fn a_copy_waits_in_order_and_the_flow_goes_on() {
        let text = "<property name='p' value='1'/><property name='q' value='2' scope='axis2'/><store messageStore='s' sequence='on'/>\
            <payloadFactory media-type='json'><format>{\"n\":2}</format></payloadFactory><store messageStore='{$ctx:name}'/><respond/>\
            <!--top--><messageStore name='s'/><sequence name='on'><property name='name' value='s'/><drop/></sequence>";
        let tested = tested(text);
        let response = tested.ask("POST", "/x?y=1", &[JSON, ("X-Own", "o")], r#"{ "n":1}"#);
        assert_eq!((response.status, response.body.as_str()), (200, r#"{"n":2}"#));
        let stored = waiting(&tested);
        let bodies: Vec<_> =
            stored.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect();
        assert_eq!(bodies, [r#"{ "n":1}"#, r#"{"n":2}"#]);
        assert_ne!(stored[0].id, stored[1].id);
        // And it comes out as it went in.
        let plan = tested.bus.plan();
        let mut out = Context::of_stored(plan, tested.bus.services(), &stored[0]);
        assert_eq!(out.properties.get("p").map(ToString::to_string).as_deref(), Some("1"));
        assert_eq!(out.axis2("q").map(|value| value.to_string()).as_deref(), Some("2"));
        assert_eq!((out.headers.get("X-Own"), out.inbound.target.as_str()), (Some("o"), "/x?y=1"));
        assert_eq!(out.payload.json().unwrap().map(ToString::to_string).as_deref(), Some(r#"{"n":1}"#));
    }

    #[test]
    fn nobody_has_to_answer_and_nothing_is_lost_by_a_reload() {
        let tested = tested(
            "<store messageStore='s'/><!--top--><messageStore name='s' class='org.apache.synapse.message.store.InMemoryMessageStore'/>",
        );
        for body in ["", "<a/>", "no xml"] {
            let response = tested.ask("POST", "/", &[("Content-Type", "application/xml")], body);
            assert_eq!((response.status, response.body.as_str()), (202, ""), "{body}");
        }
        assert_eq!(waiting(&tested).len(), 3);
        assert!(waiting(&tested).is_empty());
    }

    #[test]
    fn what_cannot_be_stored_is_a_fault() {
        let registry = crate::registry(testing::endpoints);
        for (text, says) in [
            ("<store messageStore='{$ctx:none}'/>", "Unknown message store"),
            ("<store messageStore='none'/>", "Unknown message store none"),
            (
                "<store messageStore='s' sequence='{$ctx:none}'/><!--top--><messageStore name='s'/>",
                "cannot be found",
            ),
            (
                "<store messageStore='s'/><!--top--><messageStore name='s' class='a.JDBCMessageStore'/>",
                "Unknown message store s",
            ),
        ] {
            let fault = testing::main(&registry, text).run(&[JSON], "{}").fault();
            assert!(fault.as_ref().is_some_and(|message| message.contains(says)), "{text}: {fault:?}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        let fill = |tested: &Tested| {
            let store = tested.bus.plan().store("s").expect("there is a store");
            let filled = runtime.block_on(async {
                while store.store(empty()).await.is_ok() {}
                store.size().await
            });
            assert_eq!(filled.ok(), store.capacity());
        };
        let flow = "<store messageStore='s'/><!--top--><messageStore name='s'/>";
        let handled = tested(&format!("{flow}<sequence name='fault'><log/></sequence>"));
        fill(&handled);
        assert_eq!(handled.ask("POST", "/", &[JSON], "{}").status, 503, "it is not accepted");
        let tested = tested(flow);
        fill(&tested);
        let end = tested.run(&[JSON], "{}");
        assert_eq!(end.fault().as_deref(), Some("0: Failed to store message in the message store s"));
        assert!(end.property("ERROR_DETAIL").is_some_and(|detail| detail.contains("the store is full")));
        assert_eq!(end.property("HTTP_SC").as_deref(), Some("500"));
        for (text, says) in [
            ("<store/>", "needs the attribute `messageStore`"),
            ("<store messageStore='t'/>", "no message store `t`"),
        ] {
            let tested = testing::main(&registry, text);
            assert!(tested.reports(says), "{:?}", tested.found);
        }
    }

    #[test]
    fn another_store_takes_what_a_full_one_cannot() {
        let on = |value: &str| {
            format!("<parameter name='store.producer.guaranteed.delivery.enable'>{value}</parameter>")
        };
        // Of a parameter that is written twice, the last one counts.
        for (on, ends) in [
            (on("true"), true),
            (on("True"), true),
            (on("false"), false),
            (on("false") + &on("true"), true),
            (on("true") + &on("false"), false),
        ] {
            let tested = tested(&format!(
                "<store messageStore='s'/><!--top--><messageStore name='s'>{on}\
                 <parameter name='store.failover.message.store.name'>u</parameter>\
                 <parameter name='store.failover.message.store.name'>t</parameter></messageStore><messageStore name='t'/>"
            ));
            let plan = tested.bus.plan();
            let (s, t) = (plan.store("s").expect("s"), plan.store("t").expect("t"));
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
            runtime.block_on(async { while s.store(empty()).await.is_ok() {} });
            assert_eq!(tested.run(&[JSON], "{}").fault().is_none(), ends);
            assert_eq!(runtime.block_on(t.size()).expect("t"), usize::from(ends));
        }
    }

    /// Lets a processor work on one stored message until so many wait in the stores `s` and `t`.
    fn process(
        class: &str,
        parameters: &str,
        endpoint: &str,
        beside: &str,
        wanted: (usize, usize),
    ) -> Vec<String> {
        let parameters: String = parameters
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| format!("<parameter name='{name}'>{value}</parameter>"))
            .collect();
        let tested = tested(&format!(
            "<property name='OUT_ONLY' expression='$trp:X-One-Way'/><store messageStore='s'/><!--top-->\
             <messageStore name='s'/><messageStore name='t'/><endpoint name='e'><address uri='{endpoint}/'/></endpoint>\
             <sequence name='keep'><store messageStore='t'/></sequence>{beside}\
             <messageProcessor name='p' class='org.apache.synapse.{class}' messageStore='s' targetEndpoint='e'>\
             <parameter name='interval'>1</parameter><parameter name='client.retry.interval'>1</parameter>{parameters}</messageProcessor>"
        ));
        let one_way = if beside.contains("one-way") { "true" } else { "false" };
        assert_eq!(tested.ask("POST", "/", &[JSON, ("X-One-Way", one_way)], r#"{"n":1}"#).status, 202);
        let bus = Arc::new(tested.bus);
        let (s, t) = (bus.plan().store("s").expect("s"), bus.plan().store("t").expect("t"));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let (over, ended) = tokio::sync::oneshot::channel::<()>();
            let processors = tokio::spawn(flow::processor::run(Arc::clone(&bus), async {
                let _ = ended.await;
            }));
            let reached = async {
                while (s.size().await.expect("s"), t.size().await.expect("t")) != wanted {
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
            };
            let limit = std::time::Duration::from_secs(30);
            tokio::time::timeout(limit, reached).await.expect("the stores come to hold what is wanted");
            drop(over);
            tokio::time::timeout(limit, processors).await.expect("they end").expect("and do not panic");
            let mut bodies = Vec::new();
            while let Some(message) = t.peek().await.expect("t") {
                t.ack(&message.id).await.expect("t");
                bodies.push(String::from_utf8_lossy(&message.body).into_owned());
            }
            bodies
        })
    }

    #[test]
    fn what_a_processor_has_begun_is_finished_before_it_ends() {
        let echo = testing::backend("");
        let tested = tested(&format!(
            "<store messageStore='s'/><!--top--><messageStore name='s'/><messageStore name='t'/>\
             <sequence name='on'><call><endpoint><address uri='{echo}/'/></endpoint></call><store messageStore='t'/></sequence>\
             <messageProcessor name='p' class='a.SamplingProcessor' messageStore='s'>\
             <parameter name='sequence'>on</parameter><parameter name='interval'>1</parameter></messageProcessor>"
        ));
        assert_eq!(tested.ask("POST", "/", &[JSON], "{}").status, 202);
        let bus = Arc::new(tested.bus);
        let (s, t) = (bus.plan().store("s").expect("s"), bus.plan().store("t").expect("t"));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            // As soon as the message is out of its store, it is with nobody but the flow.
            let taken = async {
                while s.size().await.expect("s") > 0 {
                    tokio::task::yield_now().await;
                }
            };
            flow::processor::run(Arc::clone(&bus), taken).await;
            assert_eq!(t.size().await.expect("t"), 1);
        });
    }

    #[test]
    fn a_sampling_processor_takes_no_message_that_it_cannot_run() {
        let text = |sequence: &str| {
            format!(
                "<drop/><!--top--><messageStore name='s'/><messageProcessor name='p' class='a.SamplingProcessor' messageStore='s'>\
                 <parameter name='sequence'>{sequence}</parameter><parameter name='interval'>1</parameter></messageProcessor>"
            )
        };
        // There is no such sequence; there is no room for a message.
        for (sequence, flows, stays_on) in [("nowhere", 10, false), ("main", 0, true)] {
            let tested =
                testing::main_with(&crate::registry(testing::endpoints), &text(sequence), |services| {
                    services.settings.flows = flows;
                });
            let bus = Arc::new(tested.bus);
            let store = bus.plan().store("s").expect("there is a store");
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(async {
                store.store(empty()).await.expect("there is room");
                let some_turns = tokio::time::sleep(std::time::Duration::from_millis(50));
                flow::processor::run(Arc::clone(&bus), some_turns).await;
                assert_eq!(store.size().await.expect("memory can be reached"), 1, "{sequence}");
            });
            assert_eq!(bus.plan().processors()[0].activation.is_on(), stays_on, "{sequence}");
        }
    }

    #[test]
    fn processors_empty_a_store() {
        const FORWARD: &str = "message.processor.impl.forwarder.ScheduledMessageForwardingProcessor";
        let echo = testing::backend("");
        let refuses = testing::backend("HTTP/1.1 500 No\r\n\r\nno");
        let reply = "message.processor.reply.sequence=keep";
        let sample = "<sequence name='sample'><payloadFactory media-type='json'><format>\"seen\"</format></payloadFactory><store messageStore='t'/></sequence>";
        let message = r#"{"n":1}"#;
        for (class, parameters, endpoint, beside, wanted, bodies) in [
            (
                "message.processor.impl.sampler.SamplingProcessor",
                "sequence=sample",
                echo.as_str(),
                sample,
                (0, 1),
                &["\"seen\""][..],
            ),
            (FORWARD, reply, &echo, "", (0, 1), &[message]),
            (FORWARD, "", &echo, "<!--one-way-->", (0, 0), &[]),
            // An answer that nobody takes: the message stays.
            (FORWARD, "", &echo, "", (1, 0), &[]),
            (
                FORWARD,
                "non.retry.status.codes=404,500 message.processor.reply.sequence=keep",
                &refuses,
                "",
                (0, 1),
                &["no"],
            ),
            (
                FORWARD,
                "max.delivery.attempts=2 max.delivery.drop=Enabled",
                &refuses,
                "<!--one-way-->",
                (0, 0),
                &[],
            ),
            // What the flow does not wait for is part of it.
            (
                FORWARD,
                "max.delivery.attempts=2 message.processor.failMessagesStore=t message.processor.reply.sequence=breaks",
                &echo,
                "<sequence name='breaks'><payloadFactory media-type='json'><format>[1,2]</format></payloadFactory>\
                 <foreach collection='${payload}' continue-without-aggregation='true'><sequence><throwError type='X'/></sequence></foreach></sequence>",
                (0, 1),
                &[message],
            ),
            // A branch of the reply sequence is part of it.
            (
                FORWARD,
                "max.delivery.attempts=2 message.processor.failMessagesStore=t message.processor.reply.sequence=breaks",
                &echo,
                "<sequence name='breaks'><clone><target><sequence><throwError type='X'/></sequence></target></clone></sequence>",
                (0, 1),
                &[message],
            ),
            (
                FORWARD,
                "max.delivery.attempts=2 message.processor.failMessagesStore=t",
                &refuses,
                "<!--one-way-->",
                (0, 1),
                &[message],
            ),
            (
                FORWARD,
                "max.delivery.attempts=2 message.processor.fault.sequence=keep message.processor.deactivate.sequence=keep",
                &refuses,
                "",
                (1, 3),
                &["no", "no", "no"],
            ),
            (
                FORWARD,
                "max.deliver.attempts=1 message.processor.deactivate.sequence=keep",
                "http://127.0.0.1:1",
                "",
                (1, 1),
                &[message],
            ),
        ] {
            assert_eq!(process(class, parameters, endpoint, beside, wanted), bodies, "{parameters}");
        }
    }

    /// What the reply sequence began may still fail: until it has ended, the message is in its store.
    #[test]
    fn a_message_is_acknowledged_when_all_that_its_reply_began_has_ended() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
        let slow = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                std::thread::sleep(std::time::Duration::from_millis(100));
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        let echo = testing::backend("");
        for part in ["call", "call continueParent"] {
            let continues = part.contains("continue");
            let tested = tested(&format!(
                "<store messageStore='s'/><!--top--><messageStore name='s'/><messageStore name='t'/><endpoint name='e'><address uri='{echo}/'/></endpoint>\
                 <sequence name='reply'><clone continueParent='{continues}'><target><sequence><call><endpoint><address uri='http://{slow}/'/></endpoint></call>\
                 <store messageStore='t'/></sequence></target></clone></sequence>\
                 <messageProcessor name='p' class='a.MessageForwardingProcessor' messageStore='s' targetEndpoint='e'>\
                 <parameter name='interval'>1</parameter><parameter name='message.processor.reply.sequence'>reply</parameter></messageProcessor>"
            ));
            assert_eq!(tested.ask("POST", "/", &[JSON], "{}").status, 202);
            let bus = Arc::new(tested.bus);
            let (s, t) = (bus.plan().store("s").expect("s"), bus.plan().store("t").expect("t"));
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(async {
                let taken = async {
                    while s.size().await.expect("s") > 0 {
                        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    }
                    assert_eq!(
                        t.size().await.expect("t"),
                        1,
                        "{part}: acknowledged before its branch has ended"
                    );
                };
                flow::processor::run(Arc::clone(&bus), taken).await;
            });
        }
    }

    #[test]
    fn mistakes_in_processors_are_found_when_the_configuration_loads() {
        for (class, inside, says) in [
            ("a.SamplingProcessor", "", "needs the parameter `sequence`"),
            (
                "a.MessageForwardingProcessor",
                "<parameter name='interval'>x</parameter>",
                "`interval` cannot be `x`",
            ),
            (
                "a.MessageForwardingProcessor",
                "<parameter name='cronExpression'>* * *</parameter>",
                "six or seven fields",
            ),
            (
                "a.MessageForwardingProcessor",
                "<parameter name='message.processor.failMessagesStore'>no</parameter>",
                "`no` cannot be used",
            ),
            (
                "a.MessageForwardingProcessor",
                "<parameter name='message.processor.reply.sequence'>no</parameter>",
                "no sequence `no`",
            ),
            ("a.Other", "", "is not executable here: it is a class of Java"),
        ] {
            let text = format!(
                "<drop/><!--top--><messageStore name='s'/><messageProcessor name='p' class='{class}' messageStore='s'>{inside}</messageProcessor>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.reports(says), "{inside}: {:?}", tested.found);
        }
        let text = "<drop/><!--top--><messageStore name='s'/><endpoint name='e'><recipientlist><endpoint><default/></endpoint></recipientlist></endpoint>\
            <messageProcessor name='p' class='a.MessageForwardingProcessor' messageStore='s' targetEndpoint='e'/>";
        let tested = testing::main(&crate::registry(endpoints::endpoint), text);
        assert!(tested.reports("its target is a recipient list"), "{:?}", tested.found);
        let text = "<drop/><!--top--><messageProcessor name='p' class='a.MessageForwardingProcessor' messageStore='s'/>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.reports("`p` takes no messages from `s`"), "{:?}", tested.found);
        for (class, says) in [
            ("org.apache.synapse.message.store.impl.jms.JmsStore", "in a JMS broker"),
            ("org.apache.synapse.message.store.impl.rabbitmq.RabbitMQStore", "in a RabbitMQ broker"),
            ("org.apache.synapse.message.store.impl.jdbc.JDBCMessageStore", "names no database"),
            ("org.apache.synapse.message.store.impl.resequencer.ResequenceMessageStore", "in a database"),
            ("com.example.OurStore", "with a Java class"),
        ] {
            let text = format!("<drop/><!--top--><messageStore name='s' class='{class}'/>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.reports(says), "{class}: {:?}", tested.found);
        }
    }
}
