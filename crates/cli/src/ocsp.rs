//! `[ocsp]`: how servers are asked whether certificates are revoked. Who is asked about is said by `tls.ocsp`, `ocsp` of `[[profile]]` and
//! `security.ocsp`.

use crate::proxies::ForwardProxy;
use crate::units::Time;
use flow::services::Routes;
use revocation::Servers;
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use transport::Ocsp;

/// `[ocsp]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asking {
    /// The http URL of the server that is asked. Default: the one that a certificate names.
    pub responder: Option<String>,
    /// Answers must repeat the nonce of their question. Default false.
    pub nonce: bool,
    /// Short questions go by GET. Default false: POST.
    pub get: bool,
    /// The certificates between that of the peer and the root are asked about too. Default false.
    pub chain: bool,
    /// Longest wait for the answers of one connection. Default 5s.
    pub timeout: Option<Time>,
    /// Longest use of an answer. Default 1h.
    pub keep: Option<Time>,
    /// Most answers that are kept. Default 1000.
    pub answers: Option<usize>,
}

/// Whether servers are asked, and what it means that nobody answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Demand {
    /// Nobody is asked.
    #[default]
    Off,
    /// A certificate is refused if a server says that it is revoked.
    Soft,
    /// A certificate is refused unless a server says that it is good.
    Hard,
}

/// Those who ask, with a digest of the settings that they have. They live as long as something uses them, so that a reload does not forget their answers.
static LIVE: Mutex<Vec<(u64, Weak<Servers>)>> = Mutex::new(Vec::new());

/// Who asks, if somebody is to be asked. `permitted`: the servers that certificates may name (`http.dynamic_addresses`).
///
/// # Errors
/// The settings name a server that is none.
pub fn asked(
    demand: Demand,
    asking: &Asking,
    permitted: Option<&Vec<String>>,
    proxies: &[ForwardProxy],
) -> Result<Option<Ocsp>, String> {
    let defaults = revocation::Settings::default();
    let of = revocation::Settings {
        responder: asking.responder.clone(),
        nonce: asking.nonce,
        get: asking.get,
        chain: asking.chain,
        timeout: asking.timeout.map_or(defaults.timeout, |time| time.0),
        keep: asking.keep.map_or(defaults.keep, |time| time.0),
        answers: asking.answers.map_or(defaults.answers, |most| most.max(1)),
        permitted: permitted.cloned(),
    };
    of.check().map_err(|why| format!("ocsp.responder: {}", diagnostics::without_credentials(&why)))?;
    let hard = match demand {
        Demand::Off => return Ok(None),
        Demand::Soft => false,
        Demand::Hard => true,
    };
    Ok(Some(Ocsp { servers: servers(of, proxies)?, hard }))
}

fn servers(of: revocation::Settings, proxies: &[ForwardProxy]) -> Result<Arc<Servers>, String> {
    let mut hasher = DefaultHasher::new();
    format!("{of:?} {proxies:?}").hash(&mut hasher);
    // Which are not shown.
    proxies.iter().for_each(|proxy| proxy.password.as_ref().map(|password| &password.0).hash(&mut hasher));
    let key = hasher.finish();
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    live.retain(|(_, servers)| servers.strong_count() > 0);
    let found = live.iter().find(|(known, _)| *known == key).and_then(|(_, servers)| servers.upgrade());
    if let Some(servers) = found {
        return Ok(servers);
    }
    let routes =
        Routes { http2: false, proxies: crate::proxies::routes(proxies)?, dynamic: of.permitted.clone() };
    let servers = Arc::new(Servers::new(
        of,
        Box::new(move |target, named| {
            let permitted = !named || routes.permits("http", target.host(), target.port());
            permitted.then(|| routes.reach(target))
        }),
    ));
    live.push((key, Arc::downgrade(&servers)));
    Ok(servers)
}
