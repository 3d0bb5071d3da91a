//! The tokenizer gives the same events however its input is split, and accepts what the tree's parser accepts.
//! The first byte says how the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, Event, ParseOptions, Tokenizer};

/// All events as text, adjacent text put together; or that it is refused.
fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut tokenizer = Tokenizer::default();
    let mut log = String::new();
    let mut text = String::new();
    let mut pieces = pieces.fuse();
    loop {
        let piece = pieces.next();
        match piece {
            Some(piece) => tokenizer.feed(piece),
            None => tokenizer.finish(),
        }
        while let Some(event) = tokenizer.next().ok()? {
            match event {
                Event::Text(piece) => text.push_str(piece),
                other => {
                    log.push_str(&format!("{:?} {other:?}\n", std::mem::take(&mut text)));
                }
            }
        }
        if piece.is_none() {
            return Some(log);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, rest)) = data.split_first() else { return };
    let whole = events(std::iter::once(rest));
    assert_eq!(events(rest.chunks(usize::from(*cut).max(1))), whole);
    // Passing over everything finds what is wrong, too.
    let mut tokenizer = Tokenizer::default();
    let mut skimmed = true;
    for piece in rest.chunks(usize::from(*cut).max(1)) {
        tokenizer.feed(piece);
        skimmed = skimmed && tokenizer.skim(&xml::Interest::NOTHING).is_ok();
    }
    tokenizer.finish();
    assert_eq!(skimmed && tokenizer.skim(&xml::Interest::NOTHING).is_ok(), whole.is_some());
    let tree = Document::parse(rest.to_vec(), &ParseOptions::default());
    // The tree's parser also knows encodings other than UTF-8.
    if std::str::from_utf8(rest).is_ok() && !rest.contains(&b'?') {
        assert_eq!(tree.is_ok(), whole.is_some());
    }
});
