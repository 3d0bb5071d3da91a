//! The request of a message: an operation by the element in its body, its action or its path, a resource by method and path, with parameters from
//! path, query, form, XML and JSON.

use crate::fault::{Trouble, code};
use crate::plan::{Operation, Segment, Service};
use crate::value::{Givens, RequestValue};
use flow::{Client, Context, Fault};
use message::{Envelope, Kind, PayloadError};
use serde_json::{Map, Value};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// A request.
#[derive(Debug)]
pub(crate) enum Ask {
    /// An operation, by its number.
    One(usize, Givens),
    /// A batch: one operation several times, all or nothing.
    Batch(usize, Vec<Givens>),
    /// A request box: several operations, all or nothing.
    Box(Vec<Ask>),
}

impl Ask {
    /// Whether the response has RDF in it.
    pub fn is_rdf(&self, service: &Service) -> bool {
        match self {
            Ask::One(at, _) => service.is_rdf(*at),
            // The responses in a batch are dropped, and those in a box but for the last one.
            Ask::Batch(..) => false,
            Ask::Box(all) => all.last().is_some_and(|ask| ask.is_rdf(service)),
        }
    }

    /// The name of the request in faults and in the log.
    pub fn name<'a>(&self, service: &'a Service) -> &'a str {
        match self {
            Ask::One(at, _) | Ask::Batch(at, _) => &service.operations[*at].label,
            Ask::Box(_) => "request_box",
        }
    }
}

/// The suffix of the name of a batch request.
pub(crate) const BATCH: &str = "_batch_req";

/// The element of a request box.
pub(crate) const BOX: &str = "request_box";

/// The session operations that older clients use for request boxes.
const SESSIONS: [&str; 3] = ["begin_boxcar", "end_boxcar", "abort_boxcar"];

pub(crate) fn add(givens: &mut Givens, name: &str, value: Option<String>) {
    match givens.get_mut(&name.to_ascii_lowercase()) {
        None => _ = givens.insert(name.to_ascii_lowercase(), RequestValue::One(value)),
        Some(RequestValue::Many(all)) => all.push(value),
        Some(given) => {
            let first = std::mem::replace(given, RequestValue::Many(Vec::new()));
            if let (RequestValue::One(first), RequestValue::Many(all)) = (first, given) {
                all.extend([first, value]);
            }
        }
    }
}

/// Reads a message.
///
/// # Errors
/// The body cannot be read; inner: the request is not valid.
pub(crate) fn read(service: &Service, context: &mut Context) -> Result<Result<Ask, Trouble>, Fault> {
    let postfix = match context.inbound.service_length {
        // A message without a client: only its body counts.
        0 => String::new(),
        _ => context.inbound.postfix().to_owned(),
    };
    let (path, query) = postfix.split_once('?').unwrap_or((&postfix, ""));
    let segments: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(message::form::decode_percent).collect();
    if matches!(context.inbound.client, Client::Soap(_)) {
        return of_soap(service, context, &segments);
    }
    let mut outside = Givens::new();
    for (name, value) in message::form::pairs(query) {
        add(&mut outside, &message::form::decode(name), Some(value));
    }
    let method = context.inbound.method.as_str().to_owned();
    let found = |segments: &[String]| {
        let all = service.operations.iter().enumerate();
        let all = all.filter_map(|(at, operation)| Some((at, operation.matches(&method, segments)?)));
        // Literal segments take precedence over variables.
        all.min_by_key(|(_, variables)| variables.len())
    };
    let resource = found(&segments).map(|(at, variables)| (at, variables, false)).or_else(|| {
        // `items_batch_req`: a batch for the resource `items`.
        let (last, before) = segments.split_last().filter(|_| service.batch)?;
        let single = [before, &[last.strip_suffix(BATCH)?.to_owned()]].concat();
        found(&single).map(|(at, variables)| (at, variables, true))
    });
    let by_name = |name: &str| service.operation(name);
    let (at, batch) = match resource {
        Some((at, variables, batch)) => {
            for (name, value) in variables {
                outside.insert(name.to_ascii_lowercase(), RequestValue::One(Some(value)));
            }
            (Some(at), batch)
        }
        None => match segments.as_slice() {
            [name] => match (by_name(name), name.strip_suffix(BATCH).and_then(by_name)) {
                (Some(at), _) => (Some(at), false),
                (_, Some(at)) if service.batch => (Some(at), true),
                _ if name == BOX && service.boxcarring => (None, false),
                _ => return Ok(Err(unknown(path))),
            },
            [] => (None, false),
            _ => return Ok(Err(unknown(path))),
        },
    };
    let ask = match context.payload.reading().kind {
        _ if context.payload.is_empty() => Ok(None),
        Kind::Form => {
            let bytes = context.payload.whole()?;
            for (name, value) in message::form::pairs(&String::from_utf8_lossy(&bytes)) {
                add(&mut outside, &message::form::decode(name), Some(value));
            }
            Ok(None)
        }
        Kind::Json => match context.payload.json() {
            Err(PayloadError::Malformed { message }) => Err(unreadable(message)),
            json => json?.map_or(Ok(None), |json| of_json(service, at, batch, json)),
        },
        _ => {
            let services = Arc::clone(context.services());
            let envelope = match context.payload.envelope(&services.limits) {
                Err(PayloadError::Malformed { message }) => return Ok(Err(unreadable(message))),
                envelope => envelope?,
            };
            match envelope.payload() {
                Some(root) => of_element(service, at, batch, &envelope.document, root).map(Some),
                None => Ok(None),
            }
        }
    };
    Ok(ask.and_then(|ask| match (ask, at) {
        (None, None) => Err(unknown(path)),
        (None, Some(at)) => Ok(Ask::One(at, outside)),
        (Some(Ask::One(at, mut givens)), _) => {
            givens.extend(outside);
            Ok(Ask::One(at, givens))
        }
        (Some(Ask::Batch(at, mut all)), _) => {
            for givens in &mut all {
                for (name, value) in &outside {
                    givens.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            Ok(Ask::Batch(at, all))
        }
        (Some(boxed), _) => Ok(boxed),
    }))
}

/// The body does not have its media type.
fn unreadable(why: String) -> Trouble {
    Trouble { status: 400, ..Trouble::new(code::PARAMETERS, format!("the request cannot be read: {why}")) }
}

fn unknown(target: &str) -> Trouble {
    let mut message = format!("there is no operation or resource `{target}`");
    if SESSIONS.contains(&target.trim_matches('/')) {
        message +=
            ": requests are not collected in sessions; send those that count together in one `request_box`";
    }
    Trouble { status: 404, ..Trouble::new(code::UNKNOWN, message) }
}

fn of_soap(
    service: &Service,
    context: &mut Context,
    segments: &[String],
) -> Result<Result<Ask, Trouble>, Fault> {
    let action = context.soap_action().unwrap_or_default();
    let action = action.strip_prefix("urn:").unwrap_or(&action).to_owned();
    let by_action = service.operation(&action).or_else(|| match segments {
        [name] => service.operation(name),
        _ => None,
    });
    let envelope: &Envelope = context.envelope()?;
    let Some(root) = envelope.payload() else {
        return Ok(by_action.map(|at| Ask::One(at, Givens::new())).ok_or_else(|| unknown(&action)));
    };
    let by_element = of_element(service, None, false, &envelope.document, root);
    Ok(match (by_element, by_action) {
        (Err(trouble), Some(at)) if trouble.status == 404 => {
            of_element(service, Some(at), false, &envelope.document, root)
        }
        (ask, _) => ask,
    })
}

/// A request by its element. `at`: the operation, if it is given already.
pub(crate) fn of_element(
    service: &Service,
    at: Option<usize>,
    batch: bool,
    document: &Document,
    root: NodeId,
) -> Result<Ask, Trouble> {
    let name = document.local(root);
    if name == BOX && service.boxcarring {
        let inside = elements(document, root).map(|child| of_element(service, None, false, document, child));
        return Ok(Ask::Box(inside.collect::<Result<_, _>>()?));
    }
    let exact = service.operation(name);
    let many = name.strip_suffix(BATCH).filter(|_| exact.is_none());
    let is_batch = service.batch && (many.is_some() || batch);
    let at = at.or(exact).or_else(|| many.filter(|_| service.batch).and_then(|name| service.operation(name)));
    let at = at.ok_or_else(|| unknown(name))?;
    Ok(match is_batch {
        true => Ask::Batch(at, elements(document, root).map(|child| givens(document, child)).collect()),
        false => Ask::One(at, givens(document, root)),
    })
}

fn elements(document: &Document, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    document.children(node).filter(|&child| document.kind(child) == NodeKind::Element)
}

/// The child elements of a request are its parameters.
fn givens(document: &Document, request: NodeId) -> Givens {
    const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
    let mut all = Givens::new();
    for child in elements(document, request) {
        let nil = document
            .attribute(child, INSTANCE, "nil")
            .is_some_and(|nil_text| matches!(nil_text.trim(), "true" | "1"));
        add(&mut all, document.local(child), (!nil).then(|| document.string_value(child).to_string()));
    }
    all
}

/// A request in JSON: `{"operation": {…}}`, for a resource also the parameters alone. `None`: an empty object.
pub(crate) fn of_json(
    service: &Service,
    at: Option<usize>,
    batch: bool,
    json: &Value,
) -> Result<Option<Ask>, Trouble> {
    let wrong = |why: &str| Err(Trouble { status: 400, ..Trouble::new(code::PARAMETERS, why.to_owned()) });
    let Value::Object(root) = json else { return wrong("the request is not a JSON object") };
    let only = root.iter().next().filter(|_| root.len() == 1);
    if let Some((name, inside)) = only {
        if name == BOX && service.boxcarring {
            let Value::Object(inside) = inside else { return wrong("the request_box is not a JSON object") };
            return boxed(service, inside).map(|all| Some(Ask::Box(all)));
        }
        let is_batch = service.batch && (batch || name.ends_with(BATCH));
        let stem = if is_batch { name.strip_suffix(BATCH).unwrap_or(name) } else { name };
        // The operation of the path takes precedence over the member around the parameters.
        let at = at.or_else(|| service.operation(stem));
        match (inside, at) {
            (Value::Object(inside), Some(at)) if is_batch => {
                let rows = inside.values().next();
                let rows: Vec<&Value> = match rows {
                    Some(Value::Array(rows)) => rows.iter().collect(),
                    Some(item) => vec![item],
                    None => Vec::new(),
                };
                let mut all = Vec::new();
                for row in rows {
                    let Value::Object(row) = row else {
                        return wrong("a request of the batch is not a JSON object");
                    };
                    all.push(members(row));
                }
                return Ok(Some(Ask::Batch(at, all)));
            }
            (Value::Object(inside), Some(at)) => return Ok(Some(Ask::One(at, members(inside)))),
            (Value::Object(_), None) => return Err(unknown(name)),
            // The member around the parameters of a resource begins with an underscore, that of an operation has its name.
            (Value::Array(_), Some(at)) if name.starts_with('_') || service.operation(stem) == Some(at) => {
                return wrong("an array is not the parameters of one request: a batch has several");
            }
            _ => {}
        }
    }
    Ok(at.map(|at| Ask::One(at, members(root))))
}

/// The requests of a box. As in XML, where an element is repeated, an operation may come several times: as an array.
fn boxed(service: &Service, inside: &Map<String, Value>) -> Result<Vec<Ask>, Trouble> {
    let mut all = Vec::new();
    for (name, value) in inside {
        let requests = match value {
            Value::Array(requests) => requests.as_slice(),
            single => std::slice::from_ref(single),
        };
        for request in requests {
            let parameters = match request {
                // What an empty element is in JSON.
                Value::Null => Value::Object(Map::new()),
                Value::String(text) if text.is_empty() => Value::Object(Map::new()),
                Value::Object(_) => request.clone(),
                _ => {
                    let why = format!("the parameters of `{name}` in the request_box are not a JSON object");
                    return Err(Trouble { status: 400, ..Trouble::new(code::PARAMETERS, why) });
                }
            };
            let single = Value::Object([(name.clone(), parameters)].into_iter().collect());
            all.extend(of_json(service, None, false, &single)?);
        }
    }
    Ok(all)
}

fn members(object: &Map<String, Value>) -> Givens {
    fn text(value: &Value) -> Option<String> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
    let mut all = Givens::new();
    for (name, value) in object {
        let given = match value {
            Value::Array(values) => RequestValue::Many(values.iter().map(text).collect()),
            other => RequestValue::One(text(other)),
        };
        all.insert(name.to_ascii_lowercase(), given);
    }
    all
}

impl Operation {
    /// The variables of the path, if method and path match the resource.
    fn matches(&self, method: &str, segments: &[String]) -> Option<Vec<(String, String)>> {
        let (own_method, path) = self.resource.as_ref()?;
        // HEAD is GET without a body.
        if (own_method != method && !(own_method == "GET" && method == "HEAD"))
            || path.len() != segments.len()
        {
            return None;
        }
        let mut variables = Vec::new();
        for (segment, given) in path.iter().zip(segments) {
            match segment {
                Segment::Literal(text) if text == given => {}
                Segment::Literal(_) => return None,
                Segment::Variable(name) => variables.push((name.clone(), given.clone())),
            }
        }
        Some(variables)
    }
}
