//! The message: headers, properties by scope, payload and its lazy conversions
