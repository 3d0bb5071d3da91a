//! Expressions compile or are refused, and evaluate without panics: `EXPRESSION NUL DOCUMENT`. The ways to ask for one
//! value agree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use std::time::Duration;
use xml::{Document, ParseOptions};
use xpath::{CompileOptions, Context, DocId, Expression, Host, Node, Version};

const NAMESPACES: [(&str, &str); 2] = [("p", "urn:p"), ("q", "urn:q")];

/// Keeps the documents that an expression makes.
#[derive(Default)]
struct Made([OnceCell<Document>; 8]);

impl Host for Made {
    fn document(&self, id: DocId) -> Option<&Document> {
        self.0.get((id.0 as usize).checked_sub(1)?)?.get()
    }

    fn adopt(&self, doc: Document) -> Result<Node, String> {
        let at = self.0.iter().position(|cell| cell.get().is_none()).ok_or("too many documents")?;
        self.0[at].get_or_init(|| doc);
        Ok(Node::in_document(DocId(at as u32 + 1), Document::ROOT))
    }
}

fuzz_target!(|data: &str| {
    let (source, text) = data.split_once('\0').unwrap_or((data, "<a x='1'><b>2</b><b y='3'/></a>"));
    let Ok(doc) = Document::parse(text.to_owned(), &ParseOptions::default()) else { return };
    for version in [Version::V1, Version::V2, Version::V31] {
        let options = CompileOptions { namespaces: &NAMESPACES, version, ..CompileOptions::default() };
        let expression = match Expression::compile(source, &options) {
            Ok(expression) => expression,
            Err(error) => {
                assert!(error.span.start <= error.span.end && error.span.end <= source.len(), "{error:?}");
                continue;
            }
        };
        let host = Made::default();
        let context = Context::root(&doc).with_host(&host);
        // With functions as values there are expressions without end.
        let (value, _) = meter::within(Duration::from_secs(1), None, || expression.evaluate(&context));
        if version == Version::V1
            && let Ok(value) = value
        {
            let boolean = expression.evaluate_boolean(&context).expect("its value is known");
            let string = expression.evaluate_string(&context).expect("its value is known");
            assert_eq!(boolean, value.to_boolean(), "{source}");
            assert_eq!(string, value.to_string_in(&context).expect("a value has a string"), "{source}");
        }
    }
});
