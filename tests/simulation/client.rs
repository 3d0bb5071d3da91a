//! Simulated clients: keep connections, pipeline, ask for `100 Continue`, send slowly, and now and then go away.

use crate::backend::Seen;
use crate::flows::{Service, element};
use crate::http::{Message, Peer, ReadError, write};
use crate::network::lock;
use crate::random::Random;
use crate::world::World;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Longest that any flow of the simulation may take: the sum of its deadlines.
const PATIENCE: Duration = Duration::from_secs(90);

/// How a client behaves.
#[derive(Clone, Copy)]
pub struct Manner {
    /// What it asks.
    pub services: &'static [Service],
    /// It sends its bodies at once, waits for its answers, and all of them have to be good.
    pub good: bool,
}

/// What a client sends.
struct Sending {
    id: String,
    service: Service,
    parts: usize,
    head: String,
    /// The body in pieces as they go on the wire.
    pieces: Vec<Vec<u8>>,
    expects: bool,
    /// Sends its body in this pace.
    pace: Duration,
    /// Reads its answer in this pace.
    reads: Duration,
}

/// `steady`: sends its body at once. (A slow client uses up the time that the endpoint has.) `cookie`: of its session.
fn sending(random: &mut Random, id: String, service: Service, steady: bool, cookie: Option<&str>) -> Sending {
    let parts = random.between(1, 8) as usize;
    let filler = match random.below(8) {
        0 if !steady && random.one_in(12) => random.between(500_000, 2_000_000),
        0 => random.between(60_000, 200_000),
        1 => random.between(4_000, 60_000),
        _ => random.below(600),
    } as usize;
    let body = service.body(&id, parts, filler);
    let mut head = format!("POST {}?id={id} HTTP/1.1\r\nHost: bus\r\nX-Id: {id}\r\n", service.path());
    head.push_str(service.fields());
    if let (Service::Sticky, Some(cookie)) = (service, cookie) {
        head.push_str(&format!("Cookie: {cookie}\r\n"));
    }
    if service.relays() {
        head.push_str(&format!("X-Size: {}\r\n", body.len()));
    }
    let expects = random.one_in(8);
    if expects {
        head.push_str("Expect: 100-continue\r\n");
    }
    let mut pieces = Vec::new();
    if random.one_in(2) {
        head.push_str("Transfer-Encoding: chunked\r\n\r\n");
        let mut rest = body.as_bytes();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((random.between(1, 40_000) as usize).min(rest.len()));
            pieces.push([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
            rest = behind;
        }
        pieces.push(b"0\r\n\r\n".to_vec());
    } else {
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        pieces.push(body.into_bytes());
    }
    let pace =
        if random.one_in(6) && !steady { Duration::from_millis(random.below(300)) } else { Duration::ZERO };
    let reads =
        if random.one_in(8) && !steady { Duration::from_millis(random.below(80)) } else { Duration::ZERO };
    Sending { id, service, parts, head, pieces, expects, pace, reads }
}

/// Runs a client until it has sent `count` requests. Faults are recorded in the world.
pub async fn run(world: Arc<World>, name: String, count: usize, mut random: Random, manner: Manner) {
    let well_behaved = manner.good;
    let mut peer: Option<Peer> = None;
    let mut served = 0;
    let mut session = Session::default();
    for number in 0..count {
        let service = *random.pick(manner.services);
        let id = format!("{name}.{number}");
        let sending = sending(&mut random, id, service, well_behaved, session.cookie.as_deref());
        if well_behaved || !random.one_in(10) {
            let reused = peer.is_some();
            let mut connection = match peer.take() {
                Some(peer) => peer,
                None => {
                    served = 0;
                    Peer::new(world.connect())
                }
            };
            let begun = Instant::now();
            let asked = ask(&world, &mut connection, &sending, well_behaved, &mut session);
            let outcome = timeout(PATIENCE, asked).await;
            match outcome {
                Err(_) => {
                    world.fault(format!("{} ({:?}) got no answer within {PATIENCE:?}", sending.id, service))
                }
                Ok(Ok(closes)) => {
                    served += 1;
                    if !closes {
                        peer = Some(connection);
                    }
                }
                Ok(Err(failure)) => {
                    excuse(&world, &sending, failure, reused, served, begun);
                }
            }
        } else {
            go_away(&world, peer.take(), &sending, &mut random).await;
        }
        // What its backend closed behind the answer is known by then.
        if well_behaved || random.one_in(2) {
            sleep(Duration::from_millis(10 + random.below(400))).await;
        }
    }
}

/// The session of a client with the service that has them.
#[derive(Default)]
struct Session {
    cookie: Option<String>,
    /// Who set it.
    by: String,
}

impl Session {
    /// Looks at an answer: as long as all is well, it comes from where the session began.
    fn check(&mut self, world: &World, sending: &Sending, response: &Message, calm: bool) {
        let Some(by) = element(&response.text(), "by") else { return };
        if self.cookie.is_some() && by != self.by && calm {
            world.fault(format!("{}: the session is with {}, and {by} answered", sending.id, self.by));
        }
        if self.cookie.is_none() {
            let cookie = response.field("Set-Cookie");
            if cookie.is_none() {
                world.fault(format!("{}: the cookie of the session is lost", sending.id));
            }
            *self = Session { cookie: cookie.map(str::to_owned), by };
        }
    }
}

/// Why there was no answer.
enum Failure {
    Unread(ReadError),
    Unwritten,
}

/// Sends and reads the answer; whether the connection ends behind it.
async fn ask(
    world: &World,
    peer: &mut Peer,
    sending: &Sending,
    calm: bool,
    session: &mut Session,
) -> Result<bool, Failure> {
    peer.pace = sending.reads;
    if !peer.ahead().is_empty() {
        let ahead = String::from_utf8_lossy(peer.ahead()).into_owned();
        world.fault(format!("{}: bytes that nobody asked for before the request: {ahead:?}", sending.id));
    }
    peer.write(sending.head.as_bytes()).await.map_err(|_| Failure::Unwritten)?;
    let mut response = None;
    if sending.expects {
        let head = peer.read_head().await.map_err(Failure::Unread)?;
        if head.status() != 100 {
            response = Some(head);
        }
    }
    let answered_early = response.is_some();
    let mut unwritten = false;
    let mut sent_at = None;
    let response = match response {
        Some(mut head) => {
            peer.read_body(&mut head, false).await.map_err(Failure::Unread)?;
            head
        }
        // At the same time: an answer may come while the body is sent, and fill all buffers.
        None => {
            let end = Arc::clone(&peer.end);
            let write = async {
                for piece in &sending.pieces {
                    if write(&end, piece).await.is_err() {
                        return true;
                    }
                    if !sending.pace.is_zero() {
                        sleep(sending.pace).await;
                    }
                }
                false
            };
            let read = async {
                let mut head = peer.read_head().await?;
                match peer.read_body(&mut head, false).await {
                    Ok(()) => Ok(head),
                    Err(ReadError::Broken(kind)) => {
                        let ahead = String::from_utf8_lossy(peer.ahead()).into_owned();
                        let rest: String = ahead.chars().take(80).collect();
                        Err(ReadError::Malformed(format!(
                            "{kind} in the body of {:?}, after {rest:?}",
                            head.start
                        )))
                    }
                    Err(error) => Err(error),
                }
            };
            let mut read = std::pin::pin!(read);
            let mut write = std::pin::pin!(write);
            let (mut written, mut received) = (None, None);
            poll_fn(|cx| {
                if written.is_none()
                    && let Poll::Ready(done) = write.as_mut().poll(cx)
                {
                    written = Some(done);
                    sent_at = Some(Instant::now());
                }
                if received.is_none()
                    && let Poll::Ready(done) = read.as_mut().poll(cx)
                {
                    received = Some(done);
                }
                // Behind an answer that announces its end nothing more has to be sent.
                let over = match &received {
                    Some(Ok(head)) => head.closes() || written.is_some(),
                    Some(Err(_)) => true,
                    None => false,
                };
                if over { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            unwritten = written.unwrap_or(true);
            match received {
                Some(Ok(head)) => {
                    // Nobody waits for ever for the rest of a slow client.
                    let ended = unwritten && sending.pace.is_zero() && !world.is_stopping();
                    if ended && !head.closes() {
                        let start = &head.start;
                        world.fault(format!("{}: {start} keeps the connection, which ends", sending.id));
                    }
                    head
                }
                Some(Err(error)) => return Err(Failure::Unread(error)),
                None => unreachable!("the wait ends with an answer"),
            }
        }
    };
    if response.status() < 200 {
        world.fault(format!("{}: an interim answer that nobody asked for: {}", sending.id, response.start));
    }
    let (status, text) = (response.status(), response.text());
    if let Err(why) = sending.service.judge(&sending.id, sending.parts, status, &text) {
        world.fault(format!("{} ({:?}): {why}", sending.id, sending.service));
    }
    // As long as the client itself does not make it wait.
    if let (Some(longest), Some(sent_at), true) =
        (sending.service.longest(), sent_at, sending.reads.is_zero())
        && sent_at.elapsed() > longest
    {
        let took = sent_at.elapsed();
        world.fault(format!(
            "{} ({:?}): {status} came {took:?} after the request, which is no deadline's",
            sending.id, sending.service
        ));
    }
    let records = world.records.of(&sending.id);
    if !records.is_empty() && records != [status] {
        world.fault(format!("{}: the access log says {records:?} of the answer {status}", sending.id));
    }
    if sending.service == Service::Sticky {
        session.check(world, sending, &response, calm);
    }
    lock(&world.answered).push(sending.id.clone());
    if calm && !sending.service.good_status().contains(&status) {
        world.fault(format!(
            "{} ({:?}): all is well, and the answer is {status} {text:?}",
            sending.id, sending.service
        ));
    }
    if status < 300 && sending.service.acknowledges() {
        lock(&world.acknowledged).push((sending.id.clone(), sending.service));
    }
    *lock(&world.answers) += 1;
    // A client that did not send its body cannot go on with the connection.
    Ok(response.closes() || unwritten || answered_early)
}

/// Decides whether a request without an answer is the client's fault, or that of a backend who cut its answer.
fn excuse(world: &World, sending: &Sending, failure: Failure, reused: bool, served: usize, begun: Instant) {
    if lock(&world.seen.cut).contains(&sending.id) || world.is_stopping() {
        return;
    }
    let why = match failure {
        Failure::Unwritten => "the bus closed while the head was sent".to_owned(),
        Failure::Unread(ReadError::Closed) => "the bus closed without an answer".to_owned(),
        Failure::Unread(error) => format!("{error:?}"),
    };
    let kind = if reused {
        format!("request {} of a connection", served + 1)
    } else {
        "the first request".to_owned()
    };
    let after = begun.elapsed();
    world.fault(format!(
        "{} ({:?}, {kind}) got no answer: {why}, after {after:?}",
        sending.id, sending.service
    ));
}

/// Sends a part of a request, or all of it, and goes away.
async fn go_away(world: &World, peer: Option<Peer>, sending: &Sending, random: &mut Random) {
    let is_new = peer.is_none();
    let peer = peer.unwrap_or_else(|| Peer::new(world.connect()));
    let whole: Vec<u8> = sending.head.bytes().chain(sending.pieces.iter().flatten().copied()).collect();
    let sent = if random.one_in(2) { whole.len() } else { random.between(1, whole.len() as u64) as usize };
    // A message whose client is gone may be delivered or not, and says nothing about the bus.
    let written = timeout(Duration::from_secs(5), peer.write(&whole[..sent])).await;
    let waits = *random.pick(&[300, 3_000]);
    sleep(Duration::from_millis(random.below(waits))).await;
    // The bus has seen all of it: however it ends, there will be a record.
    if is_new && sent == whole.len() && matches!(written, Ok(Ok(()))) && !world.is_stopping() {
        sleep(Duration::from_millis(50)).await;
        lock(&world.answered).push(sending.id.clone());
    }
    if random.one_in(2) {
        peer.end.reset();
    }
}

/// How often a message or a part of it was delivered.
pub fn delivered(seen: &Seen, id: &str) -> bool {
    let delivered = lock(&seen.delivered);
    delivered.contains_key(id)
        || delivered.keys().any(|key| key.strip_prefix(id).is_some_and(|rest| rest.starts_with('/')))
}
