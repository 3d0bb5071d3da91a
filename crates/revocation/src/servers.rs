//! Asks servers, and keeps what they say for as long as it holds.

use crate::path::{Subject, subjects};
use crate::{request, response};
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use transport::{
    Body, Client, ClientLimits, Headers, Method, OutRequest, Revocation, SendOptions, Target, WeakMap,
};

/// How long a server that did not answer is not asked about a certificate again.
const RETRY: Duration = Duration::from_secs(30);
/// How long an answer is used that does not say when the next one comes.
const UNDATED: Duration = Duration::from_secs(60);
/// A question that was given up by who asked counts as one without an answer after this time, so that short deadlines of callers are not
/// missed again and again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Questions at a time to one server; more wait within their deadline. So one that is silent takes no place of another.
pub(crate) const AT_A_TIME: usize = 32;
/// Questions at a time to all servers.
const IN_ALL: usize = 8 * AT_A_TIME;
/// Bytes of a nonce (RFC 9654).
const NONCE: usize = 32;

/// How servers are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The http URL of the server that is asked. Default: the one that a certificate names.
    pub responder: Option<String>,
    /// Questions have a nonce, and answers must repeat it; responses that are stapled, which cannot, are not used. Default false.
    pub nonce: bool,
    /// Questions go by GET where they are short enough, so that caches between can answer. Default false: POST.
    pub get: bool,
    /// The certificates between that of a peer and the root are asked about too. Default false.
    pub chain: bool,
    /// Longest wait for the answers of one connection. Default 5 s.
    pub timeout: Duration,
    /// Longest use of an answer, which itself says until when it holds. Default 1 h.
    pub keep: Duration,
    /// Most answers that are kept. Default 1,000.
    pub answers: usize,
    /// Servers that certificates may name (`http.dynamic_addresses`), for comparison only: [`Reach`] decides. Default: all.
    pub permitted: Option<Vec<String>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            responder: None,
            nonce: false,
            get: false,
            chain: false,
            timeout: Duration::from_secs(5),
            keep: Duration::from_secs(3600),
            answers: 1000,
            permitted: None,
        }
    }
}

impl Settings {
    /// Checks the URL of the server.
    ///
    /// # Errors
    /// It is not an http URL.
    pub fn check(&self) -> Result<(), String> {
        self.responder.as_deref().map_or(Ok(()), |url| server(url).map(drop))
    }
}

/// How a server is reached; `named`: a certificate names it, not the settings. `None`: it must not be asked.
pub type Reach = Box<dyn Fn(Target, bool) -> Option<Target> + Send + Sync>;

/// What is known of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Revoked(&'static str),
    /// Nobody said, and why.
    Unknown(String),
}

/// A certificate, by a digest of what a question says of it.
type Key = [u8; 32];

/// Whoever has it asks, the others wait.
type Order = Arc<tokio::sync::Mutex<()>>;

/// Asks servers.
pub struct Servers {
    settings: Settings,
    reach: Reach,
    client: Client,
    /// Verdicts, and until when they hold.
    verdicts: Mutex<HashMap<Key, (Verdict, Instant)>>,
    /// Of whom somebody asks, and how many wait for that.
    turns: Mutex<HashMap<Key, (Order, usize)>>,
    /// The places for questions to each server.
    places: WeakMap<String, Semaphore>,
    asking: Semaphore,
}

/// The turn of one who wants to ask about a certificate: one at a time does, and the others take over its answer.
struct Turn<'a> {
    of: &'a Servers,
    key: Key,
    order: Order,
    /// It asks, and since when.
    asks: Option<Instant>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.asks.is_some_and(|since| since.elapsed() >= PATIENCE) {
            let why = "no answer before the caller gave up";
            tracing::warn!("whether a certificate is revoked is not known: {why}");
            self.of.keep(self.key, Verdict::Unknown(why.to_owned()), RETRY);
        }
        let mut turns = lock(&self.of.turns);
        if let Some((_, waiting)) = turns.get_mut(&self.key) {
            *waiting -= 1;
            if *waiting == 0 {
                turns.remove(&self.key);
            }
        }
    }
}

/// The settings: two with the same ask alike.
impl fmt::Debug for Servers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}

impl Servers {
    /// Nothing is known yet.
    pub fn new(settings: Settings, reach: Reach) -> Servers {
        let limits =
            ClientLimits { connections: 2 * AT_A_TIME, idle_connections: 4, ..ClientLimits::default() };
        Servers {
            settings,
            reach,
            client: Client::new(limits),
            verdicts: Mutex::default(),
            turns: Mutex::default(),
            places: WeakMap::default(),
            asking: Semaphore::new(IN_ALL),
        }
    }

    fn turn(&self, key: Key) -> Turn<'_> {
        let mut turns = lock(&self.turns);
        let (order, waiting) = turns.entry(key).or_default();
        *waiting += 1;
        Turn { of: self, key, order: Arc::clone(order), asks: None }
    }

    fn found(&self, key: &Key) -> Option<Verdict> {
        let verdicts = lock(&self.verdicts);
        verdicts.get(key).filter(|(_, until)| *until > Instant::now()).map(|(verdict, _)| verdict.clone())
    }

    fn keep(&self, key: Key, verdict: Verdict, how_long: Duration) {
        let mut verdicts = lock(&self.verdicts);
        let now = Instant::now();
        if verdicts.len() >= self.settings.answers && !verdicts.contains_key(&key) {
            verdicts.retain(|_, (_, until)| *until > now);
            if verdicts.len() >= self.settings.answers {
                let Some(soonest) = verdicts.iter().min_by_key(|(_, (_, until))| *until) else { return };
                let soonest = *soonest.0;
                verdicts.remove(&soonest);
            }
        }
        verdicts.insert(key, (verdict, now + how_long));
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        lock(&self.verdicts).len()
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.turns).len()
    }

    /// Keeps an answer for as long as it holds.
    fn learn(&self, key: Key, answer: &response::CertStatus, now: i64) -> Verdict {
        let verdict = answer.revoked.map_or(Verdict::Good, Verdict::Revoked);
        let holds = answer.until.map_or(UNDATED, |until| {
            Duration::from_secs(u64::try_from(until.saturating_sub(now)).unwrap_or_default())
        });
        self.keep(key, verdict.clone(), holds.min(self.settings.keep));
        verdict
    }

    async fn judge(
        &self,
        certificate: &[u8],
        between: &[CertificateDer<'_>],
        roots: &[TrustAnchor<'_>],
        hard: bool,
    ) -> Result<(), String> {
        let until = Instant::now() + self.settings.timeout;
        let time = UnixTime::now();
        let path = match subjects(certificate, between, roots, time, self.settings.chain) {
            Ok(path) => path,
            Err(why) if hard => return Err(why),
            Err(why) => {
                tracing::warn!("whether a certificate is revoked was not asked: {why}");
                return Ok(());
            }
        };
        for subject in &path {
            match self.verdict(subject, until).await {
                Verdict::Good => {}
                Verdict::Revoked(why) => return Err(format!("the certificate is revoked: {why}")),
                Verdict::Unknown(why) if hard => {
                    return Err(format!("whether the certificate is revoked is not known: {why}"));
                }
                Verdict::Unknown(_) => {}
            }
        }
        Ok(())
    }

    async fn verdict(&self, subject: &Subject, until: Instant) -> Verdict {
        let key = key(subject);
        if let Some(verdict) = self.found(&key) {
            return verdict;
        }
        let late = || "no answer in time".to_owned();
        let mut turn = self.turn(key);
        let order = Arc::clone(&turn.order);
        let Ok(_order) = timeout_at(until, order.lock()).await else { return Verdict::Unknown(late()) };
        // Somebody else may have asked meanwhile.
        if let Some(verdict) = self.found(&key) {
            return verdict;
        }
        let server = self.settings.responder.as_deref().or(subject.responder.as_deref()).unwrap_or_default();
        let places = self.places.get_or_insert_with(server.to_owned(), || Semaphore::new(AT_A_TIME));
        // Whoever waits for a place at its server has none of those for all.
        let place = timeout_at(until, async { (places.acquire().await, self.asking.acquire().await) });
        let Ok((Ok(_of_server), Ok(_of_all))) = place.await else {
            return Verdict::Unknown("too many questions wait".to_owned());
        };
        turn.asks = Some(Instant::now());
        let asked = timeout_at(until, self.ask(subject)).await.unwrap_or_else(|_| Err(late()));
        turn.asks = None;
        let serial = hexadecimal(&subject.serial);
        match asked {
            Ok((answer, now)) => {
                let verdict = self.learn(key, &answer, now);
                if let Verdict::Revoked(why) = verdict {
                    tracing::warn!(serial, server, "a certificate that was shown is revoked: {why}");
                }
                verdict
            }
            Err(why) => {
                tracing::warn!(serial, server, "whether a certificate is revoked is not known: {why}");
                let verdict = Verdict::Unknown(why);
                self.keep(key, verdict.clone(), RETRY);
                verdict
            }
        }
    }

    /// The answer, and when it came, in seconds since 1970.
    async fn ask(&self, subject: &Subject) -> Result<(response::CertStatus, i64), String> {
        let (url, named) = match (&self.settings.responder, &subject.responder) {
            (Some(url), _) => (url, false),
            (None, Some(url)) => (url, true),
            (None, None) => return Err("the certificate names no server to ask over http".to_owned()),
        };
        let (host, port, path) = server(url)?;
        let target = (self.reach)(Target::http(&host, port), named).ok_or_else(|| {
            format!("{url} is named by the certificate, and is none of http.dynamic_addresses")
        })?;
        let nonce = match self.settings.nonce {
            true => {
                let mut nonce = [0; NONCE];
                aws_lc_rs::rand::fill(&mut nonce).map_err(|_| "there is no randomness".to_owned())?;
                Some(nonce)
            }
            false => None,
        };
        let nonce = nonce.as_ref().map(|nonce| &nonce[..]);
        let question = request::write(subject, nonce);
        let by_get = self.settings.get.then(|| request::path(&path, &question)).flatten();
        let mut headers = Headers::new();
        headers.set("Accept", "application/ocsp-response");
        let (method, path, mut body) = match by_get {
            Some(path) => (Method::Get, path, Body::Empty),
            None => {
                headers.set("Content-Type", "application/ocsp-request");
                (Method::Post, path, Body::Bytes(Bytes::from(question)))
            }
        };
        let request =
            OutRequest { method: &method, target: &path, headers: &headers, host: None, body: &mut body };
        let longest = self.settings.timeout;
        let options =
            SendOptions { connect: longest, response: longest, idle: longest, ..SendOptions::default() };
        let sent = self.client.send(&target, request, &options).await;
        let sent = sent.map_err(|error| error.to_string())?;
        if sent.head.status != 200 {
            return Err(format!("it answered with {}", sent.head.status));
        }
        let answer = sent.body.collect(response::LARGEST as u64).await.map_err(|error| error.to_string())?;
        let now = seconds(UnixTime::now());
        Ok((response::read(&answer, subject, now, nonce)?, now))
    }
}

impl Revocation for Servers {
    fn check<'a>(
        &'a self,
        certificate: &'a [u8],
        between: &'a [CertificateDer<'a>],
        roots: &'a [TrustAnchor<'static>],
        hard: bool,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(self.judge(certificate, between, roots, hard))
    }

    fn stapled(
        &self,
        certificate: &[u8],
        between: &[CertificateDer<'_>],
        roots: &[TrustAnchor<'static>],
        response: &[u8],
    ) {
        if self.settings.nonce || response.len() > response::LARGEST {
            return;
        }
        let now = UnixTime::now();
        let Ok(path) = subjects(certificate, between, roots, now, false) else { return };
        let Some(subject) = path.first() else { return };
        let key = key(subject);
        if self.found(&key).is_some_and(|verdict| !matches!(verdict, Verdict::Unknown(_))) {
            return;
        }
        match response::read(response, subject, seconds(now), None) {
            Ok(answer) => {
                let verdict = self.learn(key, &answer, seconds(now));
                if let Verdict::Revoked(why) = verdict {
                    tracing::warn!(
                        serial = hexadecimal(&subject.serial),
                        "a certificate that was shown is revoked, as the server itself says: {why}"
                    );
                }
            }
            // The server is asked.
            Err(why) => tracing::debug!("a stapled response is not used: {why}"),
        }
    }
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(subject: &Subject) -> Key {
    let mut text = Vec::new();
    for part in [&subject.issuer_name, &subject.issuer_key, &subject.serial] {
        text.extend_from_slice(&part.len().to_be_bytes());
        text.extend_from_slice(part);
    }
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, &text).as_ref());
    key
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().take(40).map(|byte| format!("{byte:02x}")).collect()
}

/// Host, port and path of an http URL.
fn server(url: &str) -> Result<(String, u16, String), String> {
    let wrong = || format!("`{url}` is not an http URL");
    let parsed: http::Uri = url.parse().map_err(|_| wrong())?;
    let authority = parsed.authority().ok_or_else(wrong)?;
    let has_port = authority.as_str().len() > authority.host().len();
    if parsed.scheme_str() != Some("http")
        || authority.as_str().contains('@')
        || authority.host().is_empty()
        || (has_port && authority.port_u16().is_none_or(|port| port == 0))
    {
        return Err(wrong());
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let path = parsed.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    Ok((host, authority.port_u16().unwrap_or(80), path))
}
