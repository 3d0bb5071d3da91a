//! The chunked coding has one reading, in whatever pieces it arrives, and it is that of a decoder which does nothing but follow the grammar.
//! The first byte is the size of the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// RFC 9112, 7.1, for a body that is all there: what it was, and what is behind it. `None`: it is none, or is not complete.
fn plain(mut wire: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut out = Vec::new();
    let line = |wire: &mut &[u8]| -> Option<Vec<u8>> {
        let end = wire.windows(2).position(|pair| pair == b"\r\n")?;
        let chunk = wire[..end].to_vec();
        *wire = &wire[end + 2..];
        Some(chunk)
    };
    loop {
        let announced = line(&mut wire)?;
        let digits = announced.split(|byte| *byte == b';').next()?;
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            while !line(&mut wire)?.is_empty() {}
            return Some((out, wire));
        }
        out.extend_from_slice(wire.get(..size)?);
        wire = wire[size..].strip_prefix(b"\r\n")?;
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&piece, wire)) = data.split_first() else { return };
    let whole = transport::fuzzing::chunks(wire, usize::MAX);
    let pieces = transport::fuzzing::chunks(wire, usize::from(piece) + 1);
    match (&whole, &pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        (Err(_), Err(_)) => {}
        _ => panic!("{whole:?} at once, {pieces:?} in pieces of {}", usize::from(piece) + 1),
    }
    if let Ok((decoded, left, true)) = whole {
        let (wanted, rest) = plain(wire).expect("what is decoded follows the grammar");
        assert!(decoded == wanted && left == rest.len());
    }
});
