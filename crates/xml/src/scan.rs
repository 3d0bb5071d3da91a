//! Finding delimiters: eight bytes at a time over short runs, `memchr` over long ones.

use crate::error::{ErrorKind, Res, fault};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the zero bytes of `x`; exact up to and including the lowest one.
#[inline(always)]
fn zero(x: u64) -> u64 {
    x.wrapping_sub(ONES) & !x & HIGHS
}

#[inline(always)]
fn is(x: u64, b: u8) -> u64 {
    zero(x ^ (ONES * b as u64))
}

/// Marks bytes below `0x20`; exact up to and including the lowest one.
#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
fn control(x: u64) -> u64 {
    x.wrapping_sub(ONES * 0x20) & !x & HIGHS
}

/// The first `<`, `&` or carriage return at or after `from`, else the length.
#[inline(always)]
pub(crate) fn text_end(input: &[u8], from: usize) -> usize {
    let mut at = from;
    // Most texts of messages are shorter than one of these blocks.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    for _ in 0..2 {
        let Some(block) = input.get(at..).and_then(<[u8]>::first_chunk::<16>) else { break };
        let hit = text_ends(block);
        if hit != 0 {
            return at + hit.trailing_zeros() as usize;
        }
        at += 16;
    }
    for _ in 0..4 {
        let Some(chunk) = input.get(at..).and_then(<[u8]>::first_chunk) else {
            return tail(input, at, |b| b == b'<' || b == b'&' || b == b'\r');
        };
        let x = u64::from_le_bytes(*chunk);
        let hit = is(x, b'<') | is(x, b'&') | is(x, b'\r');
        if hit != 0 {
            return at + (hit.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    memchr::memchr3(b'<', b'&', b'\r', &input[at..]).map_or(input.len(), |i| at + i)
}

/// One bit per byte: whether it is `<`, `&` or a carriage return. (A third of the instructions of the portable code,
/// which is a tenth of what tokenizing costs.)
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn text_ends(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // SAFETY: the sixteen bytes are there, the load need not be aligned, and the build has the instructions.
    #[allow(unsafe_code)]
    unsafe {
        let x = _mm_loadu_si128(block.as_ptr().cast());
        let hits = _mm_cmpeq_epi8(x, _mm_set1_epi8(b'<' as i8));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'&' as i8)));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'\r' as i8)));
        _mm_movemask_epi8(hits) as u32
    }
}

/// The bytes that control characters above the space, NEL and U+2028 begin with.
pub(crate) const CONTROL_STARTS: [u8; 3] = [0x7F, 0xC2, 0xE2];

/// The same for [`CONTROL_STARTS`].
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn control_starts(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    let [first, second, third] = CONTROL_STARTS;
    // SAFETY: as in `text_ends`.
    #[allow(unsafe_code)]
    unsafe {
        let x = _mm_loadu_si128(block.as_ptr().cast());
        let hits = _mm_cmpeq_epi8(x, _mm_set1_epi8(first as i8));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(second as i8)));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(third as i8)));
        _mm_movemask_epi8(hits) as u32
    }
}

#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
fn control_start(x: u64) -> u64 {
    let [first, second, third] = CONTROL_STARTS;
    is(x, first) | is(x, second) | is(x, third)
}

/// The same for `quote`, `<`, `&` and control characters; for writing, also for the byte that U+FFFE and U+FFFF begin with.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn value_ends<const WRITING: bool>(block: &[u8; 16], quote: u8) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // SAFETY: as in `text_ends`.
    #[allow(unsafe_code)]
    unsafe {
        let x = _mm_loadu_si128(block.as_ptr().cast());
        let hits = _mm_cmpeq_epi8(x, _mm_set1_epi8(quote as i8));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'<' as i8)));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'&' as i8)));
        let mut hits = _mm_or_si128(hits, _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1F)), x));
        if WRITING {
            hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(0xEFu8 as i8)));
        }
        _mm_movemask_epi8(hits) as u32
    }
}

/// The first `quote`, `<`, `&` or control character (tab, line feed, carriage return) at or after `from`, else the length.
#[inline(always)]
pub(crate) fn value_end(input: &[u8], from: usize, quote: u8) -> usize {
    value_stop::<false, false>(input, from, quote)
}

/// The first byte that may need escaping in a value in double quotes: those of [`value_end`], and the first byte of
/// U+FFFE and U+FFFF; with `CONTROLS` also those of [`CONTROL_STARTS`].
#[inline(always)]
pub(crate) fn value_escape<const CONTROLS: bool>(input: &[u8], from: usize) -> usize {
    value_stop::<true, CONTROLS>(input, from, b'"')
}

#[inline(always)]
fn value_stop<const WRITING: bool, const CONTROLS: bool>(input: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    let hits = |block: &[u8; 16]| {
        value_ends::<WRITING>(block, quote) | if CONTROLS { control_starts(block) } else { 0 }
    };
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    while let Some(block) = input.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let hit = hits(block);
        if hit != 0 {
            return at + hit.trailing_zeros() as usize;
        }
        at += 16;
    }
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return at + hits(&last_block(&input[at..])).trailing_zeros() as usize;
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        while let Some(chunk) = input.get(at..).and_then(<[u8]>::first_chunk) {
            let x = u64::from_le_bytes(*chunk);
            let mut hit = is(x, quote) | is(x, b'<') | is(x, b'&') | control(x);
            if WRITING {
                hit |= is(x, 0xEF);
            }
            if CONTROLS {
                hit |= control_start(x);
            }
            if hit != 0 {
                return at + (hit.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        tail(input, at, |b| {
            b == quote
                || b == b'<'
                || b == b'&'
                || b < 0x20
                || WRITING && b == 0xEF
                || CONTROLS && CONTROL_STARTS.contains(&b)
        })
    }
}

/// The first byte that may need escaping in text: `<`, `>`, `&`, a control character (some line feeds and tabs are
/// among them), the first byte of U+FFFE and U+FFFF; with `CONTROLS` also those of [`CONTROL_STARTS`].
#[inline(always)]
pub(crate) fn text_escape<const CONTROLS: bool>(input: &[u8], from: usize) -> usize {
    let mut at = from;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    let hits = |block: &[u8; 16]| text_escapes(block) | if CONTROLS { control_starts(block) } else { 0 };
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    while let Some(block) = input.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let hit = hits(block);
        if hit != 0 {
            return at + hit.trailing_zeros() as usize;
        }
        at += 16;
    }
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return at + hits(&last_block(&input[at..])).trailing_zeros() as usize;
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        let hits = |x| {
            let hit = is(x, b'<') | is(x, b'>') | is(x, b'&') | is(x, 0xEF) | control(x);
            hit | if CONTROLS { control_start(x) } else { 0 }
        };
        while let Some(chunk) = input.get(at..).and_then(<[u8]>::first_chunk) {
            let hit = hits(u64::from_le_bytes(*chunk));
            if hit != 0 {
                return at + (hit.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        match hits(rest(&input[at..])) {
            0 => input.len(),
            // The padding of zeros counts as control characters too.
            hit => input.len().min(at + (hit.trailing_zeros() / 8) as usize),
        }
    }
}

/// Less than 16 bytes, padded with zeros: control characters, so that a search finds the end as well.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn last_block(bytes: &[u8]) -> [u8; 16] {
    let (low, high) = match bytes.split_first_chunk::<8>() {
        Some((low, high)) => (u64::from_le_bytes(*low), rest(high)),
        None => (rest(bytes), 0),
    };
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

/// One bit per byte: whether it may need escaping in text; tabs and line feeds do not count.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn text_escapes(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        _mm_andnot_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };
    // SAFETY: as in `text_ends`.
    #[allow(unsafe_code)]
    unsafe {
        let x = _mm_loadu_si128(block.as_ptr().cast());
        let blank = _mm_or_si128(
            _mm_cmpeq_epi8(x, _mm_set1_epi8(b'\n' as i8)),
            _mm_cmpeq_epi8(x, _mm_set1_epi8(b'\t' as i8)),
        );
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1F)), x);
        let hits = _mm_andnot_si128(blank, controls);
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'<' as i8)));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'>' as i8)));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(b'&' as i8)));
        let hits = _mm_or_si128(hits, _mm_cmpeq_epi8(x, _mm_set1_epi8(0xEFu8 as i8)));
        _mm_movemask_epi8(hits) as u32
    }
}

/// Less than eight bytes, padded with zeros.
#[inline(always)]
fn rest(bytes: &[u8]) -> u64 {
    if let (Some(low), Some(high)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let shift = (bytes.len() - 4) * 8;
        return u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << shift;
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[inline]
fn tail(input: &[u8], from: usize, stop: impl Fn(u8) -> bool) -> usize {
    input[from..].iter().position(|&b| stop(b)).map_or(input.len(), |i| from + i)
}

/// The result of the one pass over the bytes before parsing.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Survey {
    /// `]]>` occurs somewhere.
    pub cdata_end: bool,
}

/// Checks that `bytes` are UTF-8 and hold only characters that XML allows.
pub(crate) fn survey(bytes: &[u8]) -> Res<Survey> {
    let glance = glance(bytes);
    if !glance.plain
        && let Some((at, kind)) = first_bad(bytes)
    {
        return match kind {
            Bad::Utf8 => fault(ErrorKind::Encoding, "the bytes are not UTF-8", at),
            Bad::Cut => fault(ErrorKind::Encoding, "the document ends inside a character", at),
            Bad::Char(c) => {
                fault(ErrorKind::Character, format!("the character U+{c:04X} is not allowed"), at)
            }
        };
    }
    Ok(Survey { cdata_end: glance.brackets && memchr::memmem::find(bytes, b"]]>").is_some() })
}

/// The result of a quick look at bytes.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Glance {
    /// All of them are ASCII and allowed.
    pub plain: bool,
    /// `]` occurs.
    pub brackets: bool,
}

pub(crate) fn glance(bytes: &[u8]) -> Glance {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let mut last = [b' '; 64];
    last[..rest.len()].copy_from_slice(rest);
    let (first, last) = (glance_at(blocks), glance_at(&[last]));
    Glance { plain: first.plain && last.plain, brackets: first.brackets || last.brackets }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn glance_at(blocks: &[[u8; 64]]) -> Glance {
    use std::arch::x86_64::{
        _mm_andnot_si128, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_setzero_si128,
    };
    // SAFETY: as in `text_ends`; the sixteen bytes at 0, 16, 32 and 48 of a block are there.
    #[allow(unsafe_code)]
    unsafe {
        let (mut odd, mut brackets) = (_mm_setzero_si128(), _mm_setzero_si128());
        for block in blocks {
            let x: [_; 4] = std::array::from_fn(|i| _mm_loadu_si128(block.as_ptr().add(16 * i).cast()));
            // As signed numbers, bytes above ASCII are below the space too.
            let below = x.map(|x| _mm_cmplt_epi8(x, _mm_set1_epi8(b' ' as i8)));
            let both = |a, b| _mm_or_si128(a, b);
            let found =
                x.map(|x| _mm_cmpeq_epi8(x, _mm_set1_epi8(b']' as i8))).into_iter().fold(brackets, both);
            brackets = found;
            if _mm_movemask_epi8(below.into_iter().fold(_mm_setzero_si128(), both)) == 0 {
                continue;
            }
            for (x, below) in x.into_iter().zip(below) {
                let blank = both(
                    _mm_cmpeq_epi8(x, _mm_set1_epi8(b'\t' as i8)),
                    both(
                        _mm_cmpeq_epi8(x, _mm_set1_epi8(b'\n' as i8)),
                        _mm_cmpeq_epi8(x, _mm_set1_epi8(b'\r' as i8)),
                    ),
                );
                odd = both(odd, _mm_andnot_si128(blank, below));
            }
        }
        Glance { plain: _mm_movemask_epi8(odd) == 0, brackets: _mm_movemask_epi8(brackets) != 0 }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
fn glance_at(blocks: &[[u8; 64]]) -> Glance {
    let (mut odd, mut bracket) = (0u8, 0u8);
    for &b in blocks.as_flattened() {
        // Above ASCII, or a control character other than tab and line ends.
        odd |= (b & 0x80)
            | u8::from(b < 0x20) & u8::from(b != b'\t') & u8::from(b != b'\n') & u8::from(b != b'\r');
        bracket |= u8::from(b == b']');
    }
    Glance { plain: odd == 0, brackets: bracket != 0 }
}

pub(crate) enum Bad {
    /// Not UTF-8.
    Utf8,
    /// The first bytes of a character, cut at the end of the input.
    Cut,
    /// Not a `Char`.
    Char(u32),
}

/// The first place where `bytes` are not UTF-8 text of allowed characters.
pub(crate) fn first_bad(bytes: &[u8]) -> Option<(usize, Bad)> {
    let (text, mut bad) = match std::str::from_utf8(bytes) {
        Ok(_) => (bytes, None),
        Err(e) => {
            let kind = if e.error_len().is_none() { Bad::Cut } else { Bad::Utf8 };
            (&bytes[..e.valid_up_to()], Some((e.valid_up_to(), kind)))
        }
    };
    if has_control(text) {
        let at = text.iter().position(|&b| is_control(b)).unwrap_or(0);
        bad = Some((at, Bad::Char(u32::from(text[at]))));
    }
    let clean = bad.as_ref().map_or(text, |(at, _)| &text[..*at]);
    // U+FFFE and U+FFFF are EF BF BE and EF BF BF.
    if let Some(at) = memchr::memchr_iter(0xEF, clean).find(|&i| clean[i + 1] == 0xBF && clean[i + 2] >= 0xBE)
    {
        return Some((at, Bad::Char(0xFF40 + u32::from(clean[at + 2]))));
    }
    bad
}

#[inline(always)]
fn is_control(b: u8) -> bool {
    b < 0x20 && b != b'\t' && b != b'\n' && b != b'\r'
}

/// Written so that the compiler makes vector code of it.
fn has_control(bytes: &[u8]) -> bool {
    bytes.chunks(4096).any(|chunk| chunk.iter().fold(false, |any, &b| any | is_control(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_at_every_distance() {
        for n in 0..100 {
            let mut text = vec![b'x'; n];
            text.push(b'<');
            text.extend_from_slice(b"yyyy&\r<<\"\n");
            assert_eq!(text_end(&text, 0), n);
            assert_eq!(text_end(&text, n + 1), n + 5);
            assert_eq!(value_end(&text, 0, b'"'), n);
            let mut value = vec![0xC3; n];
            value.extend_from_slice(b"\"");
            assert_eq!(value_end(&value, 0, b'"'), n);
            assert_eq!(text_end(&value, 0), n + 1);
        }
    }

    #[test]
    fn escapes_are_found_at_every_distance() {
        for n in 0..40 {
            for tail in 0..20 {
                let mut text = vec![0xC3; n];
                assert_eq!(text_escape::<false>(&text, 0), n);
                text.push(b'>');
                text.resize(n + 1 + tail, b'x');
                assert_eq!(text_escape::<false>(&text, 0), n, "{tail}");
                assert_eq!(text_escape::<false>(&text, n + 1), text.len());
                assert_eq!(value_escape::<false>(&text, 0), text.len());
                text[n] = b'"';
                assert_eq!(
                    (value_escape::<false>(&text, 0), value_escape::<false>(&text, n + 1)),
                    (n, text.len())
                );
                // A character that XML does not allow, and that equals the padding.
                text[n] = 0;
                assert_eq!((value_escape::<false>(&text, 0), text_escape::<false>(&text, 0)), (n, n));
            }
        }
    }

    #[test]
    fn a_glance_sees_every_byte_at_every_place() {
        for length in [0, 1, 15, 16, 63, 64, 65, 127, 128, 200] {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![b'x'; length];
                    bytes[at] = byte;
                    let glance = glance(&bytes);
                    assert_eq!(glance.plain, byte < 0x80 && !is_control(byte), "{byte} at {at} of {length}");
                    assert_eq!(glance.brackets, byte == b']', "{byte} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn bad_bytes() {
        for (bytes, at) in [
            (&b"abc"[..], None),
            (b"a\0", Some(1)),
            (b"ab\x1f", Some(2)),
            (b"a\tb\r\n", None),
            (b"a\xff\x00", Some(1)),
            ("a\u{FFFE}".as_bytes(), Some(1)),
            ("a\u{FFFF}\u{1}".as_bytes(), Some(1)),
            ("a\u{FFFD}\u{FF0C}".as_bytes(), None),
            (b"\xED\xA0\x80", Some(0)),
        ] {
            assert_eq!(first_bad(bytes).map(|b| b.0), at, "{bytes:?}");
        }
        assert!(matches!(first_bad("\u{FFFF}".as_bytes()), Some((0, Bad::Char(0xFFFF)))));
    }
}
