//! Formatted numbers and dates: `format-number()`, `format-integer()`, `format-date()` and the numbers of `xsl:number`.

pub mod integer;
pub mod number;
pub mod numbering;
pub mod picture;
pub mod pictures;

pub use number::DecimalFormat;

/// Whether a character is the digit zero of some script.
pub fn is_zero_digit(c: char) -> bool {
    integer::zero_of(c) == Some(c)
}

/// A number with zeros in front, of at least that many digits. (The formatting of the standard library takes at most 65,535.)
pub fn padded(number: u64, width: usize) -> String {
    let digits = number.to_string();
    "0".repeat(width.saturating_sub(digits.len())) + &digits
}
