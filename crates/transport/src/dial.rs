//! Connections for other protocols than HTTP: names, addresses, descriptors and TLS as for backends, the bytes as they are.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::client::unresolved;
use crate::descriptors::Descriptor;
use crate::{Client, ClientTls, SendErrorKind, connect};

/// A connection to a server.
pub struct Socket {
    stream: Stream,
    _descriptor: Descriptor,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Client {
    /// Connects to a server. How long that may take is up to who waits.
    ///
    /// # Errors
    /// It has no address, none accepts, or this process has no descriptor left.
    pub async fn dial(&self, host: &str, port: u16) -> Result<Socket, SendErrorKind> {
        let descriptor = self.descriptor()?;
        let (stream, descriptor) = match host.parse() {
            Ok(ip) => connect::connect(&[ip], port, descriptor).await?,
            Err(_) => {
                let addresses = self.resolver().resolve(host).await.map_err(unresolved)?;
                connect::connect(&addresses, port, descriptor).await?
            }
        };
        let _ = stream.set_nodelay(true);
        Ok(Socket { stream: Stream::Plain(stream), _descriptor: descriptor })
    }
}

impl Socket {
    /// The same connection with TLS from here on, to a server of this name.
    ///
    /// # Errors
    /// The handshake fails, or there is TLS already.
    pub async fn secure(self, profile: &ClientTls, host: &str) -> Result<Socket, SendErrorKind> {
        let failed = |error: io::Error| SendErrorKind::Tls(Arc::new(error));
        let Stream::Plain(stream) = self.stream else {
            return Err(failed(io::Error::other("the connection has TLS already")));
        };
        // What is spoken is no HTTP.
        let mut config = rustls::ClientConfig::clone(profile.config());
        config.alpn_protocols.clear();
        let name = profile.server_name(host).map_err(|error| failed(io::Error::other(error)))?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name.clone(), stream).await.map_err(failed)?;
        profile.check(stream.get_ref().1, &name).await.map_err(failed)?;
        Ok(Socket { stream: Stream::Tls(Box::new(stream)), _descriptor: self._descriptor })
    }

    /// Whether what is sent is encrypted.
    pub fn is_secure(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
