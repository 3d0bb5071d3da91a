//! The correlation id: what a client, the bus and all backends call one request by, in their logs.
//!
//! It is the header `activityid` of the request (another name by [`Settings::correlation_header`]), else one that is
//! made from the message's own number when it is first read. Each request to a backend carries it, and each answer
//! that is made here or comes from an API. Flows see it as the property `correlation_id`.
//!
//! [`Settings::correlation_header`]: crate::runtime::services::Settings::correlation_header

use crate::runtime::context::Context;
use crate::runtime::identifier::uuid;
use message::{StandardHeader, Value};
use std::sync::Arc;

/// The property of axis2 and default scope.
pub const PROPERTY: &str = "correlation_id";

/// The name of the header, if no other is set.
pub(crate) const DEFAULT: &str = "activityid";

/// Where the id comes from.
#[derive(Clone, Debug)]
pub(crate) enum Correlation {
    /// The request had none: of the message of this number, which the client sent.
    Of(u64),
    /// As the request had it.
    Given(Arc<str>),
}

impl Correlation {
    fn text(&self) -> String {
        match self {
            Correlation::Of(number) => made(*number),
            Correlation::Given(id) => id.to_string(),
        }
    }
}

/// What the name of the header is; nearly always it is the default.
fn known_name(name: &str) -> StandardHeader {
    if name == DEFAULT { StandardHeader::ActivityId } else { StandardHeader::of(name.as_bytes()) }
}

/// The UUID of a number.
fn made(number: u64) -> String {
    uuid(number).map(char::from).iter().collect()
}

impl Context {
    /// The correlation id. Copies that a split made have one of their own behind that of the request.
    pub fn correlation_id(&self) -> String {
        let id = self.given_correlation_id().unwrap_or_else(|| self.correlation.text());
        if self.progress.part.is_branch() { [id.as_str(), "_", &made(self.number)].concat() } else { id }
    }

    /// The correlation id, if the client gave one.
    pub fn given_correlation_id(&self) -> Option<String> {
        if let Correlation::Given(id) = &self.correlation {
            return Some(id.to_string());
        }
        let name = self.services.settings.correlation_header.as_str();
        let header = || self.headers.get(name).filter(|id| !id.is_empty()).map(str::to_owned);
        self.request_headers.then(header).flatten()
    }

    /// The header of that name as flows see it, where the request has none.
    pub(crate) fn correlation_header(&self, name: &str) -> Option<Value> {
        let is_asked =
            self.request_headers && name.eq_ignore_ascii_case(&self.services.settings.correlation_header);
        is_asked.then(|| Value::from(self.correlation.text()))
    }

    /// Gives the headers the id, unless they have one or it is switched off.
    pub(crate) fn correlate(&mut self) {
        if self.services.settings.correlation_header.is_empty() || self.keeps_correlation() {
            return;
        }
        let name = &self.services.settings.correlation_header;
        match &self.correlation {
            Correlation::Of(number) => self.headers.append_sound(name, known_name(name), &uuid(*number)),
            Correlation::Given(id) => self.headers.append(name, id.as_bytes()),
        }
    }

    /// Whether the headers have an id. The client's is kept: an answer may come in their place.
    pub(crate) fn keeps_correlation(&mut self) -> bool {
        let name = &self.services.settings.correlation_header;
        let id = match known_name(name) {
            StandardHeader::Other => self.headers.get(name),
            known_name => self.headers.get_known(known_name),
        };
        let Some(id) = id else { return false };
        if self.request_headers && matches!(self.correlation, Correlation::Of(_)) && !id.is_empty() {
            self.correlation = Correlation::Given(id.into());
        }
        true
    }
}
