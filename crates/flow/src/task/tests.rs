use super::*;
use crate::compile::Compiler;
use crate::{Children, Compiled, Definition, Family, Flow, Mediator, Need, Page, Registry, Step};
use crate::{Context, Fault, testing};
use config::Element;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use std::path::Path;
use std::sync::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const PAGE: Page =
    Page { family: Family::Core, semantics: "", inside: &[], needs: &[], refused: &[], faults: &[] };

const fn definition(name: &'static str, compile: fn(&Element, &mut Compiler<'_>) -> Compiled) -> Definition {
    Definition { name, summary: "", attributes: &[], children: Children::None, page: PAGE, compile }
}

static LOG: Definition = definition("log", |_, _| Some(Box::new(Notes)));
static DROP: Definition = definition("drop", |_, _| Some(Box::new(Waits)));
static RESPOND: Definition = definition("respond", |_, _| Some(Box::new(Fails)));

/// What flows were there, and after how many seconds.
#[derive(Default)]
struct Seen {
    begun: Mutex<Option<Instant>>,
    lines: Mutex<Vec<String>>,
}

struct Notes;

impl Mediator for Notes {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let seen: Arc<Seen> = context.services.kept.get();
        let after = lock(&seen.begun).map_or(0, |begun| begun.elapsed().as_secs());
        let property = |name: &str| context.properties.get(name).map(ToString::to_string).unwrap_or_default();
        let body = context.payload.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let line = format!(
            "{after} {} {} {} {} {} {} {} {}",
            property("task.name"),
            property("other"),
            context.inbound.method.as_str(),
            context.owner_name(),
            context.to().unwrap_or_default(),
            context.headers.get("Content-Type").unwrap_or("-"),
            context.soap_action().unwrap_or_default(),
            body.unwrap_or_default(),
        );
        lock(&seen.lines).push(line);
        Ok(Flow::Next)
    }
}

/// Takes five seconds.
struct Waits;

impl Mediator for Waits {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn run<'a>(&'a self, _: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(async {
            sleep(Duration::from_secs(5)).await;
            Ok(Flow::Next)
        }))
    }
}

struct Fails;

impl Mediator for Fails {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Err(Fault::new("it fails"))
    }
}

fn registry() -> Registry {
    let definitions = vec![&LOG, &DROP, &RESPOND];
    testing::registry(definitions)
}

fn definitions(inside: &str) -> String {
    let sequences = "<sequence name='main'><log/></sequence><sequence name='fault'/>
        <sequence name='Notes'><log/></sequence><sequence name='Waits'><log/><drop/></sequence>
        <sequence name='Fails'><log/><respond/></sequence>";
    format!("<definitions xmlns='{}'>{sequences}{inside}</definitions>", config::SYNAPSE)
}

/// A task that injects into a sequence.
fn task(name: &str, sequence: &str, trigger: &str) -> String {
    format!(
        "<task name='{name}'><trigger {trigger}/><property name='injectTo' value='sequence'/>
        <property name='sequenceName' value='{sequence}'/><property name='message' value='text'/></task>"
    )
}

/// A bus whose tasks run on a clock that passes when everybody waits.
struct World {
    bus: Arc<Bus>,
    seen: Arc<Seen>,
    over: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl World {
    /// Each run: after how many seconds, of which task.
    fn runs(&self) -> Vec<String> {
        let lines = lock(&self.seen.lines);
        lines.iter().map(|line| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect()
    }

    fn status(&self, name: &str) -> Status {
        let (plan, services) = self.bus.in_force();
        plan.tasks.iter().find(|task| task.name == name).expect(name).status(&services)
    }

    fn task(&self, name: &str) -> Arc<Task> {
        Arc::clone(self.bus.plan().tasks.iter().find(|task| task.name == name).expect(name))
    }

    fn reload(&self, inside: &str) {
        let services = self.bus.services();
        let mut loaded =
            config::load_text("test.xml", &definitions(inside), Path::new("."), &Default::default());
        let plan = crate::compile(
            &loaded.configuration,
            loaded.sources,
            loaded.faulty,
            &registry(),
            &services,
            &mut loaded.diagnostics,
        );
        self.bus.swap(plan, services);
    }

    async fn stop(self) {
        let _ = self.over.send(());
        self.running.await.expect("the loop ends");
    }
}

async fn pass(seconds: u64) {
    sleep(Duration::from_millis(seconds * 1_000 + 1)).await;
}

fn live(inside: &str, wall: &str, test: impl AsyncFnOnce(World)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime starts").block_on(async {
        let mut shared = crate::services::Shared::new(transport::Client::new(Default::default()));
        shared.clock = Clock::told(wall.parse().expect("an instant"));
        let mut services = Some(Services::of(shared));
        let tested = testing::configuration_with(&registry(), &definitions(inside), |services_of_bus| {
            *services_of_bus = services.take().expect("once");
            services_of_bus.settings.time_zone = TimeZone::UTC;
        });
        assert!(tested.bus.plan().faulty.is_empty(), "{:?}", tested.found);
        let bus = Arc::new(tested.bus);
        let seen: Arc<Seen> = bus.services().kept.get();
        *lock(&seen.begun) = Some(Instant::now());
        let (over, ended) = oneshot::channel::<()>();
        let running = tokio::spawn(run(Arc::clone(&bus), async { _ = ended.await }));
        test(World { bus, seen, over, running }).await;
    });
}

const MIDNIGHT: &str = "2026-01-01T00:00:00Z";

#[test]
fn each_kind_of_trigger_runs_when_it_is_due() {
    let tasks = [
        task("Forever", "Notes", "interval='3'"),
        task("Thrice", "Notes", "interval='2' count='3'"),
        task("Once", "Notes", "once='true'"),
        task("Cron", "Notes", "cron='0/4 * * * * ?'"),
        task("Later", "Notes", "cron='6 0 1 1 1 ?' timeZone='Europe/Berlin'"),
        task("Never", "Notes", "cron='0 0 0 30 2 ?'"),
    ];
    live(&tasks.concat(), MIDNIGHT, async |world| {
        pass(8).await;
        let mut runs = world.runs();
        runs.sort();
        assert_eq!(
            runs,
            [
                "0 Forever",
                "0 Once",
                "0 Thrice",
                "2 Thrice",
                "3 Forever",
                "4 Cron",
                "4 Thrice",
                "6 Forever",
                "6 Later",
                "8 Cron",
            ]
        );
        for (name, runs, next) in [
            ("Forever", 3, Some("2026-01-01T00:00:09")),
            ("Thrice", 3, None),
            ("Once", 1, None),
            ("Cron", 2, Some("2026-01-01T00:00:12Z")),
            ("Later", 1, Some("2027-01-01T00:00:06Z")),
            ("Never", 0, None),
        ] {
            let status = world.status(name);
            assert_eq!(status.runs, runs, "{name}");
            let shown = status.next.map(|at| at.to_string());
            assert_eq!(shown.is_some(), next.is_some(), "{name}: {shown:?}");
            assert!(shown.unwrap_or_default().starts_with(next.unwrap_or_default()), "{name}");
            assert_eq!((status.missed, status.passed_over, status.running), (0, 0, 0), "{name}");
        }
        world.stop().await;
    });
}

#[test]
fn a_run_does_not_overlap_unless_asked() {
    let tasks = [
        task("Alone", "Waits", "interval='2' count='3'"),
        task("Both", "Waits", "interval='2' overlap='true'"),
    ];
    live(&tasks.concat(), MIDNIGHT, async |world| {
        pass(7).await;
        let of =
            |name: &str| world.runs().iter().filter(|run| run.ends_with(name)).cloned().collect::<Vec<_>>();
        assert_eq!(of("Alone"), ["0 Alone", "6 Alone"]);
        assert_eq!(of("Both"), ["0 Both", "2 Both", "4 Both", "6 Both"]);
        let status = world.status("Alone");
        assert_eq!((status.runs, status.passed_over, status.running), (2, 2, 1));
        assert_eq!(world.status("Both").running, 2);
        assert!(!world.task("Alone").run_now(), "its run before goes on");
        // Each one that is asked for takes place.
        assert!(world.task("Both").run_now() && world.task("Both").run_now());
        pass(0).await;
        assert_eq!(of("Both")[4..], ["7 Both", "7 Both"]);
        // What was passed over does not count.
        pass(30).await;
        assert_eq!(of("Alone"), ["0 Alone", "6 Alone", "12 Alone"]);
        world.stop().await;
    });
}

#[test]
fn outcomes_are_seen() {
    let tasks = [
        task("Good", "Notes", "once='true'"),
        task("Bad", "Fails", "once='true'"),
        task("Gone", "Nowhere", "once='true'"),
        task("Slow", "Waits", "once='true'"),
    ];
    live(&tasks.concat(), MIDNIGHT, async |world| {
        pass(1).await;
        let last = |name: &str| world.status(name).last.expect("it ran");
        assert_eq!(last("Good").ended.map(|(outcome, _)| outcome), Some(Outcome::Completed));
        assert_eq!(last("Bad").ended.map(|(outcome, _)| outcome), Some(Outcome::Failed(500)));
        assert!(
            last("Gone").refused.is_some_and(|why| why.contains("Sequence named Nowhere cannot be found"))
        );
        assert!(last("Slow").ended.is_none());
        // A stop waits for it.
        let seen = Arc::clone(&world.seen);
        let services = world.bus.services();
        assert_eq!(services.scopes.open(), 1);
        world.stop().await;
        assert_eq!(services.scopes.open(), 0);
        assert_eq!(lock(&seen.begun).map(|begun| begun.elapsed().as_secs()), Some(5));
        let totals = |name: &str| services.metrics.counters("task", name).totals();
        assert_eq!((totals("Good").requests, totals("Good").errors), (1, 0));
        assert_eq!((totals("Bad").errors, totals("Gone").errors, totals("Slow").errors), (1, 1, 0));
    });
}

#[test]
fn a_reload_keeps_what_has_not_changed() {
    let thrice = task("T", "Waits", "interval='4' count='2'");
    live(&thrice, MIDNIGHT, async |world| {
        pass(1).await;
        world.reload(&format!("{thrice}{}", task("New", "Notes", "once='true'")));
        pass(7).await;
        assert_eq!(world.runs(), ["0 T", "1 New", "8 T"]);
        world.reload(&thrice);
        pass(20).await;
        assert_eq!(world.runs().len(), 3, "it has run its times");
        // Another definition begins anew, and its run does not overlap with one of the old one.
        world.reload(&task("T", "Waits", "interval='4' count='3'"));
        pass(1).await;
        assert_eq!(world.runs()[3..], ["28 T"]);
        world.reload(&task("T", "Waits", "interval='5'"));
        pass(1).await;
        assert_eq!((world.runs().len(), world.status("T").passed_over), (4, 2));
        // Switched off, it stays so.
        world.task("T").switch(false);
        world.reload(&task("T", "Waits", "interval='5'"));
        pass(20).await;
        assert_eq!(world.runs().len(), 4);
        assert!(!world.status("T").active);
        assert!(world.task("T").run_now());
        assert!(!world.task("T").run_now(), "one is about to begin");
        pass(6).await;
        assert_eq!(world.runs()[4..], ["50 T"]);
        // What was due meanwhile is not made up for, and the grid stays.
        world.task("T").switch(true);
        pass(4).await;
        assert_eq!(world.status("T").missed, 0);
        assert_eq!(world.runs().len(), 6);
        // Gone, it runs no more.
        world.reload("");
        pass(60).await;
        assert_eq!(world.runs().len(), 6);
        world.stop().await;
    });
}

#[test]
fn clocks_that_are_set() {
    let tasks = [task("Hourly", "Notes", "cron='0 0 * * * ?'"), task("Steady", "Notes", "interval='3600'")];
    live(&tasks.concat(), "2026-01-01T00:59:00Z", async |world| {
        let clock = |by: i64| world.bus.services().clock.set(SignedDuration::from_secs(by));
        let of = |name: &str| world.runs().iter().filter(|run| run.ends_with(name)).count();
        pass(59).await;
        assert_eq!((of("Hourly"), of("Steady")), (0, 1));
        pass(1).await;
        assert_eq!(of("Hourly"), 1);
        // It slept for five and a half hours: one run makes up for five.
        clock(5 * 3_600 + 1_800);
        pass(10).await;
        let status = world.status("Hourly");
        assert_eq!((of("Hourly"), status.missed), (2, 4));
        // Put back by an hour: no hour comes again.
        clock(-3_600);
        pass(3_600 + 1_700).await;
        assert_eq!(of("Hourly"), 2);
        pass(100).await;
        assert_eq!(of("Hourly"), 3);
        // Put back by a day: those hours are as good as new.
        clock(-86_400);
        pass(3_600).await;
        assert_eq!(of("Hourly"), 4);
        assert_eq!(of("Steady"), 3, "nobody sets this one");
        world.stop().await;
    });
}

#[test]
fn what_is_injected() {
    let injected = |name: &str, properties: &str| {
        format!(
            "<task name='{name}'><trigger once='true'/><property name='injectTo' value='sequence'/><property name='sequenceName' value='Notes'/>{properties}</task>"
        )
    };
    let element = "<property name='message'><m xmlns=''><a>x y</a><b>2</b></m></property>";
    let to = "<property name='to' value='http://h/p'/><property name='soapAction' value='urn:a'/>";
    let tasks = [
        injected("Soap12", &format!("{to}{element}")),
        injected("Soap11", &format!("{to}{element}<property name='format' value='SOAP11'/>")),
        injected("Pox", &format!("{to}{element}<property name='format' value='pox'/><property name='other' value='o'/>")),
        injected("Get", &format!("{to}{element}<property name='format' value='get'/>")),
        injected("Json", "<property name='message' value='{\"a\": 1}'/>"),
        injected("Text", "<property name='message' value='hello'/>"),
        injected("Inside", "<property name='message' value='&lt;?xml version=\"1.0\"?>&lt;a/>'/>"),
        injected("Entry", "<property name='registryKey' value='entry'/><property name='format' value='pox'/>"),
        "<task name='Main'><trigger once='true'/><property name='message' value='&lt;a/>'/><property name='format' value='pox'/></task>".to_owned(),
        "<task name='Proxy'><trigger once='true'/><property name='injectTo' value='proxy'/><property name='proxyName' value='P'/><property name='message' value='&lt;a/>'/><property name='format' value='pox'/></task>".to_owned(),
        "<proxy name='P'><target><inSequence><log/></inSequence></target></proxy><localEntry key='entry'><e xmlns=''/></localEntry>".to_owned(),
    ];
    live(&tasks.concat(), MIDNIGHT, async |world| {
        pass(1).await;
        let soap = |version: &str| {
            format!(
                "<soapenv:Envelope xmlns:soapenv=\"{version}\"><soapenv:Body><m><a>x y</a><b>2</b></m></soapenv:Body></soapenv:Envelope>"
            )
        };
        let soap12 = soap("http://www.w3.org/2003/05/soap-envelope");
        let mut seen = lock(&world.seen.lines).clone();
        seen.sort();
        assert_eq!(
            seen,
            [
                "0 Entry  POST main / application/xml; charset=UTF-8  <e/>".to_owned(),
                "0 Get  GET main http://h/p?a=x%20y&b=2 application/xml; charset=UTF-8  <m><a>x y</a><b>2</b></m>".to_owned(),
                "0 Inside  POST main / application/soap+xml; charset=UTF-8  <soapenv:Envelope xmlns:soapenv=\"http://www.w3.org/2003/05/soap-envelope\"><soapenv:Body><a/></soapenv:Body></soapenv:Envelope>".to_owned(),
                "0 Json  POST main / application/json  {\"a\": 1}".to_owned(),
                "0 Main  POST main / application/xml; charset=UTF-8  <a/>".to_owned(),
                "0 Pox o POST main http://h/p application/xml; charset=UTF-8  <m><a>x y</a><b>2</b></m>".to_owned(),
                "0 Proxy  POST P /services/P application/xml; charset=UTF-8  <a/>".to_owned(),
                format!("0 Soap11  POST main http://h/p text/xml; charset=UTF-8 urn:a {}", soap("http://schemas.xmlsoap.org/soap/envelope/")),
                format!("0 Soap12  POST main http://h/p application/soap+xml; charset=UTF-8; action=\"urn:a\" urn:a {soap12}"),
                "0 Text  POST main / text/plain; charset=UTF-8  hello".to_owned(),
            ]
        );
        world.stop().await;
    });
}

#[test]
fn what_loading_says() {
    let message = "<property name='message' value='x'/>";
    for (inside, found, label) in [
        (
            format!("<trigger cron='0 0 25 * * ?'/>{message}"),
            "bad-cron: `0 0 25 * * ?`: the hours cannot be `25`",
            "expected 0 to 23",
        ),
        (
            format!("<trigger cron='0 5 * * *'/>{message}"),
            "bad-cron: `0 5 * * *`: a cron expression has six or seven fields",
            "the seconds come first: `0 0 5 * * ?`",
        ),
        (
            format!("<trigger cron='0 0 0 ? * MUN'/>{message}"),
            "bad-cron: `0 0 0 ? * MUN`: there is no day of week `MUN`",
            "did you mean `MON`?",
        ),
        (
            format!("<trigger cron='0 0 0 30 2 ?'/>{message}"),
            "never-due: `0 0 0 30 2 ?` has no time that is still to come",
            "it never runs",
        ),
        (
            format!("<trigger cron='0 0 0 * * ?' timeZone='Europe/Berlni'/>{message}"),
            "bad-value: there is no time zone `Europe/Berlni`",
            "expected a name like",
        ),
        (
            "<trigger once='true'/>".to_owned(),
            "missing-property: the task needs the property `message`",
            "there is no `registryKey` either",
        ),
        (
            format!("<trigger once='true'/>{message}<property name='injectTo' value='sequence'/>"),
            "missing-property: the task needs the property `sequenceName`",
            "`injectTo` is `sequence`",
        ),
        (
            format!("<trigger once='true'/>{message}<property name='injectTo' value='proxy'/>"),
            "missing-property: the task needs the property `proxyName`",
            "`injectTo` is `proxy`",
        ),
        (
            format!(
                "<trigger once='true'/>{message}<property name='injectTo' value='proxy'/><property name='proxyName' value='P'/>"
            ),
            "unknown-proxy: there is no proxy service `P`",
            "the task cannot run",
        ),
        (
            format!("<trigger once='true'/>{message}<property name='injectTo' value='sequense'/>"),
            "bad-value: `injectTo` should not be `sequense`",
            "counts as `main`",
        ),
        (
            format!("<trigger once='true'/>{message}<property name='format' value='soap13'/>"),
            "bad-value: `format` should not be `soap13`",
            "counts as `soap12`",
        ),
        (
            format!("<trigger once='true'/>{message}<property name='sequenceNam' value='x'/>"),
            "unknown-property: `sequenceNam` becomes a property of the message",
            "did you mean `sequenceName`?",
        ),
        (
            "<trigger once='true'/><property name='registryKey' value='nothing'/>".to_owned(),
            "unknown-entry: there is no entry `nothing`",
            "without it the task cannot run",
        ),
        (
            "<trigger once='true'/><property name='message' value='&lt;a>'/>".to_owned(),
            "bad-value: the message is not XML",
            "in this property",
        ),
    ] {
        let text = definitions(&format!("<task name='T'>{inside}</task>"));
        let tested = testing::configuration(&registry(), &text);
        assert!(tested.reports(found), "{inside}: {:?}", tested.found);
        assert!(
            tested.reasons.iter().any(|reason| reason.contains(label)) || label.starts_with("did you mean"),
            "{inside}: {:?}",
            tested.reasons
        );
    }
    let class = definitions("<task name='T' class='com.example.Mine'><trigger once='true'/></task>");
    let tested = testing::configuration(&registry(), &class);
    assert!(
        tested.reports("the class `com.example.Mine` of the task is not executable here"),
        "{:?}",
        tested.found
    );
    let pinned = definitions(
        "<task name='T' pinnedServers='another'><trigger once='true'/><property name='message' value='x'/></task>",
    );
    let tested = testing::configuration(&registry(), &pinned);
    assert!(
        tested.reports("pinned: the task `T` is not for this server") && tested.bus.plan().tasks.is_empty()
    );
}
