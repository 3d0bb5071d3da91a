//! MySQL and MariaDB.

use super::{Handing, Outcome, Rows, failed, system_roots, unavailable};
use crate::error::{Error, Reason};
use crate::parameter::{Kind, Parameter};
use crate::source::Source;
use crate::statement::Statement;
use crate::value::{Columns, Value, timestamp_text};
use futures_util::TryStreamExt;
use jiff::civil::DateTime;
use sqlx::encode::IsNull;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlSslMode, MySqlTypeInfo};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Decode, Either, Encode, Executor, MySql, Row as _,
    Type, TypeInfo, ValueRef,
};
use std::sync::Arc;

pub(crate) struct Session {
    connection: MySqlConnection,
    /// The columns of the last statement: mostly the next one is the same.
    columns: Arc<Columns>,
    /// `TINYINT(1)` is a boolean, as in the JDBC driver unless `tinyInt1isBit=false`.
    truths: bool,
    /// Most bytes of a value.
    longest: usize,
    /// The server's number of the connection, if it says one.
    pub number: Option<u64>,
}

impl Session {
    pub async fn open(source: &Source) -> Result<Session, Error> {
        let mut connection = options(source)?.connect().await.map_err(unavailable)?;
        let mut first = Vec::new();
        if let Some(variables) = source.target.option("sessionVariables") {
            first.push(format!("SET {variables}"));
        }
        if let Some(isolation) = source.options.isolation {
            first.push(format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", isolation.sql()));
        }
        if source.options.read_only {
            first.push("SET SESSION TRANSACTION READ ONLY".to_owned());
        }
        for statement in first {
            connection.execute(AssertSqlSafe(statement)).await.map_err(unavailable)?;
        }
        // Without it a statement that is given up runs on; everything else works.
        let number = connection.fetch_one("SELECT CAST(CONNECTION_ID() AS UNSIGNED)").await;
        let number = number.and_then(|row| row.try_get(0)).ok();
        let truths =
            source.target.option("tinyInt1isBit").is_none_or(|value| !value.eq_ignore_ascii_case("false"));
        Ok(Session { connection, columns: Arc::default(), truths, longest: source.options.longest, number })
    }

    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: Rows<'_>,
    ) -> Result<Outcome, Error> {
        let mut arguments = MySqlArguments::default();
        for parameter in parameters {
            sqlx::Arguments::add(&mut arguments, Bound(parameter))
                .map_err(|error| Error::new(Reason::Value, error.to_string()))?;
        }
        let text = AssertSqlSafe(Arc::clone(statement.text()));
        let truths = self.truths;
        let mut stream = self.connection.fetch_many(sqlx::query_with(text, arguments));
        let (mut outcome, mut handing) =
            (Outcome::default(), Handing::new(rows, &mut self.columns, self.longest));
        while let Some(item) = stream.try_next().await.map_err(failed)? {
            match item {
                Either::Left(done) => {
                    outcome.affected += done.rows_affected();
                    outcome.generated =
                        i64::try_from(done.last_insert_id()).ok().filter(|&id| id != 0).or(outcome.generated);
                    // A procedure has several results: the rows of the first one count.
                    handing.result_ends();
                }
                Either::Right(row) => handing.row(row, length, move |row| values(row, truths)).await,
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

fn options(source: &Source) -> Result<MySqlConnectOptions, Error> {
    let target = &source.target;
    // Session settings of the library that the JDBC driver does not make.
    let mut options = MySqlConnectOptions::new()
        .host(&target.host)
        .port(target.port)
        .username(if source.user.is_empty() { "root" } else { &source.user })
        .statement_cache_capacity(source.options.statements.max(1))
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None)
        .disable_statement_logging();
    if !source.password.is_empty() {
        options = options.password(&source.password);
    }
    if let Some(database) = &target.database {
        options = options.database(database);
    }
    let is = |name: &str| target.option(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let mode =
        match target.option("sslMode").map(|mode| mode.to_ascii_uppercase().replace('-', "_")).as_deref() {
            Some("DISABLED" | "DISABLE") => MySqlSslMode::Disabled,
            Some("PREFERRED") => MySqlSslMode::Preferred,
            Some("REQUIRED" | "TRUST") => MySqlSslMode::Required,
            Some("VERIFY_CA") => MySqlSslMode::VerifyCa,
            Some("VERIFY_IDENTITY" | "VERIFY_FULL") => MySqlSslMode::VerifyIdentity,
            Some(_) => {
                let message = "sslMode is none of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY";
                return Err(Error::new(Reason::Unavailable, message));
            }
            None if target.option("useSSL").is_some_and(|value| value.eq_ignore_ascii_case("false")) => {
                MySqlSslMode::Disabled
            }
            None if is("verifyServerCertificate") => MySqlSslMode::VerifyCa,
            None if is("requireSSL") => MySqlSslMode::Required,
            None => MySqlSslMode::Preferred,
        };
    options = options.ssl_mode(mode);
    if let Some(roots) = target.option("sslrootcert").or_else(system_roots) {
        options = options.ssl_ca(roots);
    }
    Ok(options)
}

/// A parameter. Decimals and times are sent as texts, which the server converts.
struct Bound<'a>(&'a Parameter);

impl Type<MySql> for Bound<'_> {
    fn type_info() -> MySqlTypeInfo {
        <str as Type<MySql>>::type_info()
    }
}

impl Encode<'_, MySql> for Bound<'_> {
    fn encode_by_ref(&self, out: &mut Vec<u8>) -> Result<IsNull, sqlx::error::BoxDynError> {
        let mut text = |text: &str| <&str as Encode<'_, MySql>>::encode(text, out);
        match self.0 {
            Parameter::Null(_) => Ok(IsNull::Yes),
            Parameter::Text(value) | Parameter::Decimal(value) => text(value),
            Parameter::Date(value) => text(&value.to_string()),
            Parameter::Time(value) => text(&value.to_string()),
            Parameter::Timestamp(value) => text(&timestamp_text(*value)),
            Parameter::Boolean(value) => Encode::<MySql>::encode(*value, out),
            Parameter::SmallInt(value) => Encode::<MySql>::encode(*value, out),
            Parameter::Integer(value) => Encode::<MySql>::encode(*value, out),
            Parameter::BigInt(value) => Encode::<MySql>::encode(*value, out),
            Parameter::Real(value) => Encode::<MySql>::encode(*value, out),
            Parameter::Double(value) => Encode::<MySql>::encode(*value, out),
            Parameter::Bytes(value) => Encode::<MySql>::encode(value.as_slice(), out),
        }
    }

    fn produces(&self) -> Option<MySqlTypeInfo> {
        Some(match self.0.kind() {
            Kind::Text | Kind::Decimal | Kind::Date | Kind::Time | Kind::Timestamp => {
                <str as Type<MySql>>::type_info()
            }
            Kind::Boolean => <bool as Type<MySql>>::type_info(),
            Kind::TinyInt | Kind::SmallInt => <i16 as Type<MySql>>::type_info(),
            Kind::Integer => <i32 as Type<MySql>>::type_info(),
            Kind::BigInt => <i64 as Type<MySql>>::type_info(),
            Kind::Real => <f32 as Type<MySql>>::type_info(),
            Kind::Double => <f64 as Type<MySql>>::type_info(),
            Kind::Bytes => <[u8] as Type<MySql>>::type_info(),
        })
    }
}

/// The bytes of a value as received.
fn length(row: &sqlx::mysql::MySqlRow, at: usize) -> usize {
    let raw = row.try_get_raw(at).ok().filter(|raw| !raw.is_null());
    let bytes: Option<&[u8]> = raw.and_then(|raw| Decode::<MySql>::decode(raw).ok());
    bytes.map_or(0, <[u8]>::len)
}

fn values(row: &sqlx::mysql::MySqlRow, truths: bool) -> Result<Vec<Value>, Error> {
    (0..row.len())
        .map(|at| {
            let raw = row.try_get_raw(at).map_err(failed)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            let column_type = raw.type_info().into_owned();
            let bytes: Option<&[u8]> = Decode::<MySql>::decode(raw).ok();
            // Texts of a collation like utf8mb4_bin have the flag of binary values, too: which of both they are is said by the character set.
            let is_text = <str as Type<MySql>>::compatible(&column_type);
            let name = if is_text { "VARCHAR" } else { column_type.name() };
            bytes.and_then(|bytes| value(name, bytes, truths)).ok_or_else(|| {
                let name = row.column(at).name();
                Error::new(
                    Reason::Value,
                    format!("column {name} of type {} cannot be read; cast it to CHAR", column_type.name()),
                )
            })
        })
        .collect()
}

/// The value of bytes in the binary format of their type.
fn value(name: &str, bytes: &[u8], truths: bool) -> Option<Value> {
    let signed = |bytes: &[u8]| -> Option<i64> {
        Some(match bytes.len() {
            1 => i64::from(bytes[0] as i8),
            2 => i16::from_le_bytes(bytes.try_into().ok()?).into(),
            4 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
            8 => i64::from_le_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    };
    let unsigned = |bytes: &[u8]| -> Option<u64> {
        let mut all = [0; 8];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(all))
    };
    let text = || Some(std::str::from_utf8(bytes).ok()?.to_owned());
    Some(match name {
        "BOOLEAN" if truths => Value::Boolean(signed(bytes)? != 0),
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "INT" | "MEDIUMINT" | "BIGINT" => Value::Integer(signed(bytes)?),
        "BIGINT UNSIGNED" => Value::Unsigned(unsigned(bytes)?),
        "YEAR" => Value::Integer(i64::try_from(unsigned(bytes)?).ok()?),
        name if name.ends_with("UNSIGNED") => Value::Integer(i64::try_from(unsigned(bytes)?).ok()?),
        "FLOAT" => Value::Real(f32::from_le_bytes(bytes.try_into().ok()?)),
        "DOUBLE" => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        "DECIMAL" => Value::Decimal(text()?),
        "BIT" if bytes.len() == 1 && bytes[0] <= 1 => Value::Boolean(bytes[0] == 1),
        "BIT" | "BINARY" | "VARBINARY" | "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" | "GEOMETRY" => {
            Value::Bytes(bytes.to_vec())
        }
        "DATE" => Value::Date(date_time(bytes)?.date().to_string()),
        "DATETIME" | "TIMESTAMP" => Value::Timestamp(timestamp_text(date_time(bytes)?)),
        "TIME" => Value::Time(time(bytes)?),
        "NULL" => Value::Null,
        _ => Value::Text(text()?),
    })
}

/// A length, then year, month, day, hour, minute, second, microseconds, up to the last that is not zero.
fn date_time(bytes: &[u8]) -> Option<DateTime> {
    let at = |at: usize| bytes.get(at).copied().unwrap_or(0) as i8;
    let year = i16::from_le_bytes(bytes.get(1..3)?.try_into().ok()?);
    let micros = bytes.get(8..12).and_then(|micros| micros.try_into().ok()).map_or(0, i32::from_le_bytes);
    DateTime::new(year, at(3), at(4), at(5), at(6), at(7), micros.checked_mul(1000)?).ok()
}

/// A length, then sign, days, hour, minute, second: a time may be negative, and longer than a day.
fn time(bytes: &[u8]) -> Option<String> {
    let at = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    let days = bytes.get(2..6).and_then(|days| days.try_into().ok()).map_or(0, u32::from_le_bytes);
    let sign = if at(1) == 1 { "-" } else { "" };
    Some(format!("{sign}{:02}:{:02}:{:02}", days.checked_mul(24)? + at(6), at(7), at(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_type() {
        for (name, bytes, wanted) in [
            ("BOOLEAN", &[1_u8][..], Value::Boolean(true)),
            ("TINYINT", &[0xFF], Value::Integer(-1)),
            ("TINYINT UNSIGNED", &[0xFF], Value::Integer(255)),
            ("INT", &[1, 0, 0, 0], Value::Integer(1)),
            ("BIGINT UNSIGNED", &[0xFF; 8], Value::Unsigned(u64::MAX)),
            ("DECIMAL", b"1.50", Value::Decimal("1.50".into())),
            ("DATE", &[4, 0xEA, 7, 11, 23], Value::Date("2026-11-23".into())),
            ("DATETIME", &[7, 0xEA, 7, 11, 23, 1, 2, 3], Value::Timestamp("2026-11-23 01:02:03.0".into())),
            ("TIME", &[0], Value::Time("00:00:00".into())),
            ("TIME", &[8, 1, 1, 0, 0, 0, 2, 3, 4], Value::Time("-26:03:04".into())),
            ("VARCHAR", "é".as_bytes(), Value::Text("é".into())),
        ] {
            assert_eq!(value(name, bytes, true), Some(wanted), "{name}");
        }
        assert_eq!(value("BOOLEAN", &[2], false), Some(Value::Integer(2)));
        assert!(value("INT", &[1], true).is_some() && value("INT", &[1, 2, 3], true).is_none());
    }
}
