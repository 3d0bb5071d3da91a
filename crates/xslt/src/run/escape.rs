//! Escaping of text and attribute values in UTF-8 XML.

/// 1 = escaped in text and attribute values, 2 = in attribute values only, 3 = in text only.
static SPECIAL: [u8; 256] = {
    let mut table = [0; 256];
    table[b'&' as usize] = 1;
    table[b'<' as usize] = 1;
    table[b'>' as usize] = 3;
    table[b'\r' as usize] = 1;
    table[b'"' as usize] = 2;
    table[b'\t' as usize] = 2;
    table[b'\n' as usize] = 2;
    table
};

fn reference(byte: u8) -> &'static [u8] {
    match byte {
        b'&' => b"&amp;",
        b'<' => b"&lt;",
        b'>' => b"&gt;",
        b'\r' => b"&#13;",
        b'"' => b"&quot;",
        b'\t' => b"&#9;",
        _ => b"&#10;",
    }
}

/// Appends text.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    escaped(out, text.as_bytes(), |byte| SPECIAL[byte as usize] & 1 == 1);
}

/// Appends the value of an attribute in double quotes.
#[inline]
pub(crate) fn attribute(out: &mut Vec<u8>, value: &str) {
    escaped(out, value.as_bytes(), |byte| matches!(SPECIAL[byte as usize], 1 | 2));
}

#[inline(always)]
fn escaped(out: &mut Vec<u8>, bytes: &[u8], special: impl Fn(u8) -> bool) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| special(*byte)) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(reference(rest[at]));
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}
