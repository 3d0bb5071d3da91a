//! Where the processor time of a flow goes: its steps, timed by the bus itself (`/profile` of its admin address), and what is left for receiving, routing and sending.

use crate::measure::{self, Load};
use crate::results::{Cell, Profile, Run, Step};
use crate::scenarios::{self, Scenario};
use crate::steps::{self, News, Tell, leave};
use crate::systems::{Backend, System};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of each of the two measurements of a flow.
    pub seconds: Duration,
    /// Bytes of the message.
    pub size: usize,
    /// Only these scenarios; empty: all of the round.
    pub only: Vec<String>,
    /// A shortened run.
    pub quick: bool,
}

/// Clients at once.
const CLIENTS: usize = 32;
/// What cells are set to while steps are timed.
const TIMED: &str = "steps are timed";

fn wanted(options: &Options) -> impl Iterator<Item = &'static Scenario> {
    let of_round = scenarios::ROUND.iter().filter(|scenario| scenario.is_measured());
    of_round.filter(|scenario| {
        options.only.is_empty() || options.only.iter().any(|only| only.eq_ignore_ascii_case(scenario.name))
    })
}

/// How many measurements there are, and how long they will take.
pub fn estimate(options: &Options) -> (usize, Duration) {
    let count = 2 * wanted(options).count();
    (count, (options.seconds.mul_f64(1.2) + Duration::from_millis(150)) * count as u32)
}

/// Profiles the flows of a Busbar.
///
/// # Errors
/// The load generator cannot run, or the admin address does not answer.
pub fn run(
    system: &System,
    backend: &Backend,
    options: &Options,
    tell: &mut Tell<'_>,
) -> Result<Run, String> {
    let mut run = steps::begin("profile", options.quick, std::slice::from_ref(system));
    let began = Instant::now();
    let admin = system.admin.ok_or("the admin address of the bus is not known")?;
    let process = system.process.as_ref().ok_or("the process of the bus is not known")?.id;
    let load = Load::lasting(CLIENTS, options.seconds);
    let count = wanted(options).count();
    for (number, scenario) in wanted(options).enumerate() {
        if let Err(why) = measure::correct(&system.url, &scenario.case(options.size)) {
            leave(&mut run, tell, format!("{} is not answered rightly: {why}", scenario.name));
            continue;
        }
        let mut goes_on = tell(News::Begins(number + 1, count, scenario.name.to_owned()));
        let before = Ticks::of(process);
        let mut measured = |setting: &str, goes_on: &mut bool| -> Result<Cell, String> {
            let mut cell =
                measure::measure(system, Some(backend), scenario, options.size, &load, &mut |progress| {
                    *goes_on = *goes_on && tell(News::Progress(progress));
                    *goes_on
                })?;
            setting.clone_into(&mut cell.setting);
            cell.at = began.elapsed().as_secs_f64();
            Ok(cell)
        };
        let plain = measured("", &mut goes_on)?;
        let kernel = Ticks::of(process).share_since(before);
        ask(admin, "DELETE", "/profile")?;
        ask(admin, "PUT", "/profile/*")?;
        let timed = measured(TIMED, &mut goes_on);
        ask(admin, "DELETE", "/profile/*")?;
        let (timed, found) = (timed?, ask(admin, "GET", "/profile")?);
        if !goes_on {
            run.is_cut = true;
            run.absent.push(format!("the run was ended after {number} of {count} flows"));
            break;
        }
        tell(News::Measured(&plain));
        if let (Some(whole), Some(watched)) = (plain.cpu, timed.cpu) {
            let (requests, steps) = read(&found)?;
            let (scenario, size) = (scenario.name.to_owned(), options.size);
            run.profiles.push(Profile {
                scenario,
                size,
                requests,
                whole,
                watched,
                kernel: kernel * whole,
                steps,
            });
        }
        run.cells.extend([plain, timed]);
    }
    run.took = began.elapsed().as_secs_f64();
    Ok(run)
}

/// User and system time of a process, in ticks.
#[derive(Copy, Clone)]
struct Ticks(u64, u64);

impl Ticks {
    fn of(id: u32) -> Ticks {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
        let field = |at: usize| fields.get(at).and_then(|text| text.parse().ok()).unwrap_or_default();
        Ticks(field(11), field(12))
    }

    /// The part of the time since then that the kernel has taken.
    fn share_since(self, before: Ticks) -> f64 {
        let (user, system) = (self.0.saturating_sub(before.0), self.1.saturating_sub(before.1));
        system as f64 / ((user + system).max(1)) as f64
    }
}

/// A request to the admin address.
fn ask(admin: SocketAddr, method: &str, path: &str) -> Result<String, String> {
    let fail = |error: std::io::Error| format!("{method} {path} of the admin address: {error}");
    let mut stream = TcpStream::connect_timeout(&admin, Duration::from_secs(5)).map_err(fail)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(fail)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {admin}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(fail)?;
    let mut response = String::new();
    stream.read_to_string(&mut response).map_err(fail)?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((response.as_str(), ""));
    match head.starts_with("HTTP/1.1 200") {
        true => Ok(body.to_owned()),
        false => Err(format!(
            "{method} {path} of the admin address: {}",
            head.lines().next().unwrap_or("no answer")
        )),
    }
}

/// Requests and steps of what the admin address says.
fn read(text: &str) -> Result<(u64, Vec<Step>), String> {
    // It may be chunked: what counts stands between the outer braces.
    let text = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to)).unwrap_or(text);
    let profile: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("/profile: {error}"))?;
    let requests = profile["requests"].as_u64().unwrap_or_default();
    let each = |value: &serde_json::Value| value.as_f64().unwrap_or_default() / requests.max(1) as f64;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let steps = profile["steps"].as_array().into_iter().flatten().map(|step| Step {
        list: text(&step["list"]),
        name: text(&step["step"]),
        place: text(&step["place"]),
        runs: each(&step["runs"]),
        cpu: each(&step["cpu_us"]),
    });
    Ok((requests, steps.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_for_each_request() {
        let text = "1a\r\n{\"requests\": 4, \"steps\": [{\"list\": \"in\", \"step\": \"xslt\", \"place\": \"a.xml:3:1\", \"runs\": 8, \"cpu_us\": 10.0}]}\r\n0\r\n\r\n";
        let (requests, steps) = read(text).unwrap();
        assert_eq!(requests, 4);
        assert_eq!((steps[0].name.as_str(), steps[0].runs, steps[0].cpu), ("xslt", 2.0, 2.5));
        assert!(read("no").is_err());
    }

    #[test]
    fn flows_are_chosen_by_name() {
        let options = |only: &[&str]| Options {
            seconds: Duration::from_secs(1),
            size: 1024,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            quick: false,
        };
        assert_eq!(estimate(&options(&["cbrproxy"])).0, 2);
        assert!(estimate(&options(&[])).0 > 20);
    }
}
