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
struct Message(Box<Context>);

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
    let (host, result) = script::run(script, Box::new(Message(context.take())), arguments, limits);
    let message = host.and_then(|host| host.into_any().downcast::<Message>().ok());
    let Some(message) = message else { return Err(Fault::new("the script engine has lost the message")) };
    *context = *message.0;
    Ok(result)
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
        Ok(scope_of(scope)?.get(&self.0, name))
    }

    fn set_property(&mut self, scope: &str, name: &str, value: Option<Value>) -> Result<(), String> {
        match (scope_of(scope)?, value) {
            (Scope::Variable, Some(value)) => self.0.variables.set(name, value),
            (Scope::Variable, None) => drop(self.0.variables.remove(name)),
            (scope, Some(value)) => {
                property::set(scope, Arc::from(name), value, &mut self.0).map_err(words)?
            }
            (scope, None) => property::remove(scope, name, &mut self.0),
        }
        Ok(())
    }

    fn names(&mut self, scope: &str) -> Vec<String> {
        let scope = if scope == "variable" { &self.0.variables } else { &self.0.properties };
        scope.iter().map(|(name, _)| name.to_owned()).collect()
    }

    fn payload(&mut self) -> Result<Option<XmlValue>, String> {
        let envelope = self.0.envelope().map_err(words)?;
        Ok(envelope.payload().map(|payload| XmlValue::copy_of(&envelope.document, &[payload])))
    }

    fn set_payload(&mut self, document: &Document, element: NodeId) -> Result<(), String> {
        replace_payload(&mut self.0, document, element).map_err(words)
    }

    fn json(&mut self) -> Result<Option<String>, String> {
        let payload = &mut self.0.payload;
        if !payload.is_json() {
            return Ok(None);
        }
        let reading = payload.reading();
        if reading.coding == Coding::Identity
            && reading.charset.is_none_or(|charset| charset.name() == "UTF-8")
            && let Some(text) = payload.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
        {
            return Ok(Some(text.to_owned()));
        }
        payload.json().map(|value| value.map(ToString::to_string)).map_err(|error| error.to_string())
    }

    fn set_json(&mut self, text: String, sound: bool) -> Result<(), String> {
        let payload = &mut self.0.payload;
        if sound && !text.is_empty() {
            let reading =
                Reading { kind: Kind::Json, charset: None, coding: Coding::Identity, ..payload.reading() };
            payload.set_bytes(text, reading);
        } else {
            payload.set_json(&text).map_err(|error| error.to_string())?;
        }
        self.0.remove_axis2("NO_ENTITY_BODY");
        Ok(())
    }

    fn envelope(&mut self) -> Result<XmlValue, String> {
        let envelope = self.0.envelope().map_err(words)?;
        Ok(XmlValue::copy_of(&envelope.document, &[envelope.root]))
    }

    fn set_envelope(&mut self, document: &Document, element: NodeId) -> Result<(), String> {
        let mut own = Document::new();
        own.copy_from(Document::ROOT, document, element);
        self.0.payload.set_envelope(Envelope::of_document(own)?);
        Ok(())
    }

    fn add_header(
        &mut self,
        must_understand: bool,
        document: &Document,
        element: NodeId,
    ) -> Result<(), String> {
        let envelope = self.0.envelope_mut().map_err(words)?;
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
        let addressing = &self.0.addressing;
        match what {
            "To" => self.0.to(),
            "From" => addressing.from.clone(),
            "ReplyTo" => addressing.reply_to.clone(),
            "FaultTo" => addressing.fault_to.clone(),
            "WSAAction" => addressing.action.clone(),
            "SoapAction" => self.0.soap_action(),
            "RelatesTo" => addressing.relates_to.clone(),
            "MessageID" | "WSAMessageID" => Some(self.0.message_id()),
            _ => None,
        }
    }

    fn set_text(&mut self, what: &str, text: Option<String>) {
        let addressing = &mut self.0.addressing;
        match what {
            "To" => addressing.to = text,
            "From" => addressing.from = text,
            "ReplyTo" => addressing.reply_to = text,
            "FaultTo" => addressing.fault_to = text,
            "WSAAction" => addressing.action = text,
            "SoapAction" => self.0.soap_action = text,
            "RelatesTo" => addressing.relates_to = text,
            "MessageID" | "WSAMessageID" => addressing.message_id = text,
            _ => {}
        }
    }

    fn flag(&mut self, what: &str) -> bool {
        match what {
            "Response" => self.0.response,
            "SOAP11" => match self.0.payload.frame() {
                Some(envelope) => envelope.version == SoapVersion::V11,
                None => self.0.payload.reading().kind != Kind::Soap12,
            },
            _ => match self.0.axis2(name_of_flag(what)) {
                Some(value) => value.is_true(),
                None => what == "DoingPOX" && self.0.is_rest(),
            },
        }
    }

    fn set_flag(&mut self, what: &str, value: bool) {
        match what {
            "Response" => self.0.response = value,
            _ => self.0.set_axis2(name_of_flag(what), Value::Boolean(value)),
        }
    }

    fn entry(&mut self, key: &str) -> Option<Value> {
        let plan = Arc::clone(self.0.plan());
        plan.entry(key).map(|entry| entry.value)
    }

    fn log(&mut self, level: &str, text: &str) {
        let message_id = self.0.message_id();
        match level {
            "trace" => tracing::trace!(target: "busbar::script", %message_id, "{text}"),
            "debug" => tracing::debug!(target: "busbar::script", %message_id, "{text}"),
            "warn" => tracing::warn!(target: "busbar::script", %message_id, "{text}"),
            "error" => tracing::error!(target: "busbar::script", %message_id, "{text}"),
            _ => tracing::info!(target: "busbar::script", %message_id, "{text}"),
        }
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
