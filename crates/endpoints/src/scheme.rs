//! Addresses of transports that are not here: what each would need.

/// The transport that an address belongs to, and what to do instead; `None` for http, https and what is no address.
pub fn other_transport(url: &str) -> Option<(&'static str, &'static str)> {
    const QUEUES: &str = "a message broker is needed: send to a service over HTTP that puts the message there, or use a `store` with a message store";
    const FILES: &str = "files are neither read nor written: send to a service over HTTP that does";
    const MAIL: &str = "no mail is sent: send to a service over HTTP that does";
    const SOCKETS: &str = "plain sockets are not spoken: send to a service over HTTP that does";
    let transports: [(&str, &str); 21] = [
        ("jms", QUEUES),
        ("rabbitmq", QUEUES),
        ("amqp", QUEUES),
        ("kafka", QUEUES),
        ("mqtt", QUEUES),
        ("msmq", QUEUES),
        ("vfs", FILES),
        ("file", FILES),
        ("ftp", FILES),
        ("ftps", FILES),
        ("sftp", FILES),
        ("smb", FILES),
        ("mailto", MAIL),
        ("local", "within the server only proxy services can be called: local://services/NAME"),
        ("tcp", SOCKETS),
        ("udp", SOCKETS),
        ("fix", SOCKETS),
        ("hl7", SOCKETS),
        ("ws", "no WebSockets are opened: send over HTTP"),
        ("wss", "no WebSockets are opened: send over HTTP"),
        ("sap", "SAP needs Java libraries: send to a service over HTTP"),
    ];
    let (scheme, _) = url.trim_start().split_once(':')?;
    transports.into_iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::other_transport;

    #[test]
    fn transports_are_known_by_their_schemes() {
        for (url, wanted) in [
            ("jms:/queue?transport.jms.ConnectionFactory=q", Some("jms")),
            ("vfs:file:///tmp/out", Some("vfs")),
            ("MAILTO:a@b.example", Some("mailto")),
            ("local://axis2services/X", Some("local")),
            ("http://jms/x", None),
            ("localhost", None),
            ("", None),
        ] {
            assert_eq!(other_transport(url).map(|(name, _)| name), wanted, "{url}");
        }
    }
}
