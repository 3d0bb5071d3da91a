//! PostgreSQL.

use super::{Handing, Outcome, Rows, failed, nested, numeric, system_roots, unavailable};
use crate::error::{Error, Reason};
use crate::parameter::{Kind, Parameter};
use crate::source::Source;
use crate::statement::Statement;
use crate::value::{Columns, Value, local, timestamp_text};
use futures_util::TryStreamExt;
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, tz::TimeZone};
use sqlx::encode::IsNull;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{
    PgArgumentBuffer, PgArguments, PgConnectOptions, PgConnection, PgSslMode, PgTypeInfo, PgTypeKind,
    PgValueRef,
};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Either, Encode, Executor, Postgres, Row as _, Type,
    TypeInfo, ValueRef,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Most texts whose types are cached. Beyond, all types and prepared statements are dropped.
const TEXTS: usize = 1000;

/// The epoch of dates and times.
pub(super) const EPOCH: Date = Date::constant(2000, 1, 1);

pub(crate) struct Session {
    connection: PgConnection,
    /// The columns of the last statement: mostly the next one is the same.
    columns: Arc<Columns>,
    /// Most bytes of a value.
    longest: usize,
    /// The parameter types with which each text was first prepared: the prepared statement is bound to them.
    types: HashMap<Arc<str>, Vec<Kind>>,
    /// The server has no named prepared statements (`prepareThreshold=0`).
    unprepared: bool,
}

impl Session {
    pub async fn open(source: &Source) -> Result<Session, Error> {
        let options = options(source)?;
        let mut connection = options.connect().await.map_err(unavailable)?;
        let mut first = String::new();
        // The library sets UTC; JDBC sets the time zone of the machine.
        if let Some(zone) = TimeZone::system().iana_name().filter(|&zone| !matches!(zone, "UTC" | "Etc/UTC"))
        {
            first += &format!("SET TIME ZONE '{}';", zone.replace('\'', ""));
        }
        if let Some(isolation) = source.options.isolation {
            first +=
                &format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {};", isolation.sql());
        }
        if source.options.read_only {
            first += "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;";
        }
        if !first.is_empty() {
            connection.execute(AssertSqlSafe(first)).await.map_err(unavailable)?;
        }
        let unprepared = is_unprepared(source);
        if !unprepared {
            // The server ends the statement of a connection that was closed; else it would notice that only when it has the answer. Servers before
            // version 14, and on some systems, do not know this: a time limit ends it, which counts the time in which nobody takes rows, too.
            let notices = connection.execute("SET client_connection_check_interval = '1s'").await.is_ok();
            if !notices {
                let limit = format!("SET statement_timeout = {}", statement_timeout(source));
                connection.execute(AssertSqlSafe(limit)).await.map_err(unavailable)?;
            }
        }
        Ok(Session {
            connection,
            columns: Arc::default(),
            longest: source.options.longest,
            types: HashMap::new(),
            unprepared,
        })
    }

    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: Rows<'_>,
    ) -> Result<Outcome, Error> {
        if self.types.len() >= TEXTS {
            self.types.clear();
            self.connection.clear_cached_statements().await.map_err(failed)?;
        }
        let text = self.text(statement, parameters);
        let mut has_rows = false;
        let first = match self.ask(&text, parameters, &mut *rows, &mut has_rows).await {
            Err(error) if is_stale(&error) && !has_rows => error,
            other => return other,
        };
        // A table has changed since the statement was prepared, or the server has dropped the statement: nothing was done yet.
        self.connection.clear_cached_statements().await.map_err(failed)?;
        match Box::pin(self.ask(&text, parameters, rows, &mut has_rows)).await {
            // Within a transaction the error has aborted it.
            Err(again) if again.state.as_deref() == Some("25P02") => Err(first),
            other => other,
        }
    }

    /// The text that is prepared: with other parameter types than before it is made a different one.
    fn text(&mut self, statement: &Statement, parameters: &[Parameter]) -> Arc<str> {
        let text = statement.text();
        let kinds = || parameters.iter().map(Parameter::kind);
        match self.types.get(text) {
            Some(last_kinds) if kinds().eq(last_kinds.iter().copied()) => Arc::clone(text),
            Some(_) => {
                let types: Vec<&str> = kinds().map(Kind::name).collect();
                format!("{text}\n-- {}", types.join(", ")).into()
            }
            None => {
                self.types.insert(Arc::clone(text), kinds().collect());
                Arc::clone(text)
            }
        }
    }

    /// `has_rows`: a row has come.
    async fn ask(
        &mut self,
        text: &Arc<str>,
        parameters: &[Parameter],
        rows: Rows<'_>,
        has_rows: &mut bool,
    ) -> Result<Outcome, Error> {
        let mut arguments = PgArguments::default();
        for parameter in parameters {
            sqlx::Arguments::add(&mut arguments, Bound(parameter))
                .map_err(|error| Error::new(Reason::Value, error.to_string()))?;
        }
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(text)), arguments).persistent(!self.unprepared);
        let mut stream = self.connection.fetch_many(query);
        let (mut outcome, mut handing) =
            (Outcome::default(), Handing::new(rows, &mut self.columns, self.longest));
        while let Some(item) = stream.try_next().await.map_err(failed)? {
            match item {
                Either::Left(done) => outcome.affected += done.rows_affected(),
                Either::Right(row) => {
                    *has_rows = true;
                    handing.row(row, length, values).await;
                }
            }
        }
        handing.end(outcome)
    }

    pub async fn execute(&mut self, text: &str) -> Result<(), Error> {
        self.connection.execute(AssertSqlSafe(text.to_owned())).await.map_err(failed)?;
        Ok(())
    }

    pub async fn ping(&mut self) -> Result<(), Error> {
        self.connection.ping().await.map_err(failed)
    }
}

/// Whether a prepared statement is invalid: `0A000` (cached plan must not change result type), `26000` (it does not exist).
fn is_stale(error: &Error) -> bool {
    matches!(error.state.as_deref(), Some("0A000" | "26000"))
}

fn options(source: &Source) -> Result<PgConnectOptions, Error> {
    let target = &source.target;
    let wrong = |message: String| Error::new(Reason::Unavailable, message);
    let user = if source.user.is_empty() { "postgres" } else { &source.user };
    // Every field is set, so that the environment of the process has no effect.
    let mut options = PgConnectOptions::new_without_pgpass()
        .host(&target.host)
        .port(target.port)
        .username(user)
        .password(&source.password)
        .database(target.database.as_deref().unwrap_or(user))
        .application_name(target.option("ApplicationName").unwrap_or("busbar"))
        .statement_cache_capacity(source.options.statements)
        .extra_float_digits(3)
        .disable_statement_logging();
    let is_ssl =
        target.option("ssl").is_some_and(|value| value.is_empty() || value.eq_ignore_ascii_case("true"));
    let mode = match target.option("sslmode").map(str::to_ascii_lowercase).as_deref() {
        None if is_ssl => PgSslMode::VerifyFull,
        None => PgSslMode::Prefer,
        Some("disable") => PgSslMode::Disable,
        Some("allow" | "prefer") => PgSslMode::Prefer,
        Some("require") => PgSslMode::Require,
        Some("verify-ca") => PgSslMode::VerifyCa,
        Some("verify-full") => PgSslMode::VerifyFull,
        Some(_) => {
            return Err(wrong(
                "sslmode is none of disable, prefer, require, verify-ca, verify-full".to_owned(),
            ));
        }
    };
    options = options.ssl_mode(mode);
    if let Some(roots) = target.option("sslrootcert").or_else(system_roots) {
        options = options.ssl_root_cert(roots);
    }
    let mut settings = Vec::new();
    if is_unprepared(source) {
        settings.push(("statement_timeout", statement_timeout(source)));
    }
    if let Some(schema) = target.option("currentSchema") {
        settings.push(("search_path", schema.to_owned()));
    }
    Ok(options.options(settings))
}

/// Whether nothing that is prepared or set is kept: a pooler between the server and its clients may run each statement on another connection.
fn is_unprepared(source: &Source) -> bool {
    source.target.option("prepareThreshold").is_some_and(|value| value.trim() == "0")
}

/// Milliseconds after which the server ends a statement that nobody may wait for any more.
fn statement_timeout(source: &Source) -> String {
    (source.options.query_timeout.as_millis() + 500).min(86_400_000).to_string()
}

/// A parameter with the type that the JDBC driver gives it.
struct Bound<'a>(&'a Parameter);

impl Type<Postgres> for Bound<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1043))
    }
}

fn oid(kind: Kind) -> u32 {
    match kind {
        Kind::Text => 1043,
        Kind::Decimal => 1700,
        Kind::Boolean => 16,
        Kind::TinyInt | Kind::SmallInt => 21,
        Kind::Integer => 23,
        Kind::BigInt => 20,
        Kind::Real => 700,
        Kind::Double => 701,
        Kind::Date => 1082,
        Kind::Time => 1083,
        Kind::Timestamp => 1114,
        Kind::Bytes => 17,
    }
}

impl Encode<'_, Postgres> for Bound<'_> {
    fn encode_by_ref(&self, out: &mut PgArgumentBuffer) -> Result<IsNull, sqlx::error::BoxDynError> {
        match self.0 {
            Parameter::Null(_) => return Ok(IsNull::Yes),
            // PostgreSQL allows no NUL in a text, and it would corrupt the next protocol message.
            Parameter::Text(text) if text.contains('\0') => return Err("a text with a NUL character".into()),
            Parameter::Text(text) => out.extend_from_slice(text.as_bytes()),
            Parameter::Decimal(text) => numeric::write(text, out),
            Parameter::Boolean(value) => out.push(u8::from(*value)),
            Parameter::SmallInt(value) => out.extend_from_slice(&value.to_be_bytes()),
            Parameter::Integer(value) => out.extend_from_slice(&value.to_be_bytes()),
            Parameter::BigInt(value) => out.extend_from_slice(&value.to_be_bytes()),
            Parameter::Real(value) => out.extend_from_slice(&value.to_be_bytes()),
            Parameter::Double(value) => out.extend_from_slice(&value.to_be_bytes()),
            Parameter::Date(date) => out.extend_from_slice(&days(*date).to_be_bytes()),
            Parameter::Time(time) => {
                let micros = Time::midnight().duration_until(*time).as_micros() as i64;
                out.extend_from_slice(&micros.to_be_bytes());
            }
            Parameter::Timestamp(at) => {
                let micros = EPOCH.to_datetime(Time::midnight()).duration_until(*at).as_micros() as i64;
                out.extend_from_slice(&micros.to_be_bytes());
            }
            Parameter::Bytes(bytes) => out.extend_from_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(oid(self.0.kind()))))
    }
}

fn days(date: Date) -> i32 {
    (EPOCH.duration_until(date).as_hours() / 24) as i32
}

/// The bytes of a value as received.
fn length(row: &sqlx::postgres::PgRow, at: usize) -> usize {
    let raw = row.try_get_raw(at).ok();
    raw.filter(|raw| !raw.is_null()).and_then(|raw| raw.as_bytes().ok().map(<[u8]>::len)).unwrap_or(0)
}

fn values(row: &sqlx::postgres::PgRow) -> Result<Vec<Value>, Error> {
    // A `collect` of results does not know their number.
    let mut values = Vec::with_capacity(row.len());
    for at in 0..row.len() {
        let raw = row.try_get_raw(at).map_err(failed)?;
        values.push(value(&raw).map_err(|why| {
            let name = row.column(at).name();
            Error::new(Reason::Value, format!("column {name} cannot be read: {why}"))
        })?);
    }
    Ok(values)
}

fn value(raw: &PgValueRef<'_>) -> Result<Value, String> {
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let bytes = raw.as_bytes().map_err(|error| error.to_string())?;
    let pg_type = raw.type_info();
    read(&pg_type, bytes).ok_or_else(|| match pg_type.oid().map_or(0, |oid| oid.0) {
        // Years beyond 9999.
        1082 | 1083 | 1114 | 1184 | 1266 => {
            format!("its value is no {} that is known here; cast it to text", pg_type.name())
        }
        _ => format!("its type {} is not known here; cast it to text", pg_type.name()),
    })
}

/// A time of day, in seconds.
fn clock(time: Time) -> Value {
    Value::Time(format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second()))
}

/// The value of bytes in the binary format of their type.
pub(super) fn read(pg_type: &PgTypeInfo, bytes: &[u8]) -> Option<Value> {
    let oid = pg_type.oid().map_or(0, |oid| oid.0);
    match pg_type.kind() {
        PgTypeKind::Domain(base) => read(base, bytes),
        PgTypeKind::Enum(_) => text(bytes),
        PgTypeKind::Array(element_type) => nested::array(element_type, bytes),
        PgTypeKind::Range(element_type) => nested::range(element_type, bytes),
        PgTypeKind::Composite(fields) => nested::row(fields, bytes),
        // The fields say their types.
        _ if oid == nested::RECORD => nested::row(&[], bytes),
        _ => simple(oid, pg_type.name(), bytes),
    }
}

/// The value of a type that consists of no others, by its number or its name.
pub(super) fn simple(oid: u32, name: &str, bytes: &[u8]) -> Option<Value> {
    Some(match oid {
        16 => Value::Boolean(*bytes.first()? != 0),
        17 => Value::Bytes(bytes.to_vec()),
        20 => Value::Integer(i64::from_be_bytes(bytes.try_into().ok()?)),
        21 => Value::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        23 => Value::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        // oid, xid, cid
        26 | 28 | 29 => Value::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into()),
        700 => Value::Real(f32::from_be_bytes(bytes.try_into().ok()?)),
        701 => Value::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
        790 => {
            let cents = i64::from_be_bytes(bytes.try_into().ok()?);
            let sign = if cents < 0 { "-" } else { "" };
            Value::Decimal(format!("{sign}{}.{:02}", cents.unsigned_abs() / 100, cents.unsigned_abs() % 100))
        }
        1082 => match i32::from_be_bytes(bytes.try_into().ok()?) {
            i32::MAX => Value::Date("infinity".to_owned()),
            i32::MIN => Value::Date("-infinity".to_owned()),
            days => Value::Date(
                EPOCH.checked_add(SignedDuration::from_hours(i64::from(days) * 24)).ok()?.to_string(),
            ),
        },
        1266 => {
            // Behind the time its zone, in seconds west of Greenwich.
            let micros = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
            let west = i32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
            let there = Date::constant(1970, 1, 1).to_datetime(Time::midnight());
            let there = there.checked_add(SignedDuration::from_micros(micros)).ok()?;
            let at = there
                .checked_add(SignedDuration::from_secs(west.into()))
                .ok()?
                .to_zoned(TimeZone::UTC)
                .ok()?;
            clock(at.with_time_zone(TimeZone::system()).time())
        }
        1083 => {
            let micros = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
            clock(Time::midnight().checked_add(SignedDuration::from_micros(micros)).ok()?)
        }
        1114 | 1184 => match i64::from_be_bytes(bytes.try_into().ok()?) {
            i64::MAX => Value::Timestamp("infinity".to_owned()),
            i64::MIN => Value::Timestamp("-infinity".to_owned()),
            micros => {
                let at: DateTime = EPOCH
                    .to_datetime(Time::midnight())
                    .checked_add(SignedDuration::from_micros(micros))
                    .ok()?;
                let is_instant = oid == 1184;
                Value::Timestamp(timestamp_text(if is_instant { local(at)? } else { at }))
            }
        },
        1186 => interval(bytes)?,
        1560 | 1562 => {
            let count = usize::try_from(i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
            let bit = |at: usize| {
                bytes.get(4 + at / 8).map(|byte| if byte >> (7 - at % 8) & 1 == 1 { '1' } else { '0' })
            };
            Value::Text((0..count).map(bit).collect::<Option<String>>()?)
        }
        1700 => Value::Decimal(numeric::read(bytes)?),
        2950 => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let at = |from: usize, to: usize| hex.get(from..to);
            Value::Text(format!(
                "{}-{}-{}-{}-{}",
                at(0, 8)?,
                at(8, 12)?,
                at(12, 16)?,
                at(16, 20)?,
                at(20, 32)?
            ))
        }
        600..=604 | 628 | 718 => return nested::shape(oid, bytes),
        // xid8, pg_lsn
        5069 => Value::Unsigned(u64::from_be_bytes(bytes.try_into().ok()?)),
        3220 => {
            let at = u64::from_be_bytes(bytes.try_into().ok()?);
            Value::Text(format!("{:X}/{:X}", at >> 32, at & 0xFFFF_FFFF))
        }
        // jsonb and jsonpath begin with a version byte.
        3802 | 4072 => return text(bytes.get(1..)?),
        869 | 650 => network(bytes)?,
        829 | 774 => {
            Value::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
        }
        // void
        2278 => Value::Text(String::new()),
        // text, varchar, bpchar, name, "char", json, xml, citext and all other types that are texts.
        18 | 19 | 25 | 114 | 142 | 705 | 1042 | 1043 => return text(bytes),
        _ if matches!(name, "citext" | "CITEXT" | "unknown") => return text(bytes),
        // A version byte, too.
        _ if matches!(name, "ltree" | "lquery") => return text(bytes.get(1..)?),
        _ if name.eq_ignore_ascii_case("hstore") => return nested::pairs(bytes),
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Option<Value> {
    Some(Value::Text(std::str::from_utf8(bytes).ok()?.to_owned()))
}

/// `1 year 2 mons 3 days 04:05:06.5`, as the server writes it.
fn interval(bytes: &[u8]) -> Option<Value> {
    let micros = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let days = i32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let months = i32::from_be_bytes(bytes.get(12..16)?.try_into().ok()?);
    let mut parts = Vec::new();
    for (count, one, many) in
        [(months / 12, "year", "years"), (months % 12, "mon", "mons"), (days, "day", "days")]
    {
        if count != 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    }
    if micros != 0 || parts.is_empty() {
        let sign = if micros < 0 { "-" } else { "" };
        let all = micros.unsigned_abs();
        let (seconds, micros) = (all / 1_000_000, all % 1_000_000);
        let mut time = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if micros > 0 {
            time += format!(".{micros:06}").trim_end_matches('0');
        }
        parts.push(time);
    }
    Some(Value::Text(parts.join(" ")))
}

/// `10.0.0.1/8`.
fn network(bytes: &[u8]) -> Option<Value> {
    let (family, bits, is_cidr) = (*bytes.first()?, *bytes.get(1)?, *bytes.get(2)? != 0);
    let address = bytes.get(4..)?;
    let (text, whole) = if family == 2 {
        (std::net::Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).to_string(), 32)
    } else {
        (std::net::Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).to_string(), 128)
    };
    Some(Value::Text(if bits == whole && !is_cidr { text } else { format!("{text}/{bits}") }))
}
