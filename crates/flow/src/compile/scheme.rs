//! Addresses of transports that are not here: what each would need.

/// Schemes of files of other machines.
const ELSEWHERE: [&str; 8] = ["sftp", "ftp", "ftps", "smb", "smb2", "webdav", "webdavs", "scp"];

/// The transport that an address belongs to, and what to do instead; `None` for http, https and what is not an address.
pub fn other_transport(url: &str) -> Option<(&str, &'static str)> {
    const QUEUES: &str = "a message broker is needed: send to a service over HTTP that puts the message there, or use a `store` with a message store";
    const FILES: &str = "files of this machine are written with vfs:file:///directory";
    const MAIL: &str = "no mail is sent: send to a service over HTTP that does";
    const SOCKETS: &str = "plain sockets are not spoken: send to a service over HTTP that does";
    const SAP: &str = "SAP needs Java libraries: send to a service over HTTP";
    let transports: [(&str, &str); 17] = [
        ("jms", QUEUES),
        ("rabbitmq", QUEUES),
        ("amqp", QUEUES),
        ("kafka", QUEUES),
        ("mqtt", QUEUES),
        ("msmq", QUEUES),
        ("vfs", FILES),
        ("file", FILES),
        ("mailto", MAIL),
        ("local", "write local://services/NAME with the name of a proxy service"),
        ("tcp", SOCKETS),
        ("udp", SOCKETS),
        ("fix", SOCKETS),
        ("hl7", SOCKETS),
        ("sap", SAP),
        ("bapi", SAP),
        ("idoc", SAP),
    ];
    let (scheme, rest) = url.trim_start().split_once(':')?;
    // `vfs:` is in front of what says where the files are.
    let inner =
        if scheme.eq_ignore_ascii_case("vfs") { rest.split_once(':').map(|parts| parts.0) } else { None };
    let of_files = inner.unwrap_or(scheme);
    if ELSEWHERE.iter().any(|scheme_elsewhere| of_files.eq_ignore_ascii_case(scheme_elsewhere)) {
        return Some((of_files, crate::engine::file::instead(of_files)));
    }
    if let Some(transport) = transports.into_iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)) {
        return Some(transport);
    }
    let http = ["http", "https", "ws", "wss"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    // `host:8080/path` has no scheme.
    (named && !http && rest.starts_with('/')).then_some((scheme, "expected http or https"))
}

#[cfg(test)]
mod tests {
    use super::other_transport;

    #[test]
    fn transports_are_known_by_their_schemes() {
        for (url, wanted) in [
            ("jms:/queue?transport.jms.ConnectionFactory=q", Some("jms")),
            ("vfs:sftp://host/out", Some("sftp")),
            ("VFS:FTP://host/out", Some("FTP")),
            ("smb://host/out", Some("smb")),
            ("vfs:out", Some("vfs")),
            ("vfs:other:out", Some("vfs")),
            ("MAILTO:a@b.example", Some("mailto")),
            ("local://axis2services/X", Some("local")),
            ("bapi:/SYSTEM", Some("bapi")),
            ("htp://host/x", Some("htp")),
            ("oracle-aq:/queue", Some("oracle-aq")),
            ("host:8080/x", None),
            ("http:/x", None),
            ("{uri.var.x}:/y", None),
            ("http://jms/x", None),
            ("localhost", None),
            ("", None),
        ] {
            assert_eq!(other_transport(url).map(|(name, _)| name), wanted, "{url}");
        }
    }
}
