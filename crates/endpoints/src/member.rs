//! `<member hostName="…" httpPort="…" httpsPort="…">`: a host that gets the message under the path that it came with.

use crate::leaf::{self, Address, Resolved, postfix, target_of};
use crate::uri_template::join_postfix;
use config::endpoint::{Definition, Member};
use flow::endpoint::Endpoint;
use flow::url::{Url, parse_url};
use flow::{Compiler, Context, Fault};
use std::sync::Arc;

/// How long a member is left alone after a failure, unless its group says so: the engines look every half second
/// whether it accepts connections again.
const PAUSE: i64 = 500;

struct Host {
    host: String,
    http: Option<u16>,
    https: Option<u16>,
}

/// Makes the endpoint of a member; `group` is what it is a member of.
pub fn compile(
    member: &Member,
    group: &config::Endpoint,
    definition: &Definition,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let mut host = Host { host: member.host.value.clone(), http: member.http_port, https: member.https_port };
    if host.http.is_none() && host.https.is_none() {
        let message = format!("the member `{}` has no port", host.host);
        compiler.error("missing-attribute", message, member.span, "expected httpPort, httpsPort, or both");
        return None;
    }
    match parse_url(&format!("http://{}/", host.host)) {
        Ok(url) => host.host = url.host,
        Err(error) => {
            let message = format!("`{}` is not a host", host.host);
            compiler.warning("bad-address", message, member.host.span, error.message);
        }
    }
    let mut definition = definition.clone();
    if definition.suspend_on_failure.initial_duration < 0 {
        definition.suspend_on_failure.initial_duration = PAUSE;
    }
    // The name, properties and handler of the group are not the member's.
    let endpoint = config::Endpoint { name: None, on_error: None, properties: Vec::new(), ..group.clone() };
    let description = format!("member {}", host.written());
    leaf::compile(&endpoint, &definition, Box::new(host), &description, None, compiler)
}

impl Address for Host {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let to = context.to().unwrap_or_default();
        let is_absolute = to.contains("://");
        let path = match parse_url(&to) {
            Ok(url) => url.path_and_query,
            Err(_) if to.starts_with('/') => to,
            Err(_) => "/".to_owned(),
        };
        // The client's own URL has its path in it already.
        let path =
            match postfix(context, None, None).filter(|_| is_absolute && context.addressing.to.is_some()) {
                Some(postfix) => join_postfix(&path, &postfix),
                None => path,
            };
        let (secure, port) = match (context.inbound.secure, self.http, self.https) {
            (true, _, Some(port)) => (true, port),
            (_, Some(port), _) => (false, port),
            (_, None, port) => (true, port.unwrap_or(443)),
        };
        let scheme = if secure { "https" } else { "http" }.to_owned();
        let url = Url { scheme, host: self.host.clone(), port, path_and_query: path };
        let target = target_of(&url, context.services())?;
        Ok(Resolved { target, path: url.path_and_query, method: None })
    }

    fn written(&self) -> String {
        let port = |port: Option<u16>| port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{}{}", self.host, port(self.http), port(self.https))
    }
}
