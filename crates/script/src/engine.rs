//! The engine: one JavaScript runtime per thread, and in it one world (global object and everything built in) that all
//! scripts share and none can change.
//!
//! A script is compiled once per thread, as the body of a function: its variables live as long as one call. Names that
//! it makes global without `var` are taken away behind it. A script that touches prototypes gets a world of its own for
//! each message, which costs two milliseconds or more instead of some ten microseconds.

use crate::host::{Host, functions, of_js, with_host};
use crate::{Argument, Failure, Limits, Place, Script};
use message::Value;
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime, Value as Js,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const PRELUDE: &str = include_str!("prelude.js");
/// The classes of Java: a function of what the bus offers.
pub(crate) const JAVA: &str = concat!(
    "(function (native) {\n'use strict';\n",
    include_str!("java/lang.js"),
    include_str!("java/util.js"),
    include_str!("java/names.js"),
    "})"
);
/// Those that few scripts use, evaluated when one of them is first used so that no other engine pays for them.
const JAVA_LATE: &str = concat!(
    "(function (native, shared) {\n'use strict';\n",
    include_str!("java/math.js"),
    include_str!("java/text.js"),
    include_str!("java/time.js"),
    include_str!("java/clock.js"),
    include_str!("java/pattern.js"),
    include_str!("java/axiom.js"),
    include_str!("java/commons.js"),
    include_str!("java/late.js"),
    "})"
);

/// Longest time that one run may sleep altogether. Sleeping is no part of its time.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// How long it sleeps until it looks whether its flow is gone.
const NAP: Duration = Duration::from_millis(100);

/// The name of every script in the engine's own messages.
const FILE: &str = "script";

/// Units of work between two questions of the engine whether to go on: some ten thousand jumps and calls.
const LOOK: u64 = 5000;

/// Most scripts that a thread keeps compiled; those of configurations that are gone make room.
const MAX_COMPILED: usize = 256;

/// What a script left.
#[derive(Debug)]
pub struct Returned {
    /// The value is Boolean false: the flow stops here.
    pub stop: bool,
    /// The value: plain ones as they are, objects as JSON; `None` for null, undefined and functions.
    pub value: Option<Value>,
}

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
    /// How long the script that runs has slept; `None`: it must not.
    static SLEPT: Cell<Option<Duration>> = const { Cell::new(None) };
    /// When the script that runs has to end.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Counts work that the engine cannot see: an operation on large numbers is one step for it. An error ends the script.
pub(crate) fn work(units: f64) -> Result<(), String> {
    let spent = meter::spend(units.clamp(0.0, 1e15) as u64);
    if spent.is_err() || is_over() { Err("interrupted".to_owned()) } else { Ok(()) }
}

/// `Thread.sleep`: the thread sleeps, so that scripts which do run on threads of their own.
pub(crate) fn sleep(milliseconds: f64) -> Result<(), String> {
    if !(0.0..=1e12).contains(&milliseconds) {
        return Err("IllegalArgumentException: timeout value is negative".to_owned());
    }
    let Some(before) = SLEPT.get() else {
        return Err(
            "a script that sleeps has to name `sleep`, so that it does not run on a worker".to_owned()
        );
    };
    let mut left = Duration::from_secs_f64(milliseconds / 1000.0);
    let slept = before.saturating_add(left);
    if slept > MAX_SLEEP {
        return Err(format!("a script sleeps at most {} s", MAX_SLEEP.as_secs()));
    }
    while !left.is_zero() {
        if meter::is_cancelled() {
            return Err(meter::Stop::Cancelled.to_string());
        }
        let slice = left.min(NAP);
        std::thread::sleep(slice);
        left -= slice;
    }
    SLEPT.set(Some(slept));
    Ok(())
}

/// Whether the time is over, without that which was slept.
fn is_over() -> bool {
    let slept = SLEPT.get().unwrap_or_default();
    let deadline = DEADLINE.get().and_then(|deadline| deadline.checked_add(slept));
    deadline.is_some_and(|deadline| Instant::now() > deadline)
}

/// The fields are dropped in this order: what lives in the runtime before it.
struct Engine {
    shared: Option<World>,
    runtime: Runtime,
}

/// A global object with the prelude, and the functions compiled in it.
struct World {
    compiled: HashMap<u64, Persistent<Function<'static>>>,
    tidy: Persistent<Function<'static>>,
    mc: Persistent<Js<'static>>,
    context: Context,
}

/// Runs a script on a message and hands the message back. It is lost only if the engine panics.
///
/// # Errors
/// The script threw something, hit a limit, or has no such function.
pub fn run(
    script: &Script,
    host: Box<dyn Host>,
    arguments: &[Argument],
    limits: &Limits,
) -> (Option<Box<dyn Host>>, Result<Returned, Failure>) {
    with_host(host, limits.xml.clone(), || {
        ENGINE.with(|slot| {
            let mut slot =
                slot.try_borrow_mut().map_err(|_| Failure::new("a script cannot run inside of a script"))?;
            if slot.is_none() {
                *slot = Some(
                    Engine::new()
                        .map_err(|why| Failure::new(format!("the script engine cannot start: {why}")))?,
                );
            }
            let engine = slot.as_mut().ok_or_else(|| Failure::new("the script engine is gone"))?;
            let mut result = engine.run(script, arguments, limits);
            let settled = crate::host::settle();
            if result.is_ok()
                && let Err(why) = settled
            {
                result = Err(Failure::new(why));
            }
            if result.as_ref().is_err_and(|failure| failure.exhausted) {
                // What a limit has cut off may have left anything behind.
                *slot = None;
            }
            result
        })
    })
}

/// Checks that a text is a script.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn check(text: &str) -> Result<(), Failure> {
    let limits = Limits::default();
    let engine = Engine::new().map_err(|why| Failure::new(why.to_string()))?;
    engine.set(&limits);
    let context = Context::full(&engine.runtime).map_err(|why| Failure::new(why.to_string()))?;
    context.with(|ctx| {
        // All of it is parsed before the first line runs, and that line is ours.
        let result = ctx.eval_with_options::<(), _>(format!("throw null;\n{text}"), sloppy());
        match result.catch(&ctx) {
            Err(CaughtError::Exception(exception)) => {
                let mut failure = thrown(&CaughtError::Exception(exception));
                if let Some(place) = &mut failure.place {
                    place.line = place.line.saturating_sub(1).max(1);
                }
                Err(failure)
            }
            _ => Ok(()),
        }
    })
}

/// The function that makes the classes of Java that few scripts use. Compiling it is not the script's work.
pub(crate) fn java_late<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
    let mut options = sloppy();
    options.filename = Some("prelude".to_owned());
    meter::unbounded(|| ctx.eval_with_options(JAVA_LATE, options))
}

fn sloppy() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(FILE.to_owned());
    options
}

impl Engine {
    fn new() -> rquickjs::Result<Engine> {
        let runtime = Runtime::new()?;
        let over = || is_over() || meter::spend(LOOK).is_err();
        runtime.set_interrupt_handler(Some(Box::new(over)));
        Ok(Engine { shared: None, runtime })
    }

    fn set(&self, limits: &Limits) {
        self.runtime.set_memory_limit(limits.memory);
        self.runtime.set_max_stack_size(limits.stack);
        SLEPT.set(None);
        DEADLINE.set(Instant::now().checked_add(limits.time));
    }

    /// A new global object. Making it is neither the script's time, nor its memory, nor its work.
    fn world(&self, shared: bool) -> Result<World, Failure> {
        self.set(&Limits::default());
        meter::unbounded(|| World::new(&self.runtime, shared))
    }

    fn run(&mut self, script: &Script, arguments: &[Argument], limits: &Limits) -> Result<Returned, Failure> {
        if script.shared && self.shared.is_none() {
            self.shared = Some(self.world(true)?);
        }
        let mut separate = if script.shared { None } else { Some(self.world(false)?) };
        self.set(limits);
        if script.sleeps() {
            SLEPT.set(Some(Duration::ZERO));
        }
        let world = separate.as_mut().or(self.shared.as_mut());
        let world = world.ok_or_else(|| Failure::new("the script has no global object"))?;
        let mut result = world.run(script, arguments);
        // What it has put off belongs to its time too, and to no other message.
        while self.runtime.is_job_pending() {
            // An exception in a job that no code waits for is dropped.
            let _ = self.runtime.execute_pending_job();
            if is_over() || meter::check().is_err() {
                result = Err(Failure::limit("interrupted".to_owned()));
                break;
            }
        }
        let late = is_over();
        DEADLINE.set(None);
        if world.is_untidy() && script.shared {
            self.shared = None;
        }
        result.map_err(|failure| match failure.message.as_str() {
            message
                if message.contains("interrupted")
                    && let Some(stop) = meter::stopped() =>
            {
                Failure {
                    // One that goes on elsewhere leaves a sound engine behind.
                    exhausted: stop != meter::Stop::Long || self.runtime.is_job_pending(),
                    ..Failure::new(format!("the script was broken off: {stop}"))
                }
            }
            _ if late && failure.message.contains("interrupted") => Failure::limit(format!(
                "the script ran longer than {} (limits.script_time)",
                in_words(limits.time)
            )),
            message if message.contains("out of memory") => Failure::limit(format!(
                "the script needs more than {} bytes (limits.script_memory)",
                limits.memory
            )),
            THREW_NULL => Failure::limit(format!(
                "the script needs more than {} bytes (limits.script_memory), or threw null",
                limits.memory
            )),
            _ => failure,
        })
    }
}

fn in_words(time: Duration) -> String {
    if time.as_millis() < 1000 {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs_f64())
    }
}

impl World {
    fn new(runtime: &Runtime, shared: bool) -> Result<World, Failure> {
        let failed = |why: rquickjs::Error| Failure::new(format!("the script engine cannot start: {why}"));
        let context = Context::full(runtime).map_err(failed)?;
        let (tidy, mc) = context.with(|ctx| {
            let make = || {
                let prelude_options = || {
                    let mut options = sloppy();
                    options.filename = Some("prelude".to_owned());
                    options
                };
                let native = functions(&ctx)?;
                let java: Function<'_> = ctx.eval_with_options(JAVA, prelude_options())?;
                java.call::<_, ()>((native.clone(),))?;
                let options = prelude_options();
                let prelude: Function<'_> = ctx.eval_with_options(PRELUDE, options)?;
                let tidy: Function<'_> = prelude.call((native, shared))?;
                let mc: Js<'_> = ctx.globals().get("mc")?;
                Ok((Persistent::save(&ctx, tidy), Persistent::save(&ctx, mc)))
            };
            make().catch(&ctx).map_err(|error| thrown(&error))
        })?;
        Ok(World { compiled: HashMap::new(), tidy, mc, context })
    }

    fn run(&mut self, script: &Script, arguments: &[Argument]) -> Result<Returned, Failure> {
        let World { compiled, mc, context, .. } = self;
        context.with(|ctx| {
            let error = |error: CaughtError<'_>| {
                let mut failure = thrown(&error);
                if let Some(place) = &mut failure.place {
                    *place = script.place_of(*place);
                }
                failure
            };
            let restored = compiled.get(&script.id).cloned().and_then(|function| function.restore(&ctx).ok());
            let function = match restored {
                Some(function) => function,
                None => {
                    let function: Function<'_> =
                        ctx.eval_with_options(script.code.as_str(), sloppy()).catch(&ctx).map_err(error)?;
                    // What a script could keep on it would be there for the next message.
                    let freeze =
                        || ctx.globals().get::<_, Object<'_>>("Object")?.get::<_, Function<'_>>("freeze");
                    let frozen = freeze().and_then(|freeze| freeze.call::<_, ()>((function.clone(),)));
                    frozen.catch(&ctx).map_err(error)?;
                    if compiled.len() >= MAX_COMPILED {
                        compiled.clear();
                    }
                    compiled.insert(script.id, Persistent::save(&ctx, function.clone()));
                    function
                }
            };
            let value: Js<'_> = match &script.evaluated {
                Some(text) => function.call((text.as_str(),)),
                None => function.call(()),
            }
            .catch(&ctx)
            .map_err(error)?;
            let value = match &script.function {
                None => value,
                Some(_) => {
                    let Some(function) = value.as_function() else { return Err(Failure::no_function()) };
                    let call = || {
                        let mut given = Args::new(ctx.clone(), arguments.len() + 1);
                        given.push_arg(mc.clone().restore(&ctx)?)?;
                        for argument in arguments {
                            push(&ctx, argument, &mut given)?;
                        }
                        function.call_arg(given)
                    };
                    call().catch(&ctx).map_err(error)?
                }
            };
            Ok(Returned { stop: value.as_bool() == Some(false), value: returned(&ctx, value) })
        })
    }

    /// Takes away what the script left in the global object; whether something stays.
    fn is_untidy(&self) -> bool {
        self.context.with(|ctx| {
            let tidy = self.tidy.clone().restore(&ctx).and_then(|tidy| tidy.call::<_, bool>(()));
            !tidy.catch(&ctx).unwrap_or(false)
        })
    }
}

fn push<'js>(ctx: &Ctx<'js>, argument: &Argument, given: &mut Args<'js>) -> rquickjs::Result<()> {
    match argument {
        Argument::Text(text) => given.push_arg(text.as_str()),
        Argument::Number(number) => given.push_arg(*number),
        Argument::Boolean(is) => given.push_arg(*is),
        Argument::Json(text) => given.push_arg(ctx.json_parse(text.as_str())?),
        Argument::Null => given.push_arg(Js::new_null(ctx.clone())),
    }
}

fn returned<'js>(ctx: &Ctx<'js>, value: Js<'js>) -> Option<Value> {
    if value.is_object() && !value.is_function() {
        let text = ctx.json_stringify(value).catch(ctx).ok()??.to_string().ok()?;
        return Some(Value::Json(std::sync::Arc::new(serde_json::from_str(&text).ok()?)));
    }
    of_js(&value)
}

/// The message of a `null` that was thrown, until it is known which limit there was.
const THREW_NULL: &str = "the script threw null";

/// An exception in words: `TypeError: x is not a function`, with its place.
fn thrown(error: &CaughtError<'_>) -> Failure {
    match error {
        CaughtError::Exception(exception) => {
            let name: String = exception.as_object().get("name").unwrap_or_default();
            let message = exception.message().unwrap_or_default();
            let stack = exception.stack().unwrap_or_default();
            let message =
                if name.is_empty() || name == "Error" { message } else { format!("{name}: {message}") };
            Failure { place: place_in(&stack), ..Failure::new(message) }
        }
        // Where not even the exception that says so fits into the memory, the engine throws this.
        CaughtError::Value(value) if value.is_null() => Failure::new(THREW_NULL),
        CaughtError::Value(value) => Failure::new(
            text_of(value).unwrap_or_else(|| "the script threw something that has no text".to_owned()),
        ),
        CaughtError::Error(error) => Failure::new(error.to_string()),
    }
}

/// The text of a value that was thrown and is no error: JSON for objects.
fn text_of(value: &Js<'_>) -> Option<String> {
    let ctx = value.ctx();
    if value.is_object() && !value.is_function() {
        let json = ctx.json_stringify(value.clone()).catch(ctx).ok().flatten();
        if let Some(text) = json.and_then(|text| text.to_string().ok()) {
            return Some(text);
        }
    }
    value.get::<rquickjs::Coerced<String>>().catch(ctx).ok().map(|text| text.0)
}

/// The innermost line of the script that a stack names: `…script:3:14…`, or `<input>:3:14` for what was evaluated.
fn place_in(stack: &str) -> Option<Place> {
    stack.lines().find_map(|line| {
        let line = line.trim_end().trim_end_matches(')');
        let mut parts = line.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        let file = parts.next()?;
        let evaluated =
            file.ends_with("<input>") || file.ends_with("<eval>") || file.ends_with("<evalScript>");
        (evaluated || file.ends_with(FILE)).then_some(Place { source: 0, line: number, column, evaluated })
    })
}
