//! Streaming gives the tree's answer: `EXPRESSION NUL DOCUMENT`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xml::{Document, Event, ParseOptions, Tokenizer};
use xpath::{CompileOptions, Context, Decision, Expression, StreamAs, StreamContext, Value};

/// No variables, no functions.
struct Nobody;
impl xpath::Host for Nobody {}

/// The answer of the event stream, cut into pieces of `piece` bytes, if the expression streams.
fn stream(
    expression: &Expression,
    text: &str,
    kind: StreamAs,
    piece: usize,
) -> Option<Result<Value, String>> {
    let plan = expression.streaming_as(kind, StreamContext::Document).ok()?;
    let mut run = plan.start(&Nobody).ok()?;
    let mut tokenizer = Tokenizer::default();
    let mut pieces = text.as_bytes().chunks(piece);
    loop {
        let piece = pieces.next();
        match piece {
            Some(piece) => tokenizer.feed(piece),
            None => tokenizer.finish(),
        }
        while let Ok(Some(event)) = tokenizer.next() {
            if run.decision() != Decision::Undecided {
                return Some(run.finish().map_err(|e| e.message));
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
        if piece.is_none() {
            return Some(run.finish().map_err(|e| e.message));
        }
    }
}

/// The same, with the tokenizer passing over what is not asked for.
fn skim(
    expression: &Expression,
    text: &str,
    kind: StreamAs,
    piece: usize,
) -> Option<Result<Value, String>> {
    let plan = expression.streaming_as(kind, StreamContext::Document).ok()?;
    let mut run = plan.start(&Nobody).ok()?;
    let mut tokenizer = Tokenizer::default();
    for piece in text.as_bytes().chunks(piece) {
        run.read(&mut tokenizer, piece).expect("the tree's parser has read it");
    }
    tokenizer.finish();
    run.drain(&mut tokenizer).expect("the tree's parser has read it");
    Some(run.finish().map_err(|e| e.message))
}

fuzz_target!(|data: &str| {
    let Some((source, text)) = data.split_once('\0') else { return };
    let Ok(doc) = Document::parse(text.to_owned(), &ParseOptions::default()) else { return };
    let Ok(expression) = Expression::compile(source, &CompileOptions::default()) else { return };
    let context = Context::root(&doc);
    for kind in [StreamAs::Boolean, StreamAs::String] {
        for piece in [1, 7, usize::MAX] {
            let Some(Ok(streamed)) = stream(&expression, text, kind, piece) else { continue };
            let skimmed = skim(&expression, text, kind, piece).expect("it streams");
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
