//! `<address uri="…">`: a fixed address.

use crate::leaf::{self, Address, Resolved, postfix};
use crate::uri_template::{join_postfix, parse_url};
use config::endpoint::{AddressEndpoint, Format};
use flow::endpoint::Endpoint;
use flow::{Compiler, Context, Fault};
use std::sync::Arc;
use transport::Target;

struct Fixed {
    target: Target,
    path: String,
    format: Option<Format>,
}

pub fn compile(
    endpoint: &config::Endpoint,
    kind: &AddressEndpoint,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let uri = kind.uri.value.trim();
    let url = match parse_url(uri) {
        Ok(url) => url,
        Err(error) => {
            let place = kind.uri.span.part(error.span.start, error.span.len());
            compiler.error("bad-address", format!("`{uri}` is no address"), place, error.message);
            return None;
        }
    };
    let target = match leaf::target_of(&url, &compiler.services.tls) {
        Ok(target) => target,
        Err(fault) => {
            compiler.error("unsupported-transport", fault.message, kind.uri.span, "expected http or https");
            return None;
        }
    };
    let path = url.path_and_query;
    let address = Fixed { target, path, format: kind.definition.format };
    leaf::compile(endpoint, &kind.definition, Box::new(address), &format!("address {uri}"), None, compiler)
}

impl Address for Fixed {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let path = match postfix(context, self.format) {
            None => self.path.clone(),
            Some(postfix) => join_postfix(&self.path, &postfix),
        };
        Ok(Resolved { target: self.target.clone(), path, method: None })
    }

    fn written(&self) -> String {
        format!("{}{}", self.target, self.path)
    }
}
