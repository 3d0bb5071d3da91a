//! What a configuration says of a database: where it is, who asks, and how many connections there may be.

use crate::url::{self, Target};
use std::time::Duration;

/// A data source. Two with the same settings share a [`Pool`](crate::Pool).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// Where it leads.
    pub target: Target,
    /// Who asks; empty: nobody in particular.
    pub user: String,
    /// The password.
    pub password: String,
    /// Limits and habits.
    pub options: Options,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Source({}, {:?})", self.target, self.options)
    }
}

/// How transactions see what others do.
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
    /// By the names and numbers of JDBC, with and without `TRANSACTION_`. `Some(None)`: `NONE`, as the database does it.
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

    /// As SQL says it.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "READ UNCOMMITTED",
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

/// Why something cannot be a data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Source {
    /// Of a JDBC URL; `embedded`: URLs of H2 and Derby are SQLite's. User and password may also be in the URL.
    ///
    /// # Errors
    /// There is no driver for it, or it cannot be read.
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

/// Limits and habits of a pool. The names that [`Options::set`] takes are those of Tomcat's pool and of DBCP, whose case does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Most connections at a time (`maxActive`, `maxTotal`).
    pub most: usize,
    /// Most connections that are kept without use (`maxIdle`).
    pub most_idle: usize,
    /// Longest wait for a connection (`maxWait`).
    pub wait: Duration,
    /// Asks whether a connection works that lay idle; `None`: as the protocol does it.
    pub validation_query: Option<String>,
    /// A connection is asked whether it works after it lay idle for so long (`validationInterval`); `None`: never (`testOnBorrow=false`).
    pub validation: Option<Duration>,
    /// A connection is closed when it lay idle for so long (`minEvictableIdleTimeMillis`).
    pub idle_time: Duration,
    /// A connection is closed when it is so old (`maxAge`); `None`: never.
    pub age: Option<Duration>,
    /// Statements count when they have run (`autocommit`, `defaultAutoCommit`).
    pub autocommit: bool,
    /// How transactions see each other; `None`: as the database does by itself.
    pub isolation: Option<Isolation>,
    /// Statements for each new connection (`initSQL`, `connectionInitSqls`).
    pub init: Option<String>,
    /// Nothing is written (`defaultReadOnly`).
    pub read_only: bool,
    /// Prepared statements that a connection keeps (`maxOpenPreparedStatements`); 0: none.
    pub statements: usize,
    /// Longest wait for a new connection.
    pub connect_timeout: Duration,
    /// Longest run of a statement (`queryTimeout`).
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
    /// The longest time that an option can say: what is longer is a day.
    pub const LONGEST: Duration = Duration::from_secs(86_400);

    /// What an inline `<pool>` has where it does not say otherwise: DBCP's eight connections.
    pub fn inline() -> Options {
        Options { most: 8, most_idle: 8, ..Options::default() }
    }

    /// Takes an option. `Ok(false)`: it is known, and means nothing here.
    ///
    /// # Errors
    /// The value is not one of those; `None`: no option has this name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, Option<String>> {
        let value = value.trim();
        let number = || value.parse::<i64>().map_err(|_| Some("it needs a whole number".to_owned()));
        let truth = || match value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Some("it needs `true` or `false`".to_owned())),
        };
        // Nothing, or a negative number, has no bound there; here everything has one.
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
                // 0 is no bound in DBCP.
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
        // No number is too large for a clock.
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
