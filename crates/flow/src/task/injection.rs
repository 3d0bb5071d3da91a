//! A message that is injected: into a sequence, a proxy service or `main`.

use crate::engine::begin_request;
use crate::runtime::context::{Addressing, Context, Origin, Owner};
use crate::runtime::fault::Fault;
use crate::runtime::plan::Plan;
use crate::runtime::progress::Waits;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::services::Services;
use crate::runtime::task::{Format, Injection, Source, Target, TaskMessage};
use message::{Body, Headers, Method, Payload, SoapVersion, Value};
use std::sync::Arc;

impl Injection {
    /// The message as it is when its flow begins.
    ///
    /// # Errors
    /// There is nothing to inject, or nothing to inject it into.
    pub(super) fn begin(
        &self,
        task: &str,
        plan: &Arc<Plan>,
        services: &Arc<Services>,
    ) -> Result<Box<Context>, Fault> {
        let made = match &self.source {
            Source::Message(made) => made.clone(),
            Source::Key(key) => {
                let entry =
                    plan.entry(key).ok_or_else(|| Fault::new(format!("there is no entry `{key}`")))?;
                TaskMessage::of(&entry.bytes, self.format, self.soap_action.as_deref()).map_err(Fault::new)?
            }
        };
        let owner = match &self.target {
            Target::Proxy(name) => Owner::Proxy(find(plan, name)?),
            Target::Main | Target::Sequence(_) => Owner::Main,
        };
        let mut headers = Headers::new();
        headers.set("Content-Type", made.content_type.as_str());
        if let (Client::Soap(SoapVersion::V11), Some(action)) = (made.client, &self.soap_action) {
            headers.set("SOAPAction", format!("\"{action}\""));
        }
        let target = match &self.target {
            Target::Proxy(name) => format!("/services/{name}"),
            Target::Main | Target::Sequence(_) => "/".to_owned(),
        };
        let method = if self.format == Format::Get { Method::Get } else { Method::Post };
        let inbound = Inbound::of_nobody(method, target, made.client, &headers);
        let payload = Payload::arrived(Body::Bytes(made.body), &headers, made.client == Client::Rest);
        let (plan, services) = (Arc::clone(plan), Arc::clone(services));
        let mut context = Box::new(Context::new(plan, services, Arc::new(inbound), headers, payload));
        let to = self.to.as_ref().map(|to| with_query(to, &made.query));
        context.addressing = Addressing { to, action: self.soap_action.clone(), ..Addressing::default() };
        if let Client::Soap(_) = made.client {
            context.soap_action.clone_from(&self.soap_action);
        }
        // Nobody waits for an answer.
        context.progress.client = Waits::Nobody;
        context.owner = owner;
        context.attach(Arc::new(Origin(format!("task {task}"))));
        context.properties.set("task.name", Value::from(task));
        for (name, value) in &self.properties {
            context.properties.set(Arc::clone(name), value.clone());
        }
        let list = match &self.target {
            Target::Main => Some(context.plan.main),
            Target::Sequence(sequence) => Some(sequence.resolve(&mut context)?),
            Target::Proxy(_) => {
                let plan = Arc::clone(&context.plan);
                let Owner::Proxy(index) = owner else { return Ok(context) };
                plan.proxies[index].enter(&mut context)?
            }
        };
        begin_request(&mut context, list);
        Ok(context)
    }
}

/// The number of a proxy service that runs.
fn find(plan: &Plan, name: &str) -> Result<usize, Fault> {
    let index = plan.proxies.iter().position(|proxy| proxy.name == name);
    let index = index.ok_or_else(|| Fault::new(format!("there is no proxy service `{name}`")))?;
    match plan.proxies[index].activation.is_on() {
        true => Ok(index),
        false => Err(Fault::new(format!("the proxy service `{name}` is stopped"))),
    }
}

fn with_query(to: &str, query: &str) -> String {
    match query {
        "" => to.to_owned(),
        query => format!("{to}{}{query}", if to.contains('?') { '&' } else { '?' }),
    }
}
