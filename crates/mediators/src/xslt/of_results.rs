//! Stylesheets for what is no message yet: the results of data services.

use super::{Run, is_one_element, parsed, without_declaration};
use crate::stylesheet::{Style, failed};
use bytes::Bytes;
use config::Key;
use flow::{Compiler, Context, Fault};
use xml::{Document, ParseOptions};

/// A stylesheet that is found by its key when the configuration loads.
pub struct ResultStylesheet(Style);

impl ResultStylesheet {
    /// Compiles the stylesheet of a local entry or registry resource. None after a recorded error: there is none, or it is faulty.
    pub fn compile(key: &Key, compiler: &mut Compiler<'_>) -> Option<ResultStylesheet> {
        Style::of_key(key, compiler).map(ResultStylesheet)
    }

    /// What it makes of a document, without an XML declaration: one element.
    ///
    /// # Errors
    /// The document is not well-formed, the stylesheet fails, or its result is not one element.
    pub fn transform(&self, document: Bytes, context: &mut Context) -> Result<Vec<u8>, Fault> {
        let (key, sheet) = self.0.find(context)?;
        let input = parsed(&sheet, document, context)?;
        let mut out = Vec::new();
        Run { style: &self.0, key: &key, sheet: &sheet, parameters: &[] }.bytes(&input, &mut out, context)?;
        let out = xml::decode(out, sheet.output().encoding.as_deref())
            .map_err(|why| failed(&key, format!("the result cannot be read: {why}")))?;
        let result = without_declaration(&out.text);
        if !is_one_element(result) {
            // Its ends do not tell: elements of one name within each other, a comment in front.
            let limits = context.services().limits.xml.clone();
            Document::parse(result.to_vec(), &ParseOptions { limits, ..ParseOptions::default() })
                .map_err(|_| failed(&key, "the result is not one element"))?;
        }
        Ok(result.to_vec())
    }
}
