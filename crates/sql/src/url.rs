//! JDBC URLs: database, address, and options for the driver.

use message::form::decode_percent;
use std::borrow::Cow;
use std::fmt;

/// A database with a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
    /// Microsoft SQL Server.
    SqlServer,
}

impl fmt::Display for Dialect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Dialect::Postgres => "PostgreSQL",
            Dialect::MySql => "MySQL",
            Dialect::Sqlite => "SQLite",
            Dialect::SqlServer => "SQL Server",
        })
    }
}

/// The target of a URL, without the password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The dialect.
    pub dialect: Dialect,
    /// The host; empty for SQLite.
    pub host: String,
    /// The port; 0 for SQLite.
    pub port: u16,
    /// The database; the file of SQLite, `None`: in memory, under the name in `host`.
    pub database: Option<String>,
    /// The URL is one of H2 or Derby, and SQLite replaces it.
    pub stands_in: bool,
    /// Further options of the URL, decoded, in order.
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
            other => {
                write!(out, "{other} {}", self.host)?;
                match (self.port, self.option("instanceName")) {
                    (0, Some(instance)) => write!(out, "\\{instance}")?,
                    (port, _) => write!(out, ":{port}")?,
                }
                write!(out, "/{}", database.unwrap_or(""))
            }
        }
    }
}

/// Databases without a driver: the prefix of the URL, the name, and what to do.
const OTHERS: &[(&str, &str, &str)] = &[
    ("jdbc:jtds:sybase:", "Sybase", NO_DRIVER),
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

const NO_DRIVER: &str = "there are drivers for PostgreSQL, MySQL, MariaDB, SQL Server and SQLite: put a service in front of the other database and `call` it";

/// The help for databases that run in a Java virtual machine.
const EMBEDDED: &str = "it runs inside of a Java machine: sql.embedded = \"sqlite\" in busbar.toml runs its statements on SQLite, as far as its SQL allows";

/// Parses a URL; `embedded`: URLs of H2 and Derby mean SQLite.
///
/// # Errors
/// The error and what to do. Neither repeats the URL, which may contain a password.
pub(crate) fn parse(url: &str, embedded: bool) -> Result<Target, (String, String)> {
    let url = url.trim();
    let lower = url.to_ascii_lowercase();
    if let Some((_, database, help)) = OTHERS.iter().find(|(prefix, ..)| lower.starts_with(prefix)) {
        return Err((format!("there is no driver for {database} here"), (*help).to_owned()));
    }
    let after = |prefix: &str| lower.starts_with(prefix).then(|| &url[prefix.len()..]);
    if let Some(rest) = after("jdbc:postgresql:") {
        return server(rest, Dialect::Postgres, 5432);
    }
    if let Some(rest) = after("jdbc:mysql:").or_else(|| after("jdbc:mariadb:")) {
        return server(rest, Dialect::MySql, 3306);
    }
    if let Some(rest) = after("jdbc:sqlserver:") {
        return sql_server(rest, false);
    }
    if let Some(rest) = after("jdbc:jtds:sqlserver:") {
        return sql_server(rest, true);
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
    for (prefix, database) in [("jdbc:h2:", "H2"), ("jdbc:derby:", "Derby")] {
        let Some(rest) = after(prefix) else { continue };
        if !embedded {
            return Err((format!("there is no driver for {database} here"), EMBEDDED.to_owned()));
        }
        let name = rest.split(';').next().unwrap_or("");
        let name = name.strip_prefix("file:").unwrap_or(name);
        let memory = name.strip_prefix("mem:").or_else(|| name.strip_prefix("memory:"));
        let file = format!("{name}.sqlite");
        return Ok(sqlite(memory.map_or(Ok(&*file), Err), true, Vec::new()));
    }
    let help =
        "write jdbc:postgresql://HOST:PORT/DATABASE, jdbc:mysql://HOST:PORT/DATABASE or jdbc:sqlite:FILE";
    Err(("this is not a JDBC URL of a database that is known here".to_owned(), help.to_owned()))
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
    let wrong = |message: &str| {
        Err((message.to_owned(), format!("write //HOST:PORT/DATABASE; without a port it is {port}")))
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
        // `jdbc:mysql:loadbalance://…`
        None if place.contains("//") => {
            return wrong("a data source with several hosts is not possible here");
        }
        None => place,
        Some(place) => {
            let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
            if hosts.contains(',') {
                return wrong("a data source with several hosts is not possible here");
            }
            let (host, own_port) = match hosts.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
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
            if let Some(port_text) = own_port.filter(|p| !p.is_empty()) {
                match port_text.parse() {
                    Ok(number) => target.port = number,
                    Err(_) => return wrong("the port of this URL is not a number"),
                }
            }
            database
        }
    };
    let database = decode_percent(database.trim_matches('/'));
    target.database = Some(database).filter(|database| !database.is_empty());
    Ok(target)
}

/// `//host\instance:port;name=value`, as in Microsoft's driver, and `//host:port/database;name=value` of jTDS.
fn sql_server(rest: &str, jtds: bool) -> Result<Target, (String, String)> {
    let wrong = |message: &str, help: &str| Err((message.to_owned(), help.to_owned()));
    let (place, properties) = rest.split_once(';').unwrap_or((rest, ""));
    let place = place.trim();
    let Some(place) = place.strip_prefix("//").or(place.is_empty().then_some("")) else {
        return wrong("this URL has no `//HOST`", "write jdbc:sqlserver://HOST:PORT;databaseName=DATABASE");
    };
    let (place, path) = if jtds { place.split_once('/').unwrap_or((place, "")) } else { (place, "") };
    let mut target = Target {
        dialect: Dialect::SqlServer,
        host: "localhost".to_owned(),
        port: 0,
        database: Some(path.to_owned()).filter(|text| !text.is_empty()),
        stands_in: false,
        options: braced(properties),
    };
    // Properties take precedence over the address, as in the drivers.
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or("")),
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let first = |names: &[&str]| {
        let found = names.iter().find_map(|name| target.option(name));
        found.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let host = first(&["serverName", "server"]).unwrap_or_else(|| host.trim().to_owned());
    let port = first(&["portNumber", "port"]).unwrap_or_else(|| port.trim().to_owned());
    let database = first(&["databaseName", "database"]).or(target.database.clone());
    let user = first(&["userName", "user"]);
    let instance = first(&["instanceName", "instance"]);
    let login = first(&["authentication"]).map(|method| method.to_ascii_lowercase());
    let is = |name: &str, value: &str| {
        target.option(name).is_some_and(|given| given.trim().eq_ignore_ascii_case(value))
    };
    let is_own_login = is("integratedSecurity", "true")
        || first(&["domain"]).is_some()
        || login.is_some_and(|method| !matches!(&*method, "sqlpassword" | "notspecified"));
    if is_own_login {
        return wrong(
            "this URL logs in as a user of Windows or of Azure",
            "only logins of SQL Server itself are possible here: user and password",
        );
    }
    let encrypt = target.option("encrypt").map(str::to_ascii_lowercase).unwrap_or_default();
    if !matches!(&*encrypt, "" | "true" | "false" | "strict" | "yes" | "no" | "mandatory" | "optional") {
        return wrong("`encrypt` of this URL is not known", "write encrypt=true, false or strict");
    }
    if jtds && target.option("encrypt").is_none() {
        // jTDS calls it `ssl`, and it is off by default.
        let encrypt = match first(&["ssl"]).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("off" | "request") => "false",
            Some("require") => {
                target.options.push(("trustServerCertificate".to_owned(), "true".to_owned()));
                "true"
            }
            Some("authenticate") => "true",
            Some(_) => {
                return wrong("`ssl` of this URL is not known", "write ssl=require or ssl=authenticate");
            }
        };
        target.options.push(("encrypt".to_owned(), encrypt.to_owned()));
    }
    let (host, instance) = match host.split_once('\\') {
        Some((host, instance_name)) => (host.to_owned(), Some(instance_name.to_owned())),
        None => (host, instance),
    };
    if host.contains([',', '(', '@', '/']) {
        return wrong(
            "the host of this URL cannot be read",
            "write jdbc:sqlserver://HOST:PORT;databaseName=DATABASE",
        );
    }
    if !host.is_empty() {
        target.host = host;
    }
    target.port = match (port.as_str(), &instance) {
        ("", Some(_)) => 0,
        ("", None) => 1433,
        (port, _) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => {
                return wrong(
                    "the port of this URL is not a number",
                    "write //HOST:PORT; without a port it is 1433",
                );
            }
        },
    };
    target.database = database;
    for (name, value) in [("user", user), ("instanceName", instance)] {
        target.options.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(target)
}

/// `name=value;name={va;lue}`: text in braces is taken as it is, with `}}` for a brace.
fn braced(text: &str) -> Vec<(String, String)> {
    let (mut all, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = rest.find(['=', ';']).unwrap_or(rest.len());
        let name = rest[..end].trim().to_owned();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            rest = after;
            if let Some(mut inside) = rest.trim_start().strip_prefix('{') {
                while let Some((before, after)) = inside.split_once('}') {
                    value += before;
                    inside = after;
                    match inside.strip_prefix('}') {
                        Some(after) => (value, inside) = (value + "}", after),
                        None => break,
                    }
                }
                rest = inside;
                rest = rest.find(';').map_or("", |at| &rest[at..]);
            } else {
                let end = rest.find(';').unwrap_or(rest.len());
                value = rest[..end].trim().to_owned();
                rest = &rest[end..];
            }
        }
        rest = rest.strip_prefix(';').unwrap_or(rest);
        if !name.is_empty() {
            all.push((name, value));
        }
    }
    all
}

fn options(query: &str, separator: char) -> Vec<(String, String)> {
    let pairs = query.split(separator).filter(|pair| !pair.is_empty());
    // `&amp;` was written outside of XML.
    let pairs = pairs.map(|pair| pair.trim_start_matches("amp;"));
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode_percent(name), decode_percent(value)))
        .collect()
}

impl Target {
    /// An option of the URL, by its name in any case.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().rev().find(|(option_name, _)| option_name.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the database is in memory.
    pub fn is_in_memory(&self) -> bool {
        self.dialect == Dialect::Sqlite && self.database.is_none()
    }

    /// The options that have an effect on connections of this kind, as they are usually written.
    fn options_that_count(&self) -> &'static [&'static str] {
        match self.dialect {
            Dialect::Postgres => &[
                "user",
                "password",
                "sslmode",
                "ssl",
                "sslrootcert",
                "currentSchema",
                "ApplicationName",
                "prepareThreshold",
                "escapeSyntaxCallMode",
            ],
            Dialect::MySql => &[
                "user",
                "password",
                "sslMode",
                "useSSL",
                "requireSSL",
                "verifyServerCertificate",
                "sslrootcert",
                "sessionVariables",
                "tinyInt1isBit",
            ],
            Dialect::Sqlite => &["foreign_keys", "journal_mode", "mode"],
            Dialect::SqlServer => &[
                "databaseName",
                "serverName",
                "portNumber",
                "instanceName",
                "user",
                "password",
                "encrypt",
                "trustServerCertificate",
                "hostNameInCertificate",
                "sslrootcert",
                "applicationName",
                "applicationIntent",
            ],
        }
    }

    /// Options of the URL that are none of those that count, with these: one that is nearly like them is probably misspelt.
    pub fn other_options(&self) -> (Vec<&str>, &'static [&'static str]) {
        let count = self.options_that_count();
        let is_other = |name: &&str| !count.iter().any(|counts| counts.eq_ignore_ascii_case(name));
        (self.options.iter().map(|(name, _)| name.as_str()).filter(is_other).collect(), count)
    }

    /// Options of the URL with a value with which no connection can be made: name, value, and what it may be.
    pub fn wrong_options(&self) -> Vec<(&'static str, &str, &'static str)> {
        let modes: &[(&str, &[&str], &str)] = match self.dialect {
            Dialect::Postgres => &[(
                "sslmode",
                &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
                "disable, prefer, require, verify-ca or verify-full",
            )],
            Dialect::MySql => &[(
                "sslMode",
                &[
                    "disabled",
                    "disable",
                    "preferred",
                    "required",
                    "trust",
                    "verify-ca",
                    "verify-identity",
                    "verify-full",
                ],
                "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
            )],
            // Where it is wrong the URL is none.
            Dialect::SqlServer | Dialect::Sqlite => &[],
        };
        let wrong = modes.iter().filter_map(|&(name, values, expected)| {
            let value = self.option(name)?;
            let plain = value.to_ascii_lowercase().replace('_', "-");
            (!values.contains(&plain.as_str())).then_some((name, value, expected))
        });
        wrong.collect()
    }

    /// A statement in the form that the URL asks for: with `escapeSyntaxCallMode` (`call`, `callIfNoReturn`) PostgreSQL's `{call p(?)}` calls a
    /// procedure, without its braces; else it selects from a function. Positions in the text stay.
    pub fn escaped_call<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let calls = self.dialect == Dialect::Postgres
            && self.option("escapeSyntaxCallMode").is_some_and(|mode| {
                mode.eq_ignore_ascii_case("call") || mode.eq_ignore_ascii_case("callIfNoReturn")
            });
        let whole = text.trim_end().trim_end_matches(';').trim_end();
        let inside = whole.trim_start().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let word = inside.and_then(|inside| inside.trim_start().get(..4));
        if !calls || !word.is_some_and(|word| word.eq_ignore_ascii_case("call")) {
            return Cow::Borrowed(text);
        }
        let begin = whole.len() - whole.trim_start().len();
        Cow::Owned(format!("{} {} ", &text[..begin], &whole[begin + 1..whole.len() - 1]))
    }

    /// Options of the URL that would have an effect and are not supported, each with the reason.
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
                (Dialect::SqlServer, "truststore" | "keystorelocation" | "clientcertificate") => {
                    "keystores of Java are not read: sslrootcert=FILE names a PEM file"
                }
                (Dialect::SqlServer, "failoverpartner" | "multisubnetfailover") => {
                    "one server is asked: the one of `//HOST`"
                }
                (Dialect::SqlServer, "columnencryptionsetting") => "encrypted columns are bytes",
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
            ("jdbc:sqlserver://db:1434;databaseName=shop;user=sa", "SQL Server db:1434/shop"),
            ("jdbc:sqlserver://db\\EXPRESS;database=shop", "SQL Server db\\EXPRESS/shop"),
            ("jdbc:sqlserver://db:1433;instanceName=EXPRESS;", "SQL Server db:1433/"),
            ("jdbc:sqlserver://;serverName=db;portNumber=5;databaseName={a;b}}c}", "SQL Server db:5/a;b}c"),
            ("jdbc:sqlserver:", "SQL Server localhost:1433/"),
            ("jdbc:sqlserver://[::1]:1435", "SQL Server ::1:1435/"),
            ("jdbc:jtds:sqlserver://db:1433/shop;instance=X", "SQL Server db:1433/shop"),
            (
                "\n jdbc:sqlserver://10.0.0.1:1433;instance=X;databaseName=E;\n jdbc:sqlserver://;encrypt=true",
                "SQL Server 10.0.0.1:1433/E",
            ),
        ] {
            assert_eq!(parse(url, false).map(|target| target.to_string()), Ok(wanted.to_owned()), "{url}");
        }
        let jtds = parse("jdbc:jtds:sqlserver://h/d;ssl=require;USER=u", false).unwrap();
        let of = |name: &str| jtds.option(name).map(str::to_owned);
        assert_eq!(of("encrypt").zip(of("trustServerCertificate")), Some(("true".into(), "true".into())));
        assert_eq!(of("user").as_deref(), Some("u"));
        // No end, no name, no value: all are read to their ends.
        for text in ["a={b", "a=", "=b", ";;", "a", "a={b}}", "a={b}c;d=e", "{", "a={}"] {
            braced(text);
        }
        let mysql = parse("jdbc:mysql://h/d?a=1&amp;useSSL=false&USESSL=true", false).unwrap();
        assert_eq!(
            (mysql.option("A"), mysql.option("useSSL"), mysql.option("b")),
            (Some("1"), Some("true"), None)
        );
        for (url, says) in [
            ("jdbc:oracle:thin:@h:1521:x", "Oracle"),
            ("jdbc:sqlserver://h;integratedSecurity=true", "a user of Windows"),
            ("jdbc:sqlserver://h;authentication=ActiveDirectoryPassword", "of Azure"),
            ("jdbc:sqlserver://h;encrypt=maybe", "`encrypt`"),
            ("jdbc:sqlserver://h:0", "not a number"),
            ("jdbc:sqlserver://h:99999", "not a number"),
            ("jdbc:sqlserver://a,b", "cannot be read"),
            ("jdbc:sqlserver:h", "no `//HOST`"),
            ("jdbc:jtds:sqlserver://h/d;ssl=sometimes", "`ssl`"),
            ("jdbc:jtds:sybase://h/d", "Sybase"),
            ("jdbc:mysql:loadbalance://a,b/d", "several hosts"),
            ("jdbc:h2:mem:test", "H2"),
            ("jdbc:derby:memory:x;create=true", "Derby"),
            ("jdbc:postgresql://a,b/x", "several hosts"),
            ("jdbc:mysql://h:x/d", "not a number"),
            ("postgres://h/d", "not a JDBC URL"),
            ("", "not a JDBC URL"),
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

    #[test]
    fn procedures_are_called_as_the_url_asks() {
        let target = |url: &str| parse(url, false).unwrap();
        let called = target("jdbc:postgresql://h/d?escapeSyntaxCallMode=callIfNoReturn");
        for (text, wanted) in [
            ("{call p(?, :a)}", " call p(?, :a) "),
            (" { CALL p() } ; ", "   CALL p()  "),
            ("{? = call f(?)}", "{? = call f(?)}"),
            ("call p()", "call p()"),
            ("{}", "{}"),
            ("{é}", "{é}"),
        ] {
            assert_eq!(called.escaped_call(text), wanted, "{text}");
        }
        for url in [
            "jdbc:postgresql://h/d",
            "jdbc:postgresql://h/d?escapeSyntaxCallMode=select",
            "jdbc:mysql://h/d?escapeSyntaxCallMode=call",
        ] {
            assert_eq!(target(url).escaped_call("{call p()}"), "{call p()}", "{url}");
        }
    }

    /// A misspelt `sslmode` would be a connection without TLS, and a wrong one none at all.
    #[test]
    fn options_that_do_not_count_and_wrong_ones_are_known() {
        let target = |url: &str| parse(url, false).unwrap();
        let found = target("jdbc:postgresql://h/d?sslmod=require&SSLROOTCERT=a.pem&sslmode=verify-full");
        assert_eq!(found.other_options().0, ["sslmod"]);
        assert!(found.wrong_options().is_empty());
        for (url, wrong) in [
            ("jdbc:postgresql://h/d?sslmode=required", Some("sslmode")),
            ("jdbc:mysql://h/d?sslMode=VERIFY-CA", None),
            ("jdbc:mysql://h/d?sslMode=full", Some("sslMode")),
            ("jdbc:sqlite:/tmp/a.db", None),
        ] {
            let target = target(url);
            assert_eq!(target.wrong_options().first().map(|(name, ..)| *name), wrong, "{url}");
        }
    }
}
