//! WSS4J as the other side, in both directions. Skipped where Java is absent or WSS4J was not fetched (`bench/wss4j/setup.sh`, Maven Central).
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use busbar_security::keys::{KeyStore, Trust};
use busbar_security::{Exchange, Policy, Role, Side};
use common::{ANSWER, REQUEST, World, policy, scenario};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// WSS4J, on a side.
struct Java {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: PathBuf,
}

impl Drop for Java {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Java {
    fn start(libraries: &Path, directory: &Path, store: &str, side: &str) -> Option<Java> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/Wss4j.java");
        let mut process = Command::new("java")
            .arg("-cp")
            .arg(format!("{}/*", libraries.display()))
            .arg(source)
            .arg(directory.join(store))
            .arg(side)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (input, output) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        let mut own = Java { process, input, output, directory: directory.to_owned() };
        (own.line() == "ready").then_some(own)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it says, and the message that it made.
    fn ask(&mut self, what: &str, how: &str, message: &str) -> Result<(String, String), String> {
        let (from, to) = (self.directory.join("in.xml"), self.directory.join("out.xml"));
        std::fs::write(&from, message).unwrap();
        writeln!(self.input, "{what} {how} {} {}", from.display(), to.display()).unwrap();
        let line = self.line();
        match line.strip_prefix("ok") {
            Some(said) => Ok((said.to_owned(), std::fs::read_to_string(&to).unwrap())),
            None => Err(line),
        }
    }
}

fn libraries() -> Option<PathBuf> {
    let default = || std::env::home_dir().map(|home| home.join(".cache/busbar-wss4j/lib"));
    let path = std::env::var_os("BUSBAR_WSS4J").map(PathBuf::from).or_else(default)?;
    path.is_dir().then_some(path)
}

/// Key stores as keytool makes them: PKCS#12 of the client, JKS of the service.
fn keys(directory: &Path) {
    let run = |arguments: &str| {
        let arguments = arguments.split(' ').map(|own| own.replace('_', " "));
        let done = Command::new("keytool").current_dir(directory).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    };
    for (name, kind) in [("client", "PKCS12"), ("service", "JKS")] {
        run(&format!(
            "-genkeypair -alias {name} -keyalg RSA -keysize 2048 -dname CN={name},O=Busbar\\,_tests,C=DE -ext KeyUsage:critical=digitalSignature,keyEncipherment \
             -validity 30 -keystore {name} -storetype {kind} -storepass secret -keypass secret"
        ));
        run(&format!("-exportcert -alias {name} -keystore {name} -storepass secret -file {name}.crt"));
    }
    run("-importcert -noprompt -alias service -file service.crt -keystore client -storepass secret");
    run("-importcert -noprompt -alias client -file client.crt -keystore service -storepass secret");
    std::fs::rename(directory.join("service"), directory.join("service.jks")).unwrap();
    std::fs::rename(directory.join("client"), directory.join("client.p12")).unwrap();
}

fn side(role: Role, directory: &Path, policy: &str) -> Side {
    let mut policy = Policy::parse(policy.as_bytes()).unwrap();
    policy.config.user = "alice".to_owned();
    let file = if role == Role::Initiator { "client.p12" } else { "service.jks" };
    let bytes = std::fs::read(directory.join(file)).unwrap();
    assert!(KeyStore::read(&bytes, "wrong", None).is_err());
    let store = KeyStore::read(&bytes, "secret", None).unwrap();
    assert_eq!((store.identities.len(), store.certificates.len()), (1, 1));
    let trust = Arc::new(Trust::new(&store, &[]).unwrap());
    let peer = (role == Role::Initiator).then(|| Arc::clone(store.certificate("service").unwrap()));
    let own = store.identities.first().cloned();
    Side {
        role,
        policy: Arc::new(policy),
        store: Arc::new(store),
        trust,
        own,
        peer,
        parse: Default::default(),
    }
}

#[test]
fn wss4j_and_this_understand_each_other() {
    let Some(libraries) = libraries().filter(|_| Command::new("java").arg("-version").output().is_ok())
    else {
        println!("skipped: Java or WSS4J is not there (bench/wss4j/setup.sh fetches it)");
        return;
    };
    let directory = std::env::temp_dir().join(format!("busbar-wss4j-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    keys(&directory);
    let mut java_client = Java::start(&libraries, &directory, "client.p12", "client").unwrap();
    let mut java_service = Java::start(&libraries, &directory, "service.jks", "service").unwrap();
    let encrypted_first = "<sp:EncryptBeforeSigning/>";
    let body = "<sp:SignedParts><sp:Body/></sp:SignedParts><sp:EncryptedParts><sp:Body/></sp:EncryptedParts>";
    let mut wrong = Vec::new();
    let cases = [
        ("2", scenario(2), "sign"),
        ("3", scenario(3), "sign,symmetric,derived"),
        ("4", scenario(4), "encrypt,symmetric,derived"),
        ("5", scenario(5), "sign,encrypt"),
        ("6", scenario(6), "sign,encrypt,symmetric,derived"),
        ("7", scenario(7), "encrypt,symmetric,derived,user"),
        ("8", scenario(8), "sign,encrypt,symmetric,derived,user"),
        ("issuer", policy("asymmetric", "Basic256Sha256RsaSha256", "", body), "sign,encrypt,issuer,sha256"),
        ("ski", policy("references", "Basic256Rsa15", "", body), "sign,encrypt,ski,references,rsa15"),
        ("first", policy("asymmetric", "Basic256", encrypted_first, body), "sign,encrypt,first"),
        ("symmetric", policy("symmetric", "Basic256", "", body), "sign,encrypt,symmetric"),
        ("gcm", policy("asymmetric", "Basic256GCM", "", body), "sign,encrypt,gcm,sha256"),
        ("encrypted signature", policy("asymmetric", "Basic256", "<sp:EncryptSignature/>", body), ""),
    ];
    for (name, policy, how) in cases {
        let (client, service) =
            (side(Role::Initiator, &directory, &policy), side(Role::Recipient, &directory, &policy));
        let world = World::default();
        // This asks, WSS4J reads it.
        let mut asked = Exchange::default();
        let request = world.secure(REQUEST, &client, &mut asked).unwrap();
        match java_service.ask("open", "-", &request) {
            Ok((said, text)) => {
                if !text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>")
                    || client.policy.signed.body && !said.contains("Body")
                {
                    wrong.push(format!("{name}, request to WSS4J: {said}: {text}"));
                }
            }
            Err(why) => wrong.push(format!("{name}, request to WSS4J: {why}\n{request}")),
        }
        if how.is_empty() {
            continue;
        }
        // WSS4J asks, this reads and answers, WSS4J reads that.
        let (value, request) = match java_client.ask("secure", how, REQUEST) {
            Ok(own) => own,
            Err(why) => {
                wrong.push(format!("{name}, WSS4J cannot ask: {why}"));
                continue;
            }
        };
        let mut answers = Exchange::default();
        match world.open(&request, &service, &mut answers) {
            Ok(opened) => {
                let text = xml::to_string(&opened.document, xml::Document::ROOT);
                if !text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>") {
                    wrong.push(format!("{name}, request of WSS4J: {text}"));
                }
                let answer = world.secure(ANSWER, &service, &mut answers).unwrap();
                match java_client.ask("open", "-", &answer) {
                    Ok((_, text)) if text.contains("bought") => {}
                    other => wrong.push(format!("{name}, answer to WSS4J: {other:?}\n{answer}")),
                }
            }
            Err(why) => wrong.push(format!("{name}, request of WSS4J: {why}\n{request}")),
        }
        // And this asks WSS4J, which answers and confirms the signature of the request only where it is asked to.
        _ = value;
    }
    _ = std::fs::remove_dir_all(&directory);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
