//! `$batch`: several requests in one, as `multipart/mixed` or JSON. The requests of a change set (an atomicity group) are one transaction.

use super::model::Source;
use super::{Asked, JSON, PREFIX, failed, is_json, json_of, log, of, refusal};
use crate::fault::Trouble;
use crate::plan::Service;
use crate::service::Reply;
use bytes::Bytes;
use flow::{Context, Fault};
use message::multipart::{self, Part};
use message::{Body, MediaType};
use serde_json::{Map, Value as Json};
use sql::Lease;
use std::collections::HashMap;

/// Most requests of a batch.
const MOST: usize = 1000;

/// A batch of a client.
pub(super) struct Batch<'a> {
    service: &'a Service,
    source: &'a Source,
    base: String,
    steps: Vec<Step>,
    is_json: bool,
    /// A request that fails does not end the batch.
    goes_on: bool,
    message: String,
}

/// A request, or the requests of a change set.
struct Step {
    requests: Vec<Single>,
    is_set: bool,
    /// Its name where it is an atomicityGroup.
    group: Option<String>,
}

#[derive(Default)]
struct Single {
    id: Option<String>,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Content,
    depends: Vec<String>,
}

#[derive(Default)]
enum Content {
    #[default]
    None,
    Json(Json),
    Bytes(Bytes),
}

/// What became of a request.
struct Done {
    id: Option<String>,
    reply: Reply,
}

fn wrong(message: impl Into<String>) -> Trouble {
    failed(400, message)
}

impl<'a> Batch<'a> {
    /// The requests in the body of a message.
    ///
    /// # Errors
    /// The body cannot be received.
    pub async fn read(
        service: &'a Service,
        source: &'a Source,
        base: String,
        context: &mut Context,
    ) -> Result<Result<Batch<'a>, Trouble>, Fault> {
        let prefer = context.headers.get("Prefer").unwrap_or_default().to_ascii_lowercase();
        let goes_on = prefer.split([',', ';']).map(str::trim).any(|one| {
            let name = one.strip_prefix("odata.").unwrap_or(one);
            matches!(name, "continue-on-error" | "continue-on-error=true")
        });
        let is_json = context.payload.is_json();
        let steps = if is_json {
            json_of(context).await?.and_then(|body| of_json(body.unwrap_or_default()))
        } else {
            let content_type = context.inbound.content_type.clone().unwrap_or_default();
            let limits = context.services().limits.clone();
            context.payload.buffer(&limits).await?;
            match context.payload.bytes() {
                _ if !is_multipart(&content_type) => {
                    Err(failed(415, "a batch is multipart/mixed or application/json"))
                }
                Some(_) if context.headers.contains("Content-Encoding") => {
                    Err(failed(415, "a compressed batch is JSON"))
                }
                Some(body) => of_parts(body, &content_type),
                None => Err(wrong("the batch has no body")),
            }
        };
        let message = context.message_id().to_owned();
        Ok(steps.map(|steps| Batch { service, source, base, steps, is_json, goes_on, message }))
    }

    /// Runs the requests. The responses have `most` bytes at most.
    pub async fn answer(self, most: usize) -> Result<Reply, Trouble> {
        let (mut all, mut left): (Vec<Vec<Done>>, usize) = (Vec::new(), most);
        // The addresses of rows by the ids of the requests that added them, and the requests that failed.
        let mut places: HashMap<String, String> = HashMap::new();
        let mut lost: Vec<String> = Vec::new();
        for step in &self.steps {
            let done =
                match step.requests.iter().find_map(|one| one.depends.iter().find(|id| lost.contains(id))) {
                    Some(id) => step
                        .requests
                        .iter()
                        .map(|one| {
                            let trouble = failed(424, format!("the request {id} has failed"));
                            Done { id: one.id.clone(), reply: refusal(&trouble) }
                        })
                        .collect(),
                    None => self.step(step, left, &mut places).await,
                };
            let mut is_lost = false;
            for one in &done {
                let too_large = || failed(500, format!("the answer is larger than {most} bytes"));
                left = left.checked_sub(length(&one.reply)).ok_or_else(too_large)?;
                is_lost |= one.reply.status >= 400;
            }
            all.push(done);
            if is_lost {
                lost.extend(step.requests.iter().filter_map(|one| one.id.clone()).chain(step.group.clone()));
                if !self.goes_on {
                    break;
                }
            }
        }
        Ok(if self.is_json { written_json(all) } else { written_parts(all, &self.steps) })
    }

    async fn step(&self, step: &Step, most: usize, places: &mut HashMap<String, String>) -> Vec<Done> {
        let mut done = Vec::new();
        let (failing, trouble) = match self.run(step, most, places, &mut done).await {
            Ok(()) => return done,
            Err(failed) => failed,
        };
        if let Some(request) = step.requests.get(failing) {
            let request = format!("{} {}", request.method, request.url);
            log(self.service, &self.message, &request, &trouble);
        }
        if !step.is_set || !self.is_json {
            // A change set that fails has one response.
            let id = step.requests.get(failing).and_then(|one| one.id.clone());
            return vec![Done { id, reply: refusal(&trouble) }];
        }
        let with = |(at, one): (usize, &Single)| {
            let other = failed(424, "another request of the same group has failed");
            let reply = refusal(if at == failing { &trouble } else { &other });
            Done { id: one.id.clone(), reply }
        };
        step.requests.iter().enumerate().map(with).collect()
    }

    /// Runs a request or a change set. On failure the number of the request that failed; of a change set nothing has happened then.
    async fn run(
        &self,
        step: &Step,
        most: usize,
        places: &mut HashMap<String, String>,
        done: &mut Vec<Done>,
    ) -> Result<(), (usize, Trouble)> {
        let mut lease = self.source.pool.get().await.map_err(|error| (0, of(&error, "$batch")))?;
        if step.is_set {
            lease.begin().await.map_err(|error| (0, of(&error, "begin")))?;
        }
        let ran = self.each(step, &mut lease, most, places, done).await;
        if step.is_set && lease.in_transaction() {
            let last = step.requests.len().saturating_sub(1);
            match ran {
                Ok(()) => lease.commit().await.map_err(|error| (last, of(&error, "commit")))?,
                // Where that fails the connection is closed, with the same effect.
                Err(_) => _ = lease.roll_back().await,
            }
        }
        ran
    }

    async fn each(
        &self,
        step: &Step,
        lease: &mut Lease,
        most: usize,
        places: &mut HashMap<String, String>,
        done: &mut Vec<Done>,
    ) -> Result<(), (usize, Trouble)> {
        for (at, request) in step.requests.iter().enumerate() {
            if step.is_set && matches!(request.method.as_str(), "GET" | "HEAD") {
                return Err((at, wrong("a change set has no requests that read")));
            }
            let reply = match self.asked(request, places) {
                Ok(asked) => asked.held(lease, most).await,
                Err(trouble) => Err(trouble),
            };
            let reply = reply.map_err(|trouble| (at, trouble))?;
            let location = reply.headers.iter().find(|(name, _)| *name == "Location");
            if let (Some(id), Some((_, location))) = (&request.id, location) {
                places.insert(id.clone(), location.clone());
            }
            done.push(Done { id: request.id.clone(), reply });
        }
        Ok(())
    }

    fn asked(&self, single: &Single, places: &HashMap<String, String>) -> Result<Asked<'_>, Trouble> {
        let header = |name: &str| {
            let found = single.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let path = self.path(&single.url, places)?;
        let mut body = None;
        if matches!(single.method.as_str(), "POST" | "PUT" | "PATCH") {
            body = match &single.body {
                Content::None => None,
                Content::Json(json) => Some(json.clone()),
                Content::Bytes(bytes) => {
                    if !header("Content-Type").is_none_or(|text| is_json(&text)) {
                        return Err(failed(415, "the body is not JSON"));
                    }
                    let read = serde_json::from_slice(bytes);
                    Some(read.map_err(|error| wrong(format!("the body is not JSON: {error}")))?)
                }
            };
        }
        let base = self.base.clone();
        Ok(Asked::new(self.service, self.source, base, single.method.clone(), &path, body, header))
    }

    /// The path behind the config: of an absolute address, of one that is relative to the config, or of the row that another request has added (`$1`).
    fn path(&self, url: &str, places: &HashMap<String, String>) -> Result<String, Trouble> {
        let mut url = url.trim().to_owned();
        if let Some(rest) = url.strip_prefix('$') {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            if let Some(place) = places.get(&rest[..end]) {
                url = format!("{place}{}", &rest[end..]);
            }
        }
        let path = match url.split_once("://") {
            Some((_, rest)) => &rest[rest.find('/').unwrap_or(rest.len())..],
            None => url.as_str(),
        };
        let root = format!("{PREFIX}{}/{}", self.service.name, self.source.config);
        match path.strip_prefix(&root) {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '?']) => Ok(rest.to_owned()),
            _ if url.contains("://") => Err(wrong(format!("`{url}` is not an address of this batch"))),
            _ => Ok(format!("/{}", path.trim_start_matches('/'))),
        }
    }
}

fn is_multipart(content_type: &str) -> bool {
    MediaType::parse(content_type).essence.eq_ignore_ascii_case("multipart/mixed")
}

fn too_many(count: usize) -> Result<(), Trouble> {
    if count > MOST { Err(wrong(format!("the batch has more than {MOST} requests"))) } else { Ok(()) }
}

fn parts(body: &Bytes, content_type: &str) -> Result<Vec<Part>, Trouble> {
    let read = multipart::boundary(content_type).and_then(|boundary| multipart::parse(body, boundary));
    read.map_err(|error| wrong(error.to_string()))
}

/// The requests of a multipart body.
fn of_parts(body: &Bytes, content_type: &str) -> Result<Vec<Step>, Trouble> {
    let (mut steps, mut count) = (Vec::new(), 0);
    for part in parts(body, content_type)? {
        let is_set = is_multipart(part.content_type());
        let singles = if is_set { parts(&part.content, part.content_type())? } else { vec![part] };
        count += singles.len();
        too_many(count)?;
        let requests = singles.iter().map(single).collect::<Result<Vec<_>, Trouble>>()?;
        steps.push(Step { requests, is_set, group: None });
    }
    Ok(steps)
}

/// A request in a part of the type `application/http`.
fn single(part: &Part) -> Result<Single, Trouble> {
    if !MediaType::parse(part.content_type()).essence.eq_ignore_ascii_case("application/http") {
        return Err(wrong(format!("a part of a batch is application/http, not {}", part.content_type())));
    }
    let content = part.decoded().map_err(|error| wrong(error.to_string()))?;
    let mut rest = content.clone();
    let mut line = || {
        let end = rest.iter().position(|&byte| byte == b'\n');
        let line = rest.split_to(end.map_or(rest.len(), |end| end + 1));
        let text = std::str::from_utf8(&line).map_err(|_| wrong("the head of a request is not UTF-8"));
        text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let first = line()?;
    let mut words = first.split_ascii_whitespace();
    let (Some(method), Some(url)) = (words.next(), words.next()) else {
        return Err(wrong("a part of a batch does not begin with METHOD ADDRESS HTTP/1.1"));
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    loop {
        let line = line()?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| headers.len() < multipart::MAX_FIELDS)
        else {
            return Err(wrong("the head of a request in the batch is not readable"));
        };
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    // The line break before the next boundary may be there twice.
    let body = Bytes::copy_from_slice(rest.trim_ascii());
    let inner = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-ID"));
    Ok(Single {
        id: part.id().map(str::to_owned).or_else(|| inner.map(|(_, id)| id.clone())),
        method: method.to_ascii_uppercase(),
        url: url.to_owned(),
        headers,
        body: if body.is_empty() { Content::None } else { Content::Bytes(body) },
        depends: Vec::new(),
    })
}

/// The ids of requests and names of groups that a request depends on.
fn dependencies(member: Option<Json>) -> Result<Vec<String>, Trouble> {
    let is_wrong = || wrong("`dependsOn` is not a list of ids");
    let all = match member {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Array(all)) => all,
        Some(_) => return Err(is_wrong()),
    };
    all.into_iter().map(|id| id.as_str().map(str::to_owned).ok_or_else(is_wrong)).collect()
}

/// The requests of a JSON body.
fn of_json(body: Json) -> Result<Vec<Step>, Trouble> {
    let Json::Object(mut body) = body else { return Err(wrong("the batch is not a JSON object")) };
    let Some(Json::Array(requests)) = body.remove("requests") else {
        return Err(wrong("the batch has no array `requests`"));
    };
    too_many(requests.len())?;
    let mut steps: Vec<Step> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for request in requests {
        let Json::Object(mut request) = request else { return Err(wrong("a request is not a JSON object")) };
        let text = |request: &Map<String, Json>, name: &str| {
            request.get(name).and_then(Json::as_str).map(str::to_owned)
        };
        let needed = |request: &Map<String, Json>, name: &str| {
            text(request, name).ok_or_else(|| wrong(format!("a request of the batch has no `{name}`")))
        };
        let (id, group) = (needed(&request, "id")?, text(&request, "atomicityGroup"));
        if ids.contains(&id) {
            return Err(wrong(format!("two requests of the batch have the id {id}")));
        }
        let headers = match request.remove("headers") {
            Some(Json::Object(headers)) => headers,
            _ => Map::new(),
        };
        let headers =
            headers.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        let mut depends = Vec::new();
        for name in dependencies(request.remove("dependsOn"))? {
            // Whatever comes later cannot be waited for, nor can a request wait for itself.
            let is_group =
                group.as_ref() != Some(&name) && steps.iter().any(|step| step.group.as_ref() == Some(&name));
            if !ids.contains(&name) && !is_group {
                return Err(wrong(format!("no request or group {name} is before {id}, which depends on it")));
            }
            depends.push(name);
        }
        let single = Single {
            id: Some(id.clone()),
            method: needed(&request, "method")?.to_ascii_uppercase(),
            url: needed(&request, "url")?,
            headers: headers.collect(),
            body: request.remove("body").map_or(Content::None, Content::Json),
            depends,
        };
        ids.push(id);
        match steps.last_mut().filter(|last| group.is_some() && last.group == group) {
            Some(step) => step.requests.push(single),
            None => {
                if group.is_some() && steps.iter().any(|other| other.group == group) {
                    return Err(wrong("the requests of an atomicityGroup do not follow each other"));
                }
                let step = Step { requests: vec![single], is_set: group.is_some(), group };
                steps.push(step);
            }
        }
    }
    Ok(steps)
}

fn bytes(reply: &Reply) -> &[u8] {
    match &reply.body {
        Body::Bytes(bytes) => bytes,
        _ => b"",
    }
}

/// About how many bytes a response takes.
fn length(reply: &Reply) -> usize {
    bytes(reply).len() + 300
}

/// The header fields of a response in a batch.
fn fields(reply: &Reply) -> Vec<(&str, String)> {
    let mut all = vec![("OData-Version", "4.0".to_owned())];
    if !bytes(reply).is_empty() {
        all.push(("Content-Type", reply.media_type.clone().into_owned()));
    }
    all.extend(reply.headers.iter().map(|(name, value)| (*name, value.clone())));
    all
}

fn written_json(all: Vec<Vec<Done>>) -> Reply {
    let mut out = String::from("{\"responses\":[");
    for (number, done) in all.into_iter().flatten().enumerate() {
        let headers: Map<String, Json> = fields(&done.reply)
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), Json::from(value)))
            .collect();
        out.push_str(if number > 0 { ",{" } else { "{" });
        out += &format!(
            "\"id\":{},\"status\":{},\"headers\":{}",
            Json::from(done.id),
            done.reply.status,
            Json::Object(headers)
        );
        let body = bytes(&done.reply);
        if !body.is_empty() {
            let text = String::from_utf8_lossy(body);
            out.push_str(",\"body\":");
            // A body that is no JSON is a text.
            match is_json(&done.reply.media_type) {
                true => out.push_str(&text),
                false => out += &Json::from(text).to_string(),
            }
        }
        out.push('}');
    }
    Reply::new(200, JSON, out + "]}")
}

fn written_parts(all: Vec<Vec<Done>>, steps: &[Step]) -> Reply {
    let mut outer = Vec::new();
    for (done, step) in all.into_iter().zip(steps) {
        let parts: Vec<Part> = done.iter().map(http).collect();
        let is_whole = step.is_set && done.iter().all(|one| one.reply.status < 400);
        if is_whole {
            let boundary = multipart::new_boundary(&parts);
            let content = multipart::write(&parts, &boundary);
            outer.push(Part::new(&format!("multipart/mixed; boundary={boundary}"), content));
        } else {
            outer.extend(parts);
        }
    }
    let boundary = multipart::new_boundary(&outer);
    let content = multipart::write(&outer, &boundary);
    let body = Body::Bytes(content.into());
    Reply { body, ..Reply::new(200, format!("multipart/mixed; boundary={boundary}"), String::new()) }
}

/// A response as a part.
fn http(done: &Done) -> Part {
    let (status, body) = (done.reply.status, bytes(&done.reply));
    let mut content = format!("HTTP/1.1 {status} {}\r\n", message::reason_phrase(status));
    for (name, value) in fields(&done.reply) {
        content += &format!("{name}: {}\r\n", value.replace(['\r', '\n'], " "));
    }
    content += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut content = content.into_bytes();
    content.extend_from_slice(body);
    let mut part = Part::new("application/http", content);
    part.headers.append("Content-Transfer-Encoding", "binary");
    if let Some(id) = &done.id {
        part.headers.append("Content-ID", id.replace(['\r', '\n'], " "));
    }
    part
}
