//! Runs a plan: one thread, one event loop, many connections.

use crate::connection::{Connection, Exchange, Link, Step};
use crate::outcome::{ErrorKind, Interval, Latency, Outcome};
use crate::pace::Arrivals;
use crate::request::{Prepared, Random};
use crate::{Pace, Plan, Sample, Usage};
use rustix::event::{Timespec, epoll};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How many connections are begun before the server gets a turn, and how many may be open without a byte from it until it has had a pause: its queue of new
/// ones is not endless, and the system resets some of those that it has no place for.
const AT_ONCE: usize = 64;
const UNHEARD: usize = 256;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a place rests after it got no connection.
const REST: Duration = Duration::from_millis(20);
/// How many requests of an open loop may be due and not sent.
const BACKLOG: usize = 1_000_000;
/// How long answers that are under way at the end are waited for, at most.
const SETTLE: Duration = Duration::from_secs(10);
/// What is received at once.
const SCRATCH: usize = 128 << 10;

/// How far a run is.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    /// Whether nothing counts yet.
    pub warming: bool,
    /// Time since the measured part began, or the warm-up.
    pub elapsed: Duration,
    /// How much of it is done, from 0 to 1.
    pub done: f64,
    /// Right answers so far.
    pub right: u64,
    /// Errors so far.
    pub failed: u64,
    /// Right answers a second, since the last report.
    pub rate: f64,
    /// Median latency since then, in milliseconds.
    pub p50: f64,
    /// 99th percentile of it.
    pub p99: f64,
}

/// Runs a plan to its end. `watch` hears how far it is and says whether to go on.
///
/// # Errors
/// The plan cannot be run: no address, no request, nothing that ends it, no event loop.
pub fn run(plan: &Plan, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Outcome, String> {
    Engine::new(plan)?.run(watch)
}

struct Engine<'a> {
    plan: &'a Plan,
    address: SocketAddr,
    epoll: OwnedFd,
    requests: Vec<Prepared>,
    connections: Vec<Connection>,
    /// Places that wait for a request of an open loop.
    idle: Vec<usize>,
    /// Places that are not used yet.
    unused: usize,
    /// When the last ones began to be used.
    opened: Instant,
    /// Places that rest.
    resting: usize,
    /// When requests of an open loop were due that are not sent yet.
    backlog: VecDeque<Instant>,
    arrivals: Option<Arrivals>,
    random: Random,
    scratch: Box<[u8]>,
    /// When the measured part begins, and ends.
    start: Instant,
    end: Option<Instant>,
    /// Requests begun, and those of them that count.
    begun: u64,
    measured: u64,
    /// How many of those that count are over.
    over: u64,
    outcome: Outcome,
    /// Since the last report.
    recent: Latency,
    recent_since: Instant,
    /// What the processes had used when the measured part began.
    usage: Option<Vec<Option<Usage>>>,
    /// Nothing counts any more, and nothing is sent.
    is_settling: bool,
}

impl<'a> Engine<'a> {
    fn new(plan: &'a Plan) -> Result<Engine<'a>, String> {
        if plan.requests.is_empty() || plan.connections == 0 {
            return Err("there is nothing to send, or no connection to send it on".to_owned());
        }
        if plan.extent.duration.is_none() && plan.extent.requests.is_none() {
            return Err("neither a duration nor a number of requests is given".to_owned());
        }
        if plan.extent.duration.is_some_and(|duration| duration.is_zero()) || plan.timeout.is_zero() {
            return Err("nothing can be measured in no time: the duration or the timeout is 0".to_owned());
        }
        if let Pace::Open { rate, .. } = plan.pace
            && !(rate > 0.0 && rate <= 1e7)
        {
            return Err(format!("{rate} requests a second are no rate: between 0 and 10,000,000"));
        }
        if plan.url.https && plan.tls.is_none() {
            return Err("an https URL needs TLS".to_owned());
        }
        let address = plan.address.map_or_else(|| plan.url.address(), Ok)?;
        let requests: Result<Vec<_>, String> =
            plan.requests.iter().map(|request| Prepared::new(request, &plan.url, plan.keep_alive)).collect();
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| format!("no event loop: {error}"))?;
        let start = Instant::now() + plan.warm_up;
        Ok(Engine {
            plan,
            address,
            epoll,
            requests: requests?,
            connections: (0..plan.connections).map(|_| Connection::default()).collect(),
            idle: Vec::new(),
            unused: plan.connections,
            opened: Instant::now(),
            resting: 0,
            backlog: VecDeque::new(),
            arrivals: Arrivals::new(plan.pace, Instant::now()),
            random: Random::seeded(),
            scratch: vec![0; SCRATCH].into(),
            start,
            end: plan.extent.duration.map(|duration| start + duration),
            begun: 0,
            measured: 0,
            over: 0,
            outcome: Outcome::default(),
            recent: Latency::default(),
            recent_since: Instant::now(),
            usage: None,
            is_settling: false,
        })
    }

    fn run(mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Outcome, String> {
        let mut events = Vec::with_capacity(1024);
        let mut tick = Instant::now() + self.plan.interval;
        loop {
            let now = Instant::now();
            if self.usage.is_none() && now >= self.start {
                self.usage = Some(self.plan.processes.iter().map(crate::Process::usage).collect());
                self.recent.clear();
                self.recent_since = now;
            }
            if self.is_over(now) {
                break;
            }
            if now >= tick {
                tick = now + self.plan.interval;
                self.expire(now);
                if !self.report(now, watch) {
                    break;
                }
            }
            self.arrive(now);
            self.open_more(now);
            if self.resting > 0 {
                self.wake(now);
            }
            self.poll(&mut events, self.wait(now, tick))?;
        }
        let now = Instant::now();
        self.report(now, watch);
        self.outcome.elapsed = now.saturating_duration_since(self.start);
        self.outcome.unfinished = self
            .connections
            .iter()
            .filter(|place| place.exchange.as_ref().is_some_and(|exchange| exchange.measured))
            .count() as u64
            + self.backlog.iter().filter(|due| **due >= self.start).count() as u64;
        self.outcome.errors.sort_by_key(|errors| errors.kind);
        self.settle()?;
        Ok(self.outcome)
    }

    /// Waits for the network so long, and goes on with the places where something happened.
    fn poll(&mut self, events: &mut Vec<epoll::Event>, wait: Duration) -> Result<(), String> {
        events.clear();
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("the event loop fails: {error}")),
        }
        for event in events.iter() {
            let data = event.data.u64();
            let (slot, generation) = ((data >> 32) as usize, data as u32);
            if self.connections[slot].generation == generation {
                self.turn(slot, true);
            }
        }
        Ok(())
    }

    /// Waits for the answers that are under way, which do not count: whoever measures next should not find a server that is still busy with them.
    fn settle(&mut self) -> Result<(), String> {
        self.is_settling = true;
        let until = Instant::now() + self.plan.timeout.min(SETTLE);
        let mut events = Vec::with_capacity(1024);
        while Instant::now() < until && self.connections.iter().any(|place| place.exchange.is_some()) {
            self.poll(&mut events, Duration::from_millis(20))?;
        }
        Ok(())
    }

    /// Whether another request may become due at this time.
    fn may_send(&self, now: Instant) -> bool {
        now < self.start
            || (self.plan.extent.requests.is_none_or(|limit| self.measured < limit)
                && self.end.is_none_or(|end| now < end))
    }

    fn is_over(&self, now: Instant) -> bool {
        if now < self.start {
            return false;
        }
        if self.plan.extent.requests.is_some_and(|limit| self.over >= limit) {
            return true;
        }
        let Some(end) = self.end else { return false };
        match self.arrivals {
            None => now >= end,
            // All that were due are waited for: those that are missing would be the slow ones.
            Some(_) => {
                now >= end + self.plan.timeout
                    || now >= end
                        && self.backlog.is_empty()
                        && self.arrivals.as_ref().is_none_or(|arrivals| arrivals.next() >= end)
                        && self.connections.iter().all(|place| place.exchange.is_none())
            }
        }
    }

    /// How long there is nothing to do but to wait for the network.
    fn wait(&self, now: Instant, tick: Instant) -> Duration {
        let mut until = tick;
        if self.usage.is_none() {
            until = until.min(self.start);
        }
        if let Some(end) = self.end.filter(|end| *end > now) {
            until = until.min(end);
        }
        if let Some(arrivals) = &self.arrivals {
            until = until.min(arrivals.next().max(now));
            if self.end.is_some_and(|end| now >= end) || !self.may_send(now) {
                until = tick.min(now + Duration::from_millis(1));
            }
        }
        if self.unused > 0 || self.resting > 0 {
            until = until.min(now + Duration::from_millis(1));
        }
        until.saturating_duration_since(now)
    }

    /// Requests of an open loop that are due.
    fn arrive(&mut self, now: Instant) {
        let Some(mut arrivals) = self.arrivals.take() else { return };
        while arrivals.next() <= now && self.may_send(arrivals.next()) {
            let due = arrivals.next();
            arrivals.advance();
            if due >= self.start {
                self.measured += 1;
            }
            if self.backlog.len() >= BACKLOG {
                self.over += u64::from(due >= self.start);
                self.outcome.error(ErrorKind::NotSent, || format!("{BACKLOG} requests are due and not sent"));
                continue;
            }
            self.backlog.push_back(due);
        }
        self.arrivals = Some(arrivals);
        while !self.backlog.is_empty()
            && let Some(slot) = self.idle.pop()
        {
            self.supply(slot, now);
        }
    }

    /// Uses more places, until all are.
    fn open_more(&mut self, now: Instant) {
        if self.unused == 0 {
            return;
        }
        let is_unheard = |place: &&Connection| place.exchange.is_some() && !place.was_heard;
        let unheard = self.connections.iter().filter(is_unheard).count();
        let room = if now >= self.opened + PAUSE { AT_ONCE } else { UNHEARD.saturating_sub(unheard) };
        if room > 0 {
            self.opened = now;
        }
        for _ in 0..room.min(AT_ONCE).min(self.unused) {
            self.unused -= 1;
            self.supply(self.plan.connections - self.unused - 1, now);
        }
    }

    /// Places that have rested.
    fn wake(&mut self, now: Instant) {
        for slot in 0..self.connections.len() {
            let place = &mut self.connections[slot];
            if place.rests_until.is_some_and(|until| until <= now) {
                place.rests_until = None;
                self.resting -= 1;
                self.supply(slot, now);
            }
        }
    }

    /// Gives a place the next request, if there is one.
    fn supply(&mut self, slot: usize, now: Instant) {
        if self.begin(slot, now) {
            self.turn(slot, false);
        }
    }

    /// Whether there is a request for that place now.
    fn begin(&mut self, slot: usize, now: Instant) -> bool {
        let place = &self.connections[slot];
        if self.is_settling || place.rests_until.is_some() {
            return false;
        }
        let due = match self.arrivals {
            None if self.may_send(now) => now,
            None => return false,
            Some(_) => match self.backlog.pop_front() {
                Some(due) => due,
                None => {
                    self.idle.push(slot);
                    return false;
                }
            },
        };
        let measured = due >= self.start;
        if self.arrivals.is_none() {
            self.measured += u64::from(measured);
        }
        let request = (self.begun % self.requests.len() as u64) as usize;
        self.begun += 1;
        let outgoing = self.requests[request].outgoing(self.begun, &mut self.random);
        let exchange = Exchange::new(due, now, measured, request, &self.requests[request], outgoing);
        self.connections[slot].begin(exchange);
        true
    }

    /// A link for the place, where it has none.
    fn connect(&mut self, slot: usize) -> Result<(), String> {
        let tls = self.plan.tls.as_ref().filter(|_| self.plan.url.https);
        let link = Link::open(self.address, tls.map(|tls| (tls, self.plan.url.host.as_str())))?;
        let place = &mut self.connections[slot];
        let data =
            epoll::EventData::new_u64((slot as u64) << 32 | u64::from(place.generation.wrapping_add(1)));
        let flags =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &link.socket, data, flags).map_err(|error| error.to_string())?;
        place.attach(link);
        Ok(())
    }

    /// Goes on with a place as far as its connection goes, with one request after the other.
    fn turn(&mut self, slot: usize, mut may_read: bool) {
        loop {
            let is_idle = self.connections[slot].exchange.is_none();
            let step = match self.connections[slot].link {
                // An idle connection on which something happens is closed by the server, or says what nobody asked for.
                Some(_) if is_idle => {
                    if may_read {
                        self.connections[slot].look_after();
                    }
                    return;
                }
                None if is_idle => return,
                Some(_) => self.connections[slot].step(&mut self.requests, &mut self.scratch, may_read),
                None => match self.connect(slot) {
                    Ok(()) => self.connections[slot].step(&mut self.requests, &mut self.scratch, false),
                    Err(reason) => Step::Failed(ErrorKind::Connect, reason),
                },
            };
            if matches!(step, Step::Waits) {
                return;
            }
            let now = Instant::now();
            let place = &mut self.connections[slot];
            let Some(exchange) = place.exchange.take() else { return };
            match step {
                Step::Waits => return,
                Step::Answered { verdict, closes, received } => {
                    if closes || !self.plan.keep_alive {
                        place.link = None;
                    }
                    self.answered(&exchange, verdict, received, now);
                }
                Step::Failed(kind, reason) => {
                    place.link = None;
                    if kind == ErrorKind::Connect {
                        place.rests_until = Some(now + REST);
                        self.resting += 1;
                    }
                    self.failed(&exchange, kind, reason, now);
                }
            }
            if !self.begin(slot, now) {
                return;
            }
            may_read = false;
        }
    }

    /// Whether an exchange that ends now counts. A closed loop counts what is answered in its time, an open one what was due in it.
    fn counts(&self, exchange: &Exchange, now: Instant) -> bool {
        match self.arrivals {
            _ if self.is_settling => false,
            None => now >= self.start,
            Some(_) => exchange.measured,
        }
    }

    fn answered(&mut self, exchange: &Exchange, verdict: Result<(), String>, received: u64, now: Instant) {
        self.over += u64::from(self.counts(exchange, now));
        let (latency, service) =
            (now.saturating_duration_since(exchange.due), now.saturating_duration_since(exchange.begun));
        if verdict.is_ok() {
            self.recent.record(latency);
        }
        if !self.counts(exchange, now) {
            return;
        }
        match verdict {
            Ok(()) => {
                self.outcome.right += 1;
                self.outcome.sent += exchange.outgoing.bytes.len() as u64;
                self.outcome.received += received;
                self.outcome.latency.record(latency);
                self.outcome.service.record(service);
            }
            Err(reason) => self.outcome.error(ErrorKind::Wrong, || reason),
        }
    }

    fn failed(&mut self, exchange: &Exchange, kind: ErrorKind, reason: String, now: Instant) {
        if self.counts(exchange, now) {
            self.over += 1;
            self.outcome.error(kind, || reason);
        }
    }

    /// Ends what takes too long.
    fn expire(&mut self, now: Instant) {
        for slot in 0..self.connections.len() {
            let place = &mut self.connections[slot];
            let is_late =
                |exchange: &mut Exchange| now.saturating_duration_since(exchange.begun) >= self.plan.timeout;
            if let Some(exchange) = place.exchange.take_if(is_late) {
                place.link = None;
                let reason = format!("no whole answer in {} s", self.plan.timeout.as_secs_f64());
                self.failed(&exchange, ErrorKind::Timeout, reason, now);
                self.supply(slot, now);
            }
        }
    }

    /// Samples the processes, and tells how far it is; whether to go on.
    fn report(&mut self, now: Instant, watch: &mut dyn FnMut(&Progress) -> bool) -> bool {
        let warming = self.usage.is_none();
        let since = now.saturating_duration_since(self.recent_since).as_secs_f64();
        let rate = if since > 0.0 { self.recent.count() as f64 / since } else { 0.0 };
        let (p50, p99) = (self.recent.percentile(50.0), self.recent.percentile(99.0));
        let at = now.saturating_duration_since(self.start).as_secs_f64();
        if let Some(before) = &self.usage {
            if since > 0.0 {
                self.outcome.intervals.push(Interval { at, rate, p50, p99 });
            }
            for (process, before) in self.plan.processes.iter().zip(before) {
                let (Some(before), Some(usage)) = (before, process.usage()) else { continue };
                let cpu = usage.cpu.saturating_sub(before.cpu).as_secs_f64();
                let sample = Sample { at, cpu, resident: usage.resident };
                match self.outcome.processes.iter_mut().find(|(found, _)| found == process) {
                    Some((_, samples)) => samples.push(sample),
                    None => self.outcome.processes.push((process.clone(), vec![sample])),
                }
            }
        }
        self.recent.clear();
        self.recent_since = now;
        let elapsed = match warming {
            true => self.plan.warm_up.saturating_sub(self.start.saturating_duration_since(now)),
            false => now.saturating_duration_since(self.start),
        };
        let part = |whole: Duration| elapsed.as_secs_f64() / whole.as_secs_f64().max(1e-9);
        let done = match warming {
            true => part(self.plan.warm_up),
            false => {
                let requests = self
                    .plan
                    .extent
                    .requests
                    .map_or(0.0, |requests| self.over as f64 / requests.max(1) as f64);
                self.plan.extent.duration.map_or(0.0, part).max(requests)
            }
        };
        let (right, failed) = (self.outcome.right, self.outcome.failed());
        watch(&Progress { warming, elapsed, done: done.min(1.0), right, failed, rate, p50, p99 })
    }
}
