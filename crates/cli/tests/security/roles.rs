//! Roles of users: in policies of WS-Security, in data services and in access profiles.

use crate::support::{self, Process};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The status line and the body of the answer to a request over https.
fn post(address: &str, root: &RootCertStore, path: &str, body: &str) -> (u16, String) {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(root.clone())
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nSOAPAction: \"urn:one\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut got = Vec::new();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    // A connection that ends without a farewell of TLS has its answer all the same.
    _ = stream.read_to_end(&mut got);
    let got = String::from_utf8(got).unwrap();
    (got.split(' ').nth(1).unwrap().parse().unwrap(), got)
}

fn request(user: &str) -> String {
    let now = jiff::Timestamp::now();
    let created = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    let expires = (now + jiff::SignedDuration::from_secs(300)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let oasis = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss";
    format!(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><w:Security s:mustUnderstand='1' xmlns:w='{oasis}-wssecurity-secext-1.0.xsd' \
         xmlns:u='{oasis}-wssecurity-utility-1.0.xsd'><u:Timestamp u:Id='t'><u:Created>{created}</u:Created><u:Expires>{expires}</u:Expires></u:Timestamp>\
         <w:UsernameToken u:Id='n'><w:Username>{user}</w:Username><w:Password Type='{oasis}-username-token-profile-1.0#PasswordText'>sesame</w:Password>\
         </w:UsernameToken></w:Security></s:Header><s:Body><one/></s:Body></s:Envelope>"
    )
}

#[test]
fn a_policy_lets_in_users_of_its_roles() {
    let scenario = format!("{}/../../examples/security/scenario01.xml", env!("CARGO_MANIFEST_DIR"));
    let policy = fs::read_to_string(scenario).unwrap();
    let roles = |roles: &str| {
        let wanted = format!(
            "<sec:CarbonSecConfig xmlns:sec=\"http://www.wso2.org/products/carbon/security\"><sec:Authorization>\
             <sec:property name=\"org.wso2.carbon.security.allowedroles\">{roles}</sec:property></sec:Authorization></sec:CarbonSecConfig>\
             <rampart:RampartConfig"
        );
        policy.replacen("<rampart:RampartConfig", &wanted, 1)
    };
    let proxy = |name: &str, policy: &str| {
        format!(
            "<localEntry key='{policy}' src='file:{policy}.xml'/><proxy name='{name}' transports='https'><target><inSequence><payloadFactory><format><in/></format><args/></payloadFactory>\
             <respond/></inSequence></target><policy key='{policy}'/><enableSec/></proxy>"
        )
    };
    let data = "<data xmlns='' name='Shop'><config id='db'><property name='driverClassName'>any</property>\
        <property name='url'>jdbc:sqlite:file:roles?mode=memory</property></config><query id='one' useConfig='db'><sql>select 'ann' name, 5 salary</sql>\
        <result element='R' rowName='r'><element name='name' column='name'/><element name='salary' column='salary' requiredRoles='admin'/></result></query>\
        <operation name='one'><call-query href='one'/></operation><policy key='anybody'/><enableSec/></data>";
    let artifacts =
        [proxy("Admins", "admins"), proxy("Anybody", "anybody"), proxy("Clerks", "clerks"), data.to_owned()]
            .concat();
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("security-roles");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    support::configure(&root.join("synapse.xml"), &artifacts);
    for (name, wanted) in [("admins", "admin, boss"), ("anybody", "Internal/everyone"), ("clerks", "clerk")] {
        fs::write(root.join(format!("{name}.xml")), roles(wanted)).unwrap();
    }
    fs::create_dir_all(root.join("deployment")).unwrap();
    fs::write(
        root.join("deployment/deployment.toml"),
        "[[internal_apis.users]]\nuser.name = 'root'\nuser.password = 'sesame'\nuser.is_admin = true\n",
    )
    .unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (pem, key, settings) = (place.join("roles.pem"), place.join("roles.key"), place.join("roles.toml"));
    fs::write(&pem, own.cert.pem()).unwrap();
    fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let text = format!(
        "[tls]\ncertificate = '{}'\nkey = '{}'\n[http.users]\nalice = 'sesame'\nbob = 'sesame'\n[http.roles]\nalice = ['clerk', 'PRIMARY/Boss']\n",
        pem.display(),
        key.display()
    );
    fs::write(&settings, text).unwrap();
    let bus = Process::run(&root, &["--https", "127.0.0.1:0", "--config", settings.to_str().unwrap()]);
    let mut trusted = RootCertStore::empty();
    trusted.add(own.cert.der().clone()).unwrap();
    let address = bus.field("https");
    for (user, service, let_in) in [
        ("alice", "Admins", true),
        ("alice", "Clerks", true),
        ("alice", "Anybody", true),
        ("bob", "Admins", false),
        ("bob", "Clerks", false),
        ("bob", "Anybody", true),
        ("root", "Admins", true),
        ("root", "Clerks", false),
        ("nobody", "Anybody", false),
    ] {
        let (status, answer) = post(address, &trusted, &format!("/services/{service}"), &request(user));
        assert_eq!(
            status == 200 && answer.contains("<in "),
            let_in,
            "{user} {service}: {answer}{}",
            bus.stderr()
        );
        assert!(let_in || answer.contains("FailedAuthentication"), "{user} {service}: {answer}");
    }
    // A data service is secured too, and knows who asks.
    for (user, name, salary) in [("root", true, true), ("bob", true, false), ("nobody", false, false)] {
        let (_, answer) = post(address, &trusted, "/services/Shop", &request(user));
        assert_eq!((answer.contains("ann"), answer.contains("salary")), (name, salary), "{user}: {answer}");
    }
    let unsecured = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><one/></s:Body></s:Envelope>";
    let (status, answer) = post(address, &trusted, "/services/Shop", unsecured);
    assert!(status == 500 && !answer.contains("ann"), "{answer}");
    let (status, _, body) = support::ask(bus.http(), "GET", "/services/Shop/one", b"").unwrap();
    assert!(status != 200 && !String::from_utf8_lossy(&body).contains("ann"), "{status}");
    bus.says("the user has none of the roles admin, boss", 1);
}
