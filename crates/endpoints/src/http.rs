//! `<http uri-template="…" method="…">`: a URI template.

use crate::leaf::{self, Address, Resolved};
use crate::uri_template::{UriTemplate, join_postfix};
use config::endpoint::HttpEndpoint;
use flow::endpoint::Endpoint;
use flow::{Compiler, Context, Fault};
use message::Method;
use std::sync::Arc;
use transport::Target;

struct Template {
    template: UriTemplate,
    /// A template without variables is an address; it is read once.
    fixed: Option<Result<(Target, String), Fault>>,
    method: Option<Method>,
}

pub fn compile(
    endpoint: &config::Endpoint,
    kind: &HttpEndpoint,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let text = kind.uri_template.value.trim();
    let template = match UriTemplate::compile(text) {
        Ok(template) => template,
        Err(error) => {
            let place = kind.uri_template.span.part(error.span.start, error.span.len().max(1));
            compiler.error("bad-template", format!("`{text}` is no URI template"), place, error.message);
            return None;
        }
    };
    if let Some(at) = text.find("${") {
        let place = kind.uri_template.span.part(at, 2);
        let message = format!("`{text}` has an expression, and a URI template has variables only");
        let advice = "goes out as it is; set a property `uri.var.NAME` and write {uri.var.NAME}";
        compiler.warning("expression-in-template", message, place, advice);
    }
    let fixed = template.is_static().then(|| leaf::fixed(template.raw(), kind.uri_template.span, compiler));
    let method = kind.method.map(|method| Method::new(method.as_str()));
    let address = Template { template, fixed, method };
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

impl Address for Template {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let (target, path) = match &self.fixed {
            Some(address) => address.clone()?,
            None => {
                let properties = &context.properties;
                let url =
                    self.template.expand(&mut |name| properties.get(name).map(|value| value.to_string()));
                leaf::parse(&url, context)?
            }
        };
        // Only without a method of its own the rest of the client's URL is appended.
        let path =
            match context.axis2("REST_URL_POSTFIX").filter(|_| self.method.is_none() && context.is_rest()) {
                Some(postfix) => join_postfix(&path, &postfix.to_string()),
                None => path,
            };
        Ok(Resolved { target, path, method: self.method.clone() })
    }

    fn written(&self) -> String {
        self.template.raw().to_owned()
    }
}
