//! `<recipientlist>`: a copy to each of several endpoints, which the configuration lists or each message names.

use crate::leaf::{self, Address, Resolved, postfix};
use crate::uri_template::join_postfix;
use crate::{member, name_of};
use config::endpoint::{RecipientList as Config, Recipients};
use flow::endpoint::{Attempts, Choice, Endpoint, Leaf, Step};
use flow::metrics::Counters;
use flow::{Compiler, Context, Fault, Identity, KeyValue, Need, lock};
use std::sync::{Arc, Mutex};

/// Most addresses that one message may name.
const MOST: usize = 1_000;

struct RecipientList {
    name: String,
    endpoints: Vec<Arc<dyn Endpoint>>,
}

/// Recipients that each message names.
struct Named {
    name: String,
    identity: Identity,
    value: KeyValue,
    recent: Arc<Recent>,
    /// `max-cache`: how many.
    most: usize,
    counters: Arc<Counters>,
}

/// The recipients of the last messages, the latest one last. They hold their states, so this belongs to the identity of the list.
#[derive(Default)]
struct Recent(Mutex<Vec<(String, Arc<dyn Endpoint>)>>);

/// An address that a message named.
struct Recipient(String);

pub fn compile(
    endpoint: &config::Endpoint,
    group: &Config,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let name = name_of(endpoint, "recipientlist");
    let endpoints: Option<Vec<_>> = match &group.recipients {
        Recipients::Endpoints(recipients) => {
            recipients.iter().map(|recipient| crate::endpoint(recipient, compiler)).collect()
        }
        Recipients::Members(members) => members
            .iter()
            .map(|member| member::compile(member, endpoint, &group.definition, compiler))
            .collect(),
        Recipients::Dynamic { value, max_cache } => {
            if let config::Value::Literal(list) = value {
                check(list, compiler);
            }
            let value = leaf::key_value(value, compiler)?;
            let identity = compiler.identity(&name);
            return Some(Arc::new(Named {
                recent: compiler.services.states.get(&identity),
                identity,
                value,
                most: *max_cache,
                counters: compiler.services.metrics.counters("endpoint", &name),
                name,
            }));
        }
    };
    Some(Arc::new(RecipientList { name, endpoints: endpoints? }))
}

/// Warns of the addresses in a fixed list to which nothing can be sent.
fn check(list: &config::Key, compiler: &mut Compiler<'_>) {
    let exact = list.value.len() == (list.span.end - list.span.start) as usize;
    let mut at = 0;
    for part in list.value.split(',') {
        let blank = part.len() - part.trim_start().len();
        let url = part.trim();
        let span = if exact { list.span.part(at + blank, url.len()) } else { list.span };
        if !url.is_empty() && !url.contains(['{', '$']) {
            // Messages fault there; what is wrong is in the finding.
            let _ = leaf::fixed(url, span, compiler);
        }
        at += part.len() + 1;
    }
}

/// The recipients that get a copy: those that are not suspended.
///
/// # Errors
/// There is none.
fn ready(name: &str, endpoints: Vec<Arc<dyn Endpoint>>) -> Result<Choice, Fault> {
    let ready: Vec<_> = endpoints.iter().filter(|endpoint| endpoint.is_ready()).cloned().collect();
    if ready.is_empty() {
        let leaves: Vec<_> = endpoints.iter().flat_map(|endpoint| endpoint.leaves()).collect();
        return Err(crate::group::none_ready(name, &leaves));
    }
    Ok(Choice::Everyone(ready))
}

impl Endpoint for RecipientList {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, _: &mut Context, _: &Attempts, _: &mut Step) -> Result<Choice, Fault> {
        ready(&self.name, self.endpoints.clone())
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        self.endpoints.iter().flat_map(|endpoint| endpoint.leaves()).collect()
    }
}

impl Named {
    fn recipient(&self, url: &str, context: &Context) -> Arc<dyn Endpoint> {
        let mut recent = lock(&self.recent.0);
        let found = recent.iter().position(|(named, _)| named == url).map(|at| recent.remove(at));
        let (url, endpoint) = found.unwrap_or_else(|| {
            let description = diagnostics::without_credentials(url).into_owned();
            let (identity, counters) = (self.identity.part(url), Arc::clone(&self.counters));
            let address = Box::new(Recipient(url.to_owned()));
            (url.to_owned(), leaf::plain(description, address, identity, counters, context.services()))
        });
        if self.most > 0 {
            // A version before this one may have had room for more.
            let over = (recent.len() + 1).saturating_sub(self.most);
            recent.drain(..over);
            recent.push((url, Arc::clone(&endpoint)));
        }
        endpoint
    }
}

impl Endpoint for Named {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, context: &mut Context, _: &Attempts, _: &mut Step) -> Result<Choice, Fault> {
        let list = self.value.resolve(context)?.unwrap_or_default();
        let urls = list.split(',').map(str::trim).filter(|url| !url.is_empty());
        let endpoints: Vec<_> = urls.take(MOST + 1).map(|url| self.recipient(url, context)).collect();
        match endpoints.len() {
            count if count > MOST => {
                Err(Fault::new(format!("the message names more than {MOST} recipients")))
            }
            _ => ready(&self.name, endpoints),
        }
    }

    fn reads_body(&self) -> bool {
        self.value.need() >= Need::Prefix
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        lock(&self.recent.0).iter().flat_map(|(_, endpoint)| endpoint.leaves()).collect()
    }
}

impl Address for Recipient {
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault> {
        let (target, path) = leaf::parse(&self.0, context)?;
        let path = match postfix(context, Some(&target), None) {
            None => path,
            Some(postfix) => join_postfix(&path, &postfix),
        };
        Ok(Resolved { target, path, method: None })
    }

    fn written(&self) -> String {
        self.0.clone()
    }
}
