//! `[access.NAME]`: who may be let in. Each section becomes a profile that APIs and proxy services name.

use authentication::api_key;
use authentication::certificate::Allowed;
use authentication::ldap::{Filter, Name};
use authentication::signature::{Digest, Encoding, Scheme};
use authentication::token::{self, ASYMMETRIC, Algorithm, Keys, Rules};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flow::guard::{Directory, Groups, Introspection, KeySource, Profile, Remote, Tokens};
use flow::url::{Url, parse_url};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::units::Time;

/// Shortest secret that tokens may be signed with, in bytes: as long as the digest (RFC 7518, section 3.2).
fn shortest_secret(algorithm: &Algorithm) -> usize {
    match algorithm {
        Algorithm::HS512 => 64,
        Algorithm::HS384 => 48,
        _ => 32,
    }
}
/// Largest file with keys.
const LARGEST: u64 = 1 << 20;

/// `[access.NAME]`. Secrets in it are never shown.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Who may have issued a token (`iss`).
    pub issuers: Vec<String>,
    /// The audiences (`aud`) of which a token must name one. Default: not checked.
    pub audiences: Vec<String>,
    /// Where the keys of tokens are: an https URL of a set of keys (JWKS), or a file with one.
    pub jwks: Option<String>,
    /// The secret that tokens are signed with, instead of keys.
    pub secret: Option<String>,
    /// How tokens may be signed. Default: all with a public key; with `secret`, HS256.
    pub algorithms: Vec<String>,
    /// How far the clocks of issuer and bus may differ. Default 60s.
    pub leeway: Option<Time>,
    /// How long keys of a server are used before it is asked again. Default 10m.
    pub refresh: Option<Time>,
    /// The https URL that is asked about tokens which are no JSON Web Tokens, or about all where neither `jwks` nor `secret` is set.
    pub introspection: Option<String>,
    /// The client id for introspection (RFC 7662).
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// How long an answer of introspection is used. Default 60s.
    pub cache: Option<Time>,
    /// `jwks` and `introspection` may be http URLs of other machines.
    pub plain_http: bool,
    /// API keys by the name of their owner: the key, or `sha256:` and its digest.
    pub keys: BTreeMap<String, String>,
    /// The header with the API key. Default `X-API-Key`.
    pub key_header: Option<String>,
    /// The users of `http.users`, with basic authentication.
    pub users: bool,
    /// Users of a directory, with basic authentication.
    pub ldap: Option<Ldap>,
    /// Certificates of clients: `*`, `sha256:…`, `dns:…`, `uri:…`, `email:…`, `ip:…`, or a subject.
    pub certificates: Vec<String>,
    /// Signatures of webhooks.
    pub signature: Option<Signature>,
    /// Every one of these ways must let the request in. Default: one is enough.
    pub every: bool,
    /// Credentials stay in the message for the flow and its backends.
    pub forward: bool,
}

/// `[access.NAME.ldap]`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ldap {
    /// `ldaps://HOST:PORT`; `ldap://` for this machine only, or with `plain_http`.
    pub address: String,
    /// The name of the entry of a user, with `{user}`. Otherwise it is searched for.
    pub user: Option<String>,
    /// The entry below which users are searched for.
    pub base: Option<String>,
    /// The filter for users, with `{user}`. Default `(uid={user})`.
    pub filter: Option<String>,
    /// The name that the bus binds with for its searches.
    pub bind: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// The entry below which the groups of a user are searched for, which are its scopes. Default: groups are not searched for.
    pub group_base: Option<String>,
    /// The filter for groups, with `{dn}` or `{user}`. Default `(member={dn})`.
    pub group_filter: Option<String>,
    /// The attribute of a group that is its name. Default `cn`.
    pub group_name: Option<String>,
    /// The attribute of a user with the names of its groups (`memberOf`), instead of a search. A scope is what `group_name` is in such a name.
    pub group_attribute: Option<String>,
}

/// `[access.NAME.signature]`; the defaults are those of GitHub.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Signature {
    /// The secrets, any of which may have signed: two while one replaces the other. `base64:…` for bytes.
    pub secrets: Vec<String>,
    /// The header with the signature. Default `X-Hub-Signature-256`.
    pub header: Option<String>,
    /// The text before the signature in that header. Default `sha256=`.
    pub prefix: Option<String>,
    /// `sha256` (default), `sha512`, `sha1`.
    pub digest: Option<String>,
    /// `hex` (default) or `base64`.
    pub encoding: Option<String>,
    /// What is signed. Default `{body}`.
    pub signed: Option<String>,
    /// The header with the time, for `{timestamp}`.
    pub timestamp_header: Option<String>,
    /// The header with the id, for `{id}`.
    pub id_header: Option<String>,
    /// How far the time may be from now. Default 5m.
    pub tolerance: Option<Time>,
    /// Whether a message is accepted once only. Default: where a time is signed.
    pub once: Option<bool>,
}

impl fmt::Debug for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Access({:?}, {} keys)", self.issuers, self.keys.len())
    }
}

impl fmt::Debug for Ldap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Ldap({})", self.address)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signature({} secrets)", self.secrets.len())
    }
}

/// `[admin]`: who may use the admin address.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// Tokens by the name of their owner: the token, or `sha256:` and its digest.
    pub tokens: BTreeMap<String, String>,
    /// Paths that need none, beside `/healthz` and `/readyz`.
    pub open: Vec<String>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Admin({} tokens, {:?})", self.tokens.len(), self.open)
    }
}

impl Admin {
    /// The credentials that the admin address asks for.
    ///
    /// # Errors
    /// A token cannot be used: its name, and why.
    pub fn credentials(&self) -> Result<admin::Credentials, String> {
        let mut tokens = api_key::Keys::default();
        for (name, token) in &self.tokens {
            tokens.add(name, token).map_err(|why| format!("admin.tokens: {why}"))?;
        }
        if let Some(path) = self.open.iter().find(|path| !path.starts_with('/')) {
            return Err(format!("admin.open: `{path}` is not a path; expected e.g. /metrics"));
        }
        let tokens = (!self.tokens.is_empty()).then(|| Arc::new(tokens));
        Ok(admin::Credentials { tokens, open: self.open.clone() })
    }
}

/// All profiles.
///
/// # Errors
/// A profile cannot be used: its name, and why.
pub fn profiles(settings: &BTreeMap<String, Access>) -> Result<HashMap<String, Arc<Profile>>, String> {
    settings
        .iter()
        .map(|(name, access)| {
            let profile = profile(name, access).map_err(|why| format!("access.{name}: {why}"))?;
            Ok((name.clone(), Arc::new(profile)))
        })
        .collect()
}

/// Whether a profile can be used that settings would have.
///
/// # Errors
/// Why not.
pub fn judge(name: &str, settings: &toml::Table) -> Result<(), String> {
    let settings = Access::deserialize(settings.clone()).map_err(|error| error.message().to_owned())?;
    profile(name, &settings).map(|_| ())
}

fn profile(name: &str, settings: &Access) -> Result<Profile, String> {
    if !name.bytes().all(|byte| message::is_token_byte(byte) && byte != b'\'') {
        return Err("its name may have letters, digits and - . _ only".to_owned());
    }
    let rules = Rules {
        issuers: settings.issuers.clone(),
        audiences: settings.audiences.clone(),
        leeway: seconds(settings.leeway, 60),
    };
    let tokens = match (&settings.jwks, &settings.secret) {
        (Some(_), Some(_)) => {
            return Err("`jwks` and `secret` exclude each other: a public key is not a secret".to_owned());
        }
        (Some(jwks), None) => {
            let algorithms = algorithms(settings, &ASYMMETRIC)?;
            if algorithms.iter().any(|algorithm| !ASYMMETRIC.contains(algorithm)) {
                return Err("`algorithms` with a secret (HS256, …) need `secret`".to_owned());
            }
            Some((keys(jwks, settings)?, algorithms))
        }
        (None, Some(secret)) => {
            let algorithms = algorithms(settings, &[Algorithm::HS256])?;
            if algorithms.iter().any(|algorithm| ASYMMETRIC.contains(algorithm)) {
                return Err("`algorithms` with a public key need `jwks`".to_owned());
            }
            let least = algorithms.iter().map(shortest_secret).max().unwrap_or_default();
            if secret.len() < least {
                return Err(format!("`secret` must have {least} bytes at least for these `algorithms`"));
            }
            Some((KeySource::Here(Keys::secret(secret.as_bytes())), algorithms))
        }
        (None, None) => None,
    };
    if tokens.is_some() && settings.issuers.is_empty() {
        return Err("`issuers` says whose tokens are good; without it, everybody's would be".to_owned());
    }
    let refresh = settings.refresh.map_or(Duration::from_secs(600), |time| time.0);
    let tokens = tokens.map(|(keys, algorithms)| Tokens { keys, algorithms, rules: rules.clone(), refresh });
    let introspection = match &settings.introspection {
        None => None,
        Some(url) => {
            let authorization = match (&settings.client_id, &settings.client_secret) {
                (Some(id), Some(secret)) => Some(format!("Basic {}", STANDARD.encode(pair(id, secret)))),
                (None, None) => None,
                _ => return Err("`client_id` and `client_secret` go together".to_owned()),
            };
            Some(Introspection {
                server: remote("introspection", url, settings.plain_http)?,
                authorization,
                rules,
                cache: settings.cache.map_or(Duration::from_secs(60), |time| time.0),
            })
        }
    };
    let mut keys = api_key::Keys::default();
    for (name, key) in &settings.keys {
        keys.add(name, key)?;
    }
    let header = settings.key_header.clone().unwrap_or_else(|| "X-API-Key".to_owned());
    is_header("key_header", &header)?;
    let certificates =
        settings.certificates.iter().map(|text| Allowed::read(text)).collect::<Result<Vec<_>, _>>()?;
    let profile = Profile {
        name: name.to_owned(),
        tokens,
        introspection,
        keys: (!settings.keys.is_empty()).then_some((header, keys)),
        users: settings.users,
        directory: settings.ldap.as_ref().map(|ldap| directory(ldap, settings)).transpose()?,
        certificates,
        signature: settings.signature.as_ref().map(signature).transpose()?,
        every: settings.every,
        forward: settings.forward,
    };
    let has_way = profile.tokens.is_some()
        || profile.introspection.is_some()
        || profile.keys.is_some()
        || profile.users
        || profile.directory.is_some()
        || !profile.certificates.is_empty()
        || profile.signature.is_some();
    if !has_way {
        return Err(
            "it lets nobody in: set jwks, secret, introspection, keys, users, ldap, certificates or signature"
                .to_owned(),
        );
    }
    Ok(profile)
}

fn seconds(time: Option<Time>, default: u64) -> u64 {
    time.map_or(default, |time| time.0.as_secs())
}

/// The credentials of a client: both are encoded as in a form (RFC 6749, section 2.3.1).
fn pair(id: &str, secret: &str) -> String {
    let mut out = String::new();
    message::form::encode(id, &mut out);
    out.push(':');
    message::form::encode(secret, &mut out);
    out
}

fn algorithms(settings: &Access, default: &[Algorithm]) -> Result<Vec<Algorithm>, String> {
    match settings.algorithms.is_empty() {
        true => Ok(default.to_vec()),
        false => token::algorithms(&settings.algorithms),
    }
}

fn keys(jwks: &str, settings: &Access) -> Result<KeySource, String> {
    if jwks.contains("://") {
        return Ok(KeySource::Server(remote("jwks", jwks, settings.plain_http)?));
    }
    let path = PathBuf::from(jwks);
    let failed = |why: &str| format!("the keys in {}: {why}", path.display());
    let size = std::fs::metadata(&path).map_err(|error| failed(&diagnostics::io_reason(&error)))?;
    if !size.is_file() || size.len() > LARGEST {
        return Err(failed("it is not a file, or too large"));
    }
    let bytes = std::fs::read(&path).map_err(|error| failed(&diagnostics::io_reason(&error)))?;
    let keys = Keys::read(&bytes).map_err(|why| failed(&why))?;
    match keys.is_empty() {
        true => Err(failed("it has no public key for signatures")),
        false => Ok(KeySource::Here(keys)),
    }
}

/// The address of a server.
fn remote(setting: &str, url: &str, plain_http: bool) -> Result<Remote, String> {
    let parsed = secure_url(setting, url, plain_http)?;
    Ok(Remote {
        https: parsed.scheme == "https",
        host: parsed.host,
        port: parsed.port,
        path: parsed.path_and_query,
    })
}

/// An https URL. http is accepted for this machine, or where the settings allow it: somebody on the way could change the answers.
///
/// # Errors
/// It is not such a URL.
pub fn secure_url(setting: &str, url: &str, plain_http: bool) -> Result<Url, String> {
    let shown = diagnostics::without_credentials(url);
    let parsed = parse_url(url).map_err(|error| format!("{setting}: `{shown}` is not a URL: {error}"))?;
    let loopback = parsed.host == "localhost"
        || parsed.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    match parsed.scheme.as_str() {
        "https" => Ok(parsed),
        "http" if loopback || plain_http => Ok(parsed),
        "http" => Err(format!(
            "{setting}: `{shown}` is not https, so somebody between could answer; `plain_http = true` allows it"
        )),
        _ => Err(format!("{setting}: `{shown}` is not an https URL")),
    }
}

fn directory(ldap: &Ldap, settings: &Access) -> Result<Directory, String> {
    let wrong = |why: &str| format!("ldap: {why}");
    let (tls, rest) = match ldap.address.split_once("://") {
        Some(("ldaps", rest)) => (true, rest),
        Some(("ldap", rest)) => (false, rest),
        _ => return Err(wrong("`address` is not like ldaps://HOST:PORT")),
    };
    // Parsed as an http URL: ports and brackets follow the same rules.
    let port = if tls { 636 } else { 389 };
    let with_port = rest.rsplit(']').next().unwrap_or(rest).contains(':');
    let server = rest.trim_end_matches('/');
    let url = if with_port { format!("http://{server}/") } else { format!("http://{server}:{port}/") };
    let parsed =
        parse_url(&url).map_err(|error| wrong(&format!("`{}` is not an address: {error}", ldap.address)))?;
    if parsed.path_and_query != "/" {
        return Err(wrong("`address` is a server alone: what is searched below is `base`"));
    }
    let loopback = parsed.host == "localhost"
        || parsed.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if !tls && !loopback && !settings.plain_http {
        return Err(wrong(
            "`address` is not ldaps, so passwords could be read on the way; `plain_http = true` allows it",
        ));
    }
    let filter = |text: &Option<String>, default: &str| {
        Filter::read(text.as_deref().unwrap_or(default)).map_err(|why| wrong(&why))
    };
    let name = ldap.user.as_deref().map(Name::read).transpose().map_err(|why| wrong(&why))?;
    let search = match (&name, &ldap.base) {
        (Some(_), None) => None,
        (None, Some(base)) => Some((base.clone(), filter(&ldap.filter, "(uid={user})")?)),
        _ => return Err(wrong("one of `user` and `base` says where users are")),
    };
    let bind = match (&ldap.bind, &ldap.password) {
        (None, None) => None,
        (Some(bind), Some(password)) if !bind.is_empty() && !password.is_empty() => {
            Some((bind.clone(), password.clone()))
        }
        _ => return Err(wrong("`bind` and `password` go together")),
    };
    let name_of_group = ldap.group_name.clone().unwrap_or_else(|| "cn".to_owned());
    let groups = match (&ldap.group_base, &ldap.group_attribute) {
        (None, None) => None,
        (Some(base), None) => {
            Some(Groups::Entries(base.clone(), filter(&ldap.group_filter, "(member={dn})")?, name_of_group))
        }
        (None, Some(attribute)) => Some(Groups::OfUser(attribute.clone(), name_of_group)),
        (Some(_), Some(_)) => {
            return Err(wrong("`group_base` and `group_attribute` exclude each other"));
        }
    };
    let cache = settings.cache.map_or(Duration::from_secs(60), |time| time.0);
    Ok(Directory { tls, host: parsed.host, port: parsed.port, name, search, bind, groups, cache })
}

fn is_header(setting: &str, name: &str) -> Result<(), String> {
    match !name.is_empty() && name.bytes().all(message::is_token_byte) {
        true => Ok(()),
        false => Err(format!("{setting}: `{name}` is not a header name")),
    }
}

fn signature(settings: &Signature) -> Result<Scheme, String> {
    let mut secrets = Vec::new();
    for secret in &settings.secrets {
        secrets.push(match secret.strip_prefix("base64:") {
            None => secret.clone().into_bytes(),
            Some(text) => {
                STANDARD.decode(text).map_err(|_| "signature: a secret is not base64".to_owned())?
            }
        });
    }
    let mut scheme = Scheme::new(secrets).map_err(|why| format!("signature: {why}"))?;
    let set = |to: &mut String, value: &Option<String>| {
        if let Some(value) = value {
            to.clone_from(value);
        }
    };
    set(&mut scheme.header, &settings.header);
    set(&mut scheme.prefix, &settings.prefix);
    set(&mut scheme.signed, &settings.signed);
    scheme.digest = match settings.digest.as_deref() {
        None | Some("sha256") => Digest::Sha256,
        Some("sha512") => Digest::Sha512,
        Some("sha1") => Digest::Sha1,
        Some(other) => return Err(format!("signature: digest `{other}`: expected sha256, sha512 or sha1")),
    };
    scheme.encoding = match settings.encoding.as_deref() {
        None | Some("hex") => Encoding::Hex,
        Some("base64") => Encoding::Base64,
        Some(other) => return Err(format!("signature: encoding `{other}`: expected hex or base64")),
    };
    scheme.timestamp_header.clone_from(&settings.timestamp_header);
    scheme.id_header.clone_from(&settings.id_header);
    scheme.tolerance = seconds(settings.tolerance, 300);
    scheme.once = settings.once.unwrap_or(settings.timestamp_header.is_some());
    for name in [Some(&scheme.header), scheme.timestamp_header.as_ref(), scheme.id_header.as_ref()] {
        name.map_or(Ok(()), |name| is_header("signature", name))?;
    }
    scheme.check().map_err(|why| format!("signature: {why}"))?;
    Ok(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str) -> Result<Profile, String> {
        profile("shop", &toml::from_str(text).unwrap())
    }

    #[test]
    fn what_a_profile_may_say() {
        for text in [
            "users = true",
            "keys = { a = 'b' }",
            "certificates = ['CN=a']",
            "issuers = ['me']\njwks = 'https://id.example/keys'",
            "issuers = ['me']\njwks = 'http://127.0.0.1:1/keys'\nalgorithms = ['ES256']",
            "issuers = ['me']\njwks = 'http://id.inner/keys'\nplain_http = true",
            "issuers = ['me']\nsecret = '0123456789abcdef0123456789abcdef'",
            "introspection = 'https://id.example/introspect'\nclient_id = 'a'\nclient_secret = 'b'",
            "[signature]\nsecrets = ['a', 'base64:AAAA']",
            "[ldap]\naddress = 'ldaps://ldap.example'\nuser = 'uid={user},dc=example'",
            "[ldap]\naddress = 'ldap://[::1]:389'\nbase = 'dc=example'\nbind = 'cn=bus'\npassword = 'x'\ngroup_base = 'dc=example'",
            "plain_http = true\n[ldap]\naddress = 'ldap://ldap.inner'\nbase = 'dc=example'\nfilter = '(&(uid={user})(a=*))'",
        ] {
            assert!(judge(text).is_ok(), "{text}: {:?}", judge(text));
        }
    }

    #[test]
    fn what_cannot_be_kept_is_named() {
        for (text, wanted) in [
            ("", "lets nobody in"),
            ("jwks = 'https://id.example/keys'", "issuers"),
            ("issuers = ['me']\njwks = 'http://id.example/keys'", "not https"),
            ("issuers = ['me']\njwks = 'ftp://id.example/keys'", "not a URL"),
            ("issuers = ['me']\njwks = '/no/such/file'", "/no/such/file"),
            ("issuers = ['me']\njwks = 'https://a/'\nalgorithms = ['HS256']", "need `secret`"),
            ("issuers = ['me']\njwks = 'https://a/'\nalgorithms = ['none']", "`none`"),
            ("issuers = ['me']\njwks = 'https://a/'\nsecret = 'x'", "exclude"),
            ("issuers = ['me']\nsecret = 'short'", "32 bytes"),
            (
                "issuers = ['me']\nsecret = 'a secret of 32 bytes, or of more'\nalgorithms = ['HS256', 'HS512']",
                "64 bytes",
            ),
            ("introspection = 'https://a/'\nclient_id = 'x'", "go together"),
            ("keys = { a = '' }", "empty"),
            ("keys = { a = 'b' }\nkey_header = 'a b'", "not a header name"),
            ("certificates = ['alice']", "neither"),
            ("[ldap]\naddress = 'ldap.example'\nuser = 'uid={user}'", "not like ldaps://"),
            ("[ldap]\naddress = 'ldap://ldap.example'\nuser = 'uid={user}'", "not ldaps"),
            ("[ldap]\naddress = 'ldaps://a/dc=example'\nuser = 'uid={user}'", "server alone"),
            ("[ldap]\naddress = 'ldaps://a'\nuser = 'uid=alice'", "{user}"),
            ("[ldap]\naddress = 'ldaps://a'", "where users are"),
            ("[ldap]\naddress = 'ldaps://a'\nbase = 'b'\nfilter = '(uid=*)(|'", "not a filter"),
            ("[ldap]\naddress = 'ldaps://a'\nbase = 'b'\nbind = 'c'\npassword = ''", "go together"),
            ("[ldap]\naddress = 'ldaps://a'\nbase = 'b'\ngroup_base = 'c'\ngroup_attribute = 'd'", "exclude"),
            ("[signature]\nsecrets = []", "secret"),
            ("[signature]\nsecrets = ['a']\nsigned = '{timestamp}.{body}'", "timestamp_header"),
            ("[signature]\nsecrets = ['a']\ndigest = 'md5'", "md5"),
            ("[signature]\nsecrets = ['a']\nonce = true", "once"),
            ("[signature]\nsecrets = ['a']\nsigned = '{id}{body}'\nid_header = 'a'", "neighbour"),
        ] {
            match judge(text) {
                Ok(_) => panic!("{text}"),
                Err(why) => assert!(why.contains(wanted), "{text}: {why}"),
            }
        }
        let named: BTreeMap<String, Access> =
            [("a\"b".to_owned(), Access { users: true, ..Access::default() })].into();
        assert!(profiles(&named).unwrap_err().contains("access.a\"b"));
    }
}
