//! WSS4J as the client of the binary and as its backend: every profile in both ways, and what a WSS4J in the hands of an attacker sends.

use super::interop::{Java, keys, libraries};
use super::policies::profiles;
use crate::support::{self, Process, exchange};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const REQUEST: &str = r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Header><h:Route xmlns:h="urn:h">a</h:Route></soapenv:Header><soapenv:Body><m:buy xmlns:m="urn:m"><price>12 &lt; 13 &amp; "ä"</price></m:buy></soapenv:Body></soapenv:Envelope>"#;
const ANSWER: &str = r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><bought xmlns="urn:m">yes</bought></soapenv:Body></soapenv:Envelope>"#;

/// The policy of a profile, with the keys of the side that asks.
fn of_client(policy: &str) -> String {
    let property = |name: &str, value: &str| {
        format!(
            "<rampart:property name=\"org.apache.ws.security.crypto.merlin.{name}\">{value}</rampart:property>"
        )
    };
    let keys = format!(
        "<rampart:user>alice</rampart:user><rampart:userCertAlias>client</rampart:userCertAlias><rampart:encryptionUser>service</rampart:encryptionUser>\
         <rampart:signatureCrypto><rampart:crypto>{}{}</rampart:crypto></rampart:signatureCrypto>",
        property("file", "client.p12"),
        property("keystore.password", "secret")
    );
    match policy.split_once("<rampart:encryptionUser>useReqSigCert</rampart:encryptionUser>") {
        Some((before, after)) => format!("{before}{keys}{after}"),
        None => {
            let (before, after) = policy.rsplit_once("</wsp:Policy>").unwrap();
            format!(
                "{before}<rampart:RampartConfig xmlns:rampart='http://ws.apache.org/rampart/policy'>{keys}</rampart:RampartConfig></wsp:Policy>{after}"
            )
        }
    }
}

/// A service for each profile with a backend behind it, and a way to a backend that speaks WSS4J.
fn configuration(root: &Path, port: u16, java: u16) -> PathBuf {
    let mut text = String::from("<definitions xmlns='http://ws.apache.org/ns/synapse'>");
    for (name, policy, _) in profiles() {
        fs::write(root.join(format!("service-{name}.xml")), &policy).unwrap();
        fs::write(root.join(format!("client-{name}.xml")), of_client(&policy)).unwrap();
        for side in ["service", "client"] {
            text.push_str(&format!("<localEntry key='{side}-{name}' src='file:{side}-{name}.xml'/>"));
        }
        text.push_str(&format!(
            "<proxy name='Secure-{name}' transports='http'><target><endpoint><address uri='http://127.0.0.1:{port}/services/Back'/></endpoint>\
             <outSequence><send/></outSequence></target><policy key='service-{name}'/><enableSec/></proxy>\
             <proxy name='Plain-{name}' transports='http'><target><endpoint><address uri='http://127.0.0.1:{java}/{name}' format='soap11'>\
             <enableSec policy='client-{name}'/></address></endpoint><outSequence><send/></outSequence></target></proxy>"
        ));
    }
    // What comes through is text for text what was signed, comments and all.
    text.push_str(
        "<proxy name='Back' transports='http'><target><inSequence><log level='custom'><property name='forwarded' \
         expression='//*[local-name()=\"price\"]/text()[1]'/></log><payloadFactory media-type='xml'><format><bought xmlns='urn:m'>yes</bought></format>\
         <args/></payloadFactory><respond/></inSequence></target></proxy></definitions>",
    );
    let path = root.join("synapse.xml");
    fs::write(&path, text).unwrap();
    path
}

/// The directory with keys, the bus, and WSS4J on both sides.
struct World {
    root: PathBuf,
    bus: Process,
    client: Java,
    libraries: PathBuf,
}

impl World {
    /// `None`: WSS4J is not there.
    fn new(name: &str, java: u16) -> Option<World> {
        let libraries = libraries()?;
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wss4j-{name}"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        keys(&root);
        let port = support::free_port();
        let path = configuration(&root, port, java);
        let (http, store) = (
            format!("127.0.0.1:{port}"),
            format!("security.keystore={}", root.join("service.jks").display()),
        );
        let bus = Process::start(&[
            "run",
            path.to_str().unwrap(),
            "--http",
            &http,
            "--admin",
            "127.0.0.1:0",
            "--workers",
            "2",
            "--set",
            &store,
            "--set",
            "security.password=secret",
            "--set",
            "http.users.alice=wonder<land>",
        ]);
        let client = Java::start(&libraries, &root, "client.p12", "client").unwrap();
        Some(World { root, bus, client, libraries })
    }

    fn post(&self, path: &str, message: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.bus.http()).unwrap();
        let more =
            "Content-Type: text/xml; charset=UTF-8\r\nSOAPAction: \"urn:buy\"\r\nConnection: close\r\n";
        let (status, _, body) = exchange(&mut stream, "POST", path, message.as_bytes(), more).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    fn message(&mut self, how: &str) -> String {
        self.client.ask("secure", how, REQUEST).unwrap_or_else(|why| panic!("{how}: {why}")).1
    }
}

/// A backend that opens and answers with WSS4J; what it could not do, by profile.
fn backend(mut java: Java, listener: TcpListener) -> Arc<Mutex<HashMap<String, String>>> {
    let wrong = Arc::new(Mutex::new(HashMap::new()));
    let failures = Arc::clone(&wrong);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut name, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if let Some(path) = line.strip_prefix("POST /") {
                    name = path.split(' ').next().unwrap().to_owned();
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let how = profiles().into_iter().find(|profile| profile.0 == name).unwrap().2;
            let response = java.ask("open", "-", &String::from_utf8(body).unwrap()).and_then(|(_, text)| {
                if !text.contains("<price>12 &lt; 13 &amp; \"ä\"</price>") {
                    return Err(format!("it is {text}"));
                }
                java.ask("secure", &format!("answer,{how}"), ANSWER)
            });
            let text = match response {
                Ok((_, text)) => text,
                Err(why) => {
                    failures.lock().unwrap().insert(name, why);
                    String::new()
                }
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=UTF-8\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
        }
    });
    wrong
}

#[test]
fn every_profile_is_completed_with_wss4j_in_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let Some(mut world) = World::new("profiles", listener.local_addr().unwrap().port()) else { return };
    let java = Java::start(&world.libraries, &world.root, "service.jks", "service").unwrap();
    let wrong = backend(java, listener);
    for (name, policy, how) in profiles() {
        // WSS4J asks the bus.
        let (signature, request) =
            world.client.ask("secure", how, REQUEST).unwrap_or_else(|why| panic!("{name}: {why}"));
        let (status, response) = world.post(&format!("/services/Secure-{name}"), &request);
        assert_eq!(status, 200, "{name}: {response}\n{}\n{request}", world.bus.stderr());
        let (report, text) = world
            .client
            .ask("open", "-", &response)
            .unwrap_or_else(|why| panic!("{name}: {why}\n{response}"));
        assert!(text.contains("bought"), "{name}: {text}");
        let signature = signature.trim();
        let confirmed = !policy.contains("RequireSignatureConfirmation")
            || report.contains(&format!("confirmed={signature}"));
        assert!(confirmed, "{name}: {report}");
        // The bus asks WSS4J.
        let (status, response) = world.post(&format!("/services/Plain-{name}"), REQUEST);
        let what = wrong.lock().unwrap().remove(name);
        assert!(
            status == 200 && response.contains("bought") && !response.contains("Security"),
            "{name}: {status} {response}\n{what:?}\n{}",
            world.bus.stderr()
        );
    }
    world.bus.says("forwarded = 12 < 13 & \"ä\"", profiles().len());
}

/// Something between two texts, with them.
fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("no {from} in {text}"));
    let end = text[start..].find(to).unwrap_or_else(|| panic!("no {to} in {text}")) + start + to.len();
    &text[start..end]
}

/// Messages that are changed after they were signed, from one that is in order and whose body is only signed.
fn changed(good: &str) -> Vec<(&'static str, String)> {
    const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
    let body = part(good, "<soapenv:Body", "</soapenv:Body>");
    let id = body.split("wsu:Id=\"").nth(1).unwrap().split('"').next().unwrap();
    let open = "<soapenv:Body>";
    let evil = format!("{open}<evil xmlns='urn:e'/></soapenv:Body>");
    let same_id = evil.replace(open, &format!("<soapenv:Body xmlns:wsu='{WSU}' wsu:Id='{id}'>"));
    let plain_id = evil.replace(open, &format!("<soapenv:Body Id='{id}' id='{id}' ID='{id}' xml:id='{id}'>"));
    let security = part(good, "<wsse:Security", "</wsse:Security>");
    let signature = part(good, "<ds:Signature ", "</ds:Signature>");
    let timestamp = part(good, "<wsu:Timestamp", "</wsu:Timestamp>");
    let token = part(good, "<wsse:BinarySecurityToken", "</wsse:BinarySecurityToken>");
    let header_end = "</soapenv:Header>";
    let in_header = |what: &str, new: &str| {
        good.replace(body, new).replacen(header_end, &format!("{what}{header_end}"), 1)
    };
    let in_security = |what: &str, new: &str| {
        good.replace(body, new).replacen("</wsse:Security>", &format!("{what}</wsse:Security>"), 1)
    };
    let reference = |new: &str| good.replace(&format!("URI=\"#{id}\""), &format!("URI=\"{new}\""));
    let exclusive = "<ds:Transform Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"";
    let transform = |new: &str| {
        let of_body = part(
            &good[good.find(&format!("URI=\"#{id}\"")).unwrap()..],
            "<ds:Transforms>",
            "</ds:Transforms>",
        );
        good.replacen(of_body, &of_body.replace("<ds:Transforms>", &format!("<ds:Transforms>{new}")), 1)
    };
    let only = |algorithm: &str| {
        let of_body = part(
            &good[good.find(&format!("URI=\"#{id}\"")).unwrap()..],
            "<ds:Transforms>",
            "</ds:Transforms>",
        );
        let new = format!("<ds:Transforms><ds:Transform Algorithm='{algorithm}'/></ds:Transforms>");
        good.replacen(of_body, &new, 1)
    };
    let mut all = vec![
        ("the body in another header", in_header(&format!("<w>{body}</w>"), &evil)),
        ("the body in another header, one id for both", in_header(&format!("<w>{body}</w>"), &same_id)),
        ("the body in another header, with other kinds of id", in_header(&format!("<w>{body}</w>"), &plain_id)),
        ("the body as a header", in_header(body, &evil)),
        ("the body in the security header", in_security(body, &evil)),
        ("the body in an Object of it", in_security(&format!("<ds:Object xmlns:ds='http://www.w3.org/2000/09/xmldsig#'>{body}</ds:Object>"), &evil)),
        ("the body in the signature", good.replace(body, &evil).replacen("</ds:Signature>", &format!("<ds:Object>{body}</ds:Object></ds:Signature>"), 1)),
        ("the body in KeyInfo", good.replace(body, &evil).replacen("</ds:KeyInfo>", &format!("{body}</ds:KeyInfo>"), 1)),
        ("the body in the timestamp", good.replace(body, &evil).replacen("</wsu:Timestamp>", &format!("{body}</wsu:Timestamp>"), 1)),
        ("the body in the other body", good.replace(body, &evil.replace("<evil xmlns='urn:e'/>", &format!("<evil xmlns='urn:e'/>{body}")))),
        ("two bodies, the signed one first", good.replace(body, &format!("{body}{evil}"))),
        ("two bodies, the signed one last", good.replace(body, &format!("{evil}{body}"))),
        ("the body behind the envelope's end of header", good.replace(body, &format!("{evil}<x>{body}</x>"))),
        ("the body before the header", good.replace(body, &evil).replacen("<soapenv:Header", &format!("{body}<soapenv:Header"), 1)),
        ("a second header with the security header", good.replacen("<soapenv:Header>", "<soapenv:Header/><soapenv:Header>", 1)),
        ("an envelope in the body of another", good.replacen("<soapenv:Envelope", "<soapenv:Envelope xmlns:soapenv='http://schemas.xmlsoap.org/soap/envelope/'><soapenv:Body><soapenv:Envelope", 1) + "</soapenv:Body></soapenv:Envelope>"),
        ("two security headers", good.replace(security, &format!("{security}{security}"))),
        ("the security header for somebody else", good.replacen("<wsse:Security", "<wsse:Security soapenv:actor='urn:other'", 1)),
        ("the security header in another header", good.replace(security, &format!("<w>{security}</w>"))),
        ("two signatures", good.replace(signature, &format!("{signature}{signature}"))),
        ("no signature", good.replace(signature, "")),
        ("no timestamp", good.replace(timestamp, "")),
        ("two timestamps", good.replace(timestamp, &format!("{timestamp}{timestamp}"))),
        ("another timestamp, the signed one elsewhere", good.replace(timestamp, &timestamp.replace("wsu:Id=\"", "wsu:Id=\"x")).replacen(header_end, &format!("<w>{timestamp}</w>{header_end}"), 1)),
        ("no token", good.replace(token, "")),
        ("two tokens with one id", good.replace(token, &format!("{token}{token}"))),
        ("a reference to nothing", reference("#nothing")),
        ("a reference to the whole document", reference("")),
        ("a reference by xpointer", reference(&format!("#xpointer(id('{id}'))"))),
        ("a reference to the root by xpointer", reference("#xpointer(/)")),
        ("a reference to another server", reference("http://127.0.0.1:1/body.xml")),
        ("a reference to a file", reference("file:///etc/passwd")),
        ("a reference to an attachment", reference("cid:body@x")),
        ("an encoded reference", reference(&format!("#{}", id.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>()))),
        ("an XPath before the canonical form", transform("<ds:Transform Algorithm='http://www.w3.org/TR/1999/REC-xpath-19991116'><ds:XPath>false()</ds:XPath></ds:Transform>")),
        ("a second canonical form", transform(&format!("{exclusive}/>"))),
        ("XSLT", only("http://www.w3.org/TR/1999/REC-xslt-19991116")),
        ("enveloped", only("http://www.w3.org/2000/09/xmldsig#enveloped-signature")),
        ("STR-Transform", only("http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#STR-Transform")),
        ("with comments", only("http://www.w3.org/2001/10/xml-exc-c14n#WithComments")),
        ("Base64", only("http://www.w3.org/2000/09/xmldsig#base64")),
        ("no transform", only("")),
        ("no signature method", good.replace("http://www.w3.org/2000/09/xmldsig#rsa-sha1", "")),
        ("a MAC instead", good.replace("xmldsig#rsa-sha1", "xmldsig#hmac-sha1")),
        ("DSA instead", good.replace("xmldsig#rsa-sha1", "xmldsig#dsa-sha1")),
        ("a shortened MAC", good.replacen("xmldsig#rsa-sha1\"/>", "xmldsig#hmac-sha1\"><ds:HMACOutputLength>0</ds:HMACOutputLength></ds:SignatureMethod>", 1)),
        ("MD5", good.replace("xmldsig#sha1", "xmldsig-more#md5")),
        ("an empty signature", good.replace(part(good, "<ds:SignatureValue>", "</ds:SignatureValue>"), "<ds:SignatureValue></ds:SignatureValue>")),
        ("a changed text", good.replace(">12 ", ">13 ")),
        ("a blank more", good.replace(">12 ", ">12  ")),
        ("an attribute more", good.replace("<price>", "<price a=''>")),
        ("a namespace of a prefix", good.replace("xmlns:m=\"urn:m\"", "xmlns:m=\"urn:n\"")),
        ("a processing instruction", good.replace("<price>", "<?evil?><price>")),
        ("an entity", format!("<!DOCTYPE a [<!ENTITY e '12'>]>{}", good.replace(">12 ", ">&e; "))),
        ("entities without end", format!("<!DOCTYPE a [<!ENTITY a 'x'><!ENTITY b '&a;&a;'><!ENTITY c '&b;&b;'>]>{}", good.replace(">12 ", ">&c; "))),
        ("something unknown in the security header", in_security("<x:Evil xmlns:x='urn:x'/>", body)),
    ];
    all.retain(|(what, changed)| {
        assert_ne!(changed, good, "{what} changes nothing");
        true
    });
    all
}

#[test]
fn what_wss4j_makes_for_attackers_is_refused_and_goes_no_further() {
    let Some(mut world) = World::new("attacks", 1) else { return };
    let mut refusals = Vec::new();
    let mut refused = |world: &World, what: &str, service: &str, message: &str| {
        let (status, body) = world.post(&format!("/services/Secure-{service}"), message);
        refusals.push((what.to_owned(), status, body));
    };
    // In order, so that what follows is refused for what was changed.
    for (service, how) in [("2", "sign"), ("5", "sign,encrypt"), ("6", "sign,encrypt,symmetric,derived")] {
        let good = world.message(how);
        assert_eq!(
            world.post(&format!("/services/Secure-{service}"), &good).0,
            200,
            "{}",
            world.bus.stderr()
        );
        refused(&world, &format!("{service}: a replay"), service, &good);
        refused(
            &world,
            &format!("{service}: a replay to another service"),
            if service == "2" { "5" } else { "2" },
            &good,
        );
    }
    // Comments are in no signature, so they are not seen.
    let good = world.message("sign");
    let commented = good.replace("12 &lt; 13", "12<!-- --> &lt; <!-- a -->13");
    assert_ne!(good, commented);
    assert_eq!(world.post("/services/Secure-2", &commented).0, 200, "{}", world.bus.stderr());
    world.bus.says("forwarded = 12 < 13 & \"ä\"", 4);
    // Each from a message of its own: none is refused as a replay.
    let count = changed(&good).len();
    for at in 0..count {
        let good = world.message("sign");
        let (what, message) = changed(&good).swap_remove(at);
        refused(&world, what, "2", &message);
    }
    // These get answers of their own kind: those of another version of SOAP, and of the limits of XML.
    let good = world.message("sign");
    for message in [
        good.replace("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"),
        good.replace("<price>", &format!("{}<price>", "<d>".repeat(100_000))),
    ] {
        let (status, body) = world.post("/services/Secure-2", &message);
        assert!(status >= 400 && !body.contains("bought"), "{status} {body}");
    }
    // What WSS4J makes as it is told.
    for (service, how) in [
        ("2", "sign,old"),
        ("2", "sign,future"),
        ("2", "sign,forever"),
        ("2", "sign,untimed"),
        ("2", "sign,unsigned"),
        ("2", "sign,inclusive"),
        ("2", "sign,value"),
        ("2", "sign,hmac"),
        ("2", "sign,twice"),
        ("2", "sign,other"),
        ("2", "encrypt"),
        ("5", "sign"),
        ("5", "encrypt"),
        ("5", "sign,encrypt,aes128"),
        ("5", "sign,encrypt,tripledes"),
        ("5", "sign,encrypt,gcm"),
        ("5", "sign,encrypt,rsa15"),
        ("5", "sign,encrypt,oaep256"),
        ("5", "sign,encrypt,other"),
        ("5", "sign,encrypt,symmetric,derived"),
        ("6", "sign,encrypt"),
        ("6", "encrypt,symmetric,derived"),
        ("6", "sign,symmetric,derived"),
        ("issuer", "sign,encrypt,issuer"),
        ("gcm", "sign,encrypt,sha256"),
    ] {
        let message = world.message(how);
        refused(&world, &format!("{service}: {how}"), service, &message);
    }
    // A signer that nobody trusts.
    let stranger = world.root.join("stranger");
    fs::create_dir_all(&stranger).unwrap();
    keys(&stranger);
    fs::copy(stranger.join("client.p12"), world.root.join("stranger.p12")).unwrap();
    let mut java = Java::start(&world.libraries, &world.root, "stranger.p12", "client").unwrap();
    for (service, how) in [("2", "sign"), ("2", "sign,references"), ("5", "sign,encrypt")] {
        let message = java.ask("secure", how, REQUEST).unwrap().1;
        refused(&world, &format!("{service}: a stranger, {how}"), service, &message);
    }
    // Bytes of what is encrypted: keys, padding, tags.
    for (service, how) in [
        ("5", "sign,encrypt"),
        ("gcm", "sign,encrypt,gcm,sha256"),
        ("ski", "sign,encrypt,ski,references,rsa15"),
    ] {
        for (tag, nth, from_end) in [("CipherValue>", 0, 0), ("CipherValue>", 2, 0), ("CipherValue>", 2, 20)]
        {
            let mut message = world.message(how);
            let (at, _) = message.match_indices(tag).nth(nth).unwrap();
            let at = match from_end {
                0 => at + tag.len() + 30,
                back => message[at..].find("</").unwrap() + at - back,
            };
            let new = if &message[at..=at] == "B" { "C" } else { "B" };
            message.replace_range(at..=at, new);
            refused(&world, &format!("{service}: {tag} {nth} {from_end}"), service, &message);
        }
    }
    let first = refusals[0].2.clone();
    assert!(first.contains("wsse:InvalidSecurity"), "{first}");
    let log = world.bus.stderr();
    let other: Vec<_> = refusals.iter().filter(|refusal| refusal.1 != 500 || refusal.2 != first).collect();
    assert!(other.is_empty(), "{other:#?}\n{log}");
    // One answer, and nothing beside it: four messages were in order.
    assert_eq!(log.matches("forwarded = ").count(), 4, "{log}");
    assert!(!log.contains("wonder<land>") && !log.contains("secret"), "{log}");
}
