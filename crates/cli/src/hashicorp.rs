//! `[vault.hashicorp]`: secrets of a HashiCorp Vault, over its HTTP interface (key/value engines, versions 1 and 2).

use flow::services::TlsProfiles;
use flow::url::Url;
use flow::vault::{Remote, Secret};
use message::{Body, Headers, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transport::{Client, ClientLimits, OutRequest, SendOptions, Target};

use crate::units::Time;

/// Longest wait for one secret, signing in included.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer.
const LARGEST: usize = 1 << 20;

/// Its address, and the credentials of the bus: a token, an AppRole, or a user of LDAP. Secrets in it are never shown.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Its https URL.
    pub address: String,
    /// The token; the environment variable `VAULT_TOKEN` where nobody is named.
    pub token: Option<String>,
    /// The role of AppRole.
    pub role_id: Option<String>,
    /// Its secret.
    pub secret_id: Option<String>,
    /// A user of LDAP.
    pub ldap_user: Option<String>,
    /// The user's password.
    pub ldap_password: Option<String>,
    /// The namespace of lookups that name none.
    pub namespace: Option<String>,
    /// The version of the key/value engine: 2 (default) or 1.
    pub engine_version: Option<u8>,
    /// How long a secret is used before it is asked for again. Default 10s.
    pub kept: Option<Time>,
    /// `address` may be an http URL of another machine.
    pub plain_http: bool,
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Server({})", diagnostics::without_credentials(&self.address))
    }
}

/// A client of a vault.
pub struct HashiCorp {
    server: Server,
    url: Url,
    tls: Arc<TlsProfiles>,
    /// The token that signing in returned.
    signed_in: Mutex<Option<Secret>>,
    /// Longest wait for one secret.
    patience: Duration,
    /// When it last did not answer in time. For as long as one waits for it, it is not asked again: a start that needs many secrets would wait
    /// for each.
    silent: Mutex<Option<Instant>>,
}

impl fmt::Debug for HashiCorp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(out)
    }
}

impl HashiCorp {
    /// A vault by its settings.
    ///
    /// # Errors
    /// They do not fit together.
    pub fn new(settings: &Server, tls: Arc<TlsProfiles>) -> Result<HashiCorp, String> {
        let wrong = |why: &str| format!("vault.hashicorp: {why}");
        let url =
            crate::access::secure_url("vault.hashicorp.address", &settings.address, settings.plain_http)?;
        if ![None, Some(1), Some(2)].contains(&settings.engine_version) {
            return Err(wrong("`engine_version` is 1 or 2"));
        }
        if settings.role_id.is_some() != settings.secret_id.is_some() {
            return Err(wrong("`role_id` and `secret_id` go together"));
        }
        if settings.ldap_user.is_some() != settings.ldap_password.is_some() {
            return Err(wrong("`ldap_user` and `ldap_password` go together"));
        }
        let ways = [settings.token.is_some(), settings.role_id.is_some(), settings.ldap_user.is_some()];
        if ways.iter().filter(|is_set| **is_set).count() > 1 {
            return Err(wrong("`token`, `role_id` and `ldap_user` exclude each other"));
        }
        let mut server = settings.clone();
        if !ways.contains(&true) {
            let token = std::env::var("VAULT_TOKEN").ok().filter(|token| !token.is_empty());
            server.token = Some(token.ok_or_else(|| {
                wrong("nobody asks: set `token`, `role_id` or `ldap_user`, or the environment variable VAULT_TOKEN")
            })?);
        }
        let (signed_in, silent) = (Mutex::default(), Mutex::default());
        Ok(HashiCorp { server, url, tls, signed_in, patience: PATIENCE, silent })
    }

    /// The token for requests; `anew`: the last one is no longer valid.
    async fn token(&self, anew: bool) -> Result<Secret, String> {
        if let Some(token) = &self.server.token {
            return Ok(Secret::new(token.clone()));
        }
        let kept = flow::lock(&self.signed_in).clone();
        if let Some(token) = kept.filter(|_| !anew) {
            return Ok(token);
        }
        let settings = &self.server;
        let (path, body) = match (&settings.role_id, &settings.ldap_user) {
            (Some(role), _) => {
                ("auth/approle/login".to_owned(), json!({"role_id": role, "secret_id": settings.secret_id}))
            }
            (None, Some(user)) => {
                (format!("auth/ldap/login/{}", encoded(user)), json!({"password": settings.ldap_password}))
            }
            (None, None) => return Err("nobody asks".to_owned()),
        };
        let (status, response) =
            self.ask(&Method::Post, &path, settings.namespace.as_deref(), None, Some(body)).await?;
        let token = response.pointer("/auth/client_token").and_then(Value::as_str).filter(|_| status == 200);
        let token =
            Secret::new(token.ok_or_else(|| format!("signing in was answered with {status}"))?.to_owned());
        *flow::lock(&self.signed_in) = Some(token.clone());
        Ok(token)
    }

    async fn find(&self, namespace: Option<&str>, path: &str, field: &str) -> Result<String, String> {
        let namespace = namespace.or(self.server.namespace.as_deref());
        let is_first = self.server.engine_version == Some(1);
        let place = match path.split_once('/') {
            Some((engine, rest)) if !is_first => format!("{engine}/data/{rest}"),
            _ => path.to_owned(),
        };
        let place = place.split('/').map(encoded).collect::<Vec<_>>().join("/");
        let mut anew = false;
        loop {
            let token = self.token(anew).await?;
            let (status, response) = self.ask(&Method::Get, &place, namespace, Some(&token), None).await?;
            match status {
                200 => {
                    let pointer = if is_first { "/data" } else { "/data/data" };
                    let found = response.pointer(pointer).and_then(|data| data.get(field));
                    return match found {
                        Some(Value::String(text)) => Ok(text.clone()),
                        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
                        _ => Err("there is no such field".to_owned()),
                    };
                }
                // The token that signing in returned has expired.
                401 | 403 if !anew && self.server.token.is_none() => anew = true,
                404 => return Err("there is nothing at this path".to_owned()),
                other => return Err(format!("the vault answered with {other}")),
            }
        }
    }

    async fn ask(
        &self,
        method: &Method,
        path: &str,
        namespace: Option<&str>,
        token: Option<&str>,
        body: Option<Value>,
    ) -> Result<(u16, Value), String> {
        let url = &self.url;
        let target = match url.scheme.as_str() {
            "http" => Target::http(&url.host, url.port),
            _ => {
                let profile = self.tls.find(&url.host, url.port);
                let profile =
                    profile.ok_or_else(|| format!("there is no TLS profile for {}", url.authority()))?;
                Target::https(&url.host, url.port, profile.clone())
            }
        };
        let mut headers = Headers::new();
        headers.set("X-Vault-Request", "true");
        if let Some(token) = token {
            if token.bytes().any(|byte| byte.is_ascii_control()) {
                return Err("the token is none".to_owned());
            }
            headers.set("X-Vault-Token", token);
        }
        if let Some(namespace) = namespace {
            headers.set("X-Vault-Namespace", namespace);
        }
        let mut body = match body {
            None => Body::Empty,
            Some(json) => {
                headers.set("Content-Type", "application/json");
                Body::Bytes(json.to_string().into_bytes().into())
            }
        };
        let base = url.path_and_query.split('?').next().unwrap_or_default().trim_end_matches('/');
        let request = OutRequest {
            method,
            target: &format!("{base}/v1/{path}"),
            headers: &headers,
            host: None,
            body: &mut body,
        };
        let options = SendOptions { keep_alive: false, ..SendOptions::default() };
        let client = Client::new(ClientLimits::default());
        let response = client.send(&target, request, &options).await.map_err(|error| error.to_string())?;
        let status = response.head.status;
        let text = flow::authority::received(response.body, LARGEST).await.map_err(|fault| fault.message)?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok((status, json))
    }
}

/// A segment of a path.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Remote for HashiCorp {
    fn read(&self, namespace: Option<&str>, path: &str, field: &str) -> Result<String, String> {
        if flow::lock(&self.silent).is_some_and(|since| since.elapsed() < self.patience) {
            return Err("the vault has not answered before".to_owned());
        }
        // A thread of its own: the caller may be inside of a runtime, which must not be blocked on.
        std::thread::scope(|scope| {
            let asking = std::thread::Builder::new().name("vault".to_owned()).spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| error.to_string())?;
                runtime.block_on(async {
                    let found = tokio::time::timeout(self.patience, self.find(namespace, path, field)).await;
                    *flow::lock(&self.silent) = found.is_err().then(Instant::now);
                    let seconds = self.patience.as_secs_f64();
                    found.unwrap_or_else(|_| Err(format!("the vault has not answered within {seconds} s")))
                })
            });
            let asking = asking.map_err(|error| format!("no thread can be started: {error}"))?;
            asking.join().unwrap_or_else(|_| Err("the vault could not be asked".to_owned()))
        })
    }

    fn kept(&self) -> Duration {
        self.server.kept.map_or(Duration::from_secs(10), |time| time.0)
    }

    fn identity(&self) -> u64 {
        let server = &self.server;
        let mut hasher = DefaultHasher::new();
        (&server.address, &server.namespace, server.engine_version).hash(&mut hasher);
        (&server.token, &server.role_id, &server.secret_id).hash(&mut hasher);
        (&server.ldap_user, &server.ldap_password).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vault_that_does_not_answer_is_waited_for_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let settings = Server { address, token: Some("hvs.1".to_owned()), ..Server::default() };
        let mut vault = HashiCorp::new(&settings, Arc::default()).unwrap();
        vault.patience = Duration::from_millis(300);
        assert!(vault.read(None, "secret/a", "b").unwrap_err().contains("within 0.3 s"));
        vault.patience = Duration::from_secs(3600);
        for _ in 0..3 {
            assert!(vault.read(None, "secret/b", "b").unwrap_err().contains("has not answered before"));
        }
        listener.set_nonblocking(true).unwrap();
        assert_eq!(std::iter::from_fn(|| listener.accept().ok()).count(), 1);
    }

    #[test]
    fn settings_fit_together() {
        let judge = |text: &str| {
            let settings: Server = toml::from_str(text).unwrap();
            HashiCorp::new(&settings, Arc::default()).map(|hashicorp| format!("{hashicorp:?}"))
        };
        assert_eq!(
            judge("address = 'https://vault.example:8200'\ntoken = 'hvs.1'").unwrap(),
            "Server(https://vault.example:8200)"
        );
        for (text, wanted) in [
            ("token = 'a'", "vault.hashicorp.address"),
            ("address = 'http://vault.example:8200'\ntoken = 'a'", "not https"),
            ("address = 'https://a'\nrole_id = 'a'", "go together"),
            ("address = 'https://a'\nldap_user = 'a'", "go together"),
            ("address = 'https://a'\ntoken = 'a'\nrole_id = 'a'\nsecret_id = 'b'", "exclude"),
            ("address = 'https://a'\ntoken = 'a'\nengine_version = 3", "1 or 2"),
        ] {
            let why = judge(text).unwrap_err();
            assert!(why.contains(wanted), "{text}: {why}");
        }
        assert_eq!(encoded("a b/ü"), "a%20b%2F%C3%BC");
    }
}
