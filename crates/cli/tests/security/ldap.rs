//! Users of a directory: an LDAP server that has two of them, and the binds and searches that it receives.

use super::access::{api, ask, directory};
use crate::support::Process;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A value with its tag and length.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 128);
    [&[tag, content.len() as u8], content].concat()
}

/// Takes the next value from the front.
fn next<'a>(rest: &mut &'a [u8]) -> (u8, &'a [u8]) {
    let (length, head) = match rest[1] {
        0x84 => (u32::from_be_bytes(rest[2..6].try_into().unwrap()) as usize, 6),
        short => (usize::from(short), 2),
    };
    let found = (rest[0], &rest[head..head + length]);
    *rest = &rest[head + length..];
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The equality assertions in a filter, however they are combined.
fn asked_for(mut filter: &[u8], found: &mut Vec<(String, String)>) {
    while !filter.is_empty() {
        let (tag, mut content) = next(&mut filter);
        match tag {
            0xa3 => {
                let name = text(next(&mut content).1);
                found.push((name, text(next(&mut content).1)));
            }
            0xa0..=0xa2 => asked_for(content, found),
            _ => {}
        }
    }
}

struct Server {
    address: SocketAddr,
    /// The names of binds, and the filters of searches.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || serve(stream, &noted));
            }
        });
        Server { address, asked }
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut bytes = vec![0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut bytes) {
        let mut all = &bytes[..length];
        while !all.is_empty() {
            let (_, mut message) = next(&mut all);
            let (_, number) = next(&mut message);
            let (operation, mut fields) = next(&mut message);
            let done = |tag: u8, code: u8| {
                let result = value(tag, &[&[0x0a, 1, code][..], &[4, 0, 4, 0]].concat());
                value(0x30, &[value(2, number), result].concat())
            };
            let entry = |dn: &str, attributes: &[(&str, &[&str])]| {
                let attribute = |(name, values): &(&str, &[&str])| {
                    let all: Vec<u8> = values.iter().flat_map(|text| value(4, text.as_bytes())).collect();
                    value(0x30, &[value(4, name.as_bytes()), value(0x31, &all)].concat())
                };
                let attribute: Vec<u8> = attributes.iter().flat_map(attribute).collect();
                let content = value(0x64, &[value(4, dn.as_bytes()), value(0x30, &attribute)].concat());
                value(0x30, &[value(2, number), content].concat())
            };
            let response = match operation {
                0x60 => {
                    next(&mut fields);
                    let (dn, password) = (text(next(&mut fields).1), text(next(&mut fields).1));
                    asked.lock().unwrap().push(dn.clone());
                    let good = [
                        ("cn=bus", "secret of the bus"),
                        ("uid=alice,ou=people", "opensesame"),
                        ("uid=bob,ou=people", "hunter2"),
                    ];
                    // As servers do: a bind without a password is anonymous, and succeeds.
                    let is_good = password.split('\0').next() == Some("") || good.contains(&(&dn, &password));
                    done(0x61, if is_good { 0 } else { 49 })
                }
                0x63 => {
                    let base = text(next(&mut fields).1);
                    (0..5).for_each(|_| _ = next(&mut fields));
                    let mut found = Vec::new();
                    let (tag, inside) = next(&mut fields);
                    asked_for(&[&[tag, inside.len() as u8], inside].concat(), &mut found);
                    asked.lock().unwrap().push(format!("{base} {found:?}"));
                    let mut out = Vec::new();
                    for (name, value) in &found {
                        match (name.as_str(), value.as_str()) {
                            ("uid", "alice" | "bob") => {
                                out.extend(entry(&format!("uid={value},ou=people"), &[]))
                            }
                            ("uid", "twice") => {
                                (0..2).for_each(|_| out.extend(entry("uid=alice,ou=people", &[])))
                            }
                            ("uid", "limited") => out.extend(entry("uid=alice,ou=people", &[])),
                            ("member", "uid=alice,ou=people") => {
                                // A subtype of what is asked for, and what is not asked for.
                                let attributes: [(&str, &[&str]); 2] =
                                    [("CN;lang-de", &["read"]), ("description", &["root"])];
                                out.extend(entry("cn=read", &attributes));
                            }
                            _ => {}
                        }
                    }
                    // The entry of a user itself, with its groups.
                    if found.is_empty() && base == "uid=alice,ou=people" {
                        let groups: &[&str] = &["cn=read,ou=groups", "ou=cn,cn=write", "cn=a\\, b,ou=groups"];
                        let all = [("memberOf", groups), ("info", &["cn=root"])];
                        out.extend(entry(&base, &all));
                    }
                    // One more than the server gives.
                    let is_cut = found.iter().any(|(_, value)| value == "limited");
                    out.extend(done(0x65, if is_cut { 4 } else { 0 }));
                    out
                }
                _ => return,
            };
            stream.write_all(&response).unwrap();
        }
    }
}

#[test]
fn users_of_a_directory_are_let_in_with_their_groups() {
    let server = Server::start();
    let address = server.address;
    let settings = format!(
        "[http.users]\nalice = 'of the settings'\n\
         [access.named.ldap]\naddress = 'ldap://{address}'\nuser = 'uid={{user}},ou=people'\n\
         [access.searched.ldap]\naddress = 'ldap://{address}'\nbase = 'dc=example'\nfilter = '(&(objectClass=person)(uid={{user}}))'\n\
         bind = 'cn=bus'\npassword = 'secret of the bus'\ngroup_base = 'ou=groups'\n\
         [access.listed.ldap]\naddress = 'ldap://{address}'\nuser = 'uid={{user}},ou=people'\ngroup_attribute = 'memberOf'\n\
         [access.both]\nusers = true\n[access.both.ldap]\naddress = 'ldap://{address}'\nuser = 'uid={{user}},ou=people'\n\
         [access.shut.ldap]\naddress = 'ldap://{address}'\nbase = 'dc=example'\nbind = 'cn=bus'\npassword = 'wrong'\n\
         [access.gone.ldap]\naddress = 'ldap://127.0.0.1:1'\nuser = 'uid={{user}}'\n"
    );
    let scopes = "<property name='scopes' value='read'/>";
    let root = |name: &str| {
        let property = "<property name='scopes' value='root'/>";
        api(name, property)
            .replace(&format!("context='/{name}'"), &format!("context='/{name}-root'"))
            .replace(&format!("<api name='{name}'"), &format!("<api name='{name}-root'"))
    };
    let artifacts = root("searched")
        + &root("listed")
        + &api("named", "")
        + &api("searched", scopes)
        + &api("listed", scopes)
        + &api("both", "")
        + &api("shut", "")
        + &api("gone", "");
    let bus = Process::run(&directory("ldap", &artifacts, &settings), &[]);
    let basic = |both: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(both));
    for (name, user, status) in [
        ("named", "alice:opensesame", 200),
        ("named", "alice:opensesam", 401),
        ("named", "alice:hunter2", 401),
        // A bind without a password would be anonymous, and succeed.
        ("named", "alice:", 401),
        ("named", "alice:\0", 401),
        ("named", ":", 401),
        ("named", ":opensesame", 401),
        ("named", "alice,ou=people:opensesame", 401),
        ("named", "al*:opensesame", 401),
        ("named", "nobody:x", 401),
        ("searched", "alice:opensesame", 200),
        ("searched", "alice:x", 401),
        ("searched", "nobody:opensesame", 401),
        ("searched", "*:opensesame", 401),
        ("searched", "alice)(uid=*:opensesame", 401),
        ("searched", "twice:opensesame", 401),
        // The server has found more than it gives, so nobody knows whose password that is.
        ("searched", "limited:opensesame", 401),
        ("searched", "al{dn}ice:opensesame", 401),
        ("searched", "{user}:opensesame", 401),
        ("listed", "alice:opensesame", 200),
        ("listed", "bob:hunter2", 403),
        // The directory sends more attributes than were asked for.
        ("searched-root", "alice:opensesame", 403),
        ("listed-root", "alice:opensesame", 403),
        ("searched", "bob:hunter2", 403),
        ("both", "bob:hunter2", 200),
        ("both", "alice:of the settings", 200),
        ("both", "alice:opensesame", 401),
        ("shut", "alice:opensesame", 503),
        ("gone", "alice:opensesame", 503),
    ] {
        let response = ask(&bus, "GET", &format!("/{name}/orders"), &basic(user), "");
        assert_eq!(response.status, status, "{name} {user}: {}\n{}", response.body, bus.stderr());
        let way = if user.contains("of the settings") { "basic" } else { "ldap" };
        let says = format!("\"way\": \"{way}\", \"seen\": \"\"");
        assert!(status != 200 || response.body.contains(&says), "{}", response.body);
        assert!(status != 401 || response.head.contains("WWW-Authenticate: Basic"), "{}", response.head);
    }
    let asked = server.asked.lock().unwrap().clone();
    let times = |what: &str| asked.iter().filter(|entry| *entry == what).count();
    assert_eq!(times("uid=alice\\,ou\\=people,ou=people"), 1, "{asked:?}");
    assert_eq!(
        times("dc=example [(\"objectClass\", \"person\"), (\"uid\", \"alice)(uid=*\")]"),
        1,
        "{asked:?}"
    );
    assert_eq!(times("ou=groups [(\"member\", \"uid=alice,ou=people\")]"), 1, "{asked:?}");
    // A good password is cached, a wrong one is asked about each time.
    let before = asked.len();
    assert_eq!(ask(&bus, "GET", "/named/orders", &basic("alice:opensesame"), "").status, 200);
    assert_eq!(server.asked.lock().unwrap().len(), before);
    assert_eq!(ask(&bus, "GET", "/named/orders", &basic("alice:x"), "").status, 401);
    assert_eq!(server.asked.lock().unwrap().len(), before + 1);
    // The log is written after the response: wait until the lines of the last requests are there.
    bus.says("profile=named status=401", 10);
    bus.says("refuses the bind of the bus", 1);
    let log = bus.stderr();
    for secret in ["opensesam", "hunter2", "of the settings", "secret of the bus", "'wrong'"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

/// A response to a bind by which a server breaks the protocol.
fn broken(how: &str) -> Vec<u8> {
    let message = |number: u8, operation: &[u8]| value(0x30, &[&value(2, &[number]), operation].concat());
    // Values within values: each has a head of six bytes.
    let deep: Vec<u8> = (0..20_000_u32)
        .rev()
        .flat_map(|inner| [&[0x30, 0x84][..], &(6 * inner).to_be_bytes()].concat())
        .collect();
    let long = |tag: u8, content: &[u8]| {
        [&[tag, 0x84][..], &u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
    };
    match how {
        "empty" => value(0x30, &[]),
        "http" => b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        "deep" => deep,
        "deeper" => long(0x30, &[value(2, &[1]), long(0x61, &deep)].concat()),
        "large" => vec![0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        "larger" => [&[0x30, 0x88][..], &[0xff; 8]].concat(),
        "indefinite" => vec![0x30, 0x80, 2, 1, 1, 0x61, 0, 0, 0],
        "nothing" => message(1, &value(0x61, &[])),
        "entry" => message(1, &value(0x64, &[value(4, b"uid=alice"), value(0x30, &[])].concat())),
        "unknown" => message(1, &value(0x7e, &[])),
        "another" => message(7, &value(0x61, &[0x0a, 1, 0, 4, 0, 4, 0])),
        "without-code" => message(1, &value(0x61, &[0x0a, 0, 4, 0, 4, 0])),
        "search" => message(1, &value(0x65, &[0x0a, 1, 0, 4, 0, 4, 0])),
        "busy" => message(1, &value(0x61, &[0x0a, 1, 51, 4, 1, 0xff, 4, 1, 0xff])),
        "goodbye" => message(0, &value(0x78, &[])),
        "cut" => vec![0x30, 12, 2, 1],
        how => panic!("{how}"),
    }
}

#[test]
fn a_server_that_breaks_the_protocol_lets_nobody_in() {
    let ways = [
        "empty",
        "http",
        "deep",
        "deeper",
        "large",
        "larger",
        "indefinite",
        "nothing",
        "entry",
        "unknown",
        "another",
        "without-code",
        "search",
        "busy",
        "goodbye",
        "cut",
    ];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap_or(0);
            let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
            let how = ways.into_iter().find(|how| request.contains(&format!("uid={how},")));
            // The client may have closed by then.
            let _ = stream.write_all(&broken(how.expect("the name of a way")));
        }
    });
    let good = Server::start();
    let settings = format!(
        "[access.broken.ldap]\naddress = 'ldap://{address}'\nuser = 'uid={{user}},ou=people'\n\
         [access.good.ldap]\naddress = 'ldap://{}'\nuser = 'uid={{user}},ou=people'\n",
        good.address
    );
    let bus =
        Process::run(&directory("ldap-broken", &(api("broken", "") + &api("good", "")), &settings), &[]);
    let basic = |both: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(both));
    for how in ways {
        let response = ask(&bus, "GET", "/broken/orders", &basic(&format!("{how}:secret")), "");
        assert_eq!(response.status, 503, "{how}: {}\n{}", response.body, bus.stderr());
    }
    assert_eq!(ask(&bus, "GET", "/good/orders", &basic("alice:opensesame"), "").status, 200);
    bus.says("profile=broken status=503", ways.len());
    assert!(!bus.stderr().contains("panic"), "{}", bus.stderr());
}

/// A server may answer a search with references and entries without end: large ones, and many short ones behind them.
#[test]
fn an_answer_without_end_is_broken_off() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes);
            let long = |tag: u8, content: &[u8]| {
                [&[tag, 0x84][..], &u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
            };
            let reference = |length: usize| {
                let operation = long(0x73, &long(4, &vec![b'x'; length]));
                long(0x30, &[value(2, &[1]), operation].concat())
            };
            let _ = stream.write_all(&reference(1_000_000));
            let many = reference(0).repeat(1000);
            while stream.write_all(&many).is_ok() {}
        }
    });
    let settings = format!(
        "[access.endless.ldap]\naddress = 'ldap://{address}'\nbase = 'ou=people'\nfilter = '(uid={{user}})'\n"
    );
    let bus = Process::run(&directory("ldap-endless", &api("endless", ""), &settings), &[]);
    let basic = format!("Authorization: Basic {}\r\n", STANDARD.encode("alice:secret"));
    assert_eq!(ask(&bus, "GET", "/endless/orders", &basic, "").status, 503, "{}", bus.stderr());
    bus.says("its response is too large", 1);
}

/// Anybody may try passwords, and each login has a connection of its own: a directory gets no more of them at a time than it can bear, and all are judged.
#[test]
fn a_flood_of_logins_takes_no_more_than_some_connections() {
    const LOGINS: usize = 32;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    std::thread::spawn(move || {
        let open = Arc::new(AtomicUsize::new(0));
        for mut stream in listener.incoming().flatten() {
            seen.fetch_max(open.fetch_add(1, SeqCst) + 1, SeqCst);
            let (seen, open) = (Arc::clone(&seen), Arc::clone(&open));
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                // Nobody is answered before so many are here, and more would have come, too.
                while seen.load(SeqCst) < LOGINS {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(Duration::from_millis(100));
                open.fetch_sub(1, SeqCst);
                let result = value(0x61, &[0x0a, 1, 49, 4, 0, 4, 0]);
                let _ = stream.write_all(&value(0x30, &[value(2, &[1]), result].concat()));
                let _ = stream.read(&mut [0; 4096]);
            });
        }
    });
    let settings =
        format!("[access.flood.ldap]\naddress = 'ldap://{address}'\nuser = 'uid={{user}},ou=people'\n");
    let bus = Process::run(&directory("ldap-flood", &api("flood", ""), &settings), &[]);
    std::thread::scope(|scope| {
        for number in 0..2 * LOGINS {
            let bus = &bus;
            scope.spawn(move || {
                let basic =
                    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("alice:{number}")));
                assert_eq!(ask(bus, "GET", "/flood/orders", &basic, "").status, 401, "{}", bus.stderr());
            });
        }
    });
    assert_eq!(most.load(SeqCst), LOGINS);
}

/// The user store of a WSO2 server is a directory: `RESTBasicAuthHandler` lets its users in, and others may name it as a profile.
#[test]
fn the_user_store_of_a_server_lets_in_whom_its_filters_find() {
    let server = Server::start();
    let handled = "<api name='handled' context='/handled'><resource methods='GET' uri-template='/orders'><inSequence><respond/></inSequence></resource>\
         <handlers><handler class='org.wso2.micro.integrator.security.handler.RESTBasicAuthHandler'/></handlers></api>";
    let scopes = "<property name='scopes' value='read'/>";
    let root = directory("user-store", &(handled.to_owned() + &api("user_store", scopes)), "");
    std::fs::create_dir_all(root.join("conf")).unwrap();
    let store = format!(
        "[server]\nhostname = 'localhost'\n[user_store]\ntype = 'read_only_ldap'\nconnection_url = 'ldap://{}'\nconnection_name = 'cn=bus'\n\
         connection_password = '$secret{{ldap}}'\nuser_search_base = 'dc=example'\nuser_name_search_filter = '(&(objectClass=person)(uid=?))'\n\
         group_search_base = 'ou=groups'\n[[internal_apis.users]]\nuser.name = 'dora'\nuser.password = 'of the file'\n[secrets]\nldap = '[secret of the bus]'\n",
        server.address
    );
    std::fs::write(root.join("conf/deployment.toml"), &store).unwrap();
    let basic = |both: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(both));
    {
        let bus = Process::run(&root, &[]);
        for (name, fields, status) in [
            ("handled", String::new(), 401),
            ("handled", basic("alice:opensesame"), 200),
            ("handled", basic("bob:hunter2"), 200),
            ("handled", basic("dora:of the file"), 200),
            // As WSO2's handler.
            ("handled", basic("alice:x"), 403),
            ("handled", basic("alice:"), 403),
            ("handled", basic("*:opensesame"), 403),
            ("handled", "Authorization: Bearer x\r\n".to_owned(), 401),
            ("user_store", basic("alice:opensesame"), 200),
            ("user_store", basic("bob:hunter2"), 403),
            ("user_store", basic("bob:x"), 401),
        ] {
            let response = ask(&bus, "GET", &format!("/{name}/orders"), &fields, "");
            assert_eq!(response.status, status, "{name} {fields}: {}\n{}", response.body, bus.stderr());
        }
        let asked = server.asked.lock().unwrap().clone();
        for wanted in [
            "dc=example [(\"objectClass\", \"person\"), (\"uid\", \"alice\")]",
            "ou=groups [(\"objectClass\", \"groupOfNames\"), (\"member\", \"uid=alice,ou=people\")]",
        ] {
            assert!(asked.iter().any(|entry| entry == wanted), "{wanted}: {asked:?}");
        }
        assert!(
            !bus.stderr().contains("opensesame") && !bus.stderr().contains("secret of the bus"),
            "{}",
            bus.stderr()
        );
    }
    // Without its secret the store has no effect, and the users of the file remain.
    std::fs::write(root.join("conf/deployment.toml"), store.replace("\nldap = ", "\nother = ")).unwrap();
    let bus = Process::run(&root, &[]);
    bus.says("`user_store` has no effect", 1);
    for (user, status) in [("dora:of the file", 200), ("alice:opensesame", 403)] {
        assert_eq!(ask(&bus, "GET", "/handled/orders", &basic(user), "").status, status, "{user}");
    }
}
