//! One run: the real engine, endpoints, transport and stores on a simulated network and a paused clock; what happens, and
//! what must hold in the end.

use crate::backend::{Backend, Seen};
use crate::client;
use crate::flows::{Service, configuration};
use crate::network::{Connector, End, Simulated, connection, lock};
use crate::random::Random;
use flow::{Bus, Plan, Services};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use transport::{ClientLimits, Server, ServerLimits};

/// What all parts of a run share.
pub struct World {
    pub seen: Arc<Seen>,
    /// Messages that the bus has taken over.
    pub acknowledged: Mutex<Vec<(String, Service)>>,
    pub answers: Mutex<usize>,
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
        lock(&self.faults).push(format!("at {at} ms: {what}"));
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
    let outcome = tracing::subscriber::with_default(log.clone(), || runtime.block_on(live(seed, &log)));
    drop(runtime);
    transport::simulation::install(None);
    outcome
}

fn plan(text: &str, services: &Arc<Services>) -> Plan {
    let registry = mediators::registry(endpoints::endpoint);
    let mut loaded =
        config::load_text("simulation.xml", text, Path::new("."), &config::LoadOptions::default());
    let plan = flow::compile(
        &loaded.configuration,
        loaded.sources,
        loaded.faulty,
        &registry,
        services,
        &mut loaded.diagnostics,
    );
    let errors: Vec<_> = plan.faulty.iter().map(|one| one.message.clone()).collect();
    assert!(errors.is_empty(), "the configuration of the simulation is good: {errors:?}\n{text}");
    plan
}

async fn live(seed: u64, log: &crate::log::Log) -> Outcome {
    let mut random = Random::new(seed);
    let network = Simulated::new(random.split());
    transport::simulation::install(Some(Arc::new(Connector(Arc::clone(&network)))));
    let addresses: Vec<SocketAddr> = (1..=3).map(|host| SocketAddr::from(([10, 0, 0, host], 80))).collect();
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}/orders")).collect();

    let mut services = Services::new(transport::Client::new(ClientLimits::default()));
    services.settings.global_timeout = Duration::from_secs(8);
    services.settings.connect_timeout = Duration::from_secs(2);
    services.settings.socket_timeout = Duration::from_secs(6);
    let services = Arc::new(services);
    let bus =
        Arc::new(Bus::new(plan(&configuration(&mut random, &urls), &services), Arc::clone(&services), None));
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
    let processors = tokio::spawn(flow::processor::run(Arc::clone(&bus), async {
        let _ = ended.await;
    }));

    // Weather: backends change their moods, the configuration is loaded anew.
    let weather = {
        let (mut random, bus, services) = (random.split(), Arc::clone(&bus), Arc::clone(&services));
        let (backends, urls) = (backends.clone(), urls.clone());
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(random.between(20, 1_500))).await;
                match random.below(4) {
                    0 => bus.swap(plan(&configuration(&mut random, &urls), &services), Arc::clone(&services)),
                    1 => backends.iter().for_each(|backend| backend.calm()),
                    _ => random.pick(&backends).change(&mut random),
                }
            }
        })
    };
    let clients = random.between(1, 6);
    let requests = random.between(1, 12) as usize;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..clients {
        running.spawn(client::run(
            Arc::clone(&world),
            format!("{seed}.{number}"),
            requests,
            random.split(),
            false,
        ));
    }
    let stops_early = random.one_in(4);
    if stops_early {
        sleep(Duration::from_millis(random.below(3_000))).await;
    } else {
        while running.join_next().await.is_some() {}
    }
    weather.abort();
    backends.iter().for_each(|backend| backend.calm());
    if !stops_early {
        // Suspensions run out; then each good request is served.
        sleep(Duration::from_secs(12)).await;
        let calm = format!("{seed}.calm");
        client::run(Arc::clone(&world), calm, 12, random.split(), true).await;
    }
    // The stop.
    world.stopping.store(true, Ordering::Relaxed);
    let _ = over.send(());
    let deadline = Duration::from_secs(100);
    world.server.drain(deadline).await;
    if !services.scopes.drained(deadline).await {
        world.fault(format!(
            "{} messages are still on their way at the end of the drain",
            services.scopes.open()
        ));
    }
    services.scopes.give_up();
    if timeout(deadline, processors).await.is_err() {
        world.fault("message processors did not end".to_owned());
    }
    services.log_given_up();
    running.abort_all();
    while running.join_next().await.is_some() {}
    check(&world, &services, log).await;
    drop(backends);
    let faults = std::mem::take(&mut *lock(&world.faults));
    let answers = *lock(&world.answers);
    let acknowledged = lock(&world.acknowledged).len();
    Outcome { faults, answers, acknowledged, log: log.lines() }
}

/// What must hold when all is over.
async fn check(world: &World, services: &Services, log: &crate::log::Log) {
    for mixed in lock(&world.seen.mixed).iter() {
        world.fault(format!("mixed: {mixed}"));
    }
    let acknowledged = lock(&world.acknowledged).clone();
    for (id, service) in acknowledged {
        if client::delivered(&world.seen, &id) || log.names(&id) {
            continue;
        }
        world.fault(format!(
            "{id} ({service:?}) was acknowledged, and is neither delivered nor named in the log"
        ));
    }
    // Idle connections to backends are closed, slow backends find out; nothing else is open.
    services.client.close_idle();
    sleep(Duration::from_secs(15)).await;
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
    for line in log.panics() {
        world.fault(format!("a panic: {line}"));
    }
}
