//! Character classes of XML 1.0, 5th edition.

/// `S`: space, tab, line feed, carriage return ([3]).
#[inline]
pub const fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// `Char` ([2]).
pub const fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}

/// `NameStartChar` ([4]), with the colon.
pub const fn is_name_start(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '_' | ':'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
        | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// `NameChar` ([4a]), with the colon.
pub const fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// `Name` ([5]).
pub fn is_name(s: &str) -> bool {
    let mut chars = s.chars();
    chars.next().is_some_and(is_name_start) && chars.all(is_name_char)
}

/// `NCName` (Namespaces [4]): a name without colon.
pub fn is_ncname(s: &str) -> bool {
    // Most names are ASCII.
    match s.as_bytes() {
        [first, rest @ ..] if s.is_ascii() => {
            (first.is_ascii_alphabetic() || *first == b'_')
                && rest.iter().all(|byte| NAME_BYTE[usize::from(*byte)] && *byte != b':')
        }
        _ => is_name(s) && !s.contains(':'),
    }
}

/// Whether two strings are equal; empty ones are not compared. (Comparing no bytes at the address of an empty string
/// has costs some processors hundreds of cycles, and most prefixes and namespaces are empty.)
#[inline]
pub fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// Bytes that may be part of a name: ASCII name characters and every byte of a longer character.
/// Whether a longer character is a name character is checked once per distinct name, when it is interned.
pub(crate) static NAME_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = i >= 0x80 || is_name_char(i as u8 as char);
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, is, nc) in [
            ("a", true, true),
            ("a:b", true, false),
            ("", false, false),
            ("1a", false, false),
            ("-a", false, false),
            ("a-1.b_c", true, true),
            ("\u{B7}a", false, false),
            ("a\u{B7}", true, true),
            ("\u{3042}", true, true),
            ("\u{D7}", false, false),
            ("a b", false, false),
        ] {
            assert_eq!((is_name(name), is_ncname(name)), (is, nc), "{name}");
        }
    }
}
