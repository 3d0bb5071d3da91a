//! FreeMarker templates: parsed once, filled in within limits.
//!
//! The language is FreeMarker 2.3.30 with its strict syntax: `<#…>` and `<@…>` are tags, `${…}` and `#{…}` are filled in, and
//! nothing else is. Left out is what parses or loads at run time (`?eval`, `?interpret`, `?new`, `<#include>`,
//! `<#import>`) and the processing of XML by macros (`<#visit>`).
//!
//! * [`Template::parse`] checks all of a template: each name of a directive or built-in, each bracket.
//! * [`Template::fill`] runs it on [`Model`]s that lend from the message. It counts its work ([`meter::spend`]) and bounds
//!   what it makes and how deep it nests.

mod ast;
mod built_in;
mod dates;
mod expression;
mod nodes;
mod number;
mod parse;
mod run;
mod value;

pub use ast::{Error, Place};
pub use value::Model;

/// A template.
#[derive(Debug)]
pub struct Template(parse::Parsing);

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Template, Error> {
        parse::parse(text).map(Template)
    }

    /// The result for models by name. `limit`: its most bytes.
    ///
    /// # Errors
    /// Something is missing or not of the type that is needed, or a limit is hit.
    pub fn fill(&self, model: &[(&'static str, Model<'_>)], limit: usize) -> Result<String, Error> {
        run::run(&self.0, model, limit)
    }
}

#[cfg(test)]
mod tests;
