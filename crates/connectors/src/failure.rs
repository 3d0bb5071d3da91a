//! Failed operations, and results.

use crate::response::Place;
use flow::fault::Code;
use flow::{Context, Fault};
use message::memory::Shortage;
use message::{PayloadError, Value};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// ERROR_CODE and ERROR_MESSAGE of a connector.
pub(crate) type Reason = (i32, &'static str);

/// A failed operation.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub reason: Reason,
    /// ERROR_DETAIL.
    pub detail: String,
    /// The underlying fault of the engine: a payload that cannot be read, a memory limit.
    fault: Option<Box<Fault>>,
}

impl Failure {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Failure {
        Failure { reason, detail: detail.into(), fault: None }
    }

    /// The same with another reason.
    pub(crate) fn with(self, reason: Reason) -> Failure {
        Failure { reason, ..self }
    }

    /// The fault of an operation. With a `responseVariable` the result in it has the error.
    pub(crate) fn into_fault(self, operation: &str, place: &Place, context: &mut Context) -> Fault {
        if let Some(fault) = self.fault {
            return *fault;
        }
        let (code, message) = self.reason;
        let detail = format!("{operation}: {}", self.detail);
        if let Place::Variable(name) | Place::BodyAndVariable(name) = place {
            let error = json!({ "code": code.to_string(), "message": message, "detail": detail });
            let payload = json!({ "success": false, "error": error });
            set_variable(name, Some(payload), Map::new(), context);
        }
        context.set_axis2("HTTP_SC", Value::from("500"));
        Fault { code: Code::Number(code), ..Fault::new(message) }.because(detail)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure { reason: (0, ""), detail: fault.message.clone(), fault: Some(Box::new(fault)) }
    }
}

impl From<Shortage> for Failure {
    fn from(shortage: Shortage) -> Failure {
        Fault::from(PayloadError::Shortage(shortage)).into()
    }
}

/// A result.
pub(crate) struct Outcome {
    /// The payload.
    pub payload: Json,
    /// The attributes.
    pub attributes: Map<String, Json>,
    /// The body that the result becomes.
    pub body: Body,
}

/// The body after an operation without a `responseVariable`.
pub(crate) enum Body {
    /// The payload.
    Json,
    /// This XML.
    Xml(String),
    /// The body stays, and the result is in these properties.
    Properties(Vec<(&'static str, Option<String>)>),
    /// These bytes; with `overwriteBody` too.
    Bytes(Vec<u8>, String),
}

impl Outcome {
    /// Stores it where the parameters say.
    ///
    /// # Errors
    /// The payload is not XML.
    pub(crate) fn deliver(self, place: Place, context: &mut Context) -> Result<(), Fault> {
        let Outcome { payload, attributes, body } = self;
        match place {
            Place::Variable(name) => set_variable(&name, Some(payload), attributes, context),
            Place::BodyAndVariable(name) => {
                match body {
                    Body::Bytes(bytes, content_type) => set_bytes(bytes, &content_type, context),
                    _ => set_json(payload, context),
                }
                set_variable(&name, None, attributes, context);
            }
            Place::Body => {
                for (name, value) in &attributes {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    context.properties.set(name.as_str(), Value::from(text));
                }
                match body {
                    Body::Json => set_json(payload, context),
                    Body::Xml(text) => crate::result::set_xml(&text, context)?,
                    Body::Bytes(bytes, content_type) => set_bytes(bytes, &content_type, context),
                    Body::Properties(properties) => {
                        for (name, value) in properties {
                            if let Some(value) = value {
                                context.properties.set(name, Value::from(value));
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn set_json(payload: Json, context: &mut Context) {
    context.payload.set_json_value(payload);
    context.set_axis2("messageType", Value::from("application/json"));
}

fn set_bytes(bytes: Vec<u8>, content_type: &str, context: &mut Context) {
    // It may come from an e-mail, and no header can have it then.
    let content_type = match content_type.bytes().any(|byte| byte.is_ascii_control()) {
        true => "application/octet-stream",
        false => content_type,
    };
    let reading = message::Reading::of(Some(content_type), None, context.is_rest());
    context.payload.set_bytes(bytes, reading);
    let essence = message::MediaType::parse(content_type).essence.to_owned();
    context.set_axis2("messageType", Value::from(essence));
    context.headers.set("Content-Type", content_type.as_bytes());
}

fn set_variable(
    name: &Arc<str>,
    payload: Option<Json>,
    attributes: Map<String, Json>,
    context: &mut Context,
) {
    let mut map = Map::new();
    if let Some(payload) = payload {
        map.insert("payload".to_owned(), payload);
    }
    map.insert("headers".to_owned(), json!({}));
    map.insert("attributes".to_owned(), Json::Object(attributes));
    context.variables.set(Arc::clone(name), Value::Json(Arc::new(Json::Object(map))));
}
