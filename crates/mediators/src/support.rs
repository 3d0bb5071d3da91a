//! What several mediators need of an envelope.

use message::Envelope;

/// An envelope with an empty body, of the version and with the header blocks of another one.
pub(crate) fn envelope_with_headers(other: &Envelope) -> Envelope {
    let mut envelope = Envelope::empty(other.version);
    if let Some(header) = other.header {
        let own = envelope.header_or_new();
        for block in other.elements_of(header) {
            envelope.document.copy_from(own, &other.document, block);
        }
    }
    envelope
}
