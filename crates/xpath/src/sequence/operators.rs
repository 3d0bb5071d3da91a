//! Operators on atomic values: comparisons and arithmetic (XPath 2.0 sections 3.4 and 3.5; F&O sections 6 to 12).

use super::plan::Arithmetic;
use crate::ast::BinaryOp;
use crate::atomic::large;
use crate::atomic::{Atomic, AtomicType, Decimal, Duration, DurationKind, Kind, MomentKind};
use crate::error::{Span, XPathError};
use crate::eval::Fault;
use crate::number::{holds, modulo};
use num_bigint::BigInt;
use std::cmp::Ordering;

/// The implicit timezone, in minutes east of UTC.
pub(crate) const IMPLICIT_ZONE: i16 = 0;

/// An error with its code.
#[cold]
pub(crate) fn failed(code: &'static str, message: impl Into<String>, span: Span) -> Fault {
    Box::new(XPathError::new(message, span).with_code(code))
}

/// A number of any type, promoted to that of the other operand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Integer(i64),
    Decimal(Decimal),
    Float(f32),
    Double(f64),
}

impl Number {
    pub fn of(a: &Atomic) -> Option<Number> {
        Some(match a {
            Atomic::Integer(n) => Number::Integer(*n),
            // Beside another number: exact where a decimal can represent it.
            Atomic::Large(n) => match i128::try_from(&**n) {
                Ok(n) => Number::Decimal(Decimal::new(n, 0)),
                Err(_) => Number::Double(a.to_double()),
            },
            Atomic::Decimal(d) => Number::Decimal(**d),
            Atomic::Float(n) => Number::Float(*n),
            Atomic::Double(n) => Number::Double(*n),
            _ => return None,
        })
    }

    fn decimal(self) -> Option<Decimal> {
        match self {
            Number::Integer(n) => Some(Decimal::from(n)),
            Number::Decimal(d) => Some(d),
            _ => None,
        }
    }

    pub fn double(self) -> f64 {
        match self {
            Number::Integer(n) => n as f64,
            Number::Decimal(d) => d.to_double(),
            Number::Float(n) => f64::from(n),
            Number::Double(n) => n,
        }
    }

    fn float(self) -> Option<f32> {
        match self {
            Number::Double(_) => None,
            Number::Float(n) => Some(n),
            other => Some(other.double() as f32),
        }
    }
}

/// The order of two numbers; `None`: one is NaN.
fn numeric_order(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => Some(a.cmp(&b)),
        _ => match (a.decimal(), b.decimal()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => match (a.float(), b.float()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => a.double().partial_cmp(&b.double()),
            },
        },
    }
}

/// How two values compare.
pub(crate) enum Compared {
    Order(Ordering),
    /// Neither less, greater nor equal: NaN.
    Unordered,
    /// Only equality is defined.
    Equality(bool),
}

/// Compares two values, untyped ones as strings. `None`: their types are not comparable.
pub(crate) fn compare(a: &Atomic, b: &Atomic) -> Option<Compared> {
    if let (Some(a), Some(b)) = (a.as_text(), b.as_text()) {
        return Some(Compared::Order(a.as_bytes().cmp(b.as_bytes())));
    }
    if let Some((a, b)) = large::wholes(a, b) {
        return Some(Compared::Order(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return Some(numeric_order(a, b).map_or(Compared::Unordered, Compared::Order));
    }
    Some(match (a, b) {
        (Atomic::Boolean(a), Atomic::Boolean(b)) => Compared::Order(a.cmp(b)),
        (Atomic::Moment(a), Atomic::Moment(b)) if a.kind == b.kind => {
            let order = a.compare(**b, IMPLICIT_ZONE);
            match a.kind {
                MomentKind::DateTime | MomentKind::Date | MomentKind::Time => Compared::Order(order),
                _ => Compared::Equality(order == Ordering::Equal),
            }
        }
        (Atomic::Duration(a), Atomic::Duration(b)) => match (a.kind, b.kind) {
            (DurationKind::YearMonth, DurationKind::YearMonth) => Compared::Order(a.months.cmp(&b.months)),
            (DurationKind::DayTime, DurationKind::DayTime) => Compared::Order(a.nanos.cmp(&b.nanos)),
            _ => Compared::Equality(a.months == b.months && a.nanos == b.nanos),
        },
        (Atomic::Name(a), Atomic::Name(b)) => {
            Compared::Equality(a.namespace == b.namespace && a.local == b.local)
        }
        (Atomic::Hex(a), Atomic::Hex(b)) | (Atomic::Base64(a), Atomic::Base64(b)) => {
            Compared::Order(a.cmp(b))
        }
        _ => return None,
    })
}

/// `eq`, without an error where the types cannot be compared; NaN equals nothing.
pub(crate) fn equal(a: &Atomic, b: &Atomic) -> bool {
    matches!(compare(a, b), Some(Compared::Order(Ordering::Equal) | Compared::Equality(true)))
}

/// See [`Atomic::total_order`].
pub(crate) fn total_order(a: &Atomic, b: &Atomic) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_text(), b.as_text()) {
        return a.as_bytes().cmp(b.as_bytes());
    }
    if let Some((a, b)) = large::wholes(a, b) {
        return a.cmp(&b);
    }
    let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) else {
        return order(a, b).unwrap_or(Ordering::Equal);
    };
    let nan = |n: Number| matches!(n, Number::Float(_) | Number::Double(_)) && n.double().is_nan();
    match (nan(x), nan(y)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => match (x.decimal(), y.decimal()) {
            (Some(a), Some(b)) => a.cmp(&b),
            // A float is a double; then a double is compared with an exact number.
            (None, None) => x.double().partial_cmp(&y.double()).unwrap_or(Ordering::Equal),
            (Some(a), None) => exact_order(a, y.double()),
            (None, Some(b)) => exact_order(b, x.double()).reverse(),
        },
    }
}

/// The order of a decimal and a double that is a number, by their exact values.
fn exact_order(a: Decimal, b: f64) -> Ordering {
    // Rounding to the nearest double is monotonic; if both are the same double, the decimal lies on one side of it.
    let near = a.to_double();
    match near.partial_cmp(&b) {
        Some(Ordering::Equal) => exact_digits(&a.to_string(), &format!("{b:.1100}")),
        other => other.unwrap_or(Ordering::Equal),
    }
}

/// The order of two numbers of the same sign by all their digits.
fn exact_digits(a: &str, b: &str) -> Ordering {
    let parts = |text: &'_ str| -> (String, String) {
        let (whole, fraction) =
            text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
        (whole.trim_start_matches('0').to_owned(), fraction.trim_end_matches('0').to_owned())
    };
    let ((a_whole, a_fraction), (b_whole, b_fraction)) = (parts(a), parts(b));
    let order = (a_whole.len().cmp(&b_whole.len()))
        .then_with(|| a_whole.cmp(&b_whole))
        .then_with(|| a_fraction.cmp(&b_fraction));
    if a.starts_with('-') { order.reverse() } else { order }
}

/// The order of two values; `None`: there is none.
pub(crate) fn order(a: &Atomic, b: &Atomic) -> Option<Ordering> {
    match compare(a, b)? {
        Compared::Order(order) => Some(order),
        _ => None,
    }
}

/// A value comparison.
pub(crate) fn value_comparison(op: BinaryOp, a: &Atomic, b: &Atomic, span: Span) -> Result<bool, Fault> {
    let incomparable = || {
        let (a, b) = (AtomicType::of(a.kind()).name, AtomicType::of(b.kind()).name);
        failed("XPTY0004", format!("an xs:{a} and an xs:{b} cannot be compared with this operator"), span)
    };
    Ok(match compare(a, b).ok_or_else(incomparable)? {
        Compared::Order(order) => holds(op, order),
        Compared::Unordered => op == BinaryOp::NotEqual,
        Compared::Equality(equal) => match op {
            BinaryOp::Equal => equal,
            BinaryOp::NotEqual => !equal,
            _ => return Err(incomparable()),
        },
    })
}

/// One pair of a general comparison: untyped values take the type of the other side.
pub(crate) fn general_comparison(op: BinaryOp, a: &Atomic, b: &Atomic, span: Span) -> Result<bool, Fault> {
    let like = |untyped: &Atomic, other: &Atomic| -> Result<Atomic, Fault> {
        let to = match other.kind() {
            Kind::Untyped | Kind::String | Kind::Uri => Kind::String,
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::Double => Kind::Double,
            other => other,
        };
        untyped.cast(AtomicType::of(to)).map_err(|e| failed(e.code, e.message, span))
    };
    match (a, b) {
        (Atomic::Untyped(_) | Atomic::String(_), Atomic::Untyped(_) | Atomic::String(_))
            if let (Some(a), Some(b)) = (a.as_text(), b.as_text()) =>
        {
            Ok(holds(op, a.cmp(b)))
        }
        (Atomic::Untyped(_), _) => value_comparison(op, &like(a, b)?, b, span),
        (_, Atomic::Untyped(_)) => value_comparison(op, a, &like(b, a)?, span),
        _ => value_comparison(op, a, b, span),
    }
}

/// Arithmetic on two values; untyped ones count as doubles.
pub(crate) fn arithmetic(op: Arithmetic, a: &Atomic, b: &Atomic, span: Span) -> Result<Atomic, Fault> {
    if op != Arithmetic::Divide
        && let Some((a, b)) = large::wholes(a, b)
    {
        return whole(op, &a, &b, span);
    }
    let number = |a: &Atomic| -> Result<Option<Number>, Fault> {
        if let Atomic::Untyped(text) = a {
            let parsed = crate::atomic::parse_double(text);
            return parsed.map(|n| Some(Number::Double(n))).ok_or_else(|| {
                failed(
                    "FORG0001",
                    format!("\"{}\" is not a number", text.chars().take(60).collect::<String>()),
                    span,
                )
            });
        }
        Ok(Number::of(a))
    };
    let exact = |a: &Atomic| matches!(a, Atomic::Integer(_) | Atomic::Large(_) | Atomic::Decimal(_));
    match (number(a)?, number(b)?) {
        // Of two exact numbers one has more digits than a decimal: the result is no double.
        (Some(x), Some(y))
            if exact(a) && exact(b) && matches!((x, y), (Number::Double(_), _) | (_, Number::Double(_))) =>
        {
            if matches!(op, Arithmetic::Divide | Arithmetic::IntegerDivide | Arithmetic::Modulo)
                && y.double() == 0.0
            {
                return Err(failed("FOAR0001", "division by zero", span));
            }
            let quotient = match op {
                Arithmetic::Divide => large::wholes(a, b).and_then(|(a, b)| large::quotient(&a, &b)),
                _ => None,
            };
            let message = "a decimal operation on an integer of more than 38 digits";
            quotient.map(Atomic::decimal).ok_or_else(|| failed("FOAR0002", message, span))
        }
        (Some(a), Some(b)) => numeric(op, a, b, span),
        (a_number, b_number) => temporal(op, a, b, a_number, b_number, span),
    }
}

fn numeric(op: Arithmetic, a: Number, b: Number, span: Span) -> Result<Atomic, Fault> {
    use Arithmetic as A;
    let by_zero = || failed("FOAR0001", "division by zero", span);
    let overflow = || failed("FOAR0002", "the result is too large", span);
    if op == A::IntegerDivide {
        return integer_division(a, b, span);
    }
    if let (Number::Integer(x), Number::Integer(y)) = (a, b)
        && op != A::Divide
    {
        if op == A::Modulo && y == 0 {
            return Err(by_zero());
        }
        return match integers(op, x, y) {
            Some(n) => Ok(Atomic::Integer(n)),
            None => whole(op, &x.into(), &y.into(), span),
        };
    }
    if let (Some(x), Some(y)) = (a.decimal(), b.decimal()) {
        let result = match op {
            A::Add => x.plus(y),
            A::Subtract => x.minus(y),
            A::Multiply => x.multiply(y),
            _ if y.is_zero() => return Err(by_zero()),
            A::Divide => x.divide(y),
            _ => x.remainder(y),
        };
        return result.map(Atomic::decimal).ok_or_else(overflow);
    }
    if let (Some(x), Some(y)) = (a.float(), b.float()) {
        return Ok(Atomic::Float(match op {
            A::Add => x + y,
            A::Subtract => x - y,
            A::Multiply => x * y,
            A::Divide => x / y,
            _ => x % y,
        }));
    }
    Ok(Atomic::Double(doubles(op, a.double(), b.double())))
}

/// Arithmetic of two integers. `None`: the result is none of 64 bits, or none at all.
pub(crate) fn integers(op: Arithmetic, x: i64, y: i64) -> Option<i64> {
    match op {
        Arithmetic::Add => x.checked_add(y),
        Arithmetic::Subtract => x.checked_sub(y),
        Arithmetic::Multiply => x.checked_mul(y),
        Arithmetic::Modulo => x.checked_rem(y),
        Arithmetic::IntegerDivide => x.checked_div(y),
        // A decimal.
        Arithmetic::Divide => None,
    }
}

/// Arithmetic of two doubles; `idiv` is not among it.
pub(crate) fn doubles(op: Arithmetic, x: f64, y: f64) -> f64 {
    match op {
        Arithmetic::Add => x + y,
        Arithmetic::Subtract => x - y,
        Arithmetic::Multiply => x * y,
        Arithmetic::Divide => x / y,
        _ => modulo(x, y),
    }
}

/// Arithmetic on integers of any size.
fn whole(op: Arithmetic, a: &BigInt, b: &BigInt, span: Span) -> Result<Atomic, Fault> {
    crate::eval::spend(((a.bits() + b.bits()) >> 6) as usize)?;
    let result = match op {
        Arithmetic::Add => large::integer(a + b),
        Arithmetic::Subtract => large::integer(a - b),
        Arithmetic::Multiply => large::product(a, b),
        _ if b.sign() == num_bigint::Sign::NoSign => {
            return Err(failed("FOAR0001", "division by zero", span));
        }
        Arithmetic::Modulo => large::integer(a % b),
        _ => large::integer(a / b),
    };
    result.ok_or_else(|| failed("FOAR0002", "the result has too many digits", span))
}

fn integer_division(a: Number, b: Number, span: Span) -> Result<Atomic, Fault> {
    let by_zero = || failed("FOAR0001", "division by zero", span);
    let overflow = || failed("FOAR0002", "the result of idiv has too many digits", span);
    if let (Some(x), Some(y)) = (a.decimal(), b.decimal()) {
        if y.is_zero() {
            return Err(by_zero());
        }
        return x.whole_quotient(y).and_then(|q| large::integer(q.into())).ok_or_else(overflow);
    }
    let (x, y) = (a.double(), b.double());
    if y == 0.0 {
        return Err(by_zero());
    }
    let quotient = (x / y).trunc();
    if x.is_infinite() || !quotient.is_finite() {
        return Err(overflow());
    }
    large::of_double(quotient).ok_or_else(overflow)
}

/// Dates, times and durations (F&O sections 10.6 and 10.8).
fn temporal(
    op: Arithmetic,
    a: &Atomic,
    b: &Atomic,
    a_number: Option<Number>,
    b_number: Option<Number>,
    span: Span,
) -> Result<Atomic, Fault> {
    use Arithmetic as A;
    let refused = || {
        let (a, b) = (AtomicType::of(a.kind()).name, AtomicType::of(b.kind()).name);
        failed("XPTY0004", format!("there is no xs:{a} {} xs:{b}", op.symbol()), span)
    };
    let too_far = || failed("FODT0001", "the date is too far away", span);
    let too_long = || failed("FODT0002", "the duration is too long", span);
    let ordered = |d: &Duration| d.kind != DurationKind::Duration;
    Ok(match (a, b) {
        (Atomic::Moment(x), Atomic::Moment(y)) if x.kind == y.kind && op == A::Subtract => match x.kind {
            MomentKind::DateTime | MomentKind::Date | MomentKind::Time => {
                let nanos = x.utc_nanos(IMPLICIT_ZONE) - y.utc_nanos(IMPLICIT_ZONE);
                Atomic::duration(Duration::day_time(nanos))
            }
            _ => return Err(refused()),
        },
        (Atomic::Moment(m), Atomic::Duration(d)) if matches!(op, A::Add | A::Subtract) => {
            moved(m, d, op == A::Subtract).ok_or_else(refused)?.ok_or_else(too_far)?
        }
        (Atomic::Duration(d), Atomic::Moment(m)) if op == A::Add => {
            moved(m, d, false).ok_or_else(refused)?.ok_or_else(too_far)?
        }
        (Atomic::Duration(x), Atomic::Duration(y)) if x.kind == y.kind && ordered(x) => match op {
            A::Add | A::Subtract => {
                let sign = if op == A::Add { 1 } else { -1 };
                let months = x.months.checked_add(sign * y.months).ok_or_else(too_long)?;
                let nanos = x.nanos.checked_add(i128::from(sign) * y.nanos).ok_or_else(too_long)?;
                Atomic::duration(Duration { months, nanos, ..**x })
            }
            A::Divide => {
                let (part, whole) = match x.kind {
                    DurationKind::YearMonth => (i128::from(x.months), i128::from(y.months)),
                    _ => (x.nanos, y.nanos),
                };
                if whole == 0 {
                    return Err(failed("FOAR0001", "division by a duration of zero", span));
                }
                let quotient = Decimal::new(part, 0).divide(Decimal::new(whole, 0));
                Atomic::decimal(quotient.ok_or_else(too_long)?)
            }
            _ => return Err(refused()),
        },
        (Atomic::Duration(d), _)
            if ordered(d) && b_number.is_some() && matches!(op, A::Multiply | A::Divide) =>
        {
            let factor = b_number.map_or(f64::NAN, Number::double);
            scaled(d, factor, op == A::Divide, span)?
        }
        (_, Atomic::Duration(d)) if ordered(d) && a_number.is_some() && op == A::Multiply => {
            scaled(d, a_number.map_or(f64::NAN, Number::double), false, span)?
        }
        _ => return Err(refused()),
    })
}

/// Adds a duration to a moment. Outer `None`: this moment cannot be changed by this duration.
fn moved(m: &crate::atomic::Moment, d: &Duration, back: bool) -> Option<Option<Atomic>> {
    let sign = if back { -1 } else { 1 };
    let result = match (m.kind, d.kind) {
        (MomentKind::DateTime | MomentKind::Date, DurationKind::YearMonth) => {
            m.plus_months(i64::from(sign) * d.months)
        }
        (MomentKind::DateTime | MomentKind::Date | MomentKind::Time, DurationKind::DayTime) => {
            m.plus_nanos(i128::from(sign) * d.nanos)
        }
        _ => return None,
    };
    Some(result.map(Atomic::moment))
}

fn scaled(d: &Duration, factor: f64, divide: bool, span: Span) -> Result<Atomic, Fault> {
    if factor.is_nan() {
        return Err(failed("FOCA0005", "a duration cannot be multiplied or divided by NaN", span));
    }
    let too_long = || failed("FODT0002", "the duration is too long", span);
    if (divide && factor == 0.0) || (!divide && factor.is_infinite()) {
        return Err(too_long());
    }
    let scale = |part: f64| if divide { part / factor } else { part * factor };
    let result = match d.kind {
        DurationKind::YearMonth => {
            let months = crate::number::round(scale(d.months as f64));
            if months.abs() > 9e15 {
                return Err(too_long());
            }
            Duration { months: months as i64, ..*d }
        }
        _ => {
            let whole = factor.fract() == 0.0 && factor.abs() < 1e15;
            let nanos = if whole && !divide {
                d.nanos.checked_mul(factor as i128).ok_or_else(too_long)?
            } else {
                let nanos = scale(d.nanos as f64).round();
                if nanos.abs() > 1e33 {
                    return Err(too_long());
                }
                nanos as i128
            };
            Duration { nanos, ..*d }
        }
    };
    Ok(Atomic::duration(result))
}

/// The seconds of a duration as a decimal.
pub(crate) fn seconds(nanos: i128) -> Decimal {
    Decimal::new(nanos, 9)
}
