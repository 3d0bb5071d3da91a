//! An envelope in pieces: elements of other envelopes that belong into the body of one and are not put there yet.
//!
//! What splits and aggregates messages makes these. Most of them are sent as they are: then the pieces are written straight
//! from where they came, and the tree of the whole is never built. Who wants to see the tree gets it.

use crate::envelope::{Envelope, SoapVersion};
use crate::payload::{Format, NODE};
use smallvec::SmallVec;
use std::fmt;
use std::sync::{Arc, OnceLock};
use xml::{Hole, NodeId, NodeKind, Scope};

/// What is around the pieces. Messages that differ in their pieces only share it.
pub struct Shell {
    envelope: Envelope,
    /// The element that the pieces are the last children of.
    place: NodeId,
    scope: Scope,
    /// The text of the envelope, and of its payload.
    whole: OnceLock<Option<Text>>,
    inner: OnceLock<Option<Text>>,
}

struct Text {
    bytes: Vec<u8>,
    hole: Hole,
}

impl Shell {
    /// An envelope that is to get pieces behind what is in its body.
    pub fn new(envelope: Envelope) -> Shell {
        let body = envelope.body;
        Shell::within(envelope, body)
    }

    /// An envelope that is to get pieces behind what is in `place`: its body, or an element in that.
    pub fn within(envelope: Envelope, place: NodeId) -> Shell {
        let scope = Scope::at(&envelope.document, place);
        Shell { envelope, place, scope, whole: OnceLock::new(), inner: OnceLock::new() }
    }

    /// The text around the hole of an element.
    fn text<'a>(&self, of: NodeId, text: &'a OnceLock<Option<Text>>) -> Option<&'a Text> {
        let write = || {
            let mut bytes = Vec::new();
            let hole = xml::write_around(&self.envelope.document, of, self.place, &mut bytes)?;
            Some(Text { bytes, hole })
        };
        text.get_or_init(write).as_ref()
    }
}

/// A piece: an element or a text of an envelope.
pub type Piece = (Arc<Envelope>, NodeId);

/// See the module.
#[derive(Clone)]
pub struct Assembly {
    shell: Arc<Shell>,
    pieces: SmallVec<[Piece; 1]>,
}

impl fmt::Debug for Assembly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Assembly({} pieces)", self.pieces.len())
    }
}

impl Assembly {
    /// Pieces and what is around them.
    pub fn new(shell: Arc<Shell>, pieces: impl IntoIterator<Item = Piece>) -> Assembly {
        Assembly { shell, pieces: pieces.into_iter().collect() }
    }

    /// The envelope without the pieces: header and version are those of the whole.
    pub fn frame(&self) -> &Envelope {
        &self.shell.envelope
    }

    /// The tree.
    pub fn build(&self) -> Envelope {
        let mut whole = self.shell.envelope.clone();
        for (envelope, node) in &self.pieces {
            whole.document.copy_from(self.shell.place, &envelope.document, *node);
        }
        whole
    }

    /// The first element in the body: of the shell, or else of the pieces.
    fn payload(&self) -> Option<(&Envelope, NodeId)> {
        let around = &self.shell.envelope;
        match around.payload() {
            Some(payload) => Some((around, payload)),
            None => self.first().map(|(envelope, node)| (&**envelope, *node)),
        }
    }

    /// The first element in the body, where that is a piece.
    pub fn first(&self) -> Option<&Piece> {
        let shell = &self.shell;
        let is_element = |(envelope, node): &&Piece| envelope.document.kind(*node) == NodeKind::Element;
        let around = shell.envelope.payload().is_some() || shell.place != shell.envelope.body;
        self.pieces.iter().find(is_element).filter(|_| !around)
    }

    /// Bytes that its list of pieces takes. The envelopes that these are of count themselves.
    pub(crate) fn memory(&self) -> usize {
        self.pieces.len() * size_of::<Piece>()
    }

    /// About how many bytes of text it stands for. Where that is much, not all pieces are looked at.
    pub fn extent(&self) -> usize {
        /// What a piece takes that is not looked at.
        const PIECE: usize = 128;
        const MUCH: usize = 256 << 10;
        let many = self.pieces.len() * PIECE;
        let mut bytes = self.shell.envelope.document.node_count() * NODE;
        if many >= MUCH {
            return bytes + many;
        }
        for (envelope, node) in &self.pieces {
            let left = MUCH.saturating_sub(bytes);
            if left == 0 {
                break;
            }
            bytes += match envelope.document.source_of(*node) {
                Some(text) => text.len(),
                None => envelope.document.descendants(*node).take(left / NODE + 1).count() * NODE,
            };
        }
        bytes
    }

    /// Whether the payload is a SOAP fault.
    pub fn is_fault(&self) -> bool {
        self.payload().is_some_and(|(envelope, payload)| {
            envelope.document.local(payload) == "Fault"
                && SoapVersion::of_namespace(envelope.document.namespace(payload)).is_some()
        })
    }

    /// Appends the text of the whole in UTF-8, or of its payload where the format is XML. `false`: the tree has to be asked.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> bool {
        if self.pieces.is_empty() {
            return false;
        }
        let shell = &*self.shell;
        let payload = shell.envelope.payload();
        let text = match format {
            Format::Soap(version) if version == shell.envelope.version => {
                shell.text(shell.envelope.root, &shell.whole)
            }
            // Without an element around them the first piece is the payload.
            Format::Xml if payload.is_none() && shell.place == shell.envelope.body => {
                let Some((envelope, piece)) = self.payload() else { return false };
                xml::write_part(&envelope.document, piece, &shell.scope, &Scope::default(), out);
                return true;
            }
            Format::Xml => payload.and_then(|payload| shell.text(payload, &shell.inner)),
            _ => None,
        };
        let Some(Text { bytes, hole }) = text else { return false };
        // About what it takes; where the source is not known a piece is short more often than long.
        let length = |(envelope, node): &Piece| envelope.document.source_of(*node).map_or(256, str::len) + 64;
        out.reserve(bytes.len() + self.pieces.iter().map(length).sum::<usize>());
        let (before, behind) = bytes.split_at(hole.at);
        out.extend_from_slice(before);
        for (envelope, node) in &self.pieces {
            xml::write_part(&envelope.document, *node, &shell.scope, &hole.declared, out);
        }
        out.extend_from_slice(behind);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;
    use crate::payload::{Payload, PayloadLimits, Reading};
    use xml::{Document, ParseOptions};

    const NS: &str = "xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'";

    /// An envelope, with the source of its elements or without.
    fn envelope(text: &str, kept: bool) -> Arc<Envelope> {
        let text = text.replace("NS", NS);
        let options = ParseOptions { extents: kept, ..ParseOptions::default() };
        Arc::new(Envelope::of_document(Document::parse_str(&text, &options).unwrap()).unwrap())
    }

    fn pieces(envelope: &Arc<Envelope>) -> Vec<Piece> {
        envelope.document.children(envelope.body).map(|node| (Arc::clone(envelope), node)).collect()
    }

    /// Pieces are written as the tree of them is: the same bytes from trees, the same document from sources.
    #[test]
    fn pieces_are_written_as_their_tree_is() {
        let shells = [
            "<s:Envelope NS><s:Body/></s:Envelope>",
            "<s:Envelope NS xmlns:p='urn:p'><s:Header><p:h/></s:Header><s:Body id='1'> <p:own>text</p:own></s:Body></s:Envelope>",
            "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><all xmlns='urn:all'/></e:Body></e:Envelope>",
        ];
        let bodies = [
            "<s:Envelope NS><s:Body/></s:Envelope>",
            "<s:Envelope NS><s:Body>text<a>1</a><!--c--><b x='&quot;'><![CDATA[<]]></b></s:Body></s:Envelope>",
            "<s:Envelope NS xmlns:p='urn:p' xmlns='urn:d'><s:Body> <p:a s:mustUnderstand='1'/> <b/>s:x</s:Body></s:Envelope>",
        ];
        let limits = PayloadLimits::default();
        let canonical = |text| xml::c14n::of_text(text, xml::c14n::Algorithm::Exclusive).unwrap();
        for shell in shells {
            for body in bodies {
                for kept in [false, true] {
                    let taken = pieces(&envelope(body, kept));
                    let around = (*envelope(shell, false)).clone();
                    // In the body, and in the payload if there is one.
                    for place in std::iter::once(around.body).chain(around.payload()) {
                        let shell = Shell::within(around.clone(), place);
                        let assembly = Assembly::new(Arc::new(shell), taken.clone());
                        for format in
                            [Format::Soap(SoapVersion::V11), Format::Soap(SoapVersion::V12), Format::Xml]
                        {
                            let tree = Payload::of_envelope(assembly.build()).write(format, &limits).unwrap();
                            let mut payload = Payload::received(Body::Empty, Reading::XML);
                            payload.set_assembly(assembly.clone());
                            assert!(payload.is_built() && payload.is_changed() && !payload.is_empty());
                            let direct = payload.write(format, &limits).unwrap();
                            match kept && !tree.is_empty() {
                                true => assert_eq!(canonical(direct), canonical(tree)),
                                false => assert_eq!(direct, tree),
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_fault_among_the_pieces_is_one() {
        let fault = "<s:Envelope NS><s:Body> <s:Fault/></s:Body></s:Envelope>";
        for (shell, body, expected) in [
            ("<s:Envelope NS><s:Body/></s:Envelope>", fault, true),
            ("<s:Envelope NS><s:Body><a/></s:Body></s:Envelope>", fault, false),
            (
                "<s:Envelope NS><s:Body/></s:Envelope>",
                "<s:Envelope NS><s:Body><Fault/></s:Body></s:Envelope>",
                false,
            ),
            ("<s:Envelope NS><s:Body/></s:Envelope>", "<s:Envelope NS><s:Body/></s:Envelope>", false),
        ] {
            let shell = Shell::new((*envelope(shell, false)).clone());
            let assembly = Assembly::new(Arc::new(shell), pieces(&envelope(body, true)));
            assert_eq!(assembly.is_fault(), expected, "{body}");
            assert_eq!(assembly.build().fault().is_some(), expected, "{body}");
        }
    }

    #[test]
    fn a_view_that_is_changed_is_what_is_written() {
        let shell = Shell::new(Envelope::empty(SoapVersion::V11));
        let assembly = Assembly::new(
            Arc::new(shell),
            pieces(&envelope("<s:Envelope NS><s:Body><a/></s:Body></s:Envelope>", true)),
        );
        let limits = PayloadLimits::default();
        let mut payload = Payload::empty();
        payload.set_assembly(assembly);
        let mut other = payload.copy();
        assert_eq!(payload.envelope(&limits).unwrap().payload().is_some(), payload.is_assembled());
        payload.envelope_mut(&limits).unwrap().clear_body();
        assert!(!payload.is_assembled());
        assert_eq!(payload.write(Format::Xml, &limits).unwrap(), "");
        let ns = NS.replace('\'', "\"");
        assert_eq!(other.write(Format::Xml, &limits).unwrap(), format!("<a {ns}/>"));
    }
}
