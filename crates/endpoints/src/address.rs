//! `<address uri="…">`: a fixed address.

use crate::leaf::{self, Address, Resolved, postfix};
use crate::uri_template::join_postfix;
use config::endpoint::{AddressEndpoint, Format};
use flow::endpoint::Endpoint;
use flow::fault::code;
use flow::{Compiler, Context, Fault};
use std::sync::Arc;
use transport::Target;

/// An address that is known when the configuration loads: what `address` says, or the port of a `wsdl`.
pub(crate) struct Fixed {
    /// Connection and path; why not, where nothing can be sent there.
    pub(crate) address: Result<(Target, String), Fault>,
    /// For people.
    pub(crate) written: String,
    pub(crate) format: Option<Format>,
    /// `ERROR_CODE` of a message that comes while the endpoint is suspended.
    pub(crate) not_ready: i32,
}

pub fn compile(
    endpoint: &config::Endpoint,
    kind: &AddressEndpoint,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let uri = kind.uri.value.trim();
    // That a value from outside is not there has been said.
    if let Some(at) = uri.find("${").filter(|at| !uri[*at..].starts_with("${configs.")) {
        let place = kind.uri.span.part(at, 2);
        let message = format!("`{uri}` has an expression, and the address of an endpoint is fixed");
        let advice = "goes out as it is; an `http` endpoint with a `uri-template` evaluates it";
        compiler.warning("expression-in-address", message, place, advice);
    }
    let address = leaf::fixed(uri, kind.uri.span, compiler);
    let written = match &address {
        Ok((target, path)) if flow::file::is_target(target) => path.clone(),
        Ok((target, path)) => format!("{target}{path}"),
        Err(_) => uri.to_owned(),
    };
    let fixed =
        Fixed { address, written, format: kind.definition.format, not_ready: code::ENDPOINT_NOT_READY };
    leaf::compile(endpoint, &kind.definition, Box::new(fixed), &format!("address {uri}"), None, compiler)
}

impl Address for Fixed {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let (target, path) = self.address.as_ref().map_err(Fault::clone)?;
        let path = match postfix(context, Some(target), self.format) {
            None => path.clone(),
            Some(postfix) => join_postfix(path, &postfix),
        };
        Ok(Resolved { target: target.clone(), path, method: None })
    }

    fn written(&self) -> String {
        self.written.clone()
    }

    fn fixed(&self) -> Option<&Target> {
        leaf::connection(&self.address)
    }

    fn not_ready(&self) -> i32 {
        self.not_ready
    }
}
