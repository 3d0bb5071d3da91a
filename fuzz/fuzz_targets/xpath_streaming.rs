//! Streaming gives the tree's answer: `EXPRESSION NUL DOCUMENT`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, Event, ParseOptions, Tokenizer};
use xpath::{CompileOptions, Context, Decision, Expression, Run, StreamAs, StreamContext, Value};

/// No variables, no functions.
struct Nobody;
impl xpath::Host for Nobody {}

/// The answer of the stream that `feed` feeds, if the expression streams.
fn answer(
    expression: &Expression,
    kind: StreamAs,
    feed: impl FnOnce(&mut Run<'_>, &mut Tokenizer),
) -> Option<Result<Value, String>> {
    let plan = expression.streaming_as(kind, StreamContext::Document).ok()?;
    let mut run = plan.start(&Nobody).ok()?;
    feed(&mut run, &mut Tokenizer::default());
    Some(run.finish().map_err(|e| e.message))
}

/// Feeds the events of pieces, until it is decided.
fn stream<'t>(pieces: impl Iterator<Item = &'t [u8]>, run: &mut Run<'_>, tokenizer: &mut Tokenizer) {
    for piece in pieces.map(Some).chain([None]) {
        match piece {
            Some(piece) => tokenizer.feed(piece),
            None => tokenizer.finish(),
        }
        while let Ok(Some(event)) = tokenizer.next() {
            if run.decision() != Decision::Undecided {
                return;
            }
            match event {
                Event::StartElement { name, attributes, .. } => {
                    run.start_element(name.namespace(), name.local(), &attributes);
                }
                Event::EndElement { .. } => run.end_element(),
                Event::Text(text) => run.text(text),
                Event::Comment(text) => run.comment(text),
                Event::ProcessingInstruction { target, data } => run.processing_instruction(target, data),
            }
        }
    }
}

/// The same, with the tokenizer passing over what is not asked for.
fn skim<'t>(pieces: impl Iterator<Item = &'t [u8]>, run: &mut Run<'_>, tokenizer: &mut Tokenizer) {
    for piece in pieces {
        run.read(tokenizer, piece).expect("the tree's parser has read it");
    }
    tokenizer.finish();
    run.drain(tokenizer).expect("the tree's parser has read it");
}

fuzz_target!(|data: &str| {
    let Some((source, text)) = data.split_once('\0') else { return };
    let Ok(doc) = Document::parse(text.to_owned(), &ParseOptions::default()) else { return };
    let Ok(expression) = Expression::compile(source, &CompileOptions::default()) else { return };
    let context = Context::root(&doc);
    for kind in [StreamAs::Boolean, StreamAs::String] {
        for piece in [1, 7, usize::MAX] {
            let pieces = || text.as_bytes().chunks(piece);
            let streamed = answer(&expression, kind, |run, tokenizer| stream(pieces(), run, tokenizer));
            let Some(Ok(streamed)) = streamed else { continue };
            let skimmed = answer(&expression, kind, |run, tokenizer| skim(pieces(), run, tokenizer));
            let skimmed = skimmed.expect("it streams");
            assert_eq!(format!("{skimmed:?}"), format!("Ok({streamed:?})"), "{source} on {text}");
            let tree = match kind {
                StreamAs::Boolean => expression.evaluate_boolean(&context).map(Value::Boolean),
                _ => expression.evaluate_string(&context).map(|s| Value::from(s.as_ref())),
            };
            let tree = tree.expect("what streams has an answer on the tree");
            assert_eq!(format!("{streamed:?}"), format!("{tree:?}"), "{source} on {text}");
        }
    }
});
