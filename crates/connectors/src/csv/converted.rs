//! The result of a conversion: bytes whose memory is counted, on their way to the body or a variable.

use crate::response::Place;
use flow::{Context, Fault};
use message::memory::Held;
use message::{PayloadError, Reading, Value, memory};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The memory of a cell as a member of an object in a variable, beside its text.
const MEMBER: usize = 160;

/// The result of a conversion.
pub(super) struct Converted {
    kind: DataFormat,
    pub(super) bytes: Vec<u8>,
    /// Counts the bytes of memory until the message has ended.
    held: Held,
    /// The number of its cells.
    cells: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DataFormat {
    Json,
    Xml,
    Csv,
}

impl Converted {
    pub(super) fn new(kind: DataFormat) -> Converted {
        Converted { kind, bytes: Vec::new(), held: Held::NONE, cells: 0 }
    }

    /// Written CSV, and the memory that it holds.
    pub(super) fn csv(bytes: Vec<u8>, held: Held) -> Converted {
        Converted { bytes, held, ..Converted::new(DataFormat::Csv) }
    }

    /// Counts the memory of what was made so far.
    pub(super) fn count(&mut self, cells: usize) -> Result<(), Fault> {
        self.cells += cells;
        Ok(self.held.try_grow(self.bytes.capacity()).map_err(PayloadError::Shortage)?)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The payload of a variable, and the memory that it holds.
    pub(super) fn value(&self) -> Result<(Json, Held), Fault> {
        let more = match self.kind {
            DataFormat::Json => self.cells.saturating_mul(MEMBER),
            DataFormat::Xml | DataFormat::Csv => 0,
        };
        let held = memory::try_hold(self.bytes.len().saturating_add(more)).map_err(PayloadError::Shortage)?;
        let value = match self.kind {
            DataFormat::Json => serde_json::from_slice(&self.bytes)
                .map_err(|why| Fault::new(format!("the result is not JSON: {why}")))?,
            DataFormat::Xml | DataFormat::Csv => Json::from(self.text()),
        };
        Ok((value, held))
    }

    pub(super) fn into_body(mut self, context: &mut Context) {
        self.bytes.shrink_to_fit();
        let content_type = match self.kind {
            DataFormat::Json => "application/json",
            DataFormat::Xml => "application/xml",
            DataFormat::Csv => "text/csv",
        };
        let reading = Reading::of(Some(content_type), None, context.is_rest());
        match self.kind {
            DataFormat::Xml => context.payload.set_made(self.bytes, reading),
            DataFormat::Json | DataFormat::Csv => context.payload.set_bytes(self.bytes, reading),
        }
        context.set_axis2("messageType", Value::from(content_type));
        context.hold(Arc::new(self.held));
    }
}

/// Puts the result into the body or the variable that the operation names.
pub(super) fn deliver(converted: Converted, place: Place, context: &mut Context) -> Result<(), Fault> {
    match place {
        Place::Body => converted.into_body(context),
        Place::Variable(name) => {
            let (payload, held) = converted.value()?;
            context.hold(Arc::new(held));
            let map = Json::Object(
                [
                    ("payload".to_owned(), payload),
                    ("headers".to_owned(), json!({})),
                    ("attributes".to_owned(), json!({})),
                ]
                .into_iter()
                .collect(),
            );
            context.variables.set(name, Value::Json(Arc::new(map)));
        }
        Place::BodyAndVariable(name) => {
            converted.into_body(context);
            let map = json!({ "headers": {}, "attributes": {} });
            context.variables.set(name, Value::Json(Arc::new(map)));
        }
    }
    Ok(())
}
