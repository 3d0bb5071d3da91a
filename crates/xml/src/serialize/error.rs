//! Results that cannot be written as the options ask.

use std::fmt;

/// A document that cannot be written as the options ask (XSLT and XQuery Serialization 3.1). The message begins with the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// A character that the encoding lacks stands where there are no character references (section 3).
    Character {
        /// The character.
        character: char,
        /// The name of the encoding.
        encoding: &'static str,
    },
    /// With `standalone` or `doctype_system` there are several elements, or text, at the top (section 5).
    NotADocument,
    /// The options leave no place for `standalone` or for the version (section 5.1.6).
    NoDeclaration,
    /// There is no such version of XML (section 5.1.1).
    Version,
    /// A control character, which HTML 4 does not have (section 7.3).
    Control(char),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Character { character, encoding } => {
                let number = u32::from(*character);
                write!(f, "SERE0008: the encoding {encoding} does not have the character \"{character}\" ")?;
                write!(f, "(U+{number:04X}), which stands where there are no character references: choose UTF-8")
            }
            WriteError::NotADocument => f.write_str(
                "SEPM0004: with standalone or doctype-system a result has one element and no text at the top",
            ),
            WriteError::NoDeclaration => f.write_str(
                "SEPM0009: omit-xml-declaration=\"yes\" leaves no place for standalone, and with doctype-system for a version other than 1.0",
            ),
            WriteError::Version => f.write_str("SESU0013: the versions of XML are 1.0 and 1.1"),
            WriteError::Control(character) => {
                write!(f, "SERE0014: HTML 4 does not have the control character U+{:04X}", u32::from(*character))
            }
        }
    }
}

impl std::error::Error for WriteError {}
