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
