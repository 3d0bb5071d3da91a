//! `deployment.toml` as tables.

use std::ops::Range;
use toml::de::{DeTable, DeValue, Error};
use toml::{Table, Value};

/// The tables of a text, and the places of the values that are left out because they fit no number of this machine.
///
/// # Errors
/// It is no TOML.
pub fn deployment_tables(text: &str) -> Result<(Table, Vec<Range<usize>>), Error> {
    let mut left_out = Vec::new();
    let tables = table(DeTable::parse(text)?.get_ref(), &mut left_out);
    Ok((tables, left_out))
}

fn table(written: &DeTable<'_>, left_out: &mut Vec<Range<usize>>) -> Table {
    let entries = written.iter().filter_map(|(name, entry)| {
        let value = value(entry.get_ref(), &entry.span(), left_out)?;
        Some((name.get_ref().to_string(), value))
    });
    entries.collect()
}

fn value(written: &DeValue<'_>, place: &Range<usize>, left_out: &mut Vec<Range<usize>>) -> Option<Value> {
    let found = match written {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Integer)
        }
        DeValue::Float(number) => number.as_str().parse().ok().map(Value::Float),
        DeValue::Boolean(is) => Some(Value::Boolean(*is)),
        DeValue::Datetime(time) => Some(Value::Datetime(*time)),
        DeValue::Array(items) => {
            let items = items.iter().filter_map(|item| value(item.get_ref(), &item.span(), left_out));
            Some(Value::Array(items.collect()))
        }
        DeValue::Table(inside) => Some(Value::Table(table(inside, left_out))),
    };
    if found.is_none() {
        left_out.push(place.clone());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_fit_nowhere_are_left_out_and_nothing_else() {
        let text = "a = 1\nb = 9223372036854775808\n[c]\nd = -9_223_372_036_854_775_809\ne = [1, 0xffffffffffffffffffff, 0x1f]\nf = 'x'\ng = 1_0.5\nh = -inf\nt = 2026-11-27\n";
        let (tables, left_out) = deployment_tables(text).unwrap();
        let places: Vec<&str> = left_out.into_iter().map(|place| &text[place]).collect();
        assert_eq!(places, ["9223372036854775808", "-9_223_372_036_854_775_809", "0xffffffffffffffffffff"]);
        let wanted = "a = 1\n[c]\ne = [1, 31]\nf = 'x'\ng = 10.5\nh = -inf\nt = 2026-11-27\n";
        assert_eq!(tables, wanted.parse::<Table>().unwrap());
        assert!(deployment_tables("a = \n").is_err());
        let huge = format!("a = {}\nb = 2\n", "9".repeat(10_000));
        assert_eq!(deployment_tables(&huge).unwrap().0, "b = 2".parse::<Table>().unwrap());
    }
}
