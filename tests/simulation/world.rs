//! One run: the real engine, endpoints, transport and stores on a simulated network and a paused clock; what happens, and
//! what must hold in the end.

use crate::backend::{Backend, Seen};
use crate::client;
use crate::flows::{self, LEFT_OUT, Service, configuration};
use crate::network::{Accepts, Connector, End, Simulated, connection, lock};
use crate::panics;
use crate::random::Random;
use crate::records::Records;
use config::LastGood;
use flow::{Bus, Plan, Services};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use transport::{ClientLimits, Server, ServerLimits};

/// Characters of a fault that are shown: an answer may be in it.
const SHOWN: usize = 200;

/// What all parts of a run share.
pub struct World {
    pub seen: Arc<Seen>,
    /// Messages that the bus has taken over.
    pub acknowledged: Mutex<Vec<(String, Service)>>,
    pub answers: Mutex<usize>,
    pub records: Arc<Records>,
    /// Requests that have an answer, or of which the bus has all: each has one record in the end.
    pub answered: Mutex<Vec<String>>,
    faults: Mutex<Vec<String>>,
    network: Arc<Simulated>,
    server: Server,
    bus: Arc<Bus>,
    stopping: AtomicBool,
    random: Mutex<Random>,
    begun: Instant,
}

impl World {
    /// Records what must not happen.
    pub fn fault(&self, what: String) {
        let at = self.begun.elapsed().as_millis();
        let shown: String = what.chars().take(SHOWN).collect();
        lock(&self.faults).push(format!("at {at} ms: {shown}"));
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// A connection of a new client.
    pub fn connect(&self) -> Arc<End> {
        let mut random = lock(&self.random).split();
        let latency = (random.between(5, 50), random.between(50, 2_000));
        let (near, far) = connection(random.split(), latency, &self.network.open);
        let peer = SocketAddr::from(([10, 1, 0, 1], random.between(1024, 65_000) as u16));
        tokio::spawn(transport::simulation::accept(&self.server, far, peer, Arc::clone(&self.bus)));
        near
    }
}

/// What came out of a run.
#[derive(Default)]
pub struct Outcome {
    pub faults: Vec<String>,
    pub answers: usize,
    pub acknowledged: usize,
    pub log: Vec<String>,
}

/// Runs the world of a seed.
pub fn run(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O can be made");
    let log = crate::log::Log::default();
    let lived = catch_unwind(AssertUnwindSafe(|| {
        tracing::subscriber::with_default(log.clone(), || runtime.block_on(live(seed, &log)))
    }));
    // A panic outside of what the bus isolates ends the run, and is its fault.
    let mut outcome = lived.unwrap_or_else(|_| Outcome { faults: log.panics(), ..Outcome::default() });
    drop(runtime);
    transport::simulation::install(None);
    // The bus is gone. The count is that of the process, which runs one world at a time.
    let held = message::memory::held();
    if held > 0 {
        outcome.faults.push(format!("{held} bytes are still counted as held"));
    }
    outcome
}

/// What was loaded last, for the reload that follows.
type Loaded = (Plan, LastGood);

/// Loads a configuration as the bus does: what is faulty stays as it was.
fn load(artifacts: &str, services: &Arc<Services>, last: Option<&LastGood>) -> Loaded {
    if std::env::var_os("BUSBAR_SIMULATION_SEED").is_some() {
        println!("{artifacts}");
    }
    let text = format!("<definitions xmlns=\"http://ws.apache.org/ns/synapse\">{artifacts}</definitions>");
    let mut registry = mediators::registry(endpoints::endpoint);
    registry.definitions.push(&panics::PANIC);
    let texts = last.map(|last| last.sources().clone()).unwrap_or_default();
    let options = config::LoadOptions { sources: texts, ..Default::default() };
    let loaded = config::load_text("simulation.xml", &text, Path::new("."), &options);
    let (sources, mut configuration, mut faulty) = (loaded.sources, loaded.configuration, loaded.faulty);
    if let Some(last) = last {
        configuration.fall_back(&mut faulty, &sources, last, true);
    }
    // Again without what turns out to be faulty.
    loop {
        let read = faulty.len();
        let mut found = loaded.diagnostics.clone();
        let plan =
            flow::compile(&configuration, sources.clone(), faulty.clone(), &registry, services, &mut found);
        let mut failed = plan.faulty.get(read..).unwrap_or_default().to_vec();
        let held = last.map(|last| configuration.fall_back(&mut failed, &sources, last, false));
        if held.is_none_or(|held| held.is_empty()) {
            let left_out: Vec<_> = plan.faulty.iter().filter(|one| !one.held).cloned().collect();
            let unexpected = left_out.iter().filter(|one| one.name.as_deref() != Some(LEFT_OUT));
            let unexpected: Vec<_> = unexpected.map(|one| &one.message).collect();
            assert!(last.is_some() || unexpected.is_empty(), "it is good at first: {unexpected:?}\n{text}");
            let good = LastGood::new(configuration, (*plan.sources).clone(), &left_out);
            return (plan, good);
        }
        faulty.extend(failed.into_iter().filter(|one| one.held));
    }
}

/// The bounds of this world: generous ones in most.
fn limits(random: &mut Random, services: &mut Services) {
    let settings = &mut services.settings;
    settings.global_timeout = Duration::from_secs(8);
    settings.connect_timeout = Duration::from_secs(2);
    settings.socket_timeout = Duration::from_secs(6);
    settings.flows = *random.pick(&[10_000, 10_000, 10_000, 4]);
    settings.compute_threads = random.between(1, 2) as usize;
    // Enough for one client.
    settings.compute_queue = *random.pick(&[1_000, 1_000, 8]);
    settings.compute_wait = Duration::from_millis(*random.pick(&[5_000, 5_000, 500]));
    message::memory::set_most(*random.pick(&[usize::MAX, usize::MAX, 3 << 20]));
}

async fn live(seed: u64, log: &crate::log::Log) -> Outcome {
    let mut random = Random::new(seed);
    panics::storm(Some(random.split()));
    let network = Simulated::new(random.split());
    transport::simulation::install(Some(Arc::new(Connector(Arc::clone(&network)))));
    let addresses: Vec<SocketAddr> = (1..=3).map(|host| SocketAddr::from(([10, 0, 0, host], 80))).collect();
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}/orders")).collect();

    let mut services = Services::new(transport::Client::new(ClientLimits::default()));
    limits(&mut random, &mut services);
    let services = Arc::new(services);
    let (plan, mut good) = load(&configuration(&mut random, &urls, false), &services, None);
    let records = Arc::new(Records::default());
    let bus = Arc::new(Bus::new(plan, Arc::clone(&services), Some(Arc::<Records>::clone(&records))));
    let limits = ServerLimits {
        body: Duration::from_secs(5),
        write: Duration::from_secs(5),
        ..ServerLimits::default()
    };
    let seen = Arc::new(Seen::default());
    let world = Arc::new(World {
        seen: Arc::clone(&seen),
        acknowledged: Mutex::default(),
        answers: Mutex::default(),
        records,
        answered: Mutex::default(),
        faults: Mutex::default(),
        network: Arc::clone(&network),
        server: Server::simulated(SocketAddr::from(([10, 2, 0, 1], 8280)), limits),
        bus: Arc::clone(&bus),
        stopping: AtomicBool::new(false),
        random: Mutex::new(random.split()),
        begun: Instant::now(),
    });
    let backends: Vec<_> = ["b0", "b1", "b2"]
        .into_iter()
        .zip(&addresses)
        .map(|(name, address)| Backend::start(name, *address, &network, &seen, random.split()))
        .collect();
    let (over, ended) = tokio::sync::oneshot::channel::<()>();
    let mut processors = tokio::spawn(flow::processor::run(Arc::clone(&bus), async {
        let _ = ended.await;
    }));

    // Weather: backends change their moods, the configuration is loaded anew, faulty ones too.
    let weather = {
        let (mut random, bus, services) = (random.split(), Arc::clone(&bus), Arc::clone(&services));
        let (backends, urls) = (backends.clone(), urls.clone());
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(random.between(20, 1_500))).await;
                match random.below(6) {
                    0 => {
                        let is_faulty = random.one_in(2);
                        let text = configuration(&mut random, &urls, is_faulty);
                        let (plan, now_good) = load(&text, &services, Some(&good));
                        good = now_good;
                        bus.swap(plan, Arc::clone(&services));
                    }
                    1 | 2 => backends.iter().for_each(|backend| backend.calm()),
                    _ => random.pick(&backends).change(&mut random),
                }
            }
        })
    };
    let clients = random.between(1, 6);
    let requests = random.between(1, 12) as usize;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..clients {
        let wild = client::Manner { services: &flows::ALL, good: false };
        let name = format!("{seed}.{number}");
        running.spawn(client::run(Arc::clone(&world), name, requests, random.split(), wild));
    }
    let stops_early = random.one_in(4);
    if stops_early {
        sleep(Duration::from_millis(random.below(3_000))).await;
    } else {
        while running.join_next().await.is_some() {}
    }
    weather.abort();
    if !stops_early {
        // Suspensions run out; then each good request is served.
        panics::storm(None);
        backends.iter().for_each(|backend| backend.calm());
        sleep(Duration::from_secs(12)).await;
        let good = client::Manner { services: &flows::ALL, good: true };
        client::run(Arc::clone(&world), format!("{seed}.calm"), 12, random.split(), good).await;
        // One of three is dead, and a group finds another.
        let dead = *random.pick(&[Accepts::Refuses, Accepts::Silent]);
        network.set(*random.pick(&addresses), dead);
        let good = client::Manner { services: &[Service::Failover], good: true };
        client::run(Arc::clone(&world), format!("{seed}.dead"), 4, random.split(), good).await;
    }
    // What is accepted right before the stop goes on behind it.
    if random.one_in(2) {
        backends.iter().for_each(|backend| backend.change(&mut random));
        let wild = client::Manner { services: &[Service::OneWay, Service::Stored], good: false };
        for number in 0..random.between(1, 3) {
            let name = format!("{seed}.last{number}");
            running.spawn(client::run(Arc::clone(&world), name, 3, random.split(), wild));
        }
        sleep(Duration::from_millis(random.below(500))).await;
    }
    // The stop, as the program does it: what has not ended by then must be named.
    let drain = Duration::from_millis(if random.one_in(2) { 100_000 } else { random.below(2_500) });
    if random.one_in(2) {
        backends.iter().for_each(|backend| backend.calm());
    }
    world.stopping.store(true, Ordering::Relaxed);
    let _ = over.send(());
    let processed = timeout(drain, &mut processors);
    let ((), processed) = tokio::join!(stop(&world, &services, drain), processed);
    services.log_given_up();
    running.abort_all();
    while running.join_next().await.is_some() {}
    // The process would end here.
    check_messages(&world, log);
    panics::storm(None);
    backends.iter().for_each(|backend| backend.calm());
    if processed.is_err() && timeout(Duration::from_secs(100), processors).await.is_err() {
        world.fault("message processors did not end".to_owned());
    }
    check_counts(&world, &services, log).await;
    drop(backends);
    let faults = std::mem::take(&mut *lock(&world.faults));
    let answers = *lock(&world.answers);
    let acknowledged = lock(&world.acknowledged).len();
    Outcome { faults, answers, acknowledged, log: log.lines() }
}

/// Waits until the work of all messages has ended, or the time is over.
async fn stop(world: &World, services: &Services, drain: Duration) {
    let drained = async {
        services.scopes.drained(drain).await;
        services.scopes.give_up();
    };
    // Connections are cut when what is abandoned by that is named in the log.
    let (cut, ()) = tokio::join!(world.server.drain(drain + Duration::from_millis(100)), drained);
    if cut.cut > 0 {
        services.scopes.drained(Duration::from_millis(500)).await;
    }
}

/// What must hold of messages when the process ends.
fn check_messages(world: &World, log: &crate::log::Log) {
    for mixed in lock(&world.seen.mixed).iter() {
        world.fault(format!("mixed: {mixed}"));
    }
    let acknowledged = lock(&world.acknowledged).clone();
    for (id, service) in acknowledged {
        let kept = match service {
            // With what its reply sequence sends.
            Service::Stored => log.gives_up(&id) || world.seen.has(&format!("{id}/done")),
            _ => log.names(&id) || client::delivered(&world.seen, &id),
        };
        if !kept {
            world.fault(format!(
                "{id} ({service:?}) was acknowledged, and is neither delivered nor named in the log"
            ));
        }
    }
    for doubled in world.records.doubled() {
        world.fault(format!("more than one record in the access log: {doubled}"));
    }
}

/// What must hold when all is over.
async fn check_counts(world: &World, services: &Services, log: &crate::log::Log) {
    // What was given up ends by its own deadlines.
    if !services.scopes.drained(Duration::from_secs(100)).await {
        world.fault(format!("{} messages never end", services.scopes.open()));
    }
    // Idle connections to backends are closed, slow backends find out; nothing else is open. Message processors go on here, where the
    // process would have ended: an attempt of theirs leaves another idle connection.
    for _ in 0..5 {
        services.client.close_idle();
        sleep(Duration::from_secs(15)).await;
        if world.network.open.count() == 0 {
            break;
        }
    }
    let stats = world.server.stats();
    if stats.open != 0 {
        world.fault(format!("{} connections of clients are still open", stats.open));
    }
    if !services.aggregates.is_empty() {
        world.fault(format!("{} aggregates are still open", services.aggregates.len()));
    }
    let client = services.client.stats();
    if client.active != 0 {
        world.fault(format!("{} connections to backends are still in use", client.active));
    }
    if services.scopes.open() != 0 {
        world.fault(format!("{} scopes are still open", services.scopes.open()));
    }
    // The ends that simulated backends hold close when they see the end of the bus.
    if world.network.open.count() != 0 {
        world.fault(format!(
            "{} ends of connections are still open; {:?}",
            world.network.open.count(),
            world.server.stats()
        ));
    }
    for id in lock(&world.answered).iter() {
        if world.records.of(id).len() != 1 {
            world.fault(format!("{id} has {:?} in the access log", world.records.of(id)));
        }
    }
    let compute = flow::compute::Compute::of(services).figures();
    if (compute.running, compute.waiting) != (0, 0) {
        world.fault(format!("compute threads have work left: {compute:?}"));
    }
    for line in log.panics() {
        world.fault(format!("a panic: {line}"));
    }
}
