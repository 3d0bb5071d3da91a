//! Users of a directory: a name and a password are good if a bind with them succeeds (`[access.NAME.ldap]`).

use crate::runtime::guard::{Directory, Groups};
use crate::runtime::services::Services;
use authentication::ldap::{self, Entry, Filter, LARGEST, LONGEST_NAME, Response, Search};
use bytes::{Buf, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use transport::{Socket, WeakMap};

/// Longest wait for a directory, from connecting to its last answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most groups of a user that are taken.
const GROUPS: u16 = 1000;
/// Logins at a time at one directory; more wait within their deadline. Each has a connection of its own, and anybody may try passwords: without a bound these would take all
/// connections of the directory, and all descriptors of this process while it is silent.
const LOGINS: usize = 32;

/// The places for logins at each directory. They outlive a plan.
#[derive(Default)]
struct Places(WeakMap<String, Semaphore>);

/// Codes of results (RFC 4511, 4.1.9) that say that a name or a password is wrong: noSuchObject, invalidDNSyntax,
/// inappropriateAuthentication, invalidCredentials, insufficientAccessRights, unwillingToPerform.
const NOT_LET_IN: [u32; 6] = [32, 34, 48, 49, 50, 53];

/// Why a user is refused.
pub(super) enum Refused {
    /// The name or the password is wrong.
    Wrong,
    /// The directory cannot be asked.
    Unavailable(String),
}

/// The groups of a user with this password.
pub(super) async fn groups(
    directory: &Directory,
    user: &str,
    password: &str,
    services: &Services,
) -> Result<Vec<String>, Refused> {
    // A bind with an empty password is anonymous, and servers accept it (RFC 4513, 5.1.2). So it may be with one that looks empty to a server
    // whose texts end at a zero byte.
    let has_end = [user, password].iter().any(|text| text.contains('\0'));
    if user.is_empty() || password.is_empty() || user.len() > LONGEST_NAME || has_end {
        return Err(Refused::Wrong);
    }
    let unavailable = |why: String| Refused::Unavailable(format!("the directory {directory}: {why}"));
    let places = services.kept.get::<Places>();
    let places = places.0.get_or_insert_with(directory.to_string(), || Semaphore::new(LOGINS));
    let mut has_place = false;
    let conversation = tokio::time::timeout(PATIENCE, async {
        // Never closed, so that there always is one in the end.
        let _place = places.acquire().await;
        has_place = true;
        let socket = connect(directory, services).await.map_err(unavailable)?;
        let mut talk = Talk { socket, received: BytesMut::new(), taken: 0, number: 0 };
        let groups = talk.ask(directory, user, password).await;
        let _ = talk.socket.write_all(&ldap::unbind(talk.number + 1)).await;
        groups.map_err(|refused| match refused {
            Refused::Unavailable(why) => unavailable(why),
            wrong => wrong,
        })
    });
    let ended = conversation.await;
    let late = match has_place {
        true => "it did not answer in time".to_owned(),
        false => format!("{LOGINS} logins at a time were not over in time"),
    };
    ended.unwrap_or_else(|_| Err(unavailable(late)))
}

async fn connect(directory: &Directory, services: &Services) -> Result<Socket, String> {
    let socket =
        services.client.dial(&directory.host, directory.port).await.map_err(|why| why.to_string())?;
    if !directory.tls {
        return Ok(socket);
    }
    let profile = services.tls.find(&directory.host, directory.port);
    let profile = profile.ok_or_else(|| "there is no TLS profile for it".to_owned())?;
    socket.secure(&profile.clone(), &directory.host).await.map_err(|why| why.to_string())
}

/// A conversation.
struct Talk {
    socket: Socket,
    /// Bytes without the responses that were taken from their front: a server may send very many, and very short ones.
    received: BytesMut,
    /// Bytes of the responses to the present request.
    taken: usize,
    number: u8,
}

impl Talk {
    async fn ask(
        &mut self,
        directory: &Directory,
        user: &str,
        password: &str,
    ) -> Result<Vec<String>, Refused> {
        let dn = match (&directory.name, &directory.search) {
            (Some(name), _) => name.of(user),
            (None, Some((base, filter))) => {
                self.bind_as_bus(directory).await?;
                let what = Search { base, only_base: false, filter, user, dn: "", attribute: "1.1", most: 2 };
                let (found, is_all) = self.search(&what).await?;
                match found.as_slice() {
                    [Entry { dn, .. }] if is_all => dn.clone(),
                    // Several entries match: the name is ambiguous.
                    _ => return Err(Refused::Wrong),
                }
            }
            (None, None) => return Err(Refused::Wrong),
        };
        // A bind with an empty DN would be anonymous too.
        if dn.is_empty() || !self.bind(&dn, password).await? {
            return Err(Refused::Wrong);
        }
        let Some(groups) = &directory.groups else { return Ok(Vec::new()) };
        if directory.bind.is_some() {
            self.bind_as_bus(directory).await?;
        }
        match groups {
            Groups::Entries(base, filter, attribute) => {
                let what = Search { base, only_base: false, filter, user, dn: &dn, attribute, most: GROUPS };
                Ok(self.values(&what).await?.collect())
            }
            Groups::OfUser(attribute, part) => {
                let filter = &Filter::any();
                let what = Search { base: &dn, only_base: true, filter, user, dn: &dn, attribute, most: 1 };
                let names = self.values(&what).await?;
                Ok(names.filter_map(|name| ldap::first_value(&name, part)).collect())
            }
        }
    }

    async fn bind_as_bus(&mut self, directory: &Directory) -> Result<(), Refused> {
        let Some((dn, password)) = &directory.bind else { return Ok(()) };
        match self.bind(dn, password).await? {
            true => Ok(()),
            false => Err(Refused::Unavailable(
                "it refuses the bind of the bus (ldap.bind, ldap.password)".to_owned(),
            )),
        }
    }

    async fn bind(&mut self, dn: &str, password: &str) -> Result<bool, Refused> {
        self.number += 1;
        self.send(&ldap::bind(self.number, dn, password)).await?;
        match self.receive().await? {
            Response::Bound(0) => Ok(true),
            Response::Bound(code) if NOT_LET_IN.contains(&code) => Ok(false),
            response => Err(unexpected(&response)),
        }
    }

    /// The values of the attribute that is asked for, of all entries that are found.
    async fn values(&mut self, what: &Search<'_>) -> Result<impl Iterator<Item = String>, Refused> {
        let (found, _) = self.search(what).await?;
        let attribute = what.attribute.to_owned();
        let values = found.into_iter().flat_map(move |entry| entry.values(&attribute).collect::<Vec<_>>());
        Ok(values.take(usize::from(GROUPS)))
    }

    /// The entries that are found, and whether these are all.
    async fn search(&mut self, what: &Search<'_>) -> Result<(Vec<Entry>, bool), Refused> {
        self.number += 1;
        self.send(&ldap::search(self.number, what)).await?;
        let (mut found, mut is_all) = (Vec::new(), true);
        loop {
            match self.receive().await? {
                Response::Entry(entry) if found.len() < usize::from(what.most) => found.push(entry),
                // More than were asked for.
                Response::Entry(_) => is_all = false,
                Response::Other => {}
                Response::Searched(0) => return Ok((found, is_all)),
                // sizeLimitExceeded: of the request, or of the server for this user.
                Response::Searched(4) => return Ok((found, false)),
                // noSuchObject
                Response::Searched(32) => return Ok((Vec::new(), true)),
                response => return Err(unexpected(&response)),
            }
        }
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), Refused> {
        let failed = |why: std::io::Error| Refused::Unavailable(diagnostics::io_reason(&why));
        self.taken = 0;
        self.socket.write_all(message).await.map_err(failed)?;
        self.socket.flush().await.map_err(failed)
    }

    async fn receive(&mut self) -> Result<Response, Refused> {
        loop {
            let read = ldap::read(&self.received, self.number);
            if let Some((response, length)) = read.map_err(|why| Refused::Unavailable(why.to_owned()))? {
                self.received.advance(length);
                self.taken += length;
                // References and entries beyond those that were asked for count too.
                return if self.taken > LARGEST { Err(too_large()) } else { Ok(response) };
            }
            if self.received.len() > LARGEST {
                return Err(too_large());
            }
            let read = self.socket.read_buf(&mut self.received).await;
            match read {
                Ok(0) => return Err(Refused::Unavailable("it closed the connection".to_owned())),
                Ok(_) => {}
                Err(why) => return Err(Refused::Unavailable(diagnostics::io_reason(&why))),
            }
        }
    }
}

fn too_large() -> Refused {
    Refused::Unavailable("its response is too large".to_owned())
}

fn unexpected(response: &Response) -> Refused {
    Refused::Unavailable(match response {
        Response::Disconnects => "it ended the connection (notice of disconnection)".to_owned(),
        Response::Bound(code @ 1..) | Response::Searched(code @ 1..) => {
            format!("it answered with the code {code}")
        }
        _ => "its response does not fit the request".to_owned(),
    })
}
