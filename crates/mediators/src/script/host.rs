//! The message as a script has it: what `mc` reads and changes.

use crate::property;
use flow::library::Scope;
use flow::{Context, Fault};
use message::coding::Coding;
use message::media::Kind;
use message::{Envelope, Reading, SoapVersion, Value, XmlValue};
use script::{Argument, Failure, Host, Limits, Returned, Script};
use std::sync::Arc;
use xml::{Document, NodeId};

/// The message, while a script has it.
struct Message {
    context: Box<Context>,
    /// The body could not be read: the fault of that, which the script has seen as an exception.
    unreadable: Option<Fault>,
    /// The script has the text of a JSON body.
    has_json: bool,
}

/// Runs a script on a message.
///
/// # Errors
/// The engine has lost the message. What the script itself failed with is inside.
pub(crate) fn run(
    script: &Script,
    context: &mut Context,
    arguments: &[Argument],
    limits: &Limits,
) -> Result<Result<Returned, Failure>, Fault> {
    let message = Message { context: context.take(), unreadable: None, has_json: false };
    let (host, result) = script::run(script, Box::new(message), arguments, limits);
    let message = host.and_then(|host| host.into_any().downcast::<Message>().ok());
    let Some(message) = message else { return Err(Fault::new("the script engine has lost the message")) };
    context.put(message.context);
    // Unless the script has caught it.
    match (result, message.unreadable) {
        (Err(_), Some(fault)) => Err(fault),
        // JSON is parsed by the script itself.
        (Err(failure), None) if message.has_json && context.payload.is_json() => match context.payload.json()
        {
            Err(error) => Err(error.into()),
            Ok(_) => Ok(Err(failure)),
        },
        (result, _) => Ok(result),
    }
}

/// The value of a function as the payload: JSON, or XML in a text, or text.
pub(super) fn set_body(value: Option<Value>, context: &mut Context) -> Result<(), Fault> {
    let Some(value) = value else { return Ok(()) };
    let text = value.to_string();
    let media = match &value {
        Value::String(_) => match crate::xml_value::parse(&text) {
            Ok(Value::Xml(xml)) => {
                replace_payload(context, &xml.document, xml.nodes[0])?;
                "application/xml"
            }
            _ if serde_json::from_str::<serde_json::Value>(&text).is_ok() => {
                context.payload.set_json(&text)?;
                "application/json"
            }
            _ => {
                context.payload.set_made(text, Reading { kind: Kind::Text, ..Reading::XML });
                "text/plain"
            }
        },
        _ => {
            context.payload.set_json(&text)?;
            "application/json"
        }
    };
    context.set_axis2("messageType", Value::from(media));
    context.remove_axis2("NO_ENTITY_BODY");
    Ok(())
}

impl Host for Message {
    fn property(&mut self, scope: &str, name: &str) -> Result<Option<Value>, String> {
        Ok(scope_of(scope)?.get(&self.context, name))
    }

    fn set_property(&mut self, scope: &str, name: &str, value: Option<Value>) -> Result<(), String> {
        match (scope_of(scope)?, value) {
            (Scope::Variable, Some(value)) => self.context.variables.set(name, value),
            (Scope::Variable, None) => drop(self.context.variables.remove(name)),
            (scope, Some(value)) => {
                property::set(scope, Arc::from(name), value, &mut self.context).map_err(words)?
            }
            (scope, None) => property::remove(scope, name, &mut self.context),
        }
        Ok(())
    }

    fn names(&mut self, scope: &str) -> Vec<String> {
        let scope = if scope == "variable" { &self.context.variables } else { &self.context.properties };
        scope.iter().map(|(name, _)| name.to_owned()).collect()
    }

    fn payload(&mut self) -> Result<Option<XmlValue>, String> {
        let envelope = noted(self.context.envelope(), &mut self.unreadable)?;
        Ok(envelope.payload().map(|payload| XmlValue::copy_of(&envelope.document, &[payload])))
    }

    fn set_payload(&mut self, document: &Document, element: NodeId) -> Result<(), String> {
        noted(replace_payload(&mut self.context, document, element), &mut self.unreadable)
    }

    fn json(&mut self) -> Result<Option<String>, String> {
        let payload = &mut self.context.payload;
        if !payload.is_json() {
            return Ok(None);
        }
        self.has_json = true;
        let reading = payload.reading();
        if reading.coding == Coding::Identity
            && reading.charset.is_none_or(|charset| charset.name() == "UTF-8")
            && let Some(text) = payload.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
        {
            return Ok(Some(text.to_owned()));
        }
        noted(payload.json().map_err(Fault::from), &mut self.unreadable)
            .map(|value| value.map(ToString::to_string))
    }

    fn set_json(&mut self, text: String, sound: bool) -> Result<(), String> {
        let payload = &mut self.context.payload;
        if sound && !text.is_empty() {
            let reading =
                Reading { kind: Kind::Json, charset: None, coding: Coding::Identity, ..payload.reading() };
            payload.set_bytes(text, reading);
        } else {
            payload.set_json(&text).map_err(|error| error.to_string())?;
        }
        self.context.remove_axis2("NO_ENTITY_BODY");
        Ok(())
    }

    fn envelope(&mut self) -> Result<XmlValue, String> {
        let envelope = noted(self.context.envelope(), &mut self.unreadable)?;
        Ok(XmlValue::copy_of(&envelope.document, &[envelope.root]))
    }

    fn set_envelope(&mut self, document: &Document, element: NodeId) -> Result<(), String> {
        let mut envelope = Document::new();
        envelope.copy_from(Document::ROOT, document, element);
        self.context.payload.set_envelope(Envelope::of_document(envelope)?);
        Ok(())
    }

    fn add_header(
        &mut self,
        must_understand: bool,
        document: &Document,
        element: NodeId,
    ) -> Result<(), String> {
        let envelope = noted(self.context.envelope_mut(), &mut self.unreadable)?;
        let header = envelope.header_or_new();
        let block = envelope.document.copy_from(header, document, element);
        if must_understand {
            let (value, uri) = match envelope.version {
                SoapVersion::V11 => ("1", envelope.version.namespace()),
                SoapVersion::V12 => ("true", envelope.version.namespace()),
            };
            envelope.document.set_attribute(block, "soapenv", uri, "mustUnderstand", value);
        }
        Ok(())
    }

    fn text(&mut self, what: &str) -> Option<String> {
        let addressing = &self.context.addressing;
        match what {
            "To" => self.context.to(),
            "From" => addressing.from.clone(),
            "ReplyTo" => addressing.reply_to.clone(),
            "FaultTo" => addressing.fault_to.clone(),
            "WSAAction" => addressing.action.clone(),
            "SoapAction" => self.context.soap_action(),
            "RelatesTo" => addressing.relates_to.clone(),
            "MessageID" | "WSAMessageID" => Some(self.context.message_id()),
            _ => None,
        }
    }

    fn set_text(&mut self, what: &str, text: Option<String>) {
        let addressing = &mut self.context.addressing;
        match what {
            "To" => addressing.to = text,
            "From" => addressing.from = text,
            "ReplyTo" => addressing.reply_to = text,
            "FaultTo" => addressing.fault_to = text,
            "WSAAction" => addressing.action = text,
            "SoapAction" => self.context.soap_action = text,
            "RelatesTo" => addressing.relates_to = text,
            "MessageID" | "WSAMessageID" => addressing.message_id = text,
            _ => {}
        }
    }

    fn flag(&mut self, what: &str) -> bool {
        match what {
            "Response" => self.context.response,
            "SOAP11" => match self.context.payload.frame() {
                Some(envelope) => envelope.version == SoapVersion::V11,
                None => self.context.payload.reading().kind != Kind::Soap12,
            },
            _ => match self.context.axis2(name_of_flag(what)) {
                Some(value) => value.is_true(),
                None => what == "DoingPOX" && self.context.is_rest(),
            },
        }
    }

    fn set_flag(&mut self, what: &str, value: bool) {
        match what {
            "Response" => self.context.response = value,
            _ => self.context.set_axis2(name_of_flag(what), Value::Boolean(value)),
        }
    }

    fn entry(&mut self, key: &str) -> Option<Value> {
        let plan = Arc::clone(self.context.plan());
        plan.entry(key).map(|entry| entry.value)
    }

    fn log(&mut self, level: &str, text: &str) {
        let message_id = self.context.message_id();
        match level {
            "trace" => tracing::trace!(target: "busbar::script", %message_id, "{text}"),
            "debug" => tracing::debug!(target: "busbar::script", %message_id, "{text}"),
            "warn" => tracing::warn!(target: "busbar::script", %message_id, "{text}"),
            "error" => tracing::error!(target: "busbar::script", %message_id, "{text}"),
            _ => tracing::info!(target: "busbar::script", %message_id, "{text}"),
        }
    }

    fn java(&mut self, what: &str, arguments: &[String]) -> Result<String, String> {
        flow::java::call(what, arguments)
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// The axis2 property behind a flag.
fn name_of_flag(what: &str) -> &'static str {
    match what {
        "DoingMTOM" => "enableMTOM",
        "DoingSWA" => "enableSwA",
        "DoingPOX" => "doingPOX",
        "DoingGET" => "doingGET",
        _ => "faultResponse",
    }
}

fn replace_payload(context: &mut Context, document: &Document, element: NodeId) -> Result<(), Fault> {
    let envelope = context.envelope_mut()?;
    let old = envelope.payload();
    let new = envelope.document.copy_from(envelope.body, document, element);
    if let Some(old) = old {
        envelope.document.replace(old, new);
    }
    context.remove_axis2("NO_ENTITY_BODY");
    Ok(())
}

/// What failed for want of a body that can be read, as an exception; the fault itself is kept.
fn noted<T>(result: Result<T, Fault>, unreadable: &mut Option<Fault>) -> Result<T, String> {
    result.map_err(|fault| {
        *unreadable = Some(fault.clone());
        words(fault)
    })
}

/// A fault in the words of an exception.
fn words(fault: Fault) -> String {
    if fault.detail.is_empty() { fault.message } else { format!("{}: {}", fault.message, fault.detail) }
}

fn scope_of(name: &str) -> Result<Scope, String> {
    match name {
        "variable" => Ok(Scope::Variable),
        _ => Scope::of(name).ok_or_else(|| {
            format!(
                "there is no scope `{name}`: expected default, axis2, axis2-client, transport or operation"
            )
        }),
    }
}
