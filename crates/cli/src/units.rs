//! Times and sizes as settings have them.

use serde::Deserialize;
use std::time::Duration;

/// Longest time that a setting may say, in seconds: some hundred years, so that whatever is added to it is a time.
const LONGEST: u64 = 100 * 366 * 24 * 3600;

/// Largest size that a setting may say, in bytes: what is worked out from it is a size too.
const LARGEST: usize = 1 << 46;

/// A time as written in settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct Time(pub Duration);

impl TryFrom<toml::Value> for Time {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Time, String> {
        let error = || format!("`{value}` is not a time: expected e.g. 250ms, 30s, 5m");
        let text = match &value {
            toml::Value::Integer(milliseconds) => {
                let milliseconds = u64::try_from(*milliseconds).map_err(|_| error())?;
                return Time::bounded(&value, Duration::from_millis(milliseconds));
            }
            toml::Value::String(text) => text.trim(),
            _ => return Err(error()),
        };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().map_err(|_| error())?;
        let time = match text[digits..].trim() {
            "ms" | "" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.saturating_mul(60)),
            "h" => Duration::from_secs(number.saturating_mul(3600)),
            _ => return Err(error()),
        };
        Time::bounded(&value, time)
    }
}

impl Time {
    fn bounded(written: &toml::Value, time: Duration) -> Result<Time, String> {
        match time.as_secs() <= LONGEST {
            true => Ok(Time(time)),
            false => Err(format!("`{written}` is too long: at most {}h", LONGEST / 3600)),
        }
    }
}

/// A size as written in settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct Size(pub usize);

impl TryFrom<toml::Value> for Size {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Size, String> {
        let error = || format!("`{value}` is not a size: expected e.g. 16384, 64k, 10m");
        let text = match &value {
            toml::Value::Integer(bytes) => {
                return Size::bounded(&value, usize::try_from(*bytes).map_err(|_| error())?);
            }
            toml::Value::String(text) => text.trim().to_ascii_lowercase(),
            _ => return Err(error()),
        };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: usize = text[..digits].parse().map_err(|_| error())?;
        let factor = match text[digits..].trim() {
            "" | "b" => 1,
            "k" | "kb" => 1 << 10,
            "m" | "mb" => 1 << 20,
            "g" | "gb" => 1 << 30,
            _ => return Err(error()),
        };
        Size::bounded(&value, number.saturating_mul(factor))
    }
}

impl Size {
    fn bounded(written: &toml::Value, bytes: usize) -> Result<Size, String> {
        match bytes <= LARGEST {
            true => Ok(Size(bytes)),
            false => Err(format!("`{written}` is too large: at most {}g", LARGEST >> 30)),
        }
    }
}
