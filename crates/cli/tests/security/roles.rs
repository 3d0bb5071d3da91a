//! Roles of users: in policies of WS-Security, in data services and in access profiles.

use crate::support::{self, Process};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
    asking(user, "one")
}

/// A request for an operation.
fn asking(user: &str, operation: &str) -> String {
    let now = jiff::Timestamp::now();
    let created = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    let expires = (now + jiff::SignedDuration::from_secs(300)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let oasis = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss";
    format!(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><w:Security s:mustUnderstand='1' xmlns:w='{oasis}-wssecurity-secext-1.0.xsd' \
         xmlns:u='{oasis}-wssecurity-utility-1.0.xsd'><u:Timestamp u:Id='t'><u:Created>{created}</u:Created><u:Expires>{expires}</u:Expires></u:Timestamp>\
         <w:UsernameToken u:Id='n'><w:Username>{user}</w:Username><w:Password Type='{oasis}-username-token-profile-1.0#PasswordText'>sesame</w:Password>\
         </w:UsernameToken></w:Security></s:Header><s:Body><{operation}/></s:Body></s:Envelope>"
    )
}

/// A certificate of this machine: who trusts it, and the settings of the bus that has it.
fn tls(name: &str) -> (RootCertStore, String) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (pem, key) = (place.join(format!("{name}.pem")), place.join(format!("{name}.key")));
    fs::write(&pem, own.cert.pem()).unwrap();
    fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let mut trusted = RootCertStore::empty();
    trusted.add(own.cert.der().clone()).unwrap();
    (trusted, format!("[tls]\ncertificate = '{}'\nkey = '{}'\n", pem.display(), key.display()))
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
    let (trusted, tls) = tls("roles");
    let settings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("roles.toml");
    let users =
        "[http.users]\nalice = 'sesame'\nbob = 'sesame'\n[http.roles]\nalice = ['clerk', 'PRIMARY/Boss']\n";
    let text = format!("{tls}{users}");
    fs::write(&settings, text).unwrap();
    let bus = Process::run(&root, &["--https", "127.0.0.1:0", "--config", settings.to_str().unwrap()]);
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

#[test]
fn roles_are_required_wherever_they_are_written() {
    let examples = format!("{}/../../examples/security", env!("CARGO_MANIFEST_DIR"));
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("security-roles-required");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    for (from, to) in [("scenario01", "users"), ("scenario02", "signed")] {
        fs::copy(format!("{examples}/{from}.xml"), root.join(format!("{to}.xml"))).unwrap();
    }
    let proxy = |name: &str, policy: &str, roles: &str| {
        format!(
            "<proxy name='{name}' transports='https'><target><inSequence><payloadFactory><format><in/></format><args/></payloadFactory>\
             <respond/></inSequence></target><policy key='{policy}'/><enableSec/><parameter name='allowRoles'{roles}</parameter></proxy>"
        )
    };
    let data = |name: &str, security: &str| {
        format!(
            "<data xmlns='' name='{name}' enableBatchRequests='true' enableBoxcarring='true'><config id='db' enableOData='true'>\
             <property name='driverClassName'>any</property><property name='url'>jdbc:sqlite:file:{name}?mode=memory</property></config>\
             <query id='one' useConfig='db'><sql>select 'ann' name, 5 salary</sql><result element='R' rowName='r'><element name='name' column='name'/>\
             <element name='salary' column='salary' requiredRoles='admin'/><element name='bonus' column='salary' requiredRoles='Domain Admins, boss'/></result></query>\
             <operation name='one'><call-query href='one'/></operation>\
             <operation name='all'><call-query href='one' requiredRoles='admin'/></operation>{security}</data>"
        )
    };
    let call = |operation: &str, handlers: &str| {
        format!(
            "<api name='{operation}' context='/{operation}'><resource methods='GET'><inSequence><dataServiceCall serviceName='Open'><source type='inline'/>\
             <operations type='single'><operation name='{operation}'/></operations></dataServiceCall><respond/></inSequence></resource>{handlers}</api>"
        )
    };
    let handler = "<handlers><handler class='org.busbar.AccessHandler'><property name='profile' value='staff'/></handler></handlers>";
    let scopes = handler.replace("/></handler>", "/><property name='scopes' value='Not%20Admin'/></handler>");
    let of_scope = call("one", &scopes).replace("name='one' context='/one'", "name='scope' context='/scope'");
    let artifacts = [
        "<localEntry key='users' src='file:users.xml'/><localEntry key='signed' src='file:signed.xml'/>"
            .into(),
        proxy("Admins", "users", " locked='false'>boss, admin"),
        proxy("NobodyIsNamed", "users", ">"),
        proxy("NoUsers", "signed", ">admin"),
        data(
            "Closed",
            "<policy key='users'/><enableSec/><parameter name='allowRoles'>admin,clerk</parameter>",
        ),
        data("Open", ""),
        data("Guarded", "<parameter name='accessProfile'>staff</parameter><parameter name='accessScopes'>clerk</parameter>"),
        data("Unguarded", "<parameter name='accessProfile'>nobody</parameter>"),
        call("one", handler),
        call("all", handler),
        of_scope,
    ]
    .concat();
    support::configure(&root.join("synapse.xml"), &artifacts);
    let (trusted, tls) = tls("required");
    let settings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("required.toml");
    // `eve` has one role, whose name has a blank.
    let users = "[http.users]\nalice = 'sesame'\nbob = 'sesame'\neve = 'sesame'\n[http.roles]\nalice = ['admin']\nbob = ['clerk', 'Domain Admins']\n\
        eve = ['Not Admin']\n[access.staff]\nusers = true\n";
    fs::write(&settings, format!("{tls}{users}")).unwrap();
    let bus = Process::run(&root, &["--https", "127.0.0.1:0", "--config", settings.to_str().unwrap()]);
    let https = |service: &str, user: &str, operation: &str| {
        post(bus.field("https"), &trusted, &format!("/services/{service}"), &asking(user, operation))
    };
    for (user, admins, closed) in [("alice", true, true), ("bob", false, true), ("eve", false, false)] {
        let (_, answer) = https("Admins", user, "one");
        assert_eq!(answer.contains("<in "), admins, "{user}: {answer}");
        assert!(admins || answer.contains("FailedAuthentication"), "{user}: {answer}");
        let (_, answer) = https("Closed", user, "one");
        assert_eq!(answer.contains("ann"), closed, "{user}: {answer}");
    }
    // Roles that cannot be kept leave the service out.
    for name in ["NobodyIsNamed", "NoUsers"] {
        assert!(!https(name, "alice", "one").1.contains("<in "));
        assert!(bus.stderr().contains(&format!("`allowRoles` of the proxy service `{name}` cannot be kept")));
    }
    // An operation whose query is for certain roles, alone, in a batch and in a box.
    for (user, runs) in [("alice", true), ("bob", false)] {
        for operation in
            ["all", "all_batch_req><all/></all_batch_req", "request_box><one/><all/></request_box"]
        {
            let whole = match operation.split_once('>') {
                Some(_) => asking(user, "one").replace("<one/>", &format!("<{operation}>")),
                None => asking(user, operation),
            };
            let (status, answer) = post(bus.field("https"), &trusted, "/services/Closed", &whole);
            assert_eq!(status != 500, runs, "{user} {operation}: {status} {answer}");
            assert_eq!(
                answer.contains("ann"),
                runs && !operation.contains("batch"),
                "{user} {operation}: {answer}"
            );
        }
    }
    let (status, _, _) = support::ask(bus.http(), "GET", "/services/Open/all", b"").unwrap();
    assert_eq!(status, 403);
    // Tables are not served where messages have to be secured: with a message that is, any path could be sent.
    let (closed, open) = ("/odata/Closed/db/", "/odata/Open/db/");
    assert_ne!(post(bus.field("https"), &trusted, closed, &asking("alice", "one")).0, 200);
    for (path, status) in [(closed, 404), (open, 200)] {
        assert_eq!(support::ask(bus.http(), "GET", path, b"").unwrap().0, status, "{path}");
    }
    for (path, status) in
        [("/services/Guarded/one", 401), ("/odata/Guarded/db/", 401), ("/odata/Unguarded/db/", 503)]
    {
        assert_eq!(support::ask(bus.http(), "GET", path, b"").unwrap().0, status, "{path}");
    }
    bus.says("`enableOData` of the data service `Closed` has no effect with `enableSec`", 1);
    // Of an access profile: a role with a blank is one role, in scopes too.
    for (user, path, status, salary, bonus) in [
        ("alice", "/one", 200, true, false),
        ("bob", "/one", 200, false, true),
        ("eve", "/one", 200, false, false),
        ("alice", "/all", 200, true, false),
        ("eve", "/all", 500, false, false),
        ("eve", "/scope", 200, false, false),
        ("alice", "/scope", 403, false, false),
        ("bob", "/services/Guarded/one", 200, false, true),
        ("bob", "/odata/Guarded/db/", 200, false, false),
        ("alice", "/services/Guarded/one", 403, false, false),
        ("alice", "/odata/Guarded/db/", 403, false, false),
        ("bob", "/services/Unguarded/one", 503, false, false),
    ] {
        let more = format!(
            "Authorization: Basic {}\r\nConnection: close\r\n",
            STANDARD.encode(format!("{user}:sesame"))
        );
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        let (got, _, answer) = support::exchange(&mut stream, "GET", path, b"", &more).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let seen = (got, answer.contains("salary"), answer.contains("bonus"));
        assert_eq!(seen, (status, salary, bonus), "{user} {path}: {answer}");
    }
}
