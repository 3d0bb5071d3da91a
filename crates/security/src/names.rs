//! Namespaces and the URIs of algorithms and token types.

/// WS-Security header.
pub const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
/// WS-Security utility: ids and timestamps.
pub const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
/// WS-Security 1.1.
pub const WSSE11: &str = "http://docs.oasis-open.org/wss/oasis-wss-wssecurity-secext-1.1.xsd";
/// XML Signature.
pub const DS: &str = "http://www.w3.org/2000/09/xmldsig#";
/// XML Encryption.
pub const XENC: &str = "http://www.w3.org/2001/04/xmlenc#";
/// XML Encryption 1.1.
pub const XENC11: &str = "http://www.w3.org/2009/xmlenc11#";
/// Exclusive canonical form: its algorithm and its namespace.
pub const EXC_C14N: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
/// WS-SecureConversation of February 2005.
pub const WSC_2005: &str = "http://schemas.xmlsoap.org/ws/2005/02/sc";
/// WS-SecureConversation 1.3.
pub const WSC_13: &str = "http://docs.oasis-open.org/ws-sx/ws-secureconversation/200512";

/// SOAP 1.1.
pub const SOAP11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// SOAP 1.2.
pub const SOAP12: &str = "http://www.w3.org/2003/05/soap-envelope";

/// Base64, as an encoding of tokens.
pub const BASE64: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary";
/// A certificate.
pub const X509_V3: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3";
/// A path of certificates.
pub const PKI_PATH: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509PKIPathv1";
/// A certificate by its subject key identifier.
pub const SKI: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509SubjectKeyIdentifier";
/// A certificate by its SHA-1.
pub const THUMBPRINT: &str =
    "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#ThumbprintSHA1";
/// An encrypted key by the SHA-1 of what it is encrypted to.
pub const KEY_SHA1: &str =
    "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#EncryptedKeySHA1";
/// An encrypted key.
pub const ENCRYPTED_KEY: &str =
    "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#EncryptedKey";
/// A password as it is.
pub const TEXT: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordText";
/// A digest of a password.
pub const DIGEST: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest";

/// Encrypted was an element.
pub const ELEMENT: &str = "http://www.w3.org/2001/04/xmlenc#Element";
/// Encrypted was what is in an element.
pub const CONTENT: &str = "http://www.w3.org/2001/04/xmlenc#Content";
