//! Deciding an expression while the body arrives: the tokenizer runs over what is there, and no more of the body
//! is received than decides the answer. Nothing is consumed, so the message leaves as it came.

use crate::expression::library::SynapseHost;
use crate::expression::{Expression, Wanted};
use crate::runtime::context::Context;
use crate::runtime::fault::{Fault, code};
use message::{Coding, Kind, Payload, PayloadError, SoapVersion};
use xml::{Event, Tokenizer};
use xpath::Decision;

/// What early decision found out.
pub enum Early {
    /// The value, decided on a prefix.
    Decided(xpath::Value),
    /// The tree has to answer.
    Tree,
}

/// Tries to decide `expression` on the arriving body.
///
/// # Errors
/// The part that was read is not well-formed, the body does not arrive, or the evaluation fails.
pub async fn decide(expression: &Expression, wanted: Wanted, context: &mut Context) -> Result<Early, Fault> {
    let Some(mut run) = begin(expression, wanted, context)? else { return Ok(Early::Tree) };
    let limits = context.services.limits.clone();
    loop {
        if let Some(early) = run.feed(context)? {
            return Ok(early);
        }
        let received = match context.payload.stream_mut() {
            Some(stream) => {
                if stream.buffered().len() > limits.held {
                    let message =
                        format!("the body is larger than the {} bytes a flow may hold", limits.held);
                    return Err(Fault::from(PayloadError::TooLarge { message }).at(expression.span()));
                }
                std::future::poll_fn(|cx| stream.poll_more(cx)).await
            }
            None => return Ok(Early::Tree),
        };
        received.map_err(|error| {
            let message = format!("the body did not arrive: {error}");
            Fault { status: 400, ..Fault::new(message) }.at(expression.span())
        })?;
    }
}

/// As [`decide`], but only with what has arrived: `None` if that does not decide.
///
/// # Errors
/// As [`decide`].
pub fn decide_now(
    expression: &Expression,
    wanted: Wanted,
    context: &mut Context,
) -> Result<Option<Early>, Fault> {
    let Some(mut run) = begin(expression, wanted, context)? else { return Ok(Some(Early::Tree)) };
    run.feed(context)
}

/// An expression on its way through an arriving body.
struct Running<'e> {
    expression: &'e Expression,
    run: xpath::Run<'e>,
    tokenizer: xml::Lent,
    /// The body has no envelope of its own; one was made up around it.
    wrapped: bool,
    /// The document element has been seen.
    rooted: bool,
    fed: usize,
}

fn begin<'e>(
    expression: &'e Expression,
    wanted: Wanted,
    context: &mut Context,
) -> Result<Option<Running<'e>>, Fault> {
    let Some(plan) = expression.stream_plan(wanted) else { return Ok(None) };
    let payload = &context.payload;
    let reading = payload.reading();
    let utf8 = reading.charset.is_none_or(|charset| charset == encoding_rs::UTF_8);
    if payload.is_built()
        || payload.is_changed()
        || payload.is_empty()
        || reading.coding != Coding::Identity
        || !utf8
    {
        return Ok(None);
    }
    let wrapped = match reading.kind {
        Kind::Soap11 => reading.rest,
        Kind::Soap12 => false,
        Kind::Xml | Kind::Unknown => true,
        _ => return Ok(None),
    };
    let host = SynapseHost::new(context);
    let mut run = plan.start(&host).map_err(|error| Fault::new(error.message).at(expression.span()))?;
    if wrapped {
        let soap = SoapVersion::V11.namespace();
        run.start_element(soap, "Envelope", &());
        run.start_element(soap, "Body", &());
    }
    let tokenizer = Tokenizer::lent(&context.services.limits.xml);
    Ok(Some(Running { expression, run, tokenizer, wrapped, rooted: wrapped, fed: 0 }))
}

impl Running<'_> {
    /// Feeds what has arrived since the last time.
    fn feed(&mut self, context: &mut Context) -> Result<Option<Early>, Fault> {
        let Some((bytes, complete)) = arrived(&mut context.payload) else { return Ok(Some(Early::Tree)) };
        if complete && bytes.is_empty() {
            return Ok(Some(Early::Tree)); // no body is no broken body
        }
        let tokenizer = &mut *self.tokenizer;
        let place = self.expression.span();
        let malformed = |error: xml::XmlError| {
            Fault::with_code(code::PAYLOAD, format!("the payload is not well-formed XML: {error}")).at(place)
        };
        if let Some(early) = settled(&self.run) {
            return Ok(Some(early));
        }
        let left = bytes.get(self.fed..).unwrap_or_default();
        self.fed += self.run.read(tokenizer, left).map_err(malformed)?;
        if complete && !self.run.is_decided() {
            tokenizer.finish();
            self.run.drain(tokenizer).map_err(malformed)?;
        }
        if !self.rooted {
            // The document element is seen whatever the expression asks for.
            let Some(root) = tokenizer.document_element() else { return Ok(None) };
            if !is_envelope(&root) {
                return Ok(Some(Early::Tree)); // not SOAP: the tree says so with its position
            }
            self.rooted = true;
        }
        if let Some(early) = settled(&self.run) {
            return Ok(Some(early));
        }
        if !complete {
            return Ok(None);
        }
        if self.wrapped {
            self.run.end_element();
            self.run.end_element();
        }
        // What fails here may be a limit of the streaming run: the tree may still answer, else it says why not.
        Ok(Some(self.run.finish().map_or(Early::Tree, Early::Decided)))
    }
}

/// What has arrived of the body, and whether that is all; `None`: it is not bytes any more.
fn arrived(payload: &mut Payload) -> Option<(&[u8], bool)> {
    if payload.stream_mut().is_none() {
        return payload.bytes().map(|bytes| (&bytes[..], true));
    }
    let stream = payload.stream_mut()?;
    let complete = stream.is_complete();
    Some((stream.buffered(), complete))
}

/// The answer, once it is fixed.
fn settled(run: &xpath::Run<'_>) -> Option<Early> {
    if !run.is_decided() {
        return None;
    }
    match run.decision() {
        Decision::Undecided => None,
        Decision::True => Some(Early::Decided(xpath::Value::Boolean(true))),
        Decision::False => Some(Early::Decided(xpath::Value::Boolean(false))),
        Decision::Value(value) => Some(Early::Decided(value)),
        // A limit of the streaming run: the tree may still answer.
        Decision::Failed(_) => Some(Early::Tree),
    }
}

/// The name of the first element of the SOAP body, read from as little of the message as it takes; `None` if the
/// message is not an envelope or has an empty body.
///
/// # Errors
/// The body does not arrive.
pub(crate) async fn first_body_element(context: &mut Context) -> Result<Option<(String, String)>, Fault> {
    let limits = context.services.limits.clone();
    let mut tokenizer = Tokenizer::lent(&limits.xml);
    let (mut fed, mut depth, mut in_body) = (0, 0, false);
    loop {
        let Some((bytes, complete)) = arrived(&mut context.payload) else { return Ok(None) };
        tokenizer.feed(&bytes[fed..]);
        fed = bytes.len();
        if complete {
            tokenizer.finish();
        }
        loop {
            // What is not well-formed is for the flow to find out, if it reads that far.
            let Ok(event) = tokenizer.next() else { return Ok(None) };
            match event {
                None => break,
                Some(Event::StartElement { name, .. }) => {
                    depth += 1;
                    match depth {
                        1 if !is_envelope(&name) => return Ok(None),
                        2 => in_body = name.local() == "Body",
                        3 if in_body => {
                            return Ok(Some((name.namespace().to_owned(), name.local().to_owned())));
                        }
                        _ => {}
                    }
                }
                Some(Event::EndElement { .. }) => depth -= 1,
                Some(_) => {}
            }
        }
        if complete || fed > limits.held {
            return Ok(None);
        }
        if let Some(stream) = context.payload.stream_mut() {
            let received = std::future::poll_fn(|cx| stream.poll_more(cx)).await;
            received.map_err(|error| Fault {
                status: 400,
                ..Fault::new(format!("the body did not arrive: {error}"))
            })?;
        }
    }
}

/// The string of a decided value.
pub fn text(value: &xpath::Value) -> String {
    let nothing = xpath::Context::without_document(&());
    value.to_string_in(&nothing).map(std::borrow::Cow::into_owned).unwrap_or_default()
}

fn is_envelope(name: &xml::Name<'_>) -> bool {
    name.local() == "Envelope" && SoapVersion::of_namespace(name.namespace()).is_some()
}
