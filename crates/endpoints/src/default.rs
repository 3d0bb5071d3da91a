//! `<default>`: the address in the message (`To`).

use crate::leaf::{self, Address, Resolved, postfix};
use crate::uri_template::join_postfix;
use config::endpoint::{Definition, Format};
use flow::endpoint::Endpoint;
use flow::fault::code;
use flow::{Compiler, Context, Fault};
use std::sync::Arc;

/// WS-Addressing's "no address".
const ANONYMOUS: [&str; 2] = [
    "http://www.w3.org/2005/08/addressing/anonymous",
    "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous",
];

struct ToOfMessage {
    format: Option<Format>,
    /// The rest of the client's URL follows, as for other endpoints. Not where `send` and `call` have no endpoint (WSO2).
    appends: bool,
}

pub fn compile(
    endpoint: &config::Endpoint,
    definition: &Definition,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let address = ToOfMessage { format: definition.format, appends: !endpoint.implicit };
    leaf::compile(endpoint, definition, Box::new(address), "default", None, compiler)
}

impl Address for ToOfMessage {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let Some(to) = context.to().filter(|to| !to.is_empty() && !ANONYMOUS.contains(&to.as_str())) else {
            let message = "the message has no To address to send it to";
            return Err(Fault::with_code(code::ENDPOINT_NOT_READY, message));
        };
        let (target, path) = leaf::parse(&to, context)?;
        // A To that is the client's own URL has its path in it already.
        let takes_postfix = self.appends && context.addressing.to.is_some();
        let path = match postfix(context, Some(&target), self.format).filter(|_| takes_postfix) {
            None => path,
            Some(postfix) => join_postfix(&path, &postfix),
        };
        Ok(Resolved { target, path, method: None })
    }

    fn written(&self) -> String {
        "the To address of the message".to_owned()
    }
}
