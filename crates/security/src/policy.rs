//! WS-SecurityPolicy 1.1 and 1.2: what a policy asks of messages.
//!
//! What is unknown is an error: a policy of which half is honoured secures nothing. Assertions about other things than
//! security (addressing, MTOM) are left alone.

use crate::algorithm::{Cipher, Digest, Transport};
use crate::names::{WSC_13, WSC_2005};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};
use xpath::{CompileOptions, Expression, NamespaceResolver};

/// WS-SecurityPolicy 1.1.
const SP11: &str = "http://schemas.xmlsoap.org/ws/2005/07/securitypolicy";
/// WS-SecurityPolicy 1.2.
const SP12: &str = "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702";
/// WS-SecurityPolicy 1.3.
const SP13: &str = "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200802";
/// WS-Policy.
const WSP: [&str; 2] = ["http://schemas.xmlsoap.org/ws/2004/09/policy", "http://www.w3.org/ns/ws-policy"];
/// The configuration of Rampart.
const RAMPART: &str = "http://ws.apache.org/rampart/policy";
/// The configuration of WSO2's servers.
const CARBON: &str = "http://www.wso2.org/products/carbon/security";

/// Most parts, elements and tokens that a policy may name.
const MOST: usize = 256;

/// What a policy asks for.
#[derive(Debug)]
pub struct Policy {
    /// `wsu:Id`.
    pub id: String,
    /// How messages are secured.
    pub binding: Binding,
    /// The algorithms.
    pub suite: Suite,
    /// Whether messages have a timestamp.
    pub timestamp: bool,
    /// Encrypted first, then signed.
    pub encrypt_before_signing: bool,
    /// The signature is encrypted too.
    pub encrypt_signature: bool,
    /// The token that signs is signed too.
    pub protect_tokens: bool,
    /// Only headers and bodies as wholes are signed.
    pub only_entire: bool,
    /// The order of what is in the header.
    pub layout: Layout,
    /// What is signed.
    pub signed: Parts,
    /// What is encrypted.
    pub encrypted: Parts,
    /// Elements that have to be there.
    pub required: Vec<Arc<Selected>>,
    /// A token that says who the user is.
    pub user: Option<UserToken>,
    /// A token whose key signs the signature of requests.
    pub endorsing: Option<Endorsing>,
    /// Answers confirm the signatures of requests.
    pub confirmation: bool,
    /// References that the receiver can follow.
    pub thumbprints: bool,
    /// Whether WSS 1.1 is spoken.
    pub wss11: bool,
    /// Rampart's configuration, and that of WSO2.
    pub config: Config,
    /// The namespace of derived keys.
    pub conversation: &'static str,
    /// Assertions that are ignored, for people.
    pub ignored: Vec<String>,
}

/// How messages are secured.
#[derive(Debug)]
pub enum Binding {
    /// Messages are not secured.
    None,
    /// By the transport.
    Transport {
        /// With a certificate of the client.
        client_certificate: bool,
    },
    /// By a key pair of each side.
    Asymmetric {
        /// The token of the initiator.
        initiator: Token,
        /// The token of the recipient.
        recipient: Token,
    },
    /// By a key that the initiator makes for the recipient.
    Symmetric {
        /// The token of the recipient.
        protection: Token,
    },
}

/// A certificate as a token.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// In which messages it is.
    pub include: Include,
    /// How it is referred to where it is not in the message.
    pub reference: Option<Reference>,
    /// Keys are derived from it.
    pub derived: bool,
}

/// In which messages a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// In none.
    Never,
    /// In requests.
    ToRecipient,
    /// In answers.
    ToInitiator,
    /// In all.
    Always,
}

/// How a certificate is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// By the SHA-1 of it.
    Thumbprint,
    /// By issuer and serial number.
    IssuerSerial,
    /// By its subject key identifier.
    KeyIdentifier,
    /// It is in the reference.
    Embedded,
}

/// The order of what is in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Everything comes before its use.
    Strict,
    /// In any order.
    Lax,
    /// The timestamp comes first.
    TimestampFirst,
    /// The timestamp comes last.
    TimestampLast,
}

/// The parts of a message to sign, to encrypt or to require.
#[derive(Debug, Default)]
pub struct Parts {
    /// The body.
    pub body: bool,
    /// All headers, as `SignedParts` without anything in it says.
    pub all_headers: bool,
    /// Headers: namespace, and name if only those of that name are meant.
    pub headers: Vec<(String, Option<String>)>,
    /// Elements.
    pub elements: Vec<Arc<Selected>>,
    /// What is in elements.
    pub contents: Vec<Arc<Selected>>,
}

impl Parts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.body
            && !self.all_headers
            && self.headers.is_empty()
            && self.elements.is_empty()
            && self.contents.is_empty()
    }

    /// Whether a header of this name is among them.
    pub fn has_header(&self, namespace: &str, local: &str) -> bool {
        self.all_headers
            || self
                .headers
                .iter()
                .any(|(uri, name)| uri == namespace && name.as_deref().is_none_or(|name| name == local))
    }
}

/// What an expression selects.
#[derive(Debug)]
pub struct Selected(Expression);

impl Selected {
    /// The elements that it selects; `None`: it cannot be evaluated, or selects something else.
    pub fn elements(&self, document: &Document) -> Option<Vec<NodeId>> {
        let value = self.0.evaluate(&xpath::Context::root(document)).ok()?;
        let node = |item: xpath::Item| {
            let node = item.node()?.id;
            (document.kind(node) == NodeKind::Element).then_some(node)
        };
        value.items().map(node).collect()
    }

    /// Its text.
    pub fn source(&self) -> &str {
        self.0.source()
    }
}

/// `UsernameToken`.
#[derive(Clone, Copy, Debug)]
pub struct UserToken {
    /// The password is a digest.
    pub hashed: bool,
    /// There is no password.
    pub without_password: bool,
    /// It is signed.
    pub signed: bool,
    /// It is encrypted.
    pub encrypted: bool,
}

/// A certificate whose key signs the signature of a request; with a TransportBinding, which has none, the timestamp.
#[derive(Clone, Copy, Debug)]
pub struct Endorsing {
    /// The certificate.
    pub token: Token,
    /// The signature of the message covers it.
    pub signed: bool,
}

/// The algorithms of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Digests of parts, and of HMAC.
    pub digest: Digest,
    /// Digest of signatures of RSA.
    pub signature: Digest,
    /// Encryption of parts.
    pub cipher: Cipher,
    /// Encryption of keys.
    pub transport: Transport,
    /// Length of derived keys that sign, in bytes.
    pub derived_signature: usize,
}

impl Suite {
    /// By its name: those of the standard, those with GCM of CXF, and those whose signatures of RSA are of SHA-256 too.
    pub fn of(name: &str) -> Option<Suite> {
        let (base, transport) = match name.strip_suffix("Rsa15") {
            Some(base) => (base, Transport::Rsa15),
            None => (name, Transport::Oaep),
        };
        let (base, signature) =
            match base.strip_suffix("MgfSha256").or_else(|| base.strip_suffix("RsaSha256")) {
                Some(base) => (base, Digest::Sha256),
                None => (base, Digest::Sha1),
            };
        let (base, digest) = match base.strip_suffix("Sha256") {
            Some(base) => (base, Digest::Sha256),
            None => (base, signature),
        };
        let (cipher, derived_signature) = match base {
            "Basic128" => (Cipher::Aes128, 16),
            "Basic192" => (Cipher::Aes192, 24),
            "Basic256" => (Cipher::Aes256, 24),
            "TripleDes" => (Cipher::TripleDes, 24),
            "Basic128GCM" => (Cipher::Aes128Gcm, 16),
            "Basic192GCM" => (Cipher::Aes192Gcm, 24),
            "Basic256GCM" => (Cipher::Aes256Gcm, 24),
            _ => return None,
        };
        // Those with GCM came later, and are of SHA-256 throughout.
        let is_gcm = base.ends_with("GCM");
        let digest_of = |digest: Digest| if is_gcm { Digest::Sha256 } else { digest };
        Some(Suite {
            digest: digest_of(digest),
            signature: digest_of(signature),
            cipher,
            transport,
            derived_signature,
        })
    }
}

/// What `RampartConfig` and `CarbonSecConfig` say.
#[derive(Clone, Debug)]
pub struct Config {
    /// The user, and the key that signs if nothing else names it.
    pub user: String,
    /// The key that signs.
    pub certificate: String,
    /// For whom is encrypted; `useReqSigCert`: for whoever signed the request.
    pub encrypt_for: String,
    /// How long messages are valid, in seconds.
    pub ttl: i64,
    /// How far clocks may differ, in seconds.
    pub skew: i64,
    /// Timestamps have milliseconds.
    pub milliseconds: bool,
    /// How long nonces are kept, in seconds.
    pub nonce_life: i64,
    /// Key store of signatures.
    pub signature_crypto: Crypto,
    /// Key store of encryption.
    pub encryption_crypto: Crypto,
    /// Roles, one of which users need.
    pub roles: Vec<String>,
}

/// A key store by properties.
pub type Crypto = Vec<(String, String)>;

impl Default for Config {
    fn default() -> Config {
        Config {
            user: String::new(),
            certificate: String::new(),
            encrypt_for: String::new(),
            ttl: 300,
            skew: 300,
            milliseconds: true,
            nonce_life: 300,
            signature_crypto: Vec::new(),
            encryption_crypto: Vec::new(),
            roles: Vec::new(),
        }
    }
}

/// The name of an encryption user that means whoever signed the request.
pub const REQUEST_SIGNER: &str = "useReqSigCert";

struct Reader<'a> {
    document: &'a Document,
    ignored: Vec<String>,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// It is not a policy, or asks for something that is not supported.
    pub fn parse(bytes: &[u8]) -> Result<Policy, String> {
        let document = Document::parse(bytes.to_vec(), &ParseOptions::default())
            .map_err(|why| format!("the policy is not well-formed: {why}"))?;
        let root = document.document_element().ok_or("the policy is empty")?;
        if !WSP.contains(&document.namespace(root)) || document.local(root) != "Policy" {
            return Err(format!("this is not a policy: its element is <{}>", document.qname(root)));
        }
        let mut reader = Reader { document: &document, ignored: Vec::new() };
        let mut policy = Policy::empty();
        policy.id = document.attribute(root, crate::names::WSU, "Id").unwrap_or_default().to_owned();
        for assertion in reader.assertions(root)? {
            policy.assertion(&mut reader, assertion)?;
        }
        policy.ignored = std::mem::take(&mut reader.ignored);
        policy.check()?;
        Ok(policy)
    }

    fn empty() -> Policy {
        Policy {
            id: String::new(),
            binding: Binding::None,
            suite: Suite::of("Basic256").expect("it is a suite of the standard"),
            timestamp: false,
            encrypt_before_signing: false,
            encrypt_signature: false,
            protect_tokens: false,
            only_entire: false,
            layout: Layout::Lax,
            signed: Parts::default(),
            encrypted: Parts::default(),
            required: Vec::new(),
            user: None,
            endorsing: None,
            confirmation: false,
            thumbprints: false,
            wss11: false,
            config: Config::default(),
            conversation: WSC_2005,
            ignored: Vec::new(),
        }
    }

    /// Whether it asks for nothing: the policy `NoSecurity` switches security off.
    pub fn is_none(&self) -> bool {
        matches!(self.binding, Binding::None) && self.user.is_none() && self.endorsing.is_none()
    }

    /// Whether messages are signed.
    pub fn signs(&self) -> bool {
        let signed_user = self.user.is_some_and(|user| user.signed);
        matches!(self.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. })
            && (!self.signed.is_empty() || signed_user || self.timestamp)
    }

    /// Whether parts of messages are encrypted.
    pub fn encrypts(&self) -> bool {
        matches!(self.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. })
            && !self.encrypted.is_empty()
    }

    fn check(&self) -> Result<(), String> {
        if matches!(self.binding, Binding::None) && !(self.signed.is_empty() && self.encrypted.is_empty()) {
            return Err(
                "parts are to be signed or encrypted, and there is no binding that says how".to_owned()
            );
        }
        if matches!(self.binding, Binding::Transport { .. })
            && !(self.signed.is_empty() && self.encrypted.is_empty())
        {
            return Err(
                "with a TransportBinding the transport secures messages: no parts are signed or encrypted"
                    .to_owned(),
            );
        }
        self.check_endorsing()?;
        if self.binding_is_empty() {
            return Err("the policy asks for neither signature nor encryption nor a token".to_owned());
        }
        if self.encrypt_signature && !self.encrypts() {
            return Err("EncryptSignature needs parts that are encrypted".to_owned());
        }
        Ok(())
    }

    fn check_endorsing(&self) -> Result<(), String> {
        let Some(endorsing) = self.endorsing else { return Ok(()) };
        let by_transport = match self.binding {
            Binding::None => {
                return Err("an endorsing token signs a signature, and there is no binding".to_owned());
            }
            Binding::Transport { .. } => true,
            Binding::Asymmetric { .. } | Binding::Symmetric { .. } => false,
        };
        if by_transport && !self.timestamp {
            return Err("with a TransportBinding an endorsing token signs the timestamp: IncludeTimestamp is not there".to_owned());
        }
        if by_transport && self.confirmation {
            return Err(
                "with a TransportBinding signatures are not confirmed here (RequireSignatureConfirmation)"
                    .to_owned(),
            );
        }
        if !by_transport && !self.signs() {
            return Err("an endorsing token signs the signature of the message, which has none".to_owned());
        }
        if endorsing.token.derived {
            return Err("RequireDerivedKeys: no key is derived from an endorsing certificate".to_owned());
        }
        let included = matches!(endorsing.token.include, Include::Always | Include::ToRecipient);
        if endorsing.signed && !included {
            return Err(
                "SignedEndorsingSupportingTokens: a token that is not in the message cannot be signed here"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn binding_is_empty(&self) -> bool {
        let message = matches!(self.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. });
        message && !self.signs() && !self.encrypts() && self.user.is_none()
    }

    fn assertion(&mut self, reader: &mut Reader<'_>, node: NodeId) -> Result<(), String> {
        let document = reader.document;
        let (namespace, local) = (document.namespace(node), document.local(node));
        match namespace {
            SP11 | SP12 | SP13 => {}
            RAMPART if local == "RampartConfig" => return rampart(reader, node, &mut self.config),
            CARBON => {
                carbon(reader, node, &mut self.config);
                return Ok(());
            }
            _ => {
                reader.ignored.push(document.qname(node).into_owned());
                return Ok(());
            }
        }
        if namespace != SP11 {
            self.conversation = WSC_13;
        }
        match local {
            "TransportBinding" | "AsymmetricBinding" | "SymmetricBinding" => {
                if !matches!(self.binding, Binding::None) {
                    return Err("there is more than one binding".to_owned());
                }
                self.binding(reader, node)?;
            }
            "SignedParts" => {
                let found = reader.parts(node, &mut self.signed)?;
                if !found {
                    (self.signed.body, self.signed.all_headers) = (true, true);
                }
            }
            "EncryptedParts" => {
                if !reader.parts(node, &mut self.encrypted)? {
                    self.encrypted.body = true;
                }
            }
            "SignedElements" => self.signed.elements.extend(reader.selected(node)?),
            "EncryptedElements" => self.encrypted.elements.extend(reader.selected(node)?),
            "ContentEncryptedElements" => self.encrypted.contents.extend(reader.selected(node)?),
            "RequiredElements" => self.required.extend(reader.selected(node)?),
            "RequiredParts" => return Err("RequiredParts is not read here: use RequiredElements".to_owned()),
            "SupportingTokens" => self.supporting(reader, node, false, false)?,
            "SignedSupportingTokens" => self.supporting(reader, node, true, false)?,
            "EncryptedSupportingTokens" => self.supporting(reader, node, false, true)?,
            "SignedEncryptedSupportingTokens" => self.supporting(reader, node, true, true)?,
            "Wss10" | "Wss11" => {
                self.wss11 |= local == "Wss11";
                for assertion in reader.assertions(node)? {
                    match document.local(assertion) {
                        "MustSupportRefThumbprint" => self.thumbprints = true,
                        "RequireSignatureConfirmation" => self.confirmation = true,
                        "MustSupportRefExternalURI" => {
                            return Err("references to tokens elsewhere (MustSupportRefExternalURI) are never followed".to_owned());
                        }
                        name if name.starts_with("MustSupportRef") => {}
                        name => return Err(unknown(name)),
                    }
                }
            }
            // A template for an issuer of tokens, which is not supported.
            "Trust10" | "Trust13" => {}
            "EndorsingSupportingTokens" | "SignedEndorsingSupportingTokens" => {
                if self.endorsing.is_some() {
                    return Err("there is more than one endorsing token".to_owned());
                }
                let token = reader.token(node)?;
                self.endorsing = Some(Endorsing { token, signed: local.starts_with("Signed") });
            }
            "EndorsingEncryptedSupportingTokens" | "SignedEndorsingEncryptedSupportingTokens" => {
                return Err(format!("{local}: certificates are not encrypted here"));
            }
            name => return Err(unknown(name)),
        }
        Ok(())
    }

    fn binding(&mut self, reader: &mut Reader<'_>, node: NodeId) -> Result<(), String> {
        let document = reader.document;
        let kind = document.local(node).to_owned();
        let (mut initiator, mut recipient, mut protection) = (None, None, None);
        let mut client_certificate = false;
        for assertion in reader.assertions(node)? {
            match document.local(assertion) {
                "TransportToken" => client_certificate = reader.https(assertion)?,
                "InitiatorToken" => initiator = Some(reader.token(assertion)?),
                "RecipientToken" => recipient = Some(reader.token(assertion)?),
                "ProtectionToken" => protection = Some(reader.token(assertion)?),
                "AlgorithmSuite" => {
                    for name in reader.assertions(assertion)? {
                        match document.local(name) {
                            "XPath10" | "XPathFilter20" | "AbsXPath" => {}
                            name @ ("InclusiveC14N"
                            | "InclusiveC14N11"
                            | "SOAPNormalization10"
                            | "STRTransform10") => {
                                return Err(format!(
                                    "{name} is not done here: exclusive canonical form only"
                                ));
                            }
                            name => {
                                self.suite = Suite::of(name)
                                    .ok_or_else(|| format!("there is no algorithm suite {name} here"))?;
                            }
                        }
                    }
                }
                "Layout" => {
                    for name in reader.assertions(assertion)? {
                        self.layout = match document.local(name) {
                            "Strict" => Layout::Strict,
                            "Lax" => Layout::Lax,
                            "LaxTsFirst" | "LaxTimestampFirst" => Layout::TimestampFirst,
                            "LaxTsLast" | "LaxTimestampLast" => Layout::TimestampLast,
                            name => return Err(unknown(name)),
                        };
                    }
                }
                "IncludeTimestamp" => self.timestamp = true,
                "EncryptBeforeSigning" => self.encrypt_before_signing = true,
                "SignBeforeEncrypting" => self.encrypt_before_signing = false,
                "EncryptSignature" => self.encrypt_signature = true,
                "ProtectTokens" => self.protect_tokens = true,
                "OnlySignEntireHeadersAndBody" => self.only_entire = true,
                name @ ("SignatureToken"
                | "EncryptionToken"
                | "InitiatorSignatureToken"
                | "InitiatorEncryptionToken"
                | "RecipientSignatureToken"
                | "RecipientEncryptionToken") => {
                    return Err(format!("{name} is not known here: use one token for both"));
                }
                name => return Err(unknown(name)),
            }
        }
        let missing = |part: &str| format!("{kind} has no {part}");
        self.binding = match kind.as_str() {
            "TransportBinding" => Binding::Transport { client_certificate },
            "AsymmetricBinding" => Binding::Asymmetric {
                initiator: initiator.ok_or_else(|| missing("InitiatorToken"))?,
                recipient: recipient.ok_or_else(|| missing("RecipientToken"))?,
            },
            _ => Binding::Symmetric { protection: protection.ok_or_else(|| missing("ProtectionToken"))? },
        };
        Ok(())
    }

    fn supporting(
        &mut self,
        reader: &mut Reader<'_>,
        node: NodeId,
        signed: bool,
        encrypted: bool,
    ) -> Result<(), String> {
        let document = reader.document;
        for assertion in reader.assertions(node)? {
            match document.local(assertion) {
                "UsernameToken" if self.user.is_none() => {
                    let mut user = UserToken { hashed: false, without_password: false, signed, encrypted };
                    for name in reader.assertions(assertion)? {
                        match document.local(name) {
                            "HashPassword" => user.hashed = true,
                            "NoPassword" => user.without_password = true,
                            "WssUsernameToken10" | "WssUsernameToken11" | "Created" | "Nonce" => {}
                            name => return Err(unknown(name)),
                        }
                    }
                    self.user = Some(user);
                }
                "UsernameToken" => return Err("there is more than one UsernameToken".to_owned()),
                name => {
                    let not_here =
                        || format!("{name} is not known here as a supporting token: UsernameToken is");
                    return Err(foreign(name).unwrap_or_else(not_here));
                }
            }
        }
        Ok(())
    }
}

/// Why tokens of another issuer are not accepted.
fn foreign(name: &str) -> Option<String> {
    let why = match name {
        "IssuedToken" | "SamlToken" => "tokens of a security token service (SAML) are not taken here",
        "KerberosToken" | "SpnegoContextToken" => "Kerberos is not spoken here",
        _ => return None,
    };
    Some(format!("{name}: {why}"))
}

fn unknown(name: &str) -> String {
    format!("{name} is not known here")
}

impl Reader<'_> {
    fn elements(&self, node: NodeId) -> Vec<NodeId> {
        let is_element = |child: &NodeId| self.document.kind(*child) == NodeKind::Element;
        self.document.children(node).filter(is_element).collect()
    }

    /// The assertions in an element, with the operators of WS-Policy resolved. Of alternatives the first one counts.
    fn assertions(&mut self, node: NodeId) -> Result<Vec<NodeId>, String> {
        let mut out = Vec::new();
        let mut waiting: Vec<NodeId> = self.elements(node).into_iter().rev().collect();
        while let Some(assertion) = waiting.pop() {
            if !WSP.contains(&self.document.namespace(assertion)) {
                let optional = WSP.iter().any(|wsp| {
                    self.document
                        .attribute(assertion, wsp, "Optional")
                        .is_some_and(|value| value == "true" || value == "1")
                });
                if optional {
                    self.ignored.push(format!("{} (optional)", self.document.qname(assertion)));
                } else {
                    out.push(assertion);
                }
                if out.len() > MOST {
                    return Err("the policy has too many assertions".to_owned());
                }
                continue;
            }
            match self.document.local(assertion) {
                "Policy" | "All" => waiting.extend(self.elements(assertion).into_iter().rev()),
                "ExactlyOne" => {
                    let alternatives = self.elements(assertion);
                    if alternatives.len() > 1 {
                        self.ignored.push("alternatives behind the first one".to_owned());
                    }
                    waiting.extend(alternatives.first());
                }
                name => return Err(format!("{name} of WS-Policy is not read here")),
            }
        }
        Ok(out)
    }

    fn https(&mut self, node: NodeId) -> Result<bool, String> {
        let document = self.document;
        let mut certificate = false;
        for token in self.assertions(node)? {
            if document.local(token) != "HttpsToken" {
                return Err(format!(
                    "{} is not a token of a transport: HttpsToken is",
                    document.local(token)
                ));
            }
            let required = document.attribute(token, "", "RequireClientCertificate");
            certificate |= required.is_some_and(|value| value == "true" || value == "1");
            for assertion in self.assertions(token)? {
                match document.local(assertion) {
                    "RequireClientCertificate" => certificate = true,
                    name => return Err(format!("{name} of HttpsToken is not known here")),
                }
            }
        }
        Ok(certificate)
    }

    /// The one token of a binding.
    fn token(&mut self, node: NodeId) -> Result<Token, String> {
        let document = self.document;
        let kind = document.local(node).to_owned();
        let tokens = self.assertions(node)?;
        let &[token] = tokens.as_slice() else { return Err(format!("{kind} has not one token")) };
        match document.local(token) {
            "X509Token" => {}
            "SecureConversationToken" => {
                return Err("secure conversations are not held here yet (SecureConversationToken): its BootstrapPolicy, as the policy of every message, is as safe, and costs two operations of RSA a call".to_owned());
            }
            name => {
                return Err(foreign(name)
                    .unwrap_or_else(|| format!("{name} as {kind} is not known here: X509Token is")));
            }
        }
        let namespace = document.namespace(token);
        let include = document.attribute(token, namespace, "IncludeToken").unwrap_or_default();
        let include = match include.rsplit('/').next().unwrap_or_default() {
            "Never" => Include::Never,
            "Once" | "AlwaysToRecipient" => Include::ToRecipient,
            "AlwaysToInitiator" => Include::ToInitiator,
            "Always" | "" => Include::Always,
            name => return Err(format!("IncludeToken is {name}, which is not known here")),
        };
        let mut token_policy = Token { include, reference: None, derived: false };
        for name in self.assertions(token)? {
            match document.local(name) {
                "RequireThumbprintReference" => token_policy.reference = Some(Reference::Thumbprint),
                "RequireIssuerSerialReference" => token_policy.reference = Some(Reference::IssuerSerial),
                "RequireKeyIdentifierReference" => token_policy.reference = Some(Reference::KeyIdentifier),
                "RequireEmbeddedTokenReference" => token_policy.reference = Some(Reference::Embedded),
                "RequireDerivedKeys" | "RequireExplicitDerivedKeys" => token_policy.derived = true,
                "WssX509V3Token10" | "WssX509V3Token11" => {}
                name => return Err(unknown(name)),
            }
        }
        Ok(token_policy)
    }

    fn parts(&mut self, node: NodeId, out: &mut Parts) -> Result<bool, String> {
        let document = self.document;
        let children = self.elements(node);
        for &assertion in &children {
            match document.local(assertion) {
                "Body" => out.body = true,
                "Header" => {
                    let namespace = document
                        .attribute(assertion, "", "Namespace")
                        .ok_or("Header of SignedParts or EncryptedParts has no Namespace")?;
                    out.headers.push((
                        namespace.to_owned(),
                        document.attribute(assertion, "", "Name").map(str::to_owned),
                    ));
                }
                "Attachments" => return Err("attachments are neither signed nor encrypted here".to_owned()),
                name => return Err(unknown(name)),
            }
        }
        Ok(!children.is_empty())
    }

    fn selected(&mut self, node: NodeId) -> Result<Vec<Arc<Selected>>, String> {
        struct Scope<'a>(&'a Document, NodeId);
        impl NamespaceResolver for Scope<'_> {
            fn namespace(&self, prefix: &str) -> Option<&str> {
                self.0.lookup_prefix(self.1, prefix)
            }
        }
        let document = self.document;
        let mut out = Vec::new();
        for child in self.elements(node) {
            if document.local(child) != "XPath" {
                return Err(unknown(document.local(child)));
            }
            let source = document.string_value(child);
            let scope = Scope(document, child);
            let options = CompileOptions { namespaces: &scope, ..CompileOptions::default() };
            let expression = Expression::compile(source.trim(), &options)
                .map_err(|why| format!("the expression `{}` is wrong: {why}", source.trim()))?;
            out.push(Arc::new(Selected(expression)));
        }
        Ok(out)
    }
}

fn rampart(reader: &mut Reader<'_>, node: NodeId, config: &mut Config) -> Result<(), String> {
    let document = reader.document;
    for entry in reader.elements(node) {
        let text = document.string_value(entry).trim().to_owned();
        let name = document.local(entry);
        let seconds = || {
            let number: Option<i64> = text.parse().ok().filter(|part| (0..=86_400).contains(part));
            number.ok_or_else(|| format!("{name} is `{text}`: expected seconds, 0 to 86400"))
        };
        match name {
            "user" => config.user = text,
            "userCertAlias" => config.certificate = text,
            "encryptionUser" => config.encrypt_for = text,
            "timestampTTL" => config.ttl = seconds()?.max(1),
            "timestampMaxSkew" => config.skew = seconds()?,
            "timestampPrecisionInMilliseconds" => config.milliseconds = text != "false",
            "nonceLifeTime" => config.nonce_life = seconds()?,
            "signatureCrypto" => config.signature_crypto = crypto(reader, entry),
            "encryptionCrypto" | "encryptionCypto" | "decryptionCrypto" => {
                config.encryption_crypto = crypto(reader, entry);
            }
            // Always so.
            "timestampStrict" => {}
            name => reader.ignored.push(name.to_owned()),
        }
    }
    Ok(())
}

fn crypto(reader: &Reader<'_>, node: NodeId) -> Crypto {
    let document = reader.document;
    let mut out = Vec::new();
    for crypto in reader.elements(node) {
        for property in reader.elements(crypto) {
            let name = document.attribute(property, "", "name").unwrap_or_default();
            out.push((name.to_owned(), document.string_value(property).trim().to_owned()));
        }
    }
    out
}

fn carbon(reader: &mut Reader<'_>, node: NodeId, config: &mut Config) {
    let document = reader.document;
    for node in document.descendants(node).collect::<Vec<_>>() {
        if document.kind(node) != NodeKind::Element || document.local(node) != "property" {
            continue;
        }
        match document.attribute(node, "", "name") {
            Some("org.wso2.carbon.security.allowedroles") => {
                let text = document.string_value(node);
                config.roles = text
                    .split(',')
                    .map(str::trim)
                    .filter(|user| !user.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
            name => reader.ignored.push(name.unwrap_or_default().to_owned()),
        }
    }
}
