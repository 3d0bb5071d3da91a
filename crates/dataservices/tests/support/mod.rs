//! What the tests of data services share: databases, configurations, requests.

#![allow(clippy::unwrap_used, dead_code)] // helpers of tests, of which each test has some

use flow::testing::{self, Response, Tested};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A server of a test, which ends with it.
pub struct Server {
    script: PathBuf,
    directory: PathBuf,
    pub port: u16,
}

impl Server {
    /// `None`: it is not installed.
    pub fn start(name: &str) -> Option<Server> {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/services").join(name);
        let port = tests::ports::free().unwrap();
        let directory = std::env::temp_dir().join(format!("busbar-data-{}-{port}", std::process::id()));
        let server = Server { script, directory, port };
        if server.ask("start") == Some(3) {
            let needed =
                std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
            assert!(!needed, "{name} is not installed: tests/services/install");
            eprintln!("skipped: {name} is not installed (tests/services/install)");
            return None;
        }
        Some(server)
    }

    pub fn ask(&self, command_name: &str) -> Option<i32> {
        let mut command = Command::new(&self.script);
        command.arg(command_name).arg(&self.directory).arg(self.port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ask("stop");
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The properties of a config.
pub fn source(url: &str) -> String {
    [
        ("driverClassName", "any"),
        ("url", url),
        ("username", "bus"),
        ("password", "secret"),
        ("maxActive", "4"),
    ]
    .map(|(name, value)| format!("<property name='{name}'>{}</property>", value.replace('&', "&amp;")))
    .concat()
}

pub fn memory(name: &str) -> String {
    source(&format!("jdbc:sqlite:file:{name}?mode=memory"))
}

/// A configuration with one data service.
pub fn tested(attributes: &str, properties: &str, inside: &str, more: &str) -> Tested {
    configured(attributes, &format!("<config id='db'>{properties}</config>{inside}"), more)
}

/// As [`tested`], with the tables of the database as OData.
pub fn with_odata(properties: &str, inside: &str) -> Tested {
    configured("", &format!("<config id='db' enableOData='true'>{properties}</config>{inside}"), "")
}

/// A whole configuration.
pub fn loaded(artifacts: &str) -> Tested {
    let mut registry = mediators::registry(testing::endpoints);
    busbar_dataservices::extend(&mut registry);
    testing::configuration(
        &registry,
        &format!("<definitions xmlns='{}'>{artifacts}</definitions>", config::SYNAPSE),
    )
}

/// The text with each of its attributes, one after the other, as nobody would write it.
pub fn spoiled(text: &str) -> impl Iterator<Item = String> + '_ {
    let huge = "9".repeat(4000);
    let values = [
        "",
        " ",
        "NaN",
        "-1",
        "1e400",
        "9223372036854775808",
        "&lt;&amp;'; drop table t; --",
        "{",
        "\u{202e}é",
        &huge,
    ];
    let values = values.map(|value| value.replace('\'', "&apos;"));
    let places: Vec<(usize, usize)> = text
        .match_indices("='")
        .filter_map(|(at, _)| Some((at + 2, at + 2 + text[at + 2..].find('\'')?)))
        .collect();
    places.into_iter().flat_map(move |(from, to)| {
        values.clone().map(|value| format!("{}{value}{}", &text[..from], &text[to..]))
    })
}

fn configured(attributes: &str, inside: &str, more: &str) -> Tested {
    let mut registry = mediators::registry(testing::endpoints);
    busbar_dataservices::extend(&mut registry);
    let text = format!(
        "<definitions xmlns='{}'><data xmlns='' name='Shop' {attributes}>{inside}</data>{more}</definitions>",
        config::SYNAPSE
    );
    testing::configuration(&registry, &text)
}

pub fn query(id: &str, sql: &str, more: &str) -> String {
    format!("<query id='{id}' useConfig='db'><sql><![CDATA[{sql}]]></sql>{more}</query>")
}

/// An operation that gives its query the parameters of its own names.
pub fn operation(name: &str, parameters: &[&str]) -> String {
    format!("<operation name='{name}'>{}</operation>", call(name, parameters))
}

pub fn call(query: &str, parameters: &[&str]) -> String {
    let with = parameters.iter().map(|name| format!("<with-param name='{name}' query-param='{name}'/>"));
    format!("<call-query href='{query}'>{}</call-query>", with.collect::<String>())
}

pub const SOAP: [(&str, &str); 2] = [("Content-Type", "text/xml"), ("SOAPAction", "\"\"")];

/// Runs something on the runtime of this thread. All of a thread share it, as those of a worker do: connections live on it.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// Sends a request.
pub fn ask(tested: &Tested, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let (status, headers, bytes) = run(tested.answer(method, target, headers, body.as_bytes()));
    Response { status, headers, body: String::from_utf8_lossy(&bytes).into_owned() }
}

pub fn soap(tested: &Tested, body: &str) -> Response {
    let envelope = format!(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>{body}</s:Body></s:Envelope>"
    );
    ask(tested, "POST", "/services/Shop", &SOAP, &envelope)
}

pub fn get(tested: &Tested, path: &str) -> Response {
    ask(tested, "GET", &format!("/services/Shop/{path}"), &[], "")
}

pub fn get_json(tested: &Tested, path: &str) -> Response {
    ask(tested, "GET", &format!("/services/Shop/{path}"), &[("Accept", "application/json")], "")
}

pub fn json(tested: &Tested, method: &str, path: &str, body: &str) -> Response {
    ask(tested, method, &format!("/services/Shop/{path}"), &[("Content-Type", "application/json")], body)
}
