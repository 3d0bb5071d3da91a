//! Connecting to a host: all its addresses, the first that accepts (RFC 8305).

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::SendErrorKind;
use crate::descriptors::Descriptor;

/// How long an address has before the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses that are tried at a time.
const AT_A_TIME: usize = 3;

/// How long an address is tried at least, where others wait for their turn: long enough for a second SYN.
const PATIENCE: Duration = Duration::from_secs(2);

/// An address that is being tried.
struct Attempt {
    address: SocketAddr,
    begun: Instant,
    connecting: Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>,
    descriptor: Descriptor,
}

/// Connects to the first address that accepts. They are tried in their order, families in turn, each a moment after the one
/// before it or as soon as that has failed. Each attempt has a descriptor of its own, the first one that of the connection.
pub(crate) async fn connect(
    addresses: &[IpAddr],
    port: u16,
    descriptor: Descriptor,
) -> Result<(TcpStream, Descriptor), SendErrorKind> {
    if let [address] = addresses {
        let address = SocketAddr::new(*address, port);
        let connected = TcpStream::connect(address).await;
        return connected
            .map(|stream| (stream, descriptor))
            .map_err(|error| Failure::of(error, address).into());
    }
    let mut left = in_turn(addresses).into_iter();
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut free = Some(descriptor);
    let mut failure: Option<Failure> = None;
    let mut turn = pin!(sleep(Duration::ZERO));
    poll_fn(|cx| {
        loop {
            let mut failed = false;
            let mut at = 0;
            while let Some(attempt) = attempts.get_mut(at) {
                match attempt.connecting.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => {
                        return Poll::Ready(Ok((stream, attempts.remove(at).descriptor)));
                    }
                    Poll::Ready(Err(error)) => {
                        let attempt = attempts.remove(at);
                        failure = Some(Failure::of(error, attempt.address).or(failure.take()));
                        free = Some(attempt.descriptor);
                        failed = true;
                    }
                    Poll::Pending => at += 1,
                }
            }
            let due = failed || attempts.is_empty() || left.len() > 0 && turn.as_mut().poll(cx).is_ready();
            if !due {
                return Poll::Pending;
            }
            if left.len() > 0 && free.is_none() && attempts.len() < AT_A_TIME {
                free = Descriptor::for_backend();
            }
            if left.len() > 0 && free.is_none() {
                // The one that was tried longest gives way to the next.
                let now = Instant::now();
                let until = attempts.first().map_or(now, |oldest| oldest.begun + PATIENCE);
                if until > now {
                    turn.as_mut().reset(until);
                    continue;
                }
                free = Some(attempts.remove(0).descriptor);
            }
            match left.next().zip(free.take()) {
                Some((address, descriptor)) => {
                    let address = SocketAddr::new(address, port);
                    let connecting = Box::pin(TcpStream::connect(address));
                    attempts.push(Attempt { address, begun: Instant::now(), connecting, descriptor });
                    turn.as_mut().reset(Instant::now() + STAGGER);
                }
                None if attempts.is_empty() => {
                    let none = || Failure::Backend(io::Error::other("the name has no address"));
                    return Poll::Ready(Err(failure.take().unwrap_or_else(none).into()));
                }
                None => return Poll::Pending,
            }
        }
    })
    .await
}

/// What it means that an address was not connected to.
#[cfg(feature = "simulation")]
pub(crate) fn failure(error: io::Error, address: SocketAddr) -> SendErrorKind {
    Failure::of(error, address).into()
}

/// The addresses with the families in turn, beginning with that of the first.
fn in_turn(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first = addresses.first().is_some_and(IpAddr::is_ipv6);
    let (preferred, other): (Vec<&IpAddr>, Vec<&IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv6() == first);
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len() {
        ordered.extend(preferred.next());
        ordered.extend(other.next());
    }
    ordered
}

/// Why an address was not connected to. Of several failures the last in this order is reported.
#[derive(Debug)]
enum Failure {
    /// This machine has no way to an address of that kind.
    NoRoute(io::Error),
    /// The backend refused, or did not answer.
    Backend(io::Error),
    /// This process could not try the address, which might have been the good one: the backend is not to blame.
    Shortage(io::Error),
}

impl Failure {
    fn of(error: io::Error, address: SocketAddr) -> Failure {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // Of all ports, or because the machine has no address of this family.
            Some(Errno::ADDRNOTAVAIL) if has_route(address) => Failure::Shortage(error),
            Some(Errno::ADDRNOTAVAIL | Errno::NETUNREACH | Errno::AFNOSUPPORT) => Failure::NoRoute(error),
            _ if is_shortage(&error) => Failure::Shortage(error),
            _ => Failure::Backend(error),
        }
    }

    /// The one that says more; of two that say the same, this one.
    fn or(self, before: Option<Failure>) -> Failure {
        let rank = |failure: &Failure| match failure {
            Failure::NoRoute(_) => 0,
            Failure::Backend(_) => 1,
            Failure::Shortage(_) => 2,
        };
        match before {
            Some(before) if rank(&before) > rank(&self) => before,
            _ => self,
        }
    }
}

impl From<Failure> for SendErrorKind {
    fn from(failure: Failure) -> SendErrorKind {
        match failure {
            Failure::Shortage(error) => SendErrorKind::LocalShortage(Arc::new(error)),
            Failure::Backend(error) if error.kind() == io::ErrorKind::TimedOut => {
                SendErrorKind::ConnectTimeout
            }
            Failure::Backend(error) | Failure::NoRoute(error) => SendErrorKind::Connect(Arc::new(error)),
        }
    }
}

/// Whether an error says that this process, not the peer, lacks something: AGAIN is for threads.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN))
}

/// Whether there is a route to an address: found out without using a port of TCP.
fn has_route(address: SocketAddr) -> bool {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    std::net::UdpSocket::bind(any).and_then(|socket| socket.connect(address)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let addresses = ["::1", "::2", "1.1.1.1", "::3", "2.2.2.2"].map(ip);
        assert_eq!(in_turn(&addresses), ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"].map(ip));
        assert_eq!(in_turn(&[ip("1.1.1.1"), ip("::1")]), ["1.1.1.1", "::1"].map(ip));
        assert!(in_turn(&[]).is_empty());
    }

    #[test]
    fn what_fails_at_once_costs_no_time_and_what_is_silent_a_moment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Nobody listens at these.
        let refusing = ["127.0.0.2", "127.0.0.3", "127.0.0.1"].map(ip);
        let begun = std::time::Instant::now();
        let connect = |addresses: &[IpAddr]| {
            let connected = block_on(connect(addresses, port, Descriptor::of_client()));
            connected.map(|(stream, _)| stream)
        };
        let stream = connect(&refusing).unwrap();
        assert_eq!(stream.peer_addr().unwrap().ip(), ip("127.0.0.1"));
        assert!(begun.elapsed() < STAGGER);
        let error = connect(&refusing[..2]).unwrap_err();
        assert!(matches!(error, SendErrorKind::Connect(_)), "{error}");
        assert!(matches!(connect(&[]), Err(SendErrorKind::Connect(_))));
        // One that takes no connection, because its backlog is full: Linux drops what comes.
        let filling = full("127.0.0.4", port);
        let begun = std::time::Instant::now();
        let stream = connect(&[ip("127.0.0.4"), ip("127.0.0.1")]).unwrap();
        assert_eq!(stream.peer_addr().unwrap().ip(), ip("127.0.0.1"));
        assert!((STAGGER..STAGGER * 3).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        drop(filling);
    }

    fn full(address: &str, port: u16) -> Vec<socket2::Socket> {
        let address: SocketAddr = SocketAddr::new(ip(address), port);
        let tcp = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let full = tcp();
        full.bind(&address.into()).unwrap();
        full.listen(0).unwrap();
        let filling = (0..4).map(|_| {
            let socket = tcp();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address.into());
            socket
        });
        let filling: Vec<_> = filling.collect();
        filling.into_iter().chain([full]).collect()
    }

    #[test]
    fn few_addresses_are_tried_at_a_time_and_the_last_one_still_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let deaf: Vec<String> = (11..16).map(|n| format!("127.0.0.{n}")).collect();
        let _full: Vec<_> = deaf.iter().map(|address| full(address, port)).collect();
        // SYN_SENT to that port, those that fill the backlogs among them.
        let counted = || {
            let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
            let sent = |line: &&str| {
                let mut columns = line.split_whitespace().skip(2);
                let to = columns.next().is_some_and(|to| to.ends_with(&format!(":{port:04X}")));
                to && columns.next() == Some("02")
            };
            table.lines().filter(sent).count()
        };
        // The kernel does not give the table in one piece: a connection that begins in the place of another may be there beside it.
        let waiting = || counted().min(counted());
        let before = waiting();
        let mut addresses: Vec<IpAddr> = deaf.iter().map(|address| ip(address)).collect();
        addresses.push(ip("127.0.0.1"));
        let mut most = 0;
        let (stream, _descriptor) = block_on(async {
            let mut connecting = pin!(connect(&addresses, port, Descriptor::of_client()));
            loop {
                tokio::select! {
                    connected = &mut connecting => break connected.unwrap(),
                    () = sleep(Duration::from_millis(50)) => most = most.max(waiting().saturating_sub(before)),
                }
            }
        });
        assert_eq!(stream.peer_addr().unwrap().ip(), ip("127.0.0.1"));
        assert!((1..=AT_A_TIME).contains(&most), "{most} at a time");
    }

    #[test]
    fn who_is_to_blame() {
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let failure = |errno: Errno| Failure::of(errno.into(), address);
        for errno in
            [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL, Errno::AGAIN]
        {
            assert!(
                matches!(SendErrorKind::from(failure(errno)), SendErrorKind::LocalShortage(_)),
                "{errno:?}"
            );
        }
        for errno in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::NETUNREACH, Errno::CONNRESET] {
            assert!(matches!(SendErrorKind::from(failure(errno)), SendErrorKind::Connect(_)), "{errno:?}");
        }
        assert!(matches!(SendErrorKind::from(failure(Errno::TIMEDOUT)), SendErrorKind::ConnectTimeout));
        // Of several the one that says the most.
        let worst = failure(Errno::NETUNREACH).or(Some(failure(Errno::CONNREFUSED)));
        assert!(
            matches!(&worst, Failure::Backend(error) if error.kind() == io::ErrorKind::ConnectionRefused)
        );
        assert!(matches!(failure(Errno::CONNREFUSED).or(Some(failure(Errno::MFILE))), Failure::Shortage(_)));
    }
}
