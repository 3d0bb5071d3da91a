//! Access control: the profiles of the settings (`[access.NAME]`), and what a service takes of one. How a request is checked is the
//! business of `http`.

use crate::runtime::services::Services;
use authentication::api_key;
use authentication::certificate::Allowed;
use authentication::ldap::{Filter, Name};
use authentication::signature::Scheme;
use authentication::token::{Algorithm, Keys, Rules};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use transport::Target;

/// The profile of `RESTBasicAuthHandler`, if there is one: otherwise the handler is for the users of the settings only.
pub const USER_STORE: &str = "user_store";

/// The ways in which a client may authenticate.
#[derive(Default)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// JSON Web Tokens.
    pub tokens: Option<Tokens>,
    /// Tokens that a server knows.
    pub introspection: Option<Introspection>,
    /// API keys, and the header that they come in.
    pub keys: Option<(String, api_key::Keys)>,
    /// The users of the settings, with basic authentication.
    pub users: bool,
    /// Those of a directory.
    pub directory: Option<Directory>,
    /// The certificates of clients that are accepted; empty: none is.
    pub certificates: Vec<Allowed>,
    /// Signatures of webhooks.
    pub signature: Option<Scheme>,
    /// Each of these ways has to let the request in; otherwise one is enough.
    pub every: bool,
    /// Credentials stay in the message; otherwise the flow and its backends do not see them.
    pub forward: bool,
}

/// See [`Profile::tokens`].
pub struct Tokens {
    /// The keys that they are signed with.
    pub keys: KeySource,
    /// How they may be signed.
    pub algorithms: Vec<Algorithm>,
    /// Of whom and for whom they must be.
    pub rules: Rules,
    /// How long keys of a server are used before it is asked again.
    pub refresh: Duration,
}

/// Where keys are.
pub enum KeySource {
    /// Here.
    Here(Keys),
    /// At a server.
    Server(Remote),
}

/// See [`Profile::introspection`].
pub struct Introspection {
    /// Who is asked.
    pub server: Remote,
    /// The `Authorization` to ask with.
    pub authorization: Option<String>,
    /// Of whom and for whom tokens must be, where the server says.
    pub rules: Rules,
    /// How long what it says is used.
    pub cache: Duration,
}

/// See [`Profile::directory`].
pub struct Directory {
    /// Over TLS.
    pub tls: bool,
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The names of the entries of users; otherwise they are searched for.
    pub name: Option<Name>,
    /// Below what they are searched for, and by what.
    pub search: Option<(String, Filter)>,
    /// The bind for searches, name and password; `None`: anonymous, or for groups that of the user.
    pub bind: Option<(String, String)>,
    /// Where the groups of a user are; `None`: they are not asked for.
    pub groups: Option<Groups>,
    /// How long what it says is used.
    pub cache: Duration,
}

/// See [`Directory::groups`].
#[derive(Clone, Debug)]
pub enum Groups {
    /// Entries: below what they are searched for, by what, and the attribute that is a scope.
    Entries(String, Filter, String),
    /// An attribute of the user has their names (`memberOf`): that, and the part of a name that is a scope.
    OfUser(String, String),
}

impl fmt::Display for Directory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "ldaps" } else { "ldap" };
        write!(out, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Over TLS.
    pub https: bool,
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Remote {
    /// Where requests go.
    ///
    /// # Errors
    /// There is no TLS profile for it.
    pub(crate) fn target(&self, services: &Services) -> Result<Target, String> {
        let target = if self.https {
            let profile = services.tls.find(&self.host, self.port);
            let profile = profile.ok_or_else(|| format!("there is no TLS profile for {self}"))?;
            Target::https(&self.host, self.port, profile.clone())
        } else {
            Target::http(&self.host, self.port)
        };
        Ok(services.routes.reach(target))
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(
            out,
            "{scheme}://{}:{}{}",
            self.host,
            self.port,
            self.path.split('?').next().unwrap_or_default()
        )
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Profile({})", self.name)
    }
}

/// What guards a service: a profile, and the scopes that a caller needs.
#[derive(Debug)]
pub struct Guard {
    /// Who is let in.
    pub profile: Arc<Profile>,
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    /// Those that requests of single resources need besides, by the number of the resource.
    pub of_resources: Vec<Vec<String>>,
    /// Wrong credentials are answered with 403, as by WSO2's handler, and not with 401.
    pub forbids: bool,
}
