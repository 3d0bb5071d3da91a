//! `<http uri-template="…" method="…">`: a URI template.

use crate::leaf::{self, Address, Resolved};
use crate::uri_template::{UriTemplate, join_postfix};
use config::endpoint::{HttpEndpoint, HttpVersion};
use flow::endpoint::Endpoint;
use flow::{Compiler, Context, Expression, Fault, Need};
use message::Method;
use std::sync::Arc;
use transport::Target;

struct Template {
    template: UriTemplate,
    /// As the configuration has it.
    written: String,
    /// The `${…}` in it, which the template has as variables.
    expressions: Vec<Expression>,
    /// A template without variables is an address; it is read once.
    fixed: Option<Result<(Target, String), Fault>>,
    method: Option<Method>,
    /// `version="2.0"`
    http2: bool,
    /// No variable says which server it is.
    names_server: bool,
}

/// What the names of variables begin with that stand for expressions, before their numbers.
const EXPRESSION: &str = "uri.var.busbar-expression-";

/// The template with a variable in the place of each `${…}`, and these; `None` after a recorded error.
fn cut(
    text: &str,
    kind: &HttpEndpoint,
    scope: &config::Scope,
    compiler: &mut Compiler<'_>,
) -> Option<(String, Vec<Expression>)> {
    let (mut out, mut expressions, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let Some(length) = flow::synapse::expression_length(&rest[at..]) else { break };
        let start = text.len() - rest.len() + at;
        let source = &rest[at..at + length];
        let place = kind.uri_template.span.part(start, source.len());
        out.push_str(&rest[..at]);
        out.push_str(&format!("{{{EXPRESSION}{}}}", expressions.len()));
        expressions.push(compiler.expression_text(source, place, scope)?);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    Some((out, expressions))
}

pub fn compile(
    endpoint: &config::Endpoint,
    kind: &HttpEndpoint,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let text = kind.uri_template.value.trim();
    let (with_variables, expressions) = cut(text, kind, endpoint.element.scope(), compiler)?;
    let template = match UriTemplate::compile(&with_variables) {
        Ok(template) => template,
        Err(error) => {
            let place = kind.uri_template.span.part(error.span.start, error.span.len().max(1));
            compiler.error("bad-template", format!("`{text}` is not a URI template"), place, error.message);
            return None;
        }
    };
    if let Some(at) = with_variables.rfind("${") {
        let place = kind.uri_template.span.part(text.len() - (with_variables.len() - at), 2);
        let message = format!("the `${{` in `{text}` is not closed");
        compiler.warning("expression-in-template", message, place, "goes out as it is: expected a `}`");
    }
    let fixed = template.is_static().then(|| leaf::fixed(template.raw(), kind.uri_template.span, compiler));
    let http2 = kind.version == Some(HttpVersion::V2);
    let fixed = match fixed {
        Some(Ok((target, path))) if http2 => Some(Ok((target.http2(), path))),
        fixed => fixed,
    };
    let method = kind.method.map(|method| Method::new(method.as_str()));
    let names_server = names_server(&with_variables);
    let address =
        Template { template, written: text.to_owned(), expressions, fixed, method, http2, names_server };
    let authentication = kind.authentication.as_ref();
    leaf::compile(
        endpoint,
        &kind.definition,
        Box::new(address),
        &format!("http {text}"),
        authentication,
        compiler,
    )
}

/// Whether the server of a URL stands in its template, whatever the variables are.
fn names_server(template: &str) -> bool {
    let literal = &template[..template.find('{').unwrap_or(template.len())];
    let literal = literal.trim_start().strip_prefix("legacy-encoding:").unwrap_or(literal);
    literal.split_once("://").is_some_and(|(_, rest)| rest.find(['/', '?', '#']).is_some_and(|at| at > 0))
}

impl Address for Template {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let (target, path) = match &self.fixed {
            Some(address) => address.clone()?,
            None => {
                let mut values = Vec::with_capacity(self.expressions.len());
                for expression in &self.expressions {
                    values.push(expression.string(context)?.unwrap_or_default());
                }
                // What a step sets for this request alone is in axis2-client scope.
                let (properties, client) = (&context.properties, &context.client);
                let url = self.template.expand(&mut |name| match name.strip_prefix(EXPRESSION) {
                    Some(number) => values.get(number.parse::<usize>().ok()?).cloned(),
                    None => properties.get(name).or_else(|| client.get(name)).map(|value| value.to_string()),
                });
                let (target, path) = match self.names_server {
                    true => leaf::reach(&url, context)?,
                    false => leaf::parse(&url, context)?,
                };
                (if self.http2 { target.http2() } else { target }, path)
            }
        };
        // Only without a method of its own the rest of the client's URL is appended.
        let path = match context
            .axis2("REST_URL_POSTFIX")
            .filter(|_| self.method.is_none() && context.is_rest() && !flow::file::is_target(&target))
        {
            Some(postfix) => join_postfix(&path, &postfix.to_string()),
            None => path,
        };
        Ok(Resolved { target, path, method: self.method.clone() })
    }

    fn written(&self) -> String {
        self.written.strip_prefix("legacy-encoding:").unwrap_or(&self.written).to_owned()
    }

    fn fixed(&self) -> Option<&Target> {
        leaf::connection(self.fixed.as_ref()?)
    }

    fn reads_body(&self) -> bool {
        self.expressions.iter().any(|expression| expression.need() >= Need::Prefix)
    }
}
