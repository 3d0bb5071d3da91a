//! A connection to one node of a cluster. The library decides which node gets a command; the connection is that of the bus, and its replies are bounded as
//! those of a single server.

use super::counted::{Count, CountedSocket};
use flow::Services;
use flow::services::TlsProfiles;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::Connect;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo, Pipeline, RedisError,
    RedisFuture, Value,
};
use std::sync::{Arc, Mutex};
use transport::Client;

/// How nodes are connected to, and the bytes of a reply. The library makes connections when it finds that it needs them, and does not say for whom; what is
/// meant is the same for the whole process.
static IN_FORCE: Mutex<Option<Means>> = Mutex::new(None);

#[derive(Clone)]
struct Means {
    client: Client,
    tls: Arc<TlsProfiles>,
    most: usize,
}

/// From now on nodes are connected to as these services say.
pub(super) fn connect_with(services: &Services) {
    let most = services.limits.held;
    let means = Means { client: services.client.clone(), tls: Arc::clone(&services.tls), most };
    *flow::lock(&IN_FORCE) = Some(means);
}

/// See the module.
#[derive(Clone)]
pub(super) struct Node {
    connection: MultiplexedConnection,
    count: Count,
    most: usize,
}

impl Node {
    async fn bounded<T>(
        count: Count,
        most: usize,
        asking: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, RedisError> {
        count.begin(most);
        let reply = asking.await;
        match count.stopped() {
            // Another attempt would have the same reply.
            Some(why) => Err(RedisError::from((ErrorKind::Client, TOO_LARGE, why.text()))),
            None => reply,
        }
    }
}

/// How the error of a reply that is not read to its end begins.
pub(super) const TOO_LARGE: &str = "the reply is not read to its end";

impl Connect for Node {
    fn connect_with_config<'a, T>(info: T, _: AsyncConnectionConfig) -> RedisFuture<'a, Node>
    where
        T: IntoConnectionInfo + Send + 'a,
    {
        Box::pin(async move {
            let info = info.into_connection_info()?;
            let failed = |why: String| {
                RedisError::from(std::io::Error::new(std::io::ErrorKind::ConnectionRefused, why))
            };
            let Some(Means { client, tls, most }) = flow::lock(&IN_FORCE).clone() else {
                return Err(failed("nothing says how to connect".to_owned()));
            };
            let (host, port, is_secure) = match info.addr() {
                ConnectionAddr::Tcp(host, port) => (host, *port, false),
                ConnectionAddr::TcpTls { host, port, .. } => (host, *port, true),
                _ => return Err(failed("it is no address of TCP".to_owned())),
            };
            let mut socket = client.dial(host, port).await.map_err(|why| failed(why.to_string()))?;
            if is_secure {
                let profile = tls.find(host, port).cloned();
                let profile =
                    profile.ok_or_else(|| failed("there are no trusted authorities for TLS".to_owned()))?;
                socket = socket.secure(&profile, host).await.map_err(|why| failed(why.to_string()))?;
            }
            let count = Count::default();
            count.begin(super::GREETINGS);
            let socket = CountedSocket { socket, count: count.clone() };
            // The timeout of the operation limits each reply.
            let config = AsyncConnectionConfig::new().set_response_timeout(None);
            let connecting = MultiplexedConnection::new_with_config(info.redis_settings(), socket, config);
            let (connection, driver) = connecting.await?;
            // It ends with the last copy of the connection.
            tokio::spawn(driver);
            Ok(Node { connection, count, most })
        })
    }
}

impl ConnectionLike for Node {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let asking = self.connection.send_packed_command(command);
        Box::pin(Node::bounded(self.count.clone(), self.most, asking))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let asking = self.connection.send_packed_commands(commands, offset, count);
        Box::pin(Node::bounded(self.count.clone(), self.most, asking))
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}
