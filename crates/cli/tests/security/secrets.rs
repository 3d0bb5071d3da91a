//! Secrets: the vault from outside.

use crate::support::{self, Process};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PASSWORD: &str = "vault-password-1";

fn folder(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secrets-{name}"));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    root
}

/// `busbar vault`: exit code, standard output, standard error.
fn vault(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .arg("vault")
        .args(arguments)
        .env_remove("BUSBAR_VAULT_PASSWORD")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

#[test]
fn a_vault_is_kept_by_its_commands() {
    use std::os::unix::fs::PermissionsExt;
    let root = folder("commands");
    let file = root.join("secrets.vault");
    let file = file.to_str().unwrap();
    let with = [("BUSBAR_VAULT_PASSWORD", PASSWORD)];
    let run = |arguments: &[&str], input: &str| vault(arguments, &with, input);
    assert_eq!(run(&["create", file], ""), (0, String::new(), String::new()));
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(run(&["create", file], "").2.contains("secrets.vault"), "it is not written over");
    assert_eq!(run(&["set", file, "db"], "opensesame\n").0, 0);
    assert_eq!(run(&["set", file, "api"], "two\nlines\r\n").0, 0);
    assert_eq!(run(&["list", file], "").1, "api\ndb\n");
    assert_eq!(run(&["get", file, "db"], "").1, "opensesame");
    assert_eq!(run(&["get", file, "api"], "").1, "two\nlines");
    assert_eq!(run(&["remove", file, "api"], "").0, 0);
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let passwords = root.join("password");
    std::fs::write(&passwords, format!("{PASSWORD}\nmore\n")).unwrap();
    let by_file = ["list", file, "--password-file", passwords.to_str().unwrap()];
    assert_eq!(vault(&by_file, &[], "").1, "db\n");
    for (arguments, variables, input, wanted) in [
        (&["get", file, "api"][..], &with[..], "", "there is no secret api"),
        (&["remove", file, "api"], &with, "", "there is no secret api"),
        (&["set", file, "db"], &with, "", "no secret came"),
        (&["set", file, "a b"], &with, "x", "not a name of a secret"),
        (&["list", file], &[], "", "there is no password"),
        (&["list", file], &[("BUSBAR_VAULT_PASSWORD", "another one")], "", "is wrong"),
        (&["list", "/no/such/file"], &with, "", "/no/such/file"),
        (&["password", file], &with, "", "there is no new password"),
    ] {
        let (code, out, errors) = vault(arguments, variables, input);
        assert!(code == 1 && out.is_empty() && errors.contains(wanted), "{arguments:?}: {errors}");
        assert!(!errors.contains("opensesame") && !errors.contains(PASSWORD), "{errors}");
    }
    // A pipe that nobody writes into is not waited for.
    let pipe = root.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for verb in ["remove", "get"] {
        let out = Command::new("timeout")
            .args(["20", env!("CARGO_BIN_EXE_busbar"), "vault", verb, pipe.to_str().unwrap(), "db"])
            .env("BUSBAR_VAULT_PASSWORD", PASSWORD)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(1) && errors.contains("it is not a file"), "{verb}: {out:?}");
    }
    std::fs::remove_file(&pipe).unwrap();
    let both = [("BUSBAR_VAULT_PASSWORD", PASSWORD), ("BUSBAR_VAULT_NEW_PASSWORD", "vault-password-2")];
    assert_eq!(vault(&["password", file], &both, "").0, 0);
    assert_eq!(run(&["list", file], "").0, 1);
    assert_eq!(
        vault(&["get", file, "db"], &[("BUSBAR_VAULT_PASSWORD", "vault-password-2")], "").1,
        "opensesame"
    );
    let names: Vec<_> = std::fs::read_dir(&root).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// A vault that several change at once, that a group may read, that is reached by a link, and that finds no room.
#[test]
fn no_change_of_a_vault_is_lost() {
    use std::os::unix::fs::PermissionsExt;
    let root = folder("changes");
    let (vault_file, link) = (root.join("secrets.vault"), root.join("link.vault"));
    let (file, link) = (vault_file.to_str().unwrap(), link.to_str().unwrap());
    let run =
        |arguments: &[&str], input: &str| vault(arguments, &[("BUSBAR_VAULT_PASSWORD", PASSWORD)], input);
    // No file may have a byte.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" vault create \"$1\"";
    let full = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_busbar"), file])
        .env("BUSBAR_VAULT_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    assert!(!full.status.success() && !vault_file.exists(), "{full:?}");
    assert_eq!(run(&["create", file], "").0, 0);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(file, link).unwrap();
    let names: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let place = if name.ends_with('3') { link } else { file };
            scope.spawn(move || {
                assert_eq!(run(&["set", place, name], name), (0, String::new(), String::new()))
            });
        }
    });
    assert_eq!(run(&["list", file], "").1, names.join("\n") + "\n");
    assert!(std::fs::symlink_metadata(link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 2);
}

/// What nobody may see, in each place where a secret may be: settings, artifacts, the vault, what a client shows.
const SETTINGS: &str = r#"
[http.users]
alice = "PLANTED-user"
[security]
password = "PLANTED-keystore"
[vault]
directory = "vault"
[admin]
tokens = { ops = "PLANTED-admin" }
[access.shop]
issuers = ["me"]
secret = "PLANTED-tokens-0123456789abcdef012"
keys = { acme = "PLANTED-key" }
[access.hook.signature]
secrets = ["PLANTED-webhook"]
[access.staff.ldap]
address = "ldap://127.0.0.1:1"
base = "dc=example"
bind = "cn=bus"
password = "PLANTED-directory"
[[proxy]]
hosts = ["*.nowhere.example"]
address = "127.0.0.1:1"
user = "bus"
password = "PLANTED-proxy"
"#;
const ARTIFACTS: &str = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
<endpoint name="Url"><address uri="http://127.0.0.1:1/x?api_key=PLANTED-query-1&amp;a=b"/></endpoint>
<endpoint name="Signed"><http uri-template="http://127.0.0.1:1/flow?sv=1&amp;sig=PLANTED-sig-1" method="post"/></endpoint>
<endpoint name="User"><address uri="http://bus:PLANTED-url-1@127.0.0.1:1/x"/></endpoint>
<localEntry key="Gone" src="http://bus:PLANTED-entry-1@127.0.0.1:1/e.xml?sig=PLANTED-entry-1"/>
<endpoint name="OAuth"><http uri-template="http://127.0.0.1:1/a" method="get"><authentication><oauth><clientCredentials><clientId>id</clientId>
<clientSecret>PLANTED-oauth-1</clientSecret><tokenUrl>http://127.0.0.1:1/token</tokenUrl></clientCredentials></oauth></authentication></http></endpoint>
<endpoint name="Basic"><http uri-template="http://127.0.0.1:1/a" method="get"><authentication><basicAuth><username>bus</username>
<password>PLANTED-basic-1</password></basicAuth></authentication></http></endpoint>
<proxy name="P" transports="http" trace="enable"><target><inSequence><property name="password" value="PLANTED-property-1"/>
<property name="harmless" expression="wso2:vault-lookup('db')"/><property name="Authorization" value="Basic PLANTED-header-1" scope="transport"/>
<header name="X-API-Key" value="PLANTED-header-2" scope="transport"/><header name="Ocp-Apim-Subscription-Key" value="PLANTED-header-3" scope="transport"/>
<header name="Cookie" value="session=PLANTED-header-4" scope="transport"/><log level="full"><property name="it" expression="$ctx:harmless"/>
<property name="within" expression="concat('a=', $ctx:harmless, ';')"/></log><call><endpoint key="Url"/></call><respond/></inSequence><faultSequence><log level="full"/>
<header name="X-API-Key" scope="transport" action="remove"/><header name="Ocp-Apim-Subscription-Key" scope="transport" action="remove"/>
<header name="Cookie" scope="transport" action="remove"/><respond/></faultSequence></target></proxy>
<proxy name="Q" transports="http"><target><inSequence><call><endpoint key="OAuth"/></call><respond/></inSequence></target></proxy>
<proxy name="B" transports="http"><target><inSequence><call><endpoint key="Basic"/></call><respond/></inSequence></target></proxy>
<proxy name="U" transports="http"><target><inSequence><call><endpoint key="User"/></call><respond/></inSequence></target></proxy>
<proxy name="G" transports="http"><target><inSequence><call><endpoint key="Signed"/></call><respond/></inSequence></target></proxy>
<proxy name="D" transports="http"><target><inSequence><dblookup><connection><pool><driver>com.mysql.jdbc.Driver</driver><url>jdbc:mysql://bus:PLANTED-jdbc-1@127.0.0.1:1/x?password=PLANTED-jdbc-2</url>
<user>u</user><password>PLANTED-jdbc-3</password></pool></connection><statement><sql>select 1</sql></statement></dblookup><respond/></inSequence></target></proxy>
<proxy name="S" transports="http"><target><inSequence><respond/></inSequence></target><parameter name="accessProfile">shop</parameter></proxy>
<proxy name="L" transports="http"><target><inSequence><respond/></inSequence></target><parameter name="accessProfile">staff</parameter></proxy>
<proxy name="Broken" transports="http"><target><inSequence><property name="secret" value="PLANTED-broken-1" scpe="x"/><nothing password="PLANTED-broken-2"/></inSequence></target></proxy>
</definitions>"#;

#[test]
fn planted_secrets_are_in_no_output() {
    let root = folder("planted");
    std::fs::create_dir_all(root.join("vault")).unwrap();
    std::fs::write(root.join("vault/db"), "PLANTED-vault").unwrap();
    // Paths of settings are relative to the directory that the bus was started in.
    let settings =
        SETTINGS.replace("directory = \"vault\"", &format!("directory = '{}'", root.join("vault").display()));
    std::fs::write(root.join("busbar.toml"), settings).unwrap();
    std::fs::write(root.join("synapse.xml"), ARTIFACTS).unwrap();
    let path = root.to_str().unwrap();
    let access = root.join("access.log");
    let to = format!("log.access_to={}", access.display());
    let bus =
        Process::run(&root, &["--set", "log.level=trace", "--set", "log.access=combined", "--set", &to]);
    let admin = bus.field("admin").to_owned();
    let mut outputs = vec![("ready".to_owned(), bus.ready.clone())];
    let mut asked = |method: &str, path: &str| {
        let mut stream = std::net::TcpStream::connect(&admin).unwrap();
        let more = "Authorization: Bearer PLANTED-admin\r\nConnection: close\r\n";
        let (status, _, body) = support::exchange(&mut stream, method, path, b"", more).unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        outputs.push((format!("{method} {path}: {status}"), text.clone()));
        (status, text)
    };
    assert_eq!(asked("PUT", "/trace/*").0, 200);
    assert_eq!(asked("PUT", "/wire/*").0, 200);
    let mut answers = Vec::new();
    for service in ["P", "Q", "B", "U", "G", "D", "S", "L", "Broken", "Nowhere"] {
        let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
        // alice:PLANTED-shown
        let more = "Content-Type: text/xml\r\nAuthorization: Basic YWxpY2U6UExBTlRFRC1zaG93bg==\r\nCookie: session=PLANTED-cookie\r\n\
                    X-API-Key: PLANTED-shown\r\nOcp-Apim-Subscription-Key: PLANTED-shown\r\nConnection: close\r\n";
        let path =
            format!("/services/{service}?token=PLANTED-token&access_token=PLANTED-token&sig=PLANTED-token");
        let (_, head, body) = support::exchange(&mut stream, "POST", &path, b"<a/>", more).unwrap();
        // What the bus says of no service has the fields of the request, as in WSO2; here it is about the log.
        if service != "Nowhere" {
            answers.push((service.to_owned(), format!("{head}{}", String::from_utf8_lossy(&body))));
        }
    }
    // Another version of each, so that a diff has something to show.
    std::fs::write(root.join("synapse.xml"), ARTIFACTS.replace("-1", "-9").replace("harmless", "other"))
        .unwrap();
    assert!(asked("POST", "/reload").0 < 500);
    for path in [
        "/",
        "/metrics",
        "/artifacts",
        "/artifacts/proxy/P",
        "/artifacts/endpoint/Url",
        "/artifacts/endpoint/OAuth",
        "/artifacts/endpoint/User",
        "/artifacts/endpoint/Signed",
        "/artifacts/localEntry",
        "/traces",
        "/traces/last",
        "/traces/last.txt",
        "/loggers",
        "/wire",
        "/generations",
        "/generations/1",
        "/generations/2",
        "/generations/2/diff",
    ] {
        asked("GET", path);
    }
    let mut seen = Vec::new();
    for number in 1..40 {
        for end in ["", ".txt"] {
            let path = format!("/traces/{number}{end}");
            let (status, text) = asked("GET", &path);
            seen.push(format!("{path}: {status}, {}", text.contains("harmless")));
        }
    }
    let shown = seen.iter().filter(|line| line.ends_with("200, true")).count();
    assert!(shown >= 2, "the property with the secret is in the traces: {seen:#?}");
    bus.says("it = ***", 1);
    bus.says("within = a=***;", 1);
    for arguments in [
        &["check", path][..],
        &["check", "--format", "json", path],
        &["check", "--format", "sarif", path],
        &["explain", path],
        &["explain", "--json", path],
        &["migrate", path],
        &["migrate", "--format", "json", path],
    ] {
        let out = support::busbar(arguments);
        assert!(!String::from_utf8_lossy(&out.stderr).contains("Usage:"), "{arguments:?}");
        for (what, bytes) in [("stdout", &out.stdout), ("stderr", &out.stderr)] {
            let text = String::from_utf8_lossy(bytes).into_owned();
            outputs.push((format!("{} {what}", arguments.join(" ")), text));
        }
    }
    // A setting that is wrong, and what is said of it.
    for (from, to) in [
        ("address = \"127.0.0.1:1\"", "address = \"http://bus:PLANTED-proxy@127.0.0.1:1\""),
        ("[vault]\n", "[ocsp]\nresponder = \"http://bus:PLANTED-ocsp@127.0.0.1:1/\"\n[vault]\n"),
        ("secrets = [\"PLANTED-webhook\"]", "secrets = \"PLANTED-webhook\""),
        ("secret = \"PLANTED-tokens-0123456789abcdef012\"", "secret = \"PLANTED-short\""),
        ("keys = { acme = \"PLANTED-key\" }", "keys = \"PLANTED-key\""),
        ("tokens = { ops = \"PLANTED-admin\" }", "tokens = \"PLANTED-admin\""),
        ("[http.users]\nalice = \"PLANTED-user\"", "[http]\nusers = \"PLANTED-user\""),
    ] {
        let wrong = SETTINGS.replacen(from, to, 1);
        assert_ne!(wrong, SETTINGS);
        std::fs::write(root.join("busbar.toml"), wrong).unwrap();
        let out = support::busbar(&["run", path, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        assert_eq!(out.status.code(), Some(1), "{to}");
        outputs.push((
            format!("run with {}", to.len()),
            String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned(),
        ));
    }
    outputs.push(("the log".to_owned(), bus.stderr()));
    support::until("the access log is written", || {
        std::fs::read_to_string(&access).is_ok_and(|text| text.contains("/services/Broken?"))
    });
    outputs.push(("the access log".to_owned(), std::fs::read_to_string(&access).unwrap()));
    outputs.extend(answers);
    for (what, text) in outputs {
        if let Some(at) = text.find("PLANTED") {
            let around: String = text[at.saturating_sub(200)..].chars().take(300).collect();
            panic!("{what}: {around}");
        }
    }
}

/// An event is a line in the log, and what it says is not, unless somebody asks for it.
#[test]
fn what_an_event_says_is_not_in_the_log() {
    let root = folder("event");
    let flow = "<proxy name='P'><target><inSequence><event topic='orders' expression='//order'/><respond/></inSequence></target></proxy>";
    let path = root.join("synapse.xml");
    support::configure(&path, flow);
    for (level, times) in [("info", 0), ("info,busbar::event=debug", 1)] {
        let bus = Process::run(&path, &["--set", &format!("log.level={level}")]);
        let order = b"<order>planted-in-an-event</order>";
        assert_eq!(support::ask(bus.http(), "POST", "/services/P", order).unwrap().0, 200);
        bus.says("topic=orders", 1 + times);
        assert_eq!(bus.stderr().matches("planted-in-an-event").count(), times, "{}", bus.stderr());
    }
}
