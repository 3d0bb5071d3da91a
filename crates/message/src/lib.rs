//! The message: headers, properties by scope, payload and its lazy conversions

mod body;
mod head;
mod headers;
pub mod jsonpath;

pub use body::{Body, BodyError, BodyStream};
pub use head::{Method, RequestHead, ResponseHead, Version, reason_phrase};
pub use headers::Headers;
