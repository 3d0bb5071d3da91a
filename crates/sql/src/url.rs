//! JDBC URLs: which database, where, and what its driver is told.

use message::form::decode_percent;
use std::fmt;

/// A database that there is a driver for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

impl fmt::Display for Dialect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Dialect::Postgres => "PostgreSQL",
            Dialect::MySql => "MySQL",
            Dialect::Sqlite => "SQLite",
        })
    }
}

/// Where a URL leads. It has no password in it that could be logged.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Which database.
    pub dialect: Dialect,
    /// The host; empty for SQLite.
    pub host: String,
    /// The port; 0 for SQLite.
    pub port: u16,
    /// The database; the file of SQLite, `None`: in memory, under the name in `host`.
    pub database: Option<String>,
    /// Made for H2 or Derby, and run on SQLite.
    pub stands_in: bool,
    /// What the URL says beyond that, decoded, in order.
    pub(crate) options: Vec<(String, String)>,
}

impl fmt::Debug for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.database.as_deref();
        match self.dialect {
            Dialect::Sqlite => write!(out, "SQLite {}", database.unwrap_or(":memory:")),
            other => write!(out, "{other} {}:{}/{}", self.host, self.port, database.unwrap_or("")),
        }
    }
}

/// Databases that users have and that there is no driver for: the beginning of the URL, what it is, and what to do.
const OTHERS: &[(&str, &str, &str)] = &[
    ("jdbc:sqlserver:", "SQL Server", NO_DRIVER),
    ("jdbc:jtds:", "SQL Server", NO_DRIVER),
    ("jdbc:oracle:", "Oracle", NO_DRIVER),
    ("jdbc:db2:", "DB2", NO_DRIVER),
    ("jdbc:informix", "Informix", NO_DRIVER),
    ("jdbc:sybase", "Sybase", NO_DRIVER),
    ("jdbc:hsqldb:", "HSQLDB", NO_DRIVER),
    ("jdbc:wso2:", "a driver of WSO2 for files", NO_DRIVER),
    ("jdbc:mongo", "MongoDB", NO_DRIVER),
    ("jdbc:cassandra", "Cassandra", NO_DRIVER),
    ("jdbc:redshift:", "Redshift", "it speaks the protocol of PostgreSQL: write jdbc:postgresql:"),
    ("jdbc:h2:tcp:", "a server of H2", NO_DRIVER),
    ("jdbc:h2:ssl:", "a server of H2", NO_DRIVER),
    ("jdbc:derby://", "a server of Derby", NO_DRIVER),
];

const NO_DRIVER: &str = "there are drivers for PostgreSQL, MySQL, MariaDB and SQLite: put a service in front of the other database and `call` it";

/// The way out for databases that live in a Java machine.
const EMBEDDED: &str = "it runs inside of a Java machine: sql.embedded = \"sqlite\" in busbar.toml runs its statements on SQLite, as far as its SQL allows";

/// Reads a URL; `embedded`: URLs of H2 and Derby are SQLite's.
///
/// # Errors
/// What is wrong with it, and what to do about that. Neither repeats the URL, which may have a password in it.
pub(crate) fn parse(url: &str, embedded: bool) -> Result<Target, (String, String)> {
    let url = url.trim();
    let lower = url.to_ascii_lowercase();
    if let Some((_, what, help)) = OTHERS.iter().find(|(prefix, ..)| lower.starts_with(prefix)) {
        return Err((format!("there is no driver for {what} here"), (*help).to_owned()));
    }
    let after = |prefix: &str| lower.starts_with(prefix).then(|| &url[prefix.len()..]);
    if let Some(rest) = after("jdbc:postgresql:") {
        return server(rest, Dialect::Postgres, 5432);
    }
    if let Some(rest) = after("jdbc:mysql:").or_else(|| after("jdbc:mariadb:")) {
        return server(rest, Dialect::MySql, 3306);
    }
    if let Some(rest) = after("jdbc:sqlite:") {
        let (file, query) = rest.split_once('?').unwrap_or((rest, ""));
        let memory = file.is_empty() || file == ":memory:" || file.starts_with("file::memory:");
        let name = file.strip_prefix("file:").unwrap_or(file);
        let place = match (memory, query.contains("mode=memory")) {
            (true, _) => Err("memory"),
            (_, true) => Err(name),
            _ => Ok(name),
        };
        return Ok(sqlite(place, false, options(query, '&')));
    }
    for (prefix, what) in [("jdbc:h2:", "H2"), ("jdbc:derby:", "Derby")] {
        let Some(rest) = after(prefix) else { continue };
        if !embedded {
            return Err((format!("there is no driver for {what} here"), EMBEDDED.to_owned()));
        }
        let name = rest.split(';').next().unwrap_or("");
        let name = name.strip_prefix("file:").unwrap_or(name);
        let memory = name.strip_prefix("mem:").or_else(|| name.strip_prefix("memory:"));
        let file = format!("{name}.sqlite");
        return Ok(sqlite(memory.map_or(Ok(&*file), Err), true, Vec::new()));
    }
    let help =
        "write jdbc:postgresql://HOST:PORT/DATABASE, jdbc:mysql://HOST:PORT/DATABASE or jdbc:sqlite:FILE";
    Err(("this is no JDBC URL of a database that is known here".to_owned(), help.to_owned()))
}

/// A file, or the name of a database in memory.
fn sqlite(place: Result<&str, &str>, stands_in: bool, options: Vec<(String, String)>) -> Target {
    let (database, host) = match place {
        Ok(file) => (Some(file.to_owned()), String::new()),
        Err(name) => (None, name.to_owned()),
    };
    Target { dialect: Dialect::Sqlite, host, port: 0, database, stands_in, options }
}

/// `//host:port/database?name=value`, or the database alone.
fn server(rest: &str, dialect: Dialect, port: u16) -> Result<Target, (String, String)> {
    let wrong = |what: &str| {
        Err((what.to_owned(), format!("write //HOST:PORT/DATABASE; without a port it is {port}")))
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut target = Target {
        dialect,
        host: "localhost".to_owned(),
        port,
        database: None,
        stands_in: false,
        options: options(query, '&'),
    };
    let database = match place.strip_prefix("//") {
        None => place,
        Some(place) => {
            let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
            if hosts.contains(',') {
                return wrong("a data source with several hosts is not possible here");
            }
            let (host, own) = match hosts.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((host, rest)) => (host, rest.strip_prefix(':')),
                None => match hosts.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (hosts, None),
                },
            };
            if host.contains(['(', '@']) {
                return wrong("the host of this URL cannot be read");
            }
            if !host.is_empty() {
                target.host = host.to_owned();
            }
            if let Some(own) = own.filter(|own| !own.is_empty()) {
                match own.parse() {
                    Ok(own) => target.port = own,
                    Err(_) => return wrong("the port of this URL is no number"),
                }
            }
            database
        }
    };
    let database = decode_percent(database.trim_matches('/'));
    target.database = Some(database).filter(|database| !database.is_empty());
    Ok(target)
}

fn options(query: &str, separator: char) -> Vec<(String, String)> {
    let pairs = query.split(separator).filter(|pair| !pair.is_empty());
    // What was written `&amp;` in a place that is no XML.
    let pairs = pairs.map(|pair| pair.trim_start_matches("amp;"));
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode_percent(name), decode_percent(value)))
        .collect()
}

impl Target {
    /// An option of the URL, whose name has no case.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().rev().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it lies in the memory of this process.
    pub fn is_in_memory(&self) -> bool {
        self.dialect == Dialect::Sqlite && self.database.is_none()
    }

    /// Options of the URL that mean something here and are not honoured, each with the reason.
    pub fn not_honoured(&self) -> Vec<(&str, &'static str)> {
        let mut found = Vec::new();
        for (name, _) in &self.options {
            let why = match (self.dialect, &*name.to_ascii_lowercase()) {
                (Dialect::Postgres, "stringtype") => "parameters have the type that the statement says",
                (Dialect::Postgres, "sslcert" | "sslkey" | "sslpassword" | "sslfactory") => {
                    "client certificates are not sent"
                }
                (
                    Dialect::MySql,
                    "trustcertificatekeystoreurl" | "clientcertificatekeystoreurl" | "serversslcert",
                ) => "keystores of Java are not read: sslrootcert=FILE names a PEM file",
                (Dialect::MySql, "allowmultiqueries") => "a statement is one statement",
                (Dialect::MySql, "zerodatetimebehavior") => "a zero date is NULL",
                _ => continue,
            };
            found.push((name.as_str(), why));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_as_users_have_them() {
        for (url, wanted) in [
            ("jdbc:postgresql://db:5433/orders?sslmode=require", "PostgreSQL db:5433/orders"),
            ("jdbc:postgresql:orders", "PostgreSQL localhost:5432/orders"),
            ("jdbc:postgresql://[::1]/o%20p", "PostgreSQL ::1:5432/o p"),
            (
                "jdbc:mysql://localhost:3306/ESB?autoReconnect=true&amp;useSSL=false",
                "MySQL localhost:3306/ESB",
            ),
            ("jdbc:mariadb://db/", "MySQL db:3306/"),
            ("jdbc:sqlite:/tmp/a.db", "SQLite /tmp/a.db"),
            ("jdbc:sqlite::memory:", "SQLite :memory:"),
        ] {
            assert_eq!(parse(url, false).map(|target| target.to_string()), Ok(wanted.to_owned()), "{url}");
        }
        let mysql = parse("jdbc:mysql://h/d?a=1&amp;useSSL=false&USESSL=true", false).unwrap();
        assert_eq!(
            (mysql.option("A"), mysql.option("useSSL"), mysql.option("b")),
            (Some("1"), Some("true"), None)
        );
        for (url, says) in [
            ("jdbc:oracle:thin:@h:1521:x", "Oracle"),
            ("jdbc:sqlserver://h;databaseName=x", "SQL Server"),
            ("jdbc:h2:mem:test", "H2"),
            ("jdbc:derby:memory:x;create=true", "Derby"),
            ("jdbc:postgresql://a,b/x", "several hosts"),
            ("jdbc:mysql://h:x/d", "no number"),
            ("postgres://h/d", "no JDBC URL"),
            ("", "no JDBC URL"),
        ] {
            let (message, help) = parse(url, false).unwrap_err();
            assert!(message.contains(says) && !help.is_empty(), "{url}: {message}");
        }
        for (url, wanted) in [
            ("jdbc:h2:mem:test;DB_CLOSE_DELAY=-1", "SQLite :memory:"),
            (
                "jdbc:h2:file:./repository/database/X;AUTO_SERVER=TRUE",
                "SQLite ./repository/database/X.sqlite",
            ),
            ("jdbc:derby:esbdb;create=true", "SQLite esbdb.sqlite"),
        ] {
            let target = parse(url, true).unwrap();
            assert_eq!(target.to_string(), wanted);
            assert!(target.stands_in);
        }
        assert!(parse("jdbc:derby://localhost:1527/esbdb", true).is_err());
    }
}
