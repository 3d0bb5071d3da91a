//! The message: headers, properties by scope, payload and its lazy conversions.
//!
//! This room knows what a message is; it does not know where it comes from or what is done with it.

mod body;
pub mod envelope;
pub mod form;
mod head;
mod headers;
pub mod json;
pub mod jsonpath;
pub mod media;
pub mod payload;
pub mod properties;
pub mod value;

pub use body::{Body, BodyError, BodyStream};
pub use envelope::{Envelope, SoapVersion};
pub use head::{Method, RequestHead, ResponseHead, Version, reason_phrase};
pub use headers::{Headers, Line};
pub use media::{Kind, MediaType};
pub use payload::{Format, Payload, PayloadError, PayloadLimits, Reading};
pub use properties::Properties;
pub use value::{Value, XmlValue};
