//! Microsoft SQL Server.

use super::bounded::{Allowance, Bounded};
use super::{Handing, Outcome, Rows, is_too_long};
use crate::error::{Error, Reason};
use crate::parameter::{Kind, Parameter};
use crate::source::Source;
use crate::statement::Statement;
use crate::value::{Columns, Value, local, timestamp_text};
use futures_util::TryStreamExt;
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use tiberius::numeric::Numeric;
use tiberius::{
    AuthMethod, Client, ColumnData, ColumnType, Config, EncryptionLevel, QueryItem, SqlBrowser, ToSql, time,
};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

/// Day 0 of `DATE` and `DATETIME2`.
const FIRST: Date = Date::constant(1, 1, 1);
/// Day 0 of `DATETIME` and `SMALLDATETIME`.
const OLD_FIRST: Date = Date::constant(1900, 1, 1);

/// The columns of the added result with the count of changed rows and the generated key.
const CHANGED: &str = "busbar_changed";
const KEY: &str = "busbar_key";

/// What a server may send while it is connected to and set up: some messages, and its certificates.
const SET_UP: usize = 1 << 20;

/// Most digits of a decimal number.
const DIGITS: usize = 38;

pub(crate) struct Session {
    client: Client<Bounded<Compat<TcpStream>>>,
    /// What the server may still send before the next row.
    allowance: Allowance,
    /// The columns of the last statement: mostly the next one is the same.
    columns: Arc<Columns>,
    /// Most bytes of a value.
    longest: usize,
}

impl Session {
    pub async fn open(source: &Source) -> Result<Session, Error> {
        let mut config = config(source)?;
        let mut client = None;
        let allowance = Allowance::new(SET_UP);
        // A server may redirect its clients, once.
        for _ in 0..2 {
            let stream = TcpStream::connect_named(&config).await.map_err(unavailable)?;
            let stream = Bounded { stream: stream.compat_write(), allowance: allowance.clone() };
            match Client::connect(config.clone(), stream).await {
                Ok(connected) => {
                    client = Some(connected);
                    break;
                }
                Err(tiberius::error::Error::Routing { host, port }) => {
                    config.host(host);
                    config.port(port);
                }
                Err(error) => return Err(unavailable(error)),
            }
        }
        let none = || Error::new(Reason::Unavailable, "the server sends its clients in a circle");
        let longest = source.options.longest;
        let client = client.ok_or_else(none)?;
        let mut session = Session { client, allowance, columns: Arc::default(), longest };
        // The server cuts longer values just beyond the limit, so that they never come as a whole; a character has two bytes there.
        let mut first = format!("SET TEXTSIZE {};", (2 * longest.saturating_add(1)).min(i32::MAX as usize));
        if let Some(isolation) = source.options.isolation {
            _ = write!(first, "SET TRANSACTION ISOLATION LEVEL {};", isolation.sql());
        }
        session.execute(&first).await.map_err(|error| Error { reason: Reason::Unavailable, ..error })?;
        Ok(session)
    }

    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: Rows<'_>,
    ) -> Result<Outcome, Error> {
        let bound = parameters.iter().map(Bound::new).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<&dyn ToSql> = bound.iter().map(|parameter| parameter as &dyn ToSql).collect();
        let text = match changes(statement.text()) {
            true => Cow::Owned(format!(
                "{}\n;SELECT @@ROWCOUNT AS {CHANGED}, CAST(SCOPE_IDENTITY() AS bigint) AS {KEY}",
                statement.text()
            )),
            false => Cow::Borrowed(&**statement.text()),
        };
        // Four texts of the longest, as the server writes them, with their columns.
        let most = SET_UP.saturating_add(self.longest.saturating_mul(8));
        self.allowance.renew(most);
        let mut stream = match all.as_slice() {
            // As a batch, so that its settings and temporary tables stay.
            [] => self.client.simple_query(text).await,
            all => self.client.query(text, all).await,
        }
        .map_err(failed)?;
        let (mut outcome, mut handing) =
            (Outcome::default(), Handing::new(rows, &mut self.columns, self.longest));
        let (mut says_changes, mut results) = (false, 0);
        while let Some(item) = stream.try_next().await.map_err(failed)? {
            self.allowance.renew(most);
            match item {
                QueryItem::Metadata(metadata) => {
                    says_changes = metadata.columns().first().is_some_and(|first| first.name() == CHANGED);
                    results += u32::from(!says_changes);
                    // Of several results the rows of the first one count.
                    if results > 1 {
                        handing.wanted = false;
                    }
                }
                QueryItem::Row(row) if says_changes => {
                    let number = |at: usize| match row.cells().nth(at) {
                        Some((_, ColumnData::I32(value))) => value.map(i64::from),
                        Some((_, ColumnData::I64(value))) => *value,
                        _ => None,
                    };
                    outcome.affected += number(0).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                    outcome.generated = number(1);
                }
                QueryItem::Row(row) => {
                    let names = row.columns().iter().map(tiberius::Column::name);
                    let Some(columns) = handing.columns(row.len(), names) else {
                        handing.unwanted().await;
                        continue;
                    };
                    let values = values(&row, self.longest);
                    handing.hand(columns, values).await;
                }
            }
        }
        handing.end(outcome)
    }

    pub async fn execute(&mut self, text: &str) -> Result<(), Error> {
        self.allowance.renew(SET_UP);
        let stream = self.client.simple_query(text).await.map_err(failed)?;
        stream.into_results().await.map_err(failed)?;
        Ok(())
    }

    pub async fn ping(&mut self) -> Result<(), Error> {
        self.execute("SELECT 1").await
    }
}

fn config(source: &Source) -> Result<Config, Error> {
    let target = &source.target;
    let mut config = Config::new();
    config.host(&target.host);
    match target.option("instanceName") {
        // The SQL Server Browser gives the port.
        Some(instance) if target.port == 0 => config.instance_name(instance),
        _ => config.port(target.port),
    }
    if let Some(database) = &target.database {
        config.database(database);
    }
    config.authentication(AuthMethod::sql_server(&source.user, &source.password));
    config.application_name(target.option("applicationName").unwrap_or("busbar"));
    config.readonly(
        target.option("applicationIntent").is_some_and(|value| value.eq_ignore_ascii_case("readonly")),
    );
    config.lossy_utf16_decoding(true);
    let is = |name: &str| target.option(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let encryption = match target.option("encrypt").map(str::to_ascii_lowercase).as_deref() {
        // The default of Microsoft's JDBC driver since version 10.2.
        None | Some("" | "true" | "yes" | "mandatory") => EncryptionLevel::Required,
        Some("false" | "no" | "optional") => EncryptionLevel::Off,
        Some("strict") => EncryptionLevel::Strict,
        Some(_) => {
            return Err(Error::new(Reason::Unavailable, "encrypt is none of true, false and strict"));
        }
    };
    config.encryption(encryption);
    // As in the JDBC driver, encryption of the login alone accepts every certificate.
    if is("trustServerCertificate") || encryption == EncryptionLevel::Off {
        config.trust_cert();
    } else if let Some(roots) = target.option("sslrootcert") {
        config.trust_cert_ca(roots);
    }
    if let Some(name) = target.option("hostNameInCertificate").filter(|value| !value.is_empty()) {
        config.hostname_in_certificate(name);
    }
    Ok(config)
}

/// Whether a statement changes rows, so that their number must be queried.
fn changes(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            break;
        }
        .trim_start();
    }
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    matches!(&*word.to_ascii_uppercase(), "INSERT" | "UPDATE" | "DELETE" | "MERGE")
}

/// A checked parameter.
#[derive(Debug)]
struct Bound<'a> {
    parameter: &'a Parameter,
    /// Of a decimal number.
    number: Option<Numeric>,
}

impl<'a> Bound<'a> {
    fn new(parameter: &'a Parameter) -> Result<Bound<'a>, Error> {
        let number = match parameter {
            Parameter::Decimal(text) => Some(numeric(text).ok_or_else(|| {
                Error::new(Reason::Value, format!("a decimal number has more than {DIGITS} digits"))
            })?),
            _ => None,
        };
        Ok(Bound { parameter, number })
    }
}

/// A plain number of at most [`DIGITS`] digits, with at least one before the point.
fn numeric(text: &str) -> Option<Numeric> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.trim_start_matches('-').len() + fraction.len();
    let scale = u8::try_from(fraction.len()).ok()?;
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    (digits <= DIGITS && usize::from(scale) < DIGITS).then(|| Numeric::new_with_scale(value, scale))
}

/// Time since midnight in units of 100 ns.
fn ticks(time: Time) -> time::Time {
    let nanos = Time::midnight().duration_until(time).as_nanos();
    time::Time::new(u64::try_from(nanos / 100).unwrap_or(0), 7)
}

fn days(date: Date) -> time::Date {
    time::Date::new(u32::try_from(FIRST.duration_until(date).as_hours() / 24).unwrap_or(0))
}

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> ColumnData<'_> {
        match self.parameter {
            Parameter::Null(kind) => match kind {
                Kind::Text => ColumnData::String(None),
                Kind::Decimal => ColumnData::Numeric(None),
                Kind::Boolean => ColumnData::Bit(None),
                Kind::TinyInt | Kind::SmallInt => ColumnData::I16(None),
                Kind::Integer => ColumnData::I32(None),
                Kind::BigInt => ColumnData::I64(None),
                Kind::Real => ColumnData::F32(None),
                Kind::Double => ColumnData::F64(None),
                Kind::Date => ColumnData::Date(None),
                Kind::Time => ColumnData::Time(None),
                Kind::Timestamp => ColumnData::DateTime2(None),
                Kind::Bytes => ColumnData::Binary(None),
            },
            Parameter::Text(text) => ColumnData::String(Some(Cow::Borrowed(text))),
            Parameter::Decimal(_) => ColumnData::Numeric(self.number),
            Parameter::Boolean(value) => ColumnData::Bit(Some(*value)),
            Parameter::SmallInt(value) => ColumnData::I16(Some(*value)),
            Parameter::Integer(value) => ColumnData::I32(Some(*value)),
            Parameter::BigInt(value) => ColumnData::I64(Some(*value)),
            Parameter::Real(value) => ColumnData::F32(Some(*value)),
            Parameter::Double(value) => ColumnData::F64(Some(*value)),
            Parameter::Date(date) => ColumnData::Date(Some(days(*date))),
            Parameter::Time(time) => ColumnData::Time(Some(ticks(*time))),
            Parameter::Timestamp(at) => {
                ColumnData::DateTime2(Some(time::DateTime2::new(days(at.date()), ticks(at.time()))))
            }
            Parameter::Bytes(bytes) => ColumnData::Binary(Some(Cow::Borrowed(bytes))),
        }
    }
}

fn values(row: &tiberius::Row, longest: usize) -> Result<Vec<Value>, Error> {
    row.cells()
        .map(|(column, data)| {
            let length = match data {
                ColumnData::String(Some(text)) => text.len(),
                ColumnData::Binary(Some(bytes)) => bytes.len(),
                ColumnData::Xml(Some(xml)) => xml.as_ref().as_ref().len(),
                _ => 0,
            };
            if length > longest {
                return Err(is_too_long(column.name(), length, longest));
            }
            value(data, column.column_type()).ok_or_else(|| {
                let name = column.name();
                Error::new(Reason::Value, format!("column {name} cannot be read; cast it to nvarchar"))
            })
        })
        .collect()
}

/// A value of a column.
fn value(data: &ColumnData<'_>, column_type: ColumnType) -> Option<Value> {
    fn read_value<T: Copy>(value: &Option<T>, read: impl FnOnce(T) -> Option<Value>) -> Option<Value> {
        value.map_or(Some(Value::Null), read)
    }
    match data {
        ColumnData::U8(value) => read_value(value, |v| Some(Value::Integer(v.into()))),
        ColumnData::I16(value) => read_value(value, |v| Some(Value::Integer(v.into()))),
        ColumnData::I32(value) => read_value(value, |v| Some(Value::Integer(v.into()))),
        ColumnData::I64(value) => read_value(value, |v| Some(Value::Integer(v))),
        ColumnData::F32(value) => read_value(value, |v| Some(Value::Real(v))),
        // The library converts money to a float.
        ColumnData::F64(value) if matches!(column_type, ColumnType::Money | ColumnType::Money4) => {
            read_value(value, |v| Some(Value::Decimal(format!("{v:.4}"))))
        }
        ColumnData::F64(value) => read_value(value, |v| Some(Value::Double(v))),
        ColumnData::Bit(value) => read_value(value, |v| Some(Value::Boolean(v))),
        ColumnData::Guid(value) => {
            read_value(value, |uuid| Some(Value::Text(uuid.hyphenated().to_string().to_ascii_uppercase())))
        }
        ColumnData::Numeric(value) => read_value(value, |numeric| Some(Value::Decimal(decimal(numeric)))),
        ColumnData::String(value) => {
            Some(value.as_ref().map_or(Value::Null, |text| Value::Text(text.clone().into_owned())))
        }
        ColumnData::Binary(value) => {
            Some(value.as_ref().map_or(Value::Null, |bytes| Value::Bytes(bytes.clone().into_owned())))
        }
        ColumnData::Xml(value) => {
            Some(value.as_ref().map_or(Value::Null, |xml| Value::Text(xml.as_ref().as_ref().to_owned())))
        }
        ColumnData::Date(value) => {
            read_value(value, |d| Some(Value::Date(date(FIRST, d.days().into())?.to_string())))
        }
        ColumnData::Time(value) => read_value(value, |t| {
            let time = Time::midnight().checked_add(since_midnight(t)?).ok()?;
            Some(Value::Time(format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())))
        }),
        ColumnData::DateTime2(value) => {
            read_value(value, |datetime| Some(Value::Timestamp(timestamp_text(at(datetime)?))))
        }
        ColumnData::DateTimeOffset(value) => read_value(value, |datetime| {
            Some(Value::Timestamp(timestamp_text(local(at(datetime.datetime2())?)?)))
        }),
        ColumnData::DateTime(value) => read_value(value, |datetime| {
            // Units of 1/300 s as whole milliseconds.
            let millis = (i64::from(datetime.seconds_fragments()) * 10 + 1) / 3;
            let midnight = date(OLD_FIRST, datetime.days().into())?.to_datetime(Time::midnight());
            Some(Value::Timestamp(timestamp_text(
                midnight.checked_add(SignedDuration::from_millis(millis)).ok()?,
            )))
        }),
        ColumnData::SmallDateTime(value) => read_value(value, |datetime| {
            let midnight = date(OLD_FIRST, datetime.days().into())?.to_datetime(Time::midnight());
            let minutes = SignedDuration::from_mins(datetime.seconds_fragments().into());
            Some(Value::Timestamp(timestamp_text(midnight.checked_add(minutes).ok()?)))
        }),
    }
}

/// A number as `BigDecimal.toString` writes it, with all digits of its scale.
fn decimal(numeric: Numeric) -> String {
    let (sign, scale) = (if numeric.value() < 0 { "-" } else { "" }, usize::from(numeric.scale()));
    let digits = format!("{:0>width$}", numeric.value().unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

fn date(first: Date, days: i64) -> Option<Date> {
    first.checked_add(SignedDuration::from_hours(days.checked_mul(24)?)).ok()
}

fn since_midnight(time: time::Time) -> Option<SignedDuration> {
    let scale = 9_u32.checked_sub(time.scale().into())?;
    let nanos = time.increments().checked_mul(10_u64.pow(scale))?;
    Some(SignedDuration::from_nanos(i64::try_from(nanos).ok()?))
}

fn at(datetime: time::DateTime2) -> Option<DateTime> {
    let midnight = date(FIRST, datetime.date().days().into())?.to_datetime(Time::midnight());
    midnight.checked_add(since_midnight(datetime.time())?).ok()
}

fn unavailable(error: tiberius::error::Error) -> Error {
    let broken = match &error {
        tiberius::error::Error::Io { message, .. } => Some(format!("no connection can be made: {message}")),
        _ => None,
    };
    let error = failed(error);
    Error { reason: Reason::Unavailable, message: broken.unwrap_or(error.message), ..error }
}

/// The error for an error of the library, without the texts that it adds.
fn failed(error: tiberius::error::Error) -> Error {
    use tiberius::error::Error as Tds;
    match error {
        Tds::Server(token) => {
            // From severity class 20 on the server closes the connection.
            let reason = if token.class() >= 20 { Reason::Interrupted } else { Reason::Refused };
            Error {
                number: Some(token.code().into()),
                // A deadlock, and a row that was changed since the snapshot.
                ends_transaction: matches!(token.code(), 1205 | 3960),
                ..Error::new(reason, token.message())
            }
        }
        Tds::Io { message, .. } => {
            Error::new(Reason::Interrupted, format!("the connection broke: {message}"))
        }
        Tds::Tls(message) => {
            Error::new(Reason::Unavailable, format!("TLS with the database failed: {message}"))
        }
        Tds::Conversion(message) | Tds::Encoding(message) => Error::new(Reason::Value, message),
        other => Error::new(Reason::Interrupted, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_go_there_and_back() {
        for text in ["0", "-1.50", "12345678901234567890123456789012345678", "0.0000001", "-0.25"] {
            assert_eq!(decimal(numeric(text).unwrap()), text);
        }
        for text in
            ["123456789012345678901234567890123456789", "0.12345678901234567890123456789012345678", "x"]
        {
            assert!(numeric(text).is_none(), "{text}");
        }
    }

    #[test]
    fn values_are_read_as_java_does() {
        let noon = time::Time::new(12 * 36_000_000_000 + 5_000_000, 7);
        let day = days(Date::constant(2026, 11, 23));
        for (data, column_type, wanted) in [
            (ColumnData::U8(Some(255)), ColumnType::Int1, Value::Integer(255)),
            (ColumnData::I64(None), ColumnType::Int8, Value::Null),
            (ColumnData::F64(Some(12.5)), ColumnType::Money, Value::Decimal("12.5000".into())),
            (ColumnData::F64(Some(12.5)), ColumnType::Float8, Value::Double(12.5)),
            (ColumnData::Bit(Some(true)), ColumnType::Bit, Value::Boolean(true)),
            (ColumnData::Date(Some(day)), ColumnType::Daten, Value::Date("2026-11-23".into())),
            (ColumnData::Time(Some(noon)), ColumnType::Timen, Value::Time("12:00:00".into())),
            (
                ColumnData::DateTime2(Some(time::DateTime2::new(day, noon))),
                ColumnType::Datetime2,
                Value::Timestamp("2026-11-23 12:00:00.5".into()),
            ),
            (
                ColumnData::DateTime(Some(time::DateTime::new(-1, 299))),
                ColumnType::Datetime,
                Value::Timestamp("1899-12-31 00:00:00.997".into()),
            ),
            (
                ColumnData::SmallDateTime(Some(time::SmallDateTime::new(1, 61))),
                ColumnType::Datetime4,
                Value::Timestamp("1900-01-02 01:01:00.0".into()),
            ),
            (
                ColumnData::Guid(Some(tiberius::Uuid::from_u128(0xABCD))),
                ColumnType::Guid,
                Value::Text("00000000-0000-0000-0000-00000000ABCD".into()),
            ),
        ] {
            assert_eq!(value(&data, column_type), Some(wanted), "{data:?}");
        }
        // Values that no server sends.
        assert_eq!(value(&ColumnData::Time(Some(time::Time::new(u64::MAX, 0))), ColumnType::Timen), None);
        assert_eq!(value(&ColumnData::Time(Some(time::Time::new(1, 200))), ColumnType::Timen), None);
        assert_eq!(value(&ColumnData::Date(Some(time::Date::new(0x00FF_FFFF))), ColumnType::Daten), None);
    }

    #[test]
    fn what_changes_rows_is_asked_how_many() {
        for text in
            ["insert into t values (1)", " -- x\n /* y */ UPDATE t set a=1", "delete t", "MERGE t using u"]
        {
            assert!(changes(text), "{text}");
        }
        for text in [
            "select 1",
            "exec p",
            "with a as (select 1 b) select * from a",
            "",
            "-- insert",
            "/* insert",
            "inserted",
        ] {
            assert!(!changes(text), "{text}");
        }
    }
}
