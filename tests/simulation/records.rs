//! The access log of a simulated world: each request has one record, at its end.

use crate::network::lock;
use flow::access::{Access, AccessLog, RequestLine};
use std::collections::HashMap;
use std::sync::Mutex;

/// The statuses that were recorded for each request, by the id in its target.
#[derive(Default)]
pub struct Records(Mutex<HashMap<String, Vec<u16>>>);

impl Records {
    /// What was recorded for a request.
    pub fn of(&self, id: &str) -> Vec<u16> {
        lock(&self.0).get(id).cloned().unwrap_or_default()
    }

    /// Requests with more than one record.
    pub fn doubled(&self) -> Vec<String> {
        let all = lock(&self.0);
        all.iter().filter(|(_, all)| all.len() > 1).map(|(id, all)| format!("{id}: {all:?}")).collect()
    }
}

impl AccessLog for Records {
    fn record(&self, access: &Access<'_>) {
        // What the transport refused has no id that could be relied on.
        let RequestLine::Whole(_, target, _) = access.line else { return };
        let Some((_, id)) = target.split_once("?id=") else { return };
        lock(&self.0).entry(id.to_owned()).or_default().push(access.status);
    }
}
