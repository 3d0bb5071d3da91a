//! Splitting by XPath: each element that an expression selects becomes a file.

use super::list::MOST;
use super::made::{CreatedFiles, is_new};
use super::{Failure, Files, Reason, read};
use files::partial::{Existing, Partial, directories};
use message::memory;
use std::path::Path;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions, WriteOptions};
use xpath::{CompileOptions, Context, Expression, Type, Value, Version};

/// The expression of a text. No prefixes are declared, as in WSO2's connector.
pub(super) fn compiled(text: &str) -> Result<Arc<Expression>, Failure> {
    let compile =
        |version| Expression::compile(text, &CompileOptions { version, ..CompileOptions::default() });
    // A text that is not XPath 1.0 may be 2.0; where it is neither, the error of 1.0 is reported.
    let expression = compile(Version::V1).or_else(|why| compile(Version::V2).map_err(|_| why));
    let expression = expression.map_err(|why| {
        Failure::new(Reason::Configuration, format!("`xpathExpression`: {}", why.sentence()))
    })?;
    match expression.returns() {
        Type::Any | Type::NodeSet => Ok(Arc::new(expression)),
        other => {
            let why = format!("`xpathExpression` selects no elements: it is a {}", other.name());
            Err(Failure::new(Reason::Configuration, why))
        }
    }
}

/// Writes the elements that an expression selects into files of a directory, and returns their number. Each file has the element in a copy of
/// its parent without its siblings, and is named after it: `orders1.xml` has the first `order` of `orders`.
pub(super) fn divide(
    from: &Path,
    to: &Path,
    expression: &Expression,
    files: &Files,
) -> Result<usize, Failure> {
    let failed = |why: String| Failure::new(Reason::Operation, format!("{}: {why}", from.display()));
    let (bytes, _held) = read::whole(from, files)?;
    let document = Document::parse(bytes, &ParseOptions::default()).map_err(|why| failed(why.to_string()))?;
    let _tree = memory::try_hold(document.memory())?;
    let (selected, used) = meter::within(files.time, Some(&files.cancel), || {
        expression.evaluate(&Context::root(&document)).map_err(|why| why.sentence())
    });
    files.go_on()?;
    if let Some(stop) = used.stopped {
        return Err(failed(format!("the expression was broken off: {stop}")));
    }
    let Value::NodeSet(nodes) = selected.map_err(failed)? else {
        let why = "`xpathExpression` selects no elements";
        return Err(Failure::new(Reason::Configuration, why));
    };
    if nodes.len() > MOST {
        return Err(super::parts::too_many(from));
    }
    directories(to).map_err(|error| Failure::io(to, &error))?;
    let mut made = CreatedFiles::default();
    for (number, node) in (1..).zip(nodes.iter()) {
        files.go_on()?;
        if node.namespace != 0 || document.kind(node.id) != NodeKind::Element {
            return Err(failed("`xpathExpression` selects something that is not an element".to_owned()));
        }
        let (name, bytes) = part(&document, node.id);
        let path = to.join(format!("{name}{number}.xml"));
        let is_new = is_new(&path);
        let mut partial = Partial::begin(&path, Existing::Replace, false)?;
        partial.copy_from(&mut bytes.as_slice(), &files.cancel)?;
        partial.finish()?;
        made.add(path, is_new);
    }
    made.keep();
    Ok(nodes.len())
}

/// A document of one element, in a copy of its parent if it has one, and the name of that.
fn part(document: &Document, element: NodeId) -> (String, Vec<u8>) {
    let mut part = Document::new();
    let around = document.parent(element).filter(|node| document.kind(*node) == NodeKind::Element);
    let top = match around {
        Some(parent) => part.append_element(
            Document::ROOT,
            document.prefix(parent),
            document.namespace(parent),
            document.local(parent),
        ),
        None => Document::ROOT,
    };
    part.copy_from(top, document, element);
    let mut bytes = Vec::new();
    let options = WriteOptions { declaration: true, ..WriteOptions::default() };
    xml::write(&part, Document::ROOT, &options, &mut bytes);
    (document.qname(around.unwrap_or(element)).into_owned(), bytes)
}
