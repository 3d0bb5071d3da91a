//! `validateSchema` of an API: a stage that checks requests before their flow begins, and responses before they leave, against the
//! OpenAPI definition of the API. What does not fit is a fault.

use crate::validate::SHORT;
use flow::endpoint::Outgoing;
use flow::stage::{Stage, Staged, Way};
use flow::{Compiler, Context, Fault, Need, work_out};
use message::{Kind, MediaType, Value};
use schema::Violation;
use schema::openapi::{OpenApi, Operation, Request, Sent};
use serde_json::Value as Json;
use std::sync::Arc;

/// The status of a client whose request does not fit, if no fault sequence answers.
const BAD_REQUEST: u16 = 400;

/// Checks the messages of one API.
struct Check(Arc<Definition>);

enum Definition {
    Checks(OpenApi),
    /// It cannot be used, and why: every message faults, as with a schema of `validate`.
    Faulty(String),
}

/// The stage of an API whose definition this is.
pub(crate) fn compile(
    api: &config::Api,
    definition: &[u8],
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Stage>> {
    let place = api.publish_swagger.as_ref().map_or(api.name.span, |key| key.span);
    let mut warn = |why: &str, effect: &str| {
        compiler.warning(
            "bad-definition",
            format!("the definition of this API cannot be used: {why}"),
            place,
            effect,
        );
    };
    let checks = match OpenApi::load(definition) {
        Ok(checks) => checks,
        Err(why) => {
            warn(&why, "messages of this API fault, because validateSchema is true");
            return Some(Arc::new(Check(Arc::new(Definition::Faulty(why)))));
        }
    };
    for fault in checks.faults() {
        warn(&fault, "messages that are checked by this schema fault");
    }
    Some(Arc::new(Check(Arc::new(Definition::Checks(checks)))))
}

impl Definition {
    /// The operation that a message of an API is for.
    ///
    /// # Errors
    /// The definition cannot be used.
    fn operation(&self, context: &Context) -> Result<Option<&Operation>, Fault> {
        let checks = match self {
            Definition::Checks(checks) => checks,
            Definition::Faulty(why) => return Err(unusable(why)),
        };
        let number = with_path(context, |path| checks.find(context.inbound.method.as_str(), path));
        Ok(number.flatten().and_then(|number| checks.operation(number)))
    }
}

/// Calls with the path below the API.
fn with_path<T>(context: &Context, with: impl FnOnce(&str) -> T) -> Option<T> {
    let Some(Value::String(path)) = context.properties.get("REST_SUB_REQUEST_PATH") else { return None };
    Some(with(path.split('?').next().unwrap_or_default()))
}

impl Stage for Check {
    fn name(&self) -> &'static str {
        "OpenAPI"
    }

    fn need(&self, _: Way) -> Need {
        Need::Whole
    }

    fn reason(&self, way: Way) -> &'static str {
        match way {
            Way::In => "validateSchema: requests are checked against the definition",
            Way::Out => "validateSchema: JSON answers are checked against the definition",
        }
    }

    fn passes(&self, way: Way, context: &Context) -> bool {
        match (way, self.0.operation(context)) {
            (Way::In, Ok(operation)) => !operation.is_some_and(Operation::checks_requests),
            (Way::In, Err(_)) => false,
            // What a fault sequence answers is about the fault.
            (Way::Out, _) if context.has_failed() => true,
            (Way::Out, Ok(operation)) => !operation.is_some_and(Operation::describes_answers),
            (Way::Out, Err(_)) => true,
        }
    }

    fn comes_in<'a>(&'a self, context: &'a mut Context) -> Staged<'a> {
        let definition = Arc::clone(&self.0);
        Box::pin(work_out(context, move |context| request(&definition, context)))
    }

    fn goes_out(&self, context: &mut Context, _: Option<&Outgoing>) -> Result<(), Fault> {
        response(&self.0, context)
    }
}

fn request(definition: &Definition, context: &mut Context) -> Result<(), Fault> {
    let Some(operation) = definition.operation(context)? else { return Ok(()) };
    let inbound = Arc::clone(&context.inbound);
    let media = essence(inbound.content_type.as_deref());
    let is_json = context.payload.is_json();
    if is_json {
        not_inline(context)?;
        // Read here, so that it can be looked at beside the headers.
        context.payload.json()?;
    }
    let path = with_path(context, str::to_owned).unwrap_or_default();
    let query = inbound.query().map(message::form::pairs).unwrap_or_default();
    let texts = match !is_json && !context.payload.is_empty() && operation.checks_body(&media) {
        true => texts(context)?,
        false => None,
    };
    let headers = &context.headers;
    let body = match (context.payload.is_empty(), is_json) {
        (true, _) => Sent::Nothing,
        (false, true) => context.payload.json()?.map_or(Sent::Nothing, Sent::Json),
        (false, false) => texts.as_ref().map_or(Sent::Other, Sent::Texts),
    };
    let header = |name: &str| headers.get(name).map(str::to_owned);
    let received = Request { path: &path, query: &query, header: &header, media: &media, body };
    let found = operation.request(&received).map_err(|why| unusable(&why))?;
    verdict("request", operation, &found).map_err(|fault| Fault { status: BAD_REQUEST, ..fault })
}

fn response(definition: &Definition, context: &mut Context) -> Result<(), Fault> {
    let Some(operation) = definition.operation(context)? else { return Ok(()) };
    let status = flow::answer_status(context);
    if !operation.checks_responses(status) || context.payload.is_empty() {
        return Ok(());
    }
    // What becomes JSON as it is written is JSON.
    let written = context.axis2("messageType").map(|value| value.to_string());
    let media = essence(written.as_deref().or_else(|| context.headers.get("Content-Type")));
    let is_json = Kind::of(&media) == Kind::Json;
    if !is_json && !operation.checks_answer(status, &media) {
        return Ok(());
    }
    let made;
    let has_texts = !is_json && !context.payload.is_json();
    let body = match (context.payload.is_json(), is_json) {
        (true, _) => context.payload.json()?,
        (false, true) => {
            let limits = context.services().limits.clone();
            made = context.payload.as_json(&limits)?;
            Some(&made)
        }
        (false, false) => {
            made = texts(context)?.unwrap_or_default();
            Some(&made).filter(|made| !made.is_null())
        }
    };
    let Some(body) = body else { return Ok(()) };
    let found = operation.answer(status, &media, body, has_texts).map_err(|why| unusable(&why))?;
    verdict("answer", operation, &found)
}

/// What is in the root element of XML, or the fields of a form, as JSON; `None`: the body is neither.
fn texts(context: &mut Context) -> Result<Option<Json>, Fault> {
    not_inline(context)?;
    let limits = context.services().limits.clone();
    let value = context.payload.as_json(&limits)?;
    Ok(match value {
        Json::Object(members) if members.len() == 1 => members.into_iter().next().map(|(_, inside)| inside),
        other => Some(other),
    })
}

/// The library that checks cannot be broken off.
fn not_inline(context: &Context) -> Result<(), Fault> {
    if context.payload.bytes().is_none_or(|bytes| bytes.len() > SHORT) {
        meter::not_inline()?;
    }
    Ok(())
}

fn essence(content_type: Option<&str>) -> String {
    content_type.map_or_else(String::new, |value| MediaType::parse(value).essence.to_ascii_lowercase())
}

fn unusable(why: &str) -> Fault {
    Fault::new("the definition of the API cannot be used").because(why)
}

fn verdict(what: &str, operation: &Operation, found: &[Violation]) -> Result<(), Fault> {
    let Some(first) = found.first() else { return Ok(()) };
    let sentences: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!("the {what} does not fit {} of the definition: {first}", operation.label());
    Err(Fault::new(message).because(sentences.join("\n")))
}
