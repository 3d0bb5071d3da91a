//! WSS4J as a process, for tests of this crate and of the binary.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// WSS4J, on a side.
pub struct Java {
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
    pub fn start(libraries: &Path, directory: &Path, store: &str, side: &str) -> Option<Java> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../security/tests/interop/Wss4j.java");
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
        let mut java = Java { process, input, output, directory: directory.to_owned() };
        (java.line() == "ready").then_some(java)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it says, and the message that it made.
    pub fn ask(&mut self, what: &str, how: &str, message: &str) -> Result<(String, String), String> {
        let name = |way: &str| self.directory.join(format!("{way}-{}.xml", self.process.id()));
        let (from, to) = (name("in"), name("out"));
        std::fs::write(&from, message).unwrap();
        writeln!(self.input, "{what} {how} {} {}", from.display(), to.display()).unwrap();
        let line = self.line();
        match line.strip_prefix("ok") {
            Some(result) => Ok((result.to_owned(), std::fs::read_to_string(&to).unwrap())),
            None => Err(line),
        }
    }
}

/// Where the jars of WSS4J are. `None` says in a line what is absent; where everything has to be there, that is a failure.
pub fn libraries() -> Option<PathBuf> {
    let found = || -> Result<PathBuf, &str> {
        let is_there = Command::new("keytool").arg("-help").output().is_ok()
            && Command::new("java").arg("-version").output().is_ok();
        if !is_there {
            return Err("Java is absent");
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let fetched = Command::new(root.join("tests/services/wss4j")).output();
        let fetched = fetched
            .ok()
            .filter(|output| output.status.success())
            .ok_or("WSS4J cannot be fetched (tests/services/wss4j)")?;
        Ok(String::from_utf8_lossy(&fetched.stdout).trim().into())
    };
    match found() {
        Ok(path) => Some(path),
        Err(why) => {
            println!("skipped: {why}");
            let needed =
                std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
            assert!(!needed, "{why}");
            None
        }
    }
}

/// Key stores as keytool makes them: PKCS#12 of the client, JKS of the service.
pub fn keys(directory: &Path) {
    let run = |arguments: &str| {
        let arguments = arguments.split(' ').map(|argument| argument.replace('_', " "));
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
