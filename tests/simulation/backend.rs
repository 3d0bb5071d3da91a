//! Simulated backends: good ones, and those that are slow, gone, silent, answer half, early or twice.

use crate::flows::element;
use crate::http::{Message, Peer, ReadError};
use crate::network::{Accepts, End, Simulated, lock};
use crate::random::Random;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// How a backend treats the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Good,
    /// Answers after a while, perhaps longer than the endpoint waits.
    Slow,
    /// Reads and never answers.
    Silent,
    /// Closes after the request, without an answer.
    Closes,
    /// Resets in the middle of the answer.
    Half,
    /// Answers 503.
    Refuses,
    /// Answers before it has read the body, then reads it.
    Early,
    /// Answers with an error before it has read the body, and closes.
    EarlyError,
    /// Sends interim answers for a while.
    Interim,
    /// Closes the connection right behind a whole answer, without saying so.
    ClosesBehind,
}

const MOODS: [Mood; 12] = [
    Mood::Good,
    Mood::Good,
    Mood::Good,
    Mood::Slow,
    Mood::Silent,
    Mood::Closes,
    Mood::Half,
    Mood::Refuses,
    Mood::Early,
    Mood::EarlyError,
    Mood::Interim,
    Mood::ClosesBehind,
];

/// What all backends of a run have seen.
#[derive(Default)]
pub struct Seen {
    /// How often a message was answered 200, by `id` or `id/part`.
    pub delivered: Mutex<HashMap<String, usize>>,
    /// Messages whose answer was cut on purpose.
    pub cut: Mutex<HashSet<String>>,
    /// Messages that arrived mixed with another one.
    pub mixed: Mutex<Vec<String>>,
}

impl Seen {
    /// Whether a message, or a part of it (`id/part`), was answered 200.
    pub fn has(&self, key: &str) -> bool {
        lock(&self.delivered).contains_key(key)
    }
}

pub struct Backend {
    pub name: &'static str,
    pub address: SocketAddr,
    network: Arc<Simulated>,
    calm: Mutex<bool>,
    mood: Mutex<Mood>,
}

impl Backend {
    /// Starts one.
    pub fn start(
        name: &'static str,
        address: SocketAddr,
        network: &Arc<Simulated>,
        seen: &Arc<Seen>,
        mut random: Random,
    ) -> Arc<Backend> {
        let mut accepted = network.listen(address);
        let backend = Arc::new(Backend {
            name,
            address,
            network: Arc::clone(network),
            calm: Mutex::new(true),
            mood: Mutex::new(Mood::Good),
        });
        let (one, seen) = (Arc::clone(&backend), Arc::clone(seen));
        tokio::spawn(async move {
            while let Some(end) = accepted.recv().await {
                tokio::spawn(serve(Arc::clone(&one), end, Arc::clone(&seen), random.split()));
            }
        });
        backend
    }

    /// Draws what it does from now on.
    pub fn change(&self, random: &mut Random) {
        *lock(&self.calm) = false;
        *lock(&self.mood) = *random.pick(&MOODS);
        let accepts = match random.below(8) {
            0 => Accepts::Refuses,
            1 => Accepts::Silent,
            _ => Accepts::Yes,
        };
        self.network.set(self.address, accepts);
    }

    /// Good from now on.
    pub fn calm(&self) {
        *lock(&self.calm) = true;
        *lock(&self.mood) = Mood::Good;
        self.network.set(self.address, Accepts::Yes);
    }
}

async fn serve(backend: Arc<Backend>, end: Arc<End>, seen: Arc<Seen>, mut random: Random) {
    let mut peer = Peer::new(end);
    loop {
        let Ok(mut request) = peer.read_head().await else { return };
        let mood = if *lock(&backend.calm) { Mood::Good } else { *lock(&backend.mood) };
        if mood == Mood::EarlyError {
            let refusal = refusal(&request, "Connection: close\r\n");
            let _ = peer.write(&refusal).await;
            return;
        }
        if mood == Mood::Early {
            // The answer says nothing about the body, which is not read yet: it is for flows that look at the id only.
            let response = answer(&backend, &request, "<early/>");
            count(&seen, &request, None);
            // Which part it is stands in the body.
            count(&seen, &request, Some("done"));
            if peer.write(&response).await.is_err() || peer.read_body(&mut request, true).await.is_err() {
                return;
            }
            continue;
        }
        match peer.read_body(&mut request, true).await {
            Ok(()) => {}
            Err(ReadError::Malformed(why)) => {
                return lock(&seen.mixed).push(format!("{}: {why}", backend.name));
            }
            Err(_) => return,
        }
        check(&backend, &request, &seen);
        let part = element(&request.text(), "part");
        let shown = part.as_ref().map(|part| format!("<part>{part}</part>")).unwrap_or_default();
        let whole = answer(&backend, &request, &shown);
        match mood {
            Mood::Slow => sleep(Duration::from_millis(random.between(100, 4_000))).await,
            Mood::Silent => {
                // Until the bus gives up.
                let _ = peer.read_head().await;
                return;
            }
            Mood::Closes => return,
            Mood::Half => {
                let id = request.field("X-Id").unwrap_or_default().to_owned();
                lock(&seen.cut).insert(id);
                // It has the message, whatever becomes of the answer.
                count(&seen, &request, part.as_deref());
                let cut = random.between(1, whole.len() as u64 - 1) as usize;
                let _ = peer.write(&whole[..cut]).await;
                sleep(Duration::from_millis(random.below(20))).await;
                if random.one_in(2) {
                    peer.end.reset();
                }
                return;
            }
            Mood::Refuses => {
                if peer.write(&refusal(&request, "")).await.is_err() {
                    return;
                }
                continue;
            }
            Mood::Interim => {
                for _ in 0..random.below(30) {
                    if peer.write(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_err() {
                        return;
                    }
                    sleep(Duration::from_millis(200)).await;
                }
            }
            _ => {}
        }
        sleep(Duration::from_micros(random.below(2_000))).await;
        // Counted before it is sent: it was processed, whatever becomes of the answer.
        count(&seen, &request, part.as_deref());
        let closes =
            mood == Mood::ClosesBehind || *lock(&backend.calm) && parts_from_next(&request, &mut random);
        if peer.write(&whole).await.is_err() || closes {
            return;
        }
        if request.closes() {
            return;
        }
    }
}

/// Whether a good backend closes the connection behind an answer without saying so, as it may at any time. Only where the next
/// request is not on its way at once: it would meet the end.
fn parts_from_next(request: &Message, random: &mut Random) -> bool {
    request.field("X-Size").is_some() && random.one_in(4)
}

fn count(seen: &Seen, request: &Message, part: Option<&str>) {
    let id = request.field("X-Id").unwrap_or_default();
    let key = part.map_or_else(|| id.to_owned(), |part| format!("{id}/{part}"));
    *lock(&seen.delivered).entry(key).or_default() += 1;
}

/// Whether head and body are of one message.
fn check(backend: &Backend, request: &Message, seen: &Seen) {
    let id = request.field("X-Id").unwrap_or_default();
    let text = request.text();
    let mut rest = text.as_str();
    while let Some(found) = element(rest, "id") {
        if found != id {
            lock(&seen.mixed)
                .push(format!("{} got the body of {found} under the head of {id}", backend.name));
        }
        rest = &rest[rest.find("</id>").map_or(rest.len(), |at| at + 5)..];
    }
    if let Some(size) = request.field("X-Size")
        && size != request.body.len().to_string()
    {
        let got = request.body.len();
        lock(&seen.mixed).push(format!("{} got {got} bytes of the {size} of message {id}", backend.name));
    }
}

fn refusal(request: &Message, field: &str) -> Vec<u8> {
    let id = request.field("X-Id").unwrap_or_default();
    format!("HTTP/1.1 503 Service Unavailable\r\nX-Id: {id}\r\n{field}Content-Length: 5\r\n\r\nbusy\n")
        .into_bytes()
}

fn answer(backend: &Backend, request: &Message, part: &str) -> Vec<u8> {
    let id = request.field("X-Id").unwrap_or_default();
    let body = format!("<reply><by>{}</by><id>{id}</id>{part}</reply>", backend.name);
    let session = format!("Set-Cookie: JSESSIONID={}-{id}\r\n", backend.name);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nX-Id: {id}\r\n{session}");
    match id.len() % 2 {
        0 => format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes(),
        _ => format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
            .into_bytes(),
    }
}
