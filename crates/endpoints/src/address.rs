//! `<address uri="…">`: a fixed address.

use crate::leaf::{self, Address, Resolved, postfix};
use crate::uri_template::join_postfix;
use config::endpoint::{AddressEndpoint, Format};
use flow::endpoint::Endpoint;
use flow::{Compiler, Context, Fault};
use std::sync::Arc;
use transport::Target;

struct Fixed {
    /// Connection and path; why not, where nothing can be sent there.
    address: Result<(Target, String), Fault>,
    uri: String,
    format: Option<Format>,
}

pub fn compile(
    endpoint: &config::Endpoint,
    kind: &AddressEndpoint,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let uri = kind.uri.value.trim();
    let address = leaf::fixed(uri, kind.uri.span, compiler);
    let address = Fixed { address, uri: uri.to_owned(), format: kind.definition.format };
    leaf::compile(endpoint, &kind.definition, Box::new(address), &format!("address {uri}"), None, compiler)
}

impl Address for Fixed {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let (target, path) = self.address.as_ref().map_err(Fault::clone)?;
        let path = match postfix(context, self.format) {
            None => path.clone(),
            Some(postfix) => join_postfix(path, &postfix),
        };
        Ok(Resolved { target: target.clone(), path, method: None })
    }

    fn written(&self) -> String {
        match &self.address {
            Ok((target, path)) => format!("{target}{path}"),
            Err(_) => self.uri.clone(),
        }
    }
}
