//! Forward proxies: the settings `[[proxy]]`, and what a WSO2 server says of its own (`deployment.toml`, the sender of `axis2.xml`).

use crate::server::Server;
use base64::Engine;
use flow::services::{Hosts, Route};
use message::regex::Pattern;
use serde::Deserialize;
use transport::Proxy;

/// A forward proxy, or that there is none, for some hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForwardProxy {
    /// Names of hosts, with `*` for any letters. Default: all.
    pub hosts: Vec<String>,
    /// The same as regular expressions, each for a whole name.
    pub patterns: Vec<String>,
    /// `host:port`; absent, or `direct`: these hosts are reached without a proxy.
    pub address: Option<String>,
    /// The user at the proxy.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<Hidden>,
}

/// A text that is never shown.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("***")
    }
}

/// The routes through proxies, in their order.
///
/// # Errors
/// An address or an expression cannot be read, or user and password do not go together.
pub fn routes(settings: &[ForwardProxy]) -> Result<Vec<Route>, String> {
    settings.iter().map(route).collect()
}

fn route(settings: &ForwardProxy) -> Result<Route, String> {
    let shown_address = match settings.address.as_deref() {
        Some(address) => diagnostics::without_credentials(address),
        None => "without an address".into(),
    };
    let fail = |why: String| format!("proxy {shown_address}: {why}");
    let mut hosts: Vec<Hosts> = Vec::new();
    for written in settings.hosts.iter().flat_map(|hosts| hosts.split('|')) {
        let written = written.trim();
        if !written.is_empty() {
            hosts.push(Hosts::Written(written.to_owned()));
        }
    }
    for pattern in &settings.patterns {
        let pattern = if pattern == "*" { ".*" } else { pattern };
        let compiled = Pattern::compile(pattern).map_err(|why| fail(format!("`{pattern}`: {why}")))?;
        hosts.push(Hosts::Pattern(compiled));
    }
    if settings.hosts.is_empty() && settings.patterns.is_empty() {
        hosts.push(Hosts::Written("*".to_owned()));
    }
    let authorization = match (&settings.user, &settings.password) {
        (None, None) => None,
        (Some(user), password) => {
            let both = format!("{user}:{}", password.as_ref().map_or("", |password| &password.0));
            Some(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(both)))
        }
        (None, Some(_)) => return Err(fail("a password without a user".to_owned())),
    };
    let proxy = match settings.address.as_deref().map(str::trim) {
        None | Some("direct") => None,
        Some(address) => {
            let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
            let (host, port) = address
                .rsplit_once(':')
                .and_then(|(host, port)| Some((host, port.parse::<u16>().ok().filter(|port| *port > 0)?)))
                .filter(|(host, _)| !host.is_empty() && !host.contains(['/', '@', ' ']))
                .ok_or_else(|| fail("expected host:port".to_owned()))?;
            Some(Proxy::new(host, port, authorization))
        }
    };
    Ok(Route { hosts, proxy })
}

/// What the settings of a server say: those of its first `deployment.toml`, else of `axis2.xml`.
pub fn of_server(server: &Server) -> Vec<ForwardProxy> {
    let toml = server.tables().next().map(of_toml).filter(|proxies| !proxies.is_empty());
    toml.or_else(|| server.axis2().map(of_axis2)).unwrap_or_default()
}

/// One value as WSO2 has it: a text that may be a number.
fn text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) if !text.trim().is_empty() && !text.contains("$ref{") => {
            Some(text.trim().to_owned())
        }
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

fn list(value: Option<&toml::Value>) -> Vec<String> {
    match value {
        Some(toml::Value::Array(list)) => list.iter().filter_map(text).collect(),
        Some(value) => text(value)
            .map(|text| text.split([',', '|']).map(|host| host.trim().to_owned()).collect())
            .unwrap_or_default(),
        None => Vec::new(),
    }
}

fn of_toml(table: &toml::Table) -> Vec<ForwardProxy> {
    let http = |key: &str| table.get("transport")?.get("http")?.get(key);
    let mut proxies = Vec::new();
    if let Some(toml::Value::Array(profiles)) = http("proxy_profile") {
        for profile in profiles {
            let value = |name: &str| profile.get(name).and_then(text);
            proxies.extend(of_profile(
                list(profile.get("target_hosts")),
                list(profile.get("bypass_hosts")),
                [value("proxy_host"), value("proxy_port"), value("proxy_username"), value("proxy_password")],
            ));
        }
    }
    if let Some(sender) = http("sender") {
        let value = |name: &str| sender.get(name).and_then(text);
        proxies.extend(of_sender(
            list(sender.get("non_proxy_hosts")),
            [value("proxy_host"), value("proxy_port"), value("proxy_username"), value("proxy_password")],
        ));
    }
    proxies
}

fn of_axis2(document: &xml::Document) -> Vec<ForwardProxy> {
    let mut proxies = Vec::new();
    let Some(root) = document.document_element() else { return proxies };
    let is = |node: &xml::NodeId, name: &str| document.local(*node) == name;
    let named = |node: xml::NodeId, name: &str| {
        document
            .children(node)
            .find(|child| is(child, "parameter") && document.attribute(*child, "", "name") == Some(name))
    };
    let written = |node: xml::NodeId| {
        let text = document.string_value(node).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    // Both senders have the same ones.
    let sender = document
        .children(root)
        .find(|node| is(node, "transportSender") && document.attribute(*node, "", "name") == Some("http"));
    let Some(sender) = sender else { return proxies };
    if let Some(profiles) = named(sender, "proxyProfiles") {
        for profile in document.children(profiles).filter(|node| is(node, "profile")) {
            let child_text =
                |name: &str| document.children(profile).find(|node| is(node, name)).and_then(written);
            let names = |name: &str| {
                let text = child_text(name).unwrap_or_default();
                text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
            };
            proxies.extend(of_profile(
                names("targetHosts"),
                names("bypass"),
                [
                    child_text("proxyHost"),
                    child_text("proxyPort"),
                    child_text("proxyUserName"),
                    child_text("proxyPassword"),
                ],
            ));
        }
    }
    let value = |name: &str| named(sender, name).and_then(written);
    let bypassed = value("http.nonProxyHosts").into_iter().collect();
    proxies.extend(of_sender(
        bypassed,
        [
            value("http.proxyHost"),
            value("http.proxyPort"),
            value("http.proxy.username"),
            value("http.proxy.password"),
        ],
    ));
    proxies
}

/// Host, port, user, password.
type Parts = [Option<String>; 4];

/// Some hosts, as regular expressions, go through one proxy, but for those that bypass it.
fn of_profile(patterns: Vec<String>, bypass: Vec<String>, parts: Parts) -> Vec<ForwardProxy> {
    let Some(proxy) = of_parts(parts) else { return Vec::new() };
    let bypass = (!bypass.is_empty()).then(|| ForwardProxy { patterns: bypass, ..ForwardProxy::default() });
    bypass.into_iter().chain([ForwardProxy { patterns, ..proxy }]).collect()
}

/// All hosts go through one proxy, but for those that do not.
fn of_sender(bypass: Vec<String>, parts: Parts) -> Vec<ForwardProxy> {
    let Some(proxy) = of_parts(parts) else { return Vec::new() };
    let bypass = (!bypass.is_empty()).then(|| ForwardProxy { hosts: bypass, ..ForwardProxy::default() });
    bypass.into_iter().chain([proxy]).collect()
}

fn of_parts([host, port, user, password]: Parts) -> Option<ForwardProxy> {
    let port = port.unwrap_or_else(|| "80".to_owned());
    let password = user.as_ref().and(password).map(Hidden);
    Some(ForwardProxy {
        address: Some(format!("{}:{port}", host?)),
        user,
        password,
        ..ForwardProxy::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(proxies: &[ForwardProxy]) -> Vec<String> {
        let line = |settings: &ForwardProxy| {
            let hosts = [settings.hosts.join(","), settings.patterns.join(",")].concat();
            let user = settings.user.as_ref().map(|user| format!(" as {user}")).unwrap_or_default();
            format!("{hosts} -> {}{user}", settings.address.as_deref().unwrap_or("direct"))
        };
        proxies.iter().map(line).collect()
    }

    #[test]
    fn a_server_says_its_proxies_in_two_ways() {
        let toml = r#"
            [transport.http]
            sender.proxy_host = "p"
            sender.proxy_port = 3128
            sender.non_proxy_hosts = ["localhost", "*.inner"]
            [[transport.http.proxy_profile]]
            target_hosts = ["a.example", ".*\\.b\\.example"]
            proxy_host = "q"
            proxy_port = "8080"
            proxy_username = "u"
            proxy_password = "s"
            bypass_hosts = ["x.b.example"]
        "#;
        let wanted = [
            "x.b.example -> direct",
            "a.example,.*\\.b\\.example -> q:8080 as u",
            "localhost,*.inner -> direct",
            "p:3128",
        ];
        let of_toml = shown(&of_toml(&toml.parse().unwrap()));
        assert_eq!(of_toml[..3], wanted[..3]);
        assert_eq!(of_toml[3], " -> p:3128");
        let axis2 = r#"<axisconfig><transportSender name="http">
            <parameter name="http.proxyHost">p</parameter><parameter name="http.proxyPort">3128</parameter>
            <parameter name="http.nonProxyHosts">localhost|*.inner</parameter>
            <parameter name="proxyProfiles"><profile>
              <targetHosts>a.example,.*\.b\.example</targetHosts><proxyHost>q</proxyHost><proxyPort>8080</proxyPort>
              <proxyUserName>u</proxyUserName><proxyPassword>s</proxyPassword><bypass>x.b.example</bypass>
            </profile></parameter></transportSender></axisconfig>"#;
        let document =
            xml::Document::parse(axis2.as_bytes().to_vec(), &xml::ParseOptions::trusted()).unwrap();
        let proxies = of_axis2(&document);
        assert_eq!(shown(&proxies)[..2], wanted[..2]);
        assert_eq!(shown(&proxies)[2..], ["localhost|*.inner -> direct", " -> p:3128"]);
        assert_eq!(routes(&proxies).unwrap().len(), 4);
        assert!(!format!("{proxies:?}").contains('s') || !format!("{proxies:?}").contains("\"s\""));
    }

    #[test]
    fn what_is_no_proxy_is_said() {
        for (address, password, why) in [
            ("p", None, "expected host:port"),
            ("p:0", None, "expected host:port"),
            ("u@p:1", None, "expected host:port"),
            ("p:1", Some("x"), "a password without a user"),
        ] {
            let settings = ForwardProxy {
                address: Some(address.to_owned()),
                password: password.map(|password| Hidden(password.to_owned())),
                ..ForwardProxy::default()
            };
            let error = routes(&[settings]).err().unwrap_or_default();
            assert!(error.contains(why), "{address}: {error}");
        }
        let settings = ForwardProxy { patterns: vec!["(".to_owned()], ..ForwardProxy::default() };
        assert!(routes(&[settings]).is_err());
    }
}
