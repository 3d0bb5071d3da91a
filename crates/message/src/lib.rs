//! The message: headers, properties by scope, payload and its lazy conversions.
//!
//! This room knows what a message is; it does not know where it comes from or what is done with it.

mod assembly;
pub mod attachments;
mod body;
mod budget;
pub mod charset;
pub mod coding;
pub mod envelope;
pub mod form;
pub mod form_data;
mod head;
mod headers;
pub mod json;
pub mod jsonpath;
pub mod lenient;
pub mod media;
pub mod memory;
pub mod multipart;
mod opened;
pub mod payload;
pub mod properties;
pub mod redact;
pub mod regex;
mod spill;
pub mod value;
pub mod yaml;

/// What shared counts are made of: `tests/models` puts others in their place.
mod sync {
    pub use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
}

pub use assembly::{Assembly, Piece, Shell};
pub use attachments::Packing;
pub use body::{Body, BodyError, BodyStream, Pass};
pub use charset::Charset;
pub use coding::Coding;
pub use envelope::{Envelope, SoapVersion};
pub use head::{Method, RequestHead, ResponseHead, Version, reason_phrase};
pub use headers::{Headers, Line, StandardHeader, WireField, is_token_byte};
pub use media::{Kind, MediaType};
pub use opened::Opened;
pub use payload::{Format, Payload, PayloadError, PayloadLimits, Reading, Writing, Written};
pub use properties::Properties;
pub use spill::Spill;
pub use value::{Value, XmlValue};
