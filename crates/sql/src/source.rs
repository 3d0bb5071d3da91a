//! The settings of a data source: database, user, and limits of connections.

use crate::url::{self, Target};
use std::time::Duration;

/// A data source. Two with the same settings share a [`Pool`](crate::Pool).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// The target of its URL.
    pub target: Target,
    /// The user; may be empty.
    pub user: String,
    /// The password.
    pub password: String,
    /// Settings of the pool.
    pub options: Options,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Source({}, {:?})", self.target, self.options)
    }
}

/// The isolation level of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// `READ UNCOMMITTED`.
    ReadUncommitted,
    /// `READ COMMITTED`.
    ReadCommitted,
    /// `REPEATABLE READ`.
    RepeatableRead,
    /// `SERIALIZABLE`.
    Serializable,
}

impl Isolation {
    /// By the names and numbers of JDBC, with and without `TRANSACTION_`. `Some(None)`: `NONE`, the default of the database.
    pub fn named(name: &str) -> Option<Option<Isolation>> {
        let name = name.trim().to_ascii_uppercase();
        Some(match name.strip_prefix("TRANSACTION_").unwrap_or(&name) {
            "NONE" | "0" | "-1" | "UNKNOWN" | "" => None,
            "READ_UNCOMMITTED" | "1" => Some(Isolation::ReadUncommitted),
            "READ_COMMITTED" | "2" => Some(Isolation::ReadCommitted),
            "REPEATABLE_READ" | "4" => Some(Isolation::RepeatableRead),
            "SERIALIZABLE" | "8" => Some(Isolation::Serializable),
            _ => return None,
        })
    }

    /// The level in SQL.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "READ UNCOMMITTED",
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

/// Why a data source cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The error.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Source {
    /// Parses a JDBC URL; `embedded`: URLs of H2 and Derby mean SQLite. User and password may also be in the URL.
    ///
    /// # Errors
    /// No driver supports the URL, or it is malformed.
    pub fn new(
        url: &str,
        user: &str,
        password: &str,
        options: Options,
        embedded: bool,
    ) -> Result<Source, Unusable> {
        let target = url::parse(url, embedded).map_err(|(message, help)| Unusable { message, help })?;
        let or = |value: &str, name: &str| match value {
            "" => target.option(name).unwrap_or_default().to_owned(),
            value => value.to_owned(),
        };
        let (user, password) = (or(user, "user"), or(password, "password"));
        Ok(Source { target, user, password, options })
    }
}

/// Settings of a pool. [`Options::set`] accepts the names of Tomcat's pool and of DBCP, in any case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Most connections at a time (`maxActive`, `maxTotal`).
    pub most: usize,
    /// Most idle connections (`maxIdle`).
    pub most_idle: usize,
    /// Longest wait for a connection (`maxWait`).
    pub wait: Duration,
    /// The query that validates an idle connection; `None`: the protocol's own ping.
    pub validation_query: Option<String>,
    /// An idle connection is validated after this time (`validationInterval`); `None`: never (`testOnBorrow=false`).
    pub validation: Option<Duration>,
    /// A connection is closed when it was idle for this time (`minEvictableIdleTimeMillis`).
    pub idle_time: Duration,
    /// A connection is closed at this age (`maxAge`); `None`: never.
    pub age: Option<Duration>,
    /// Statements are committed when they have run (`autocommit`, `defaultAutoCommit`).
    pub autocommit: bool,
    /// The isolation level; `None`: the default of the database.
    pub isolation: Option<Isolation>,
    /// Statements for each new connection (`initSQL`, `connectionInitSqls`).
    pub init: Option<String>,
    /// Connections are read-only (`defaultReadOnly`).
    pub read_only: bool,
    /// Most prepared statements that a connection caches (`maxOpenPreparedStatements`); 0: none.
    pub statements: usize,
    /// Timeout of opening a connection.
    pub connect_timeout: Duration,
    /// Time limit of a statement (`queryTimeout`).
    pub query_timeout: Duration,
    /// Most bytes of a value, of a column as of a parameter of SQLite.
    pub longest: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            most: 50,
            most_idle: 50,
            wait: Duration::from_secs(30),
            validation_query: None,
            validation: Some(Duration::from_secs(1)),
            idle_time: Duration::from_secs(300),
            age: None,
            autocommit: true,
            isolation: None,
            init: None,
            read_only: false,
            statements: 100,
            connect_timeout: Duration::from_secs(10),
            query_timeout: Duration::from_secs(120),
            longest: 32 << 20,
        }
    }
}

impl Options {
    /// Upper limit of times: a longer one counts as a day.
    pub const LONGEST: Duration = Duration::from_secs(86_400);

    /// The defaults of an inline `<pool>`: eight connections, as in DBCP.
    pub fn inline() -> Options {
        Options { most: 8, most_idle: 8, ..Options::default() }
    }

    /// Sets an option. `Ok(false)`: the option has no effect here.
    ///
    /// # Errors
    /// The value is not valid, with the expected values; `None`: no option has this name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, Option<String>> {
        let value = value.trim();
        let number = || value.parse::<i64>().map_err(|_| Some("it needs a whole number".to_owned()));
        let truth = || match value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Some("it needs `true` or `false`".to_owned())),
        };
        // An empty or negative number means no limit there; here everything has one.
        let millis = |longest: Duration| {
            number().map(|number| match u64::try_from(number) {
                Ok(0) | Err(_) => longest,
                Ok(millis) => Duration::from_millis(millis).min(Options::LONGEST),
            })
        };
        const DAY: Duration = Options::LONGEST;
        const MOST: usize = 1000;
        let count = || number().map(|number| usize::try_from(number).map_or(MOST, |number| number.min(MOST)));
        match name.trim().to_ascii_lowercase().as_str() {
            "maxactive" | "maxtotal" | "maximumpoolsize" | "org.wso2.ws.dataservice.maxpoolsize" => {
                // 0 means no limit in DBCP.
                self.most = Some(count()?).filter(|&most| most > 0).unwrap_or(MOST);
            }
            "maxidle" => self.most_idle = count()?,
            "maxwait" | "maxwaitmillis" => self.wait = millis(DAY)?,
            "validationquery" | "connectiontestquery" => {
                self.validation_query = Some(value.to_owned()).filter(|query| !query.is_empty());
            }
            "testonborrow" => {
                self.validation = truth()?.then(|| self.validation.unwrap_or(Duration::from_secs(1)));
            }
            "validationinterval" => {
                let interval = millis(Duration::ZERO)?;
                self.validation = self.validation.map(|_| interval.min(Duration::from_secs(30)));
            }
            "minevictableidletimemillis" => self.idle_time = millis(DAY)?,
            "maxage" | "maxconnlifetimemillis" | "maxlifetime" => {
                self.age = Some(millis(Duration::ZERO)?).filter(|age| !age.is_zero());
            }
            "autocommit" | "defaultautocommit" => self.autocommit = truth()?,
            "isolation" | "defaulttransactionisolation" => {
                self.isolation = match Isolation::named(value) {
                    Some(isolation) => isolation,
                    None => {
                        return Err(Some(
                            "it needs TRANSACTION_READ_COMMITTED or another level of JDBC".to_owned(),
                        ));
                    }
                };
            }
            "initsql" | "connectioninitsqls" => {
                self.init = Some(value.to_owned()).filter(|init| !init.is_empty())
            }
            "defaultreadonly" | "readonly" => self.read_only = truth()?,
            "maxopenstatements" | "maxopenpreparedstatements" => {
                self.statements = match number()? {
                    number if number <= 0 => 100,
                    number => usize::try_from(number).unwrap_or(1000).min(1000),
                };
            }
            "poolstatements" | "poolpreparedstatements" => {
                truth()?;
                return Ok(false);
            }
            "querytimeout" => {
                let seconds = u64::try_from(number()?).unwrap_or(0);
                self.query_timeout = if seconds == 0 { DAY } else { Duration::from_secs(seconds).min(DAY) };
            }
            "minidle" | "initialsize" => {
                number()?;
                return Ok(false);
            }
            "testonreturn"
            | "testwhileidle"
            | "logabandoned"
            | "removeabandoned"
            | "jmxenabled"
            | "fairqueue"
            | "removeabandonedtimeout"
            | "timebetweenevictionrunsmillis"
            | "numtestsperevictionrun"
            | "suspecttimeout"
            | "jdbcinterceptors"
            | "alternateusernameallowed"
            | "defaultcatalog"
            | "rollbackonreturn"
            | "commitonreturn"
            | "validationquerytimeout"
            | "accesstounderlyingconnectionallowed"
            | "databaseprops"
            | "validatorclassname"
            | "datasourceclassname"
            | "datasourceprops"
            | "useequals"
            | "org.wso2.ws.dataservice.minpoolsize" => {
                return Ok(false);
            }
            _ => return Err(None),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_pools_of_java() {
        let mut options = Options::inline();
        for (name, value, wanted) in [
            ("maxActive", "5", Ok(true)),
            ("maxwait", "-1", Ok(true)),
            ("testOnBorrow", "false", Ok(true)),
            ("isolation", "TRANSACTION_SERIALIZABLE", Ok(true)),
            ("minIdle", "3", Ok(false)),
            ("maxActive", "many", Err(Some("it needs a whole number".to_owned()))),
            ("maxActiv", "1", Err(None)),
        ] {
            assert_eq!(options.set(name, value), wanted, "{name}");
        }
        assert_eq!((options.most, options.wait.as_secs(), options.validation), (5, 86_400, None));
        // A number may be larger than the clock can represent.
        for name in ["queryTimeout", "maxWait", "maxAge", "minEvictableIdleTimeMillis", "validationInterval"]
        {
            for value in ["9223372036854775807", "-9223372036854775808", "0"] {
                assert_eq!(options.set(name, value), Ok(true), "{name} {value}");
            }
            for value in ["", "NaN", "1e3", "9223372036854775808", "1.5"] {
                assert!(options.set(name, value).is_err(), "{name} {value}");
            }
        }
        assert_eq!(options.set("queryTimeout", "9223372036854775807"), Ok(true));
        assert_eq!(options.query_timeout, Options::LONGEST);
        assert_eq!(options.isolation, Some(Isolation::Serializable));
    }

    #[test]
    fn user_and_password_may_be_in_the_url_and_are_never_shown() {
        let source =
            Source::new("jdbc:postgresql://h/d?user=u&password=geheim", "", "", Options::default(), false)
                .unwrap();
        assert_eq!((&*source.user, &*source.password), ("u", "geheim"));
        assert!(!format!("{source:?}{:?}", source.target).contains("geheim"));
    }
}
