//! One side of a conversation: its keys and policies, and what a request leaves for its response.

use crate::algorithm::Secret;
use crate::certificate::Certificate;
use crate::failure::Failure;
use crate::keys::{Identity, KeyStore, Trust};
use crate::names::{SOAP11, SOAP12};
use crate::policy::Policy;
use crate::replay::Replays;
use jiff::Timestamp;
use std::ops::ControlFlow;
use std::sync::Arc;
use xml::c14n::{Algorithm, Options, canonicalize_to};
use xml::{Document, NodeId, NodeKind};

/// How many times larger than the message all that is signed in it may be in canonical form, and how many bytes may come on top of that.
const AMPLIFIED: usize = 4;

const SPARE: usize = 1 << 20;

/// The client or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends requests.
    Initiator,
    /// Answers them.
    Recipient,
}

/// One side, for messages of one policy.
#[derive(Debug)]
pub struct Side {
    /// Which one.
    pub role: Role,
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its keys, and certificates that others refer to.
    pub store: Arc<KeyStore>,
    /// The authorities and certificates that it trusts.
    pub trust: Arc<Trust>,
    /// The key that it signs with.
    pub own: Option<Arc<Identity>>,
    /// The certificate that it encrypts for; `None`: that of the signer of the request.
    pub peer: Option<Arc<Certificate>>,
    /// How documents are parsed.
    pub parse: xml::ParseOptions,
}

/// What a message leaves for the one that answers it.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Signature values of the request.
    pub signatures: Vec<Vec<u8>>,
    /// Who signed the request.
    pub signer: Option<Arc<Certificate>>,
    /// The key that whoever asks made (symmetric binding), and the SHA-1 of what it was encrypted to.
    pub(crate) secret: Option<(Secret, [u8; 20])>,
    /// The name of the user.
    pub user: Option<String>,
}

/// What is needed besides the message.
pub struct Environment<'a> {
    /// The time.
    pub now: Timestamp,
    /// The password of a user.
    pub password: &'a dyn Fn(&str) -> Option<Secret>,
    /// The values that were seen before.
    pub replays: &'a Replays,
    /// It came over https.
    pub secure: bool,
    /// With a certificate of the client.
    pub client_certificate: bool,
}

/// The places of an envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub root: NodeId,
    pub header: Option<NodeId>,
    pub body: NodeId,
}

pub(crate) fn elements(document: &Document, node: NodeId) -> Vec<NodeId> {
    document.children(node).filter(|&child| document.kind(child) == NodeKind::Element).collect()
}

/// Bytes in canonical form that signatures of one message may be over.
pub(crate) struct Budget(usize);

impl Budget {
    /// Of a message of so many bytes.
    pub(crate) fn of(message: usize) -> Budget {
        Budget(message.saturating_mul(AMPLIFIED).saturating_add(SPARE))
    }

    /// An element in exclusive canonical form, piece by piece. It ends where the budget does: each element may have to declare a long
    /// namespace again, so that the form is many times as long as the message.
    pub(crate) fn canonicalize(
        &mut self,
        document: &Document,
        node: NodeId,
        inclusive_prefixes: Vec<String>,
        to: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let options = Options { algorithm: Algorithm::Exclusive, comments: false, inclusive_prefixes };
        let end = canonicalize_to(document, node, &options, &mut |piece| {
            let Some(left) = self.0.checked_sub(piece.len()) else { return ControlFlow::Break(()) };
            self.0 = left;
            to(piece);
            ControlFlow::Continue(())
        });
        match end {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(Failure::invalid("the signature is over more than there is in the message"))
            }
        }
    }
}

impl Places {
    /// Of a document. An envelope with something beside one header and one body is none.
    pub(crate) fn of(document: &Document) -> Result<Places, Failure> {
        let none = || Failure::invalid("this is not a SOAP envelope");
        let root = document.document_element().ok_or_else(none)?;
        let soap = document.namespace(root);
        if !matches!(soap, SOAP11 | SOAP12) || document.local(root) != "Envelope" {
            return Err(none());
        }
        let children = elements(document, root);
        let is = |node: NodeId, local: &str| document.is_element(node, soap, local);
        match *children.as_slice() {
            [body] if is(body, "Body") => Ok(Places { root, header: None, body }),
            [header, body] if is(header, "Header") && is(body, "Body") => {
                Ok(Places { root, header: Some(header), body })
            }
            _ => Err(Failure::invalid("the envelope has more than one header and one body")),
        }
    }
}
