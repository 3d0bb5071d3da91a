//! From the model of a data service to its plan: statements with the positions of their parameters, results as plans of output.

mod query;
mod result;

use self::query::{compile_query, pool_of};
use self::result::Shaping;
use crate::event::Trigger;
use crate::plan::{Call, Operation, Query, Segment, Service, Source, With};
use config::{DataCall, DataDirection, DataOperation, DataOutput, DataValue};
use diagnostics::Diagnostic;
use flow::Compiler;
use flow::data::DataService;
use sql::Pool;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Compiles a data service; `None` after a recorded error.
pub(crate) fn compile(
    service: &config::DataService,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn DataService>> {
    for (part, why) in &service.ignored {
        compiler.warning(
            "ignored-parameter",
            format!("`{part}` of a data service has no effect"),
            part.span,
            *why,
        );
    }
    let used = used(service);
    for query in service.queries.iter().filter(|query| !used.contains(query.id.value.as_str())) {
        let message = format!("nothing runs the query `{}`", query.id);
        compiler.warning(
            "unused-query",
            message,
            query.id.span,
            "neither an operation, a resource nor a result",
        );
        // Its result is not compiled.
        let mut found = Vec::new();
        query.result.iter().for_each(|result| calls(&result.children, &mut found));
        for call in found.into_iter().filter(|call| service.query(&call.query).is_none()) {
            compiler.diagnostics.push(no_query(service, call, Diagnostic::warning));
        }
    }
    let is_replaced = |at: usize| {
        let id = &service.queries[at].id.value;
        service.queries[at + 1..].iter().any(|other| other.id.value == *id)
    };
    for (_, query) in service.queries.iter().enumerate().filter(|&(at, _)| is_replaced(at)) {
        let message = format!("two queries have the id `{}`", query.id);
        compiler.warning("duplicate-key", message, query.id.span, "the later one counts, as in WSO2");
    }
    let mut pools: HashMap<&str, Option<Arc<Pool>>> = HashMap::new();
    let mut queries = Vec::new();
    let mut is_whole = true;
    for (at, query) in service.queries.iter().enumerate() {
        // A query that nothing runs may be faulty.
        if is_replaced(at) || !used.contains(query.id.value.as_str()) {
            continue;
        }
        match compile_query(service, query, &mut pools, compiler) {
            Some(query) => queries.push(query),
            None => is_whole = false,
        }
    }
    let mut odata = Vec::new();
    for config in service.configs.iter().filter(|config| config.odata) {
        if let Some((key, _)) = ["csv_datasource", "excel_datasource"]
            .iter()
            .find_map(|name| Some((config.property(name)?, name)))
        {
            let message = format!("the tables of the config `{}` are files", config.id);
            compiler.warning("ignored-parameter", message, key.span, "`enableOData` has no effect");
            continue;
        }
        match pool_of(config, &service.name.value, &mut pools, compiler) {
            Some(pool) if pool.dialect() == sql::Dialect::SqlServer => {
                let message = format!("the tables of the config `{}` are in SQL Server", config.id);
                let label = "`enableOData` has no effect: they are served of the other databases";
                compiler.warning("ignored-parameter", message, config.span, label);
            }
            Some(pool) => odata.push(crate::odata::Source::new(&config.id.value, pool)),
            None => is_whole = false,
        }
    }
    if !is_whole {
        // The operations are compiled for their errors only.
        let numbers =
            service.queries.iter().enumerate().map(|(at, query)| (query.id.value.clone(), at)).collect();
        for operation in &service.operations {
            compile_operation(service, operation, &numbers, compiler);
        }
        return None;
    }
    let mut numbers = HashMap::new();
    for (at, query) in queries.iter().enumerate() {
        numbers.insert(query.id.clone(), at);
    }
    let triggers = triggers(service, compiler)?;
    let mut has_roles = service.operations.iter().any(|operation| !operation.call.roles.is_empty());
    let namespace: Arc<str> = Arc::from(service.namespace.as_str());
    for query in &mut queries {
        let query_described = service.query(&query.id)?;
        query.input_trigger = trigger_of(service, query_described.input_trigger.as_ref(), compiler);
        query.output_trigger = trigger_of(service, query_described.output_trigger.as_ref(), compiler);
        if let Some(result) = &query_described.result {
            let mut shaping =
                Shaping { service, numbers: &numbers, slots: 0, is_nested: false, has_roles: &mut has_roles };
            query.result = Some(shaping.shape(result, query, compiler)?);
            if let Some(key) = &result.stylesheet {
                query.stylesheet = Some(mediators::ResultStylesheet::compile(key, compiler)?);
                if !service.operations.iter().any(|operation| operation.call.query.value == query.id) {
                    let message = format!("`xsltPath` of the query `{}` has no effect", query.id);
                    let label = "no operation or resource runs it: only their results are transformed";
                    compiler.warning("ignored-parameter", message, key.span, label);
                }
            }
        }
    }
    if let Some(circle) = circle(&queries) {
        let message = format!("the query `{circle}` runs itself");
        let span = service.query(&circle).map_or(service.span, |query| query.id.span);
        compiler.error("recursive-query", message, span, "each of its rows would run it again");
        return None;
    }
    let mut operations: Vec<Operation> = Vec::new();
    for operation in &service.operations {
        let Some(made) = compile_operation(service, operation, &numbers, compiler) else {
            is_whole = false;
            continue;
        };
        match operations.iter_mut().find(|other| other.label == made.label) {
            Some(other) => {
                let message = format!("`{}` is there twice", made.label);
                let label = "it counts instead of the one before, as in WSO2";
                compiler.warning("duplicate-key", message, operation.name.span, label);
                *other = made;
            }
            None => operations.push(made),
        }
    }
    if !is_whole {
        return None;
    }
    if operations.is_empty() && odata.is_empty() {
        compiler.warning(
            "missing-element",
            format!("the data service `{}` has neither an operation nor a resource", service.name),
            service.name.span,
            "clients can call nothing of it",
        );
    }
    let mut compiled = Service {
        name: service.name.value.clone(),
        namespace,
        description: service.description.clone(),
        location: format!("{}.dbs", service.name),
        batch: service.batch,
        boxcarring: service.boxcarring,
        held: service.held,
        operations,
        queries,
        triggers,
        has_roles,
        odata,
    };
    // Events and stylesheets look at the whole response.
    for at in 0..compiled.operations.len() {
        let (has_events, is_transformed) = (compiled.causes_events(at), compiled.stylesheet(at).is_some());
        let operation = &mut compiled.operations[at];
        operation.has_events = has_events;
        operation.held |= has_events || is_transformed;
    }
    Some(Arc::new(compiled))
}

/// The event triggers of a service; `None` after a recorded error.
fn triggers(service: &config::DataService, compiler: &mut Compiler<'_>) -> Option<Vec<Trigger>> {
    for trigger in &service.triggers {
        let refers =
            |key: &Option<config::Key>| key.as_ref().is_some_and(|key| key.value == trigger.id.value);
        let is_used =
            |query: &config::DataQuery| refers(&query.input_trigger) || refers(&query.output_trigger);
        if !service.queries.iter().any(is_used) {
            let message = format!("no query has the event trigger `{}`", trigger.id);
            let label = "expected a query with `input-event-trigger` or `output-event-trigger`";
            compiler.warning("ignored-parameter", message, trigger.id.span, label);
        }
    }
    // All of them, so that all errors are reported at once.
    let triggers: Vec<_> =
        service.triggers.iter().map(|trigger| Trigger::compile(trigger, compiler)).collect();
    triggers.into_iter().collect()
}

/// The number of the trigger that a query names. As in WSO2, a name that no trigger has costs only the events.
fn trigger_of(
    service: &config::DataService,
    name: Option<&config::Key>,
    compiler: &mut Compiler<'_>,
) -> Option<usize> {
    let name = name?;
    let found = service.triggers.iter().position(|trigger| trigger.id.value == name.value);
    if found.is_none() {
        let names = service.triggers.iter().map(|trigger| trigger.id.value.as_str());
        let message = format!("there is no event trigger `{name}`");
        compiler.diagnostics.push(
            Diagnostic::warning("unknown-trigger", message)
                .at(name.span, "the query causes no event")
                .did_you_mean(name, names),
        );
    }
    found
}

/// The calls of other queries in a result.
fn calls<'a>(outputs: &'a [DataOutput], found: &mut Vec<&'a DataCall>) {
    for output in outputs {
        match output {
            DataOutput::Call(call) => found.push(call),
            DataOutput::Group { children, .. } => calls(children, found),
            DataOutput::Field(_) => {}
        }
    }
}

/// The finding that a call names no query.
fn no_query(
    service: &config::DataService,
    call: &DataCall,
    finding: fn(&'static str, String) -> Diagnostic,
) -> Diagnostic {
    let names = service.queries.iter().map(|query| query.id.value.as_str());
    finding("unknown-query", format!("there is no query `{}`", call.query))
        .at(call.query.span, "it would be run here")
        .did_you_mean(&call.query, names)
}

/// The ids of queries that operations and results run.
fn used(service: &config::DataService) -> HashSet<&str> {
    let mut used: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> =
        service.operations.iter().map(|operation| operation.call.query.value.as_str()).collect();
    while let Some(id) = open.pop() {
        let Some(query) = service.query(id) else { continue };
        if !used.insert(query.id.value.as_str()) {
            continue;
        }
        let Some(result) = &query.result else { continue };
        let mut found = Vec::new();
        calls(&result.children, &mut found);
        open.extend(found.into_iter().map(|call| call.query.value.as_str()));
        // A description in JSON names queries too.
        if let Some(json) = &result.json {
            open.extend(
                service
                    .queries
                    .iter()
                    .map(|q| q.id.value.as_str())
                    .filter(|id| json.value.contains(&format!("@{id}"))),
            );
        }
    }
    used
}

/// A query that is part of its own result.
fn circle(queries: &[Query]) -> Option<String> {
    for (start, query) in queries.iter().enumerate() {
        let (mut open, mut seen) = (vec![start], HashSet::new());
        while let Some(at) = open.pop() {
            let mut next = Vec::new();
            queries[at].result.iter().for_each(|shape| shape.group.queries(&mut next));
            if next.contains(&start) {
                return Some(query.id.clone());
            }
            open.extend(next.into_iter().filter(|&at| seen.insert(at)));
        }
    }
    None
}

fn source(value: &DataValue) -> Source {
    match value {
        DataValue::Column(name) => Source::Column(name.trim().to_ascii_lowercase()),
        DataValue::Parameter(name) => Source::Parameter(name.trim().to_ascii_lowercase()),
        DataValue::Constant(text) => Source::Constant(text.clone()),
        // In a result of RDF it is a template (`result`); elsewhere a reference has no meaning.
        DataValue::Reference(text) => Source::Constant(text.clone()),
    }
}

/// A call of a query.
fn call(
    service: &config::DataService,
    data_call: &DataCall,
    numbers: &HashMap<String, usize>,
    compiler: &mut Compiler<'_>,
) -> Option<Call> {
    let (Some(&query), Some(described)) =
        (numbers.get(&data_call.query.value), service.query(&data_call.query))
    else {
        compiler.diagnostics.push(no_query(service, data_call, Diagnostic::error));
        return None;
    };
    let mut parameters = Vec::new();
    for (name, value) in &data_call.parameters {
        if !described.parameters.iter().any(|parameter| parameter.name.value.trim() == name.value.trim()) {
            let message = format!("the query `{}` has no parameter `{name}`", data_call.query);
            let names = described.parameters.iter().map(|parameter| parameter.name.value.as_str());
            compiler.diagnostics.push(
                Diagnostic::warning("unmapped-parameter", message)
                    .at(name.span, "what it is given goes nowhere")
                    .did_you_mean(name, names),
            );
        }
        let written = match value {
            DataValue::Column(name) | DataValue::Parameter(name) => name.trim().to_owned(),
            DataValue::Constant(_) | DataValue::Reference(_) => String::new(),
        };
        parameters.push(With { name: name.trim().to_ascii_lowercase(), source: source(value), written });
    }
    for parameter in &described.parameters {
        let is_given = data_call.parameters.iter().any(|(name, _)| name.trim() == parameter.name.trim());
        let needs =
            parameter.direction != DataDirection::Out && parameter.default.is_none() && !parameter.optional;
        if !is_given && needs && !service.boxcarring {
            let message = format!("the query `{}` is given no `{}`", data_call.query, parameter.name);
            compiler.diagnostics.push(
                Diagnostic::warning("unmapped-parameter", message)
                    .at(data_call.span, "a request without it fails")
                    .help(format!(
                        "add <with-param name=\"{0}\" query-param=\"{0}\"/>, or give the param a defaultValue",
                        parameter.name
                    )),
            );
        }
    }
    Some(Call { query, parameters, roles: data_call.roles.clone() })
}

fn compile_operation(
    service: &config::DataService,
    operation: &DataOperation,
    numbers: &HashMap<String, usize>,
    compiler: &mut Compiler<'_>,
) -> Option<Operation> {
    let call = call(service, &operation.call, numbers, compiler)?;
    let path = operation.name.value.trim();
    let (label, names, resource) = match &operation.method {
        None => (path.to_owned(), vec![path.to_owned()], None),
        Some(method) => {
            let word = method.trim().to_ascii_uppercase();
            if !["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"].contains(&word.as_str()) {
                let message = format!("`method` cannot be `{}`", method.trim());
                compiler.error("bad-value", message, method.span, "expected GET, POST, PUT, DELETE or PATCH");
                return None;
            }
            let path = path.trim_matches('/');
            let variable = |part: &'_ str| part.strip_prefix('{')?.strip_suffix('}').map(str::to_owned);
            let is_partial = |part: &&str| variable(part).as_deref().unwrap_or(part).contains(['{', '}']);
            if let Some(part) = path.split('/').find(is_partial) {
                compiler.warning(
                    "bad-value",
                    format!("`{part}` is no variable: it is a segment of the path as it is written"),
                    operation.name.span,
                    "a variable is a whole segment: `items/{id}`",
                );
            }
            for name in path.split('/').filter_map(variable) {
                warn_of_variable(service, operation, &name, compiler);
            }
            let segments = path.split('/').filter(|part| !part.is_empty()).map(|part| match variable(part) {
                Some(name) => Segment::Variable(name),
                None => Segment::Literal(part.to_owned()),
            });
            (format!("{word} {path}"), request_names(&word, path), Some((word, segments.collect())))
        }
    };
    Some(Operation {
        label,
        names,
        resource,
        description: operation.description.clone(),
        call,
        status: operation.status,
        held: operation.held,
        has_events: false,
    })
}

/// A variable of a path that is no parameter of the query.
fn warn_of_variable(
    service: &config::DataService,
    operation: &DataOperation,
    variable: &str,
    compiler: &mut Compiler<'_>,
) {
    let given = &operation.call.parameters;
    let sources = given.iter().filter_map(|(_, value)| match value {
        DataValue::Parameter(name) | DataValue::Column(name) => Some(name.trim()),
        DataValue::Constant(_) | DataValue::Reference(_) => None,
    });
    // A parameter that the call does not give is taken by its name.
    let all = service.query(&operation.call.query).into_iter().flat_map(|query| &query.parameters);
    let by_name = all.map(|parameter| parameter.name.value.trim());
    let by_name = by_name.filter(|name| given.iter().all(|(with, _)| with.trim() != *name));
    let names: Vec<&str> = sources.chain(by_name).collect();
    if !names.iter().any(|name| name.eq_ignore_ascii_case(variable)) {
        let message = format!("`{{{variable}}}` of the path is no parameter of the query");
        compiler.diagnostics.push(
            Diagnostic::warning("unmapped-parameter", message)
                .at(operation.name.span, "what a client has there goes nowhere")
                .did_you_mean(variable, names),
        );
    }
}

/// What a request for a resource is called in a body: `_getitems_name` for GET `Items/{Name}`. WSO2 writes it in small
/// letters; those of the path are as good.
pub(crate) fn request_names(method: &str, path: &str) -> Vec<String> {
    let underscored = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
    let method = method.trim().to_ascii_lowercase();
    let path = path.trim().trim_matches('/');
    let mut names = Vec::new();
    for path in [path.to_ascii_lowercase(), path.to_owned()] {
        let plain: String = path.chars().filter(|c| !matches!(c, '{' | '}')).map(underscored).collect();
        let full: String = path.chars().map(underscored).collect();
        for name in [format!("_{method}{plain}"), format!("_{method}_{plain}"), format!("_{method}{full}")] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
