//! What the settings of a WSO2 server, or of a project for one, say. Each of their files is read once, so that all that is taken from it is of
//! one version. What becomes of each key, and what cannot be read, is reported by [`crate::server_settings::report`].

use crate::secrets::is_filled_in;
use crate::server_settings::{
    BIND_ADDRESS, FILES, LARGEST_BY_DEFAULT, OFFSET, PORT, SECURED_PORT, SYSTEM, directories, flatten,
    is_honoured, is_toml, read, read_by, toml_keys, translation, tunable,
};
use crate::settings_file::line_and_column;
use message::Kind;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use xml::Document;

/// The ports of a WSO2 server before its offset.
const HTTP: i64 = 8280;
const HTTPS: i64 = 8243;
const MANAGEMENT: i64 = 9154;

/// The settings of a server.
pub struct Server {
    path: PathBuf,
    directories: Vec<Directory>,
}

/// What is in one of its directories.
struct Directory {
    /// Those of property files, then those of `deployment.toml`.
    keys: Vec<Key>,
    /// `deployment.toml`, where it is one.
    toml: Option<toml::Table>,
    axis2: Axis2,
}

struct Key {
    /// With its sections: `transport.http.socket_timeout`.
    name: String,
    value: toml::Value,
    /// It stands in `deployment.toml`.
    of_toml: bool,
    /// Where, as `file:line:column`; the file alone where that is not said.
    place: String,
}

/// `axis2.xml`.
enum Axis2 {
    Absent,
    /// It is not XML.
    Broken,
    Read(Box<Document>),
}

impl Server {
    /// Reads the settings of the server at `path`.
    pub fn read(path: &Path) -> Server {
        let directories = directories(path).iter().map(|directory| Directory::read(directory)).collect();
        Server { path: path.to_owned(), directories }
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.directories.iter().flat_map(|directory| &directory.keys)
    }

    /// Each `deployment.toml`.
    pub fn tables(&self) -> impl Iterator<Item = &toml::Table> {
        self.directories.iter().filter_map(|directory| directory.toml.as_ref())
    }

    /// Each `axis2.xml`.
    fn documents(&self) -> impl Iterator<Item = &Document> {
        self.directories.iter().filter_map(|directory| directory.axis2.document())
    }

    /// The `axis2.xml` of the first directory that has one.
    pub fn axis2(&self) -> Option<&Document> {
        self.directories.iter().find(|directory| !matches!(directory.axis2, Axis2::Absent))?.axis2.document()
    }

    /// The tunables, under the names of `[wso2]`; those of property files before those of `deployment.toml`.
    pub fn tunables(&self) -> toml::Table {
        let setting = |key: &Key| {
            let name = if key.of_toml { tunable(&key.name) } else { &key.name };
            let is_given = !key.of_toml || !key.value.as_str().is_some_and(is_filled_in);
            (is_given && is_honoured(name)).then(|| (name.to_owned(), key.value.clone()))
        };
        let mut found: toml::Table = self.keys().filter_map(setting).collect();
        // The property has no bound of its own, the key has one.
        let is_checked = |key: &Key| key.of_toml && tunable(&key.name) == "message.size.validation.enabled";
        if self.keys().any(is_checked) {
            found.entry("valid.max.message.size.in.bytes").or_insert(LARGEST_BY_DEFAULT.into());
        }
        found
    }

    /// What is for `[http]`, by its names here; that of `deployment.toml` last.
    pub fn http(&self) -> toml::Table {
        let given = self.keys().filter(|key| !key.value.as_str().is_some_and(is_filled_in));
        let setting = |key: &Key| {
            let (.., name, translate) = translation(&key.name)?;
            Some(((*name).to_owned(), translate(&key.value)?))
        };
        given.filter_map(setting).collect()
    }

    /// Where `deployment.toml` lets the bus listen, by the names of `[listen]`; nothing where it does not say. `secured`: there is a
    /// certificate for https.
    ///
    /// # Errors
    /// A port or an address that is none.
    pub fn listen(&self, secured: bool) -> Result<toml::Table, String> {
        let given = |name: &str| {
            let mut keys = self.keys().filter(|key| key.of_toml && key.name == name);
            keys.find_map(|key| {
                let text = key.value.as_str().map_or_else(|| key.value.to_string(), str::to_owned);
                (!is_filled_in(&text)).then(|| (text.trim().to_owned(), key.place.as_str()))
            })
        };
        let number = |name: &str| match given(name) {
            None => Ok(None),
            Some((text, place)) => text
                .parse::<i64>()
                .map(Some)
                .map_err(|_| format!("{place}: `{name}`: `{text}`: expected a number")),
        };
        let host = match given(BIND_ADDRESS) {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some((text, _)) if text == "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some((text, place)) => text
                .parse()
                .map_err(|_| format!("{place}: `{BIND_ADDRESS}`: `{text}`: expected an IP address"))?,
        };
        let offset = number(OFFSET)?;
        let is_bound = given(BIND_ADDRESS).is_some();
        let mut table = toml::Table::new();
        for (name, key, port) in [
            ("http", Some(PORT), HTTP),
            ("https", Some(SECURED_PORT).filter(|_| secured), HTTPS),
            ("admin", None, MANAGEMENT),
        ] {
            let own = key.map(number).transpose()?.flatten();
            let counts = match name {
                "https" => secured && (own.is_some() || offset.is_some() || is_bound),
                "admin" => offset.is_some(),
                _ => own.is_some() || offset.is_some() || is_bound,
            };
            if !counts {
                continue;
            }
            let moved = own.unwrap_or(port).saturating_add(offset.unwrap_or(0));
            let port = u16::try_from(moved).map_err(|_| {
                let of_key = |key: &str| given(key).map(|(_, place)| format!("{place}: "));
                let place = of_key(OFFSET).or_else(|| of_key(key?)).unwrap_or_default();
                format!("{place}{moved} is no port for {name} (`{OFFSET}` is part of it)")
            })?;
            let host = if name == "admin" { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { host };
            table.insert(name.to_owned(), SocketAddr::new(host, port).to_string().into());
        }
        Ok(table)
    }

    /// The properties of the Java machine, for flows that ask for them.
    pub fn system(&self) -> BTreeMap<String, String> {
        let setting = |key: &Key| {
            let name = key.name.strip_prefix(SYSTEM).filter(|_| key.of_toml)?;
            let text = key.value.as_str().map_or_else(|| key.value.to_string(), str::to_owned);
            (!is_filled_in(&text)).then(|| (name.to_owned(), text))
        };
        self.keys().filter_map(setting).collect()
    }

    /// How bodies of types are read that nothing else tells, by builders: `[[custom_message_builders]]` of `deployment.toml`, then the
    /// `messageBuilder`s of `axis2.xml`.
    pub fn kinds(&self) -> Vec<(String, Kind)> {
        self.directories.iter().flat_map(Directory::kinds).collect()
    }

    /// Hot deployment: `server.hot_deployment` of `deployment.toml`, else the parameter `hotdeployment` of `axis2.xml`.
    pub fn hot_deployment(&self) -> Option<bool> {
        let toml = |table: &toml::Table| table.get("server")?.get("hot_deployment")?.as_bool();
        let axis2 = |document: &Document| {
            let mut children = document.children(document.document_element()?);
            let parameter = children.find(|node| is_parameter(document, *node, "hotdeployment"))?;
            document.string_value(parameter).trim().parse().ok()
        };
        self.tables().find_map(toml).or_else(|| self.documents().find_map(axis2))
    }

    /// The users: `[[internal_apis.users]]` of `deployment.toml`, unless the store of them is switched off
    /// (`[internal_apis.file_user_store] enable = false`). Those whose password only a server can fill in are none.
    pub fn users(&self) -> Vec<User> {
        let mut found: Vec<User> = Vec::new();
        for apis in self.tables().filter_map(|table| table.get("internal_apis")) {
            let enabled = apis.get("file_user_store").and_then(|store| store.get("enable"));
            if enabled.is_some_and(|enable| enable.as_bool() == Some(false)) {
                continue;
            }
            for entry in apis.get("users").and_then(toml::Value::as_array).into_iter().flatten() {
                let text =
                    |name: &str| entry.get("user")?.get(name)?.as_str().filter(|text| !text.is_empty());
                let (Some(name), Some(password)) = (text("name"), text("password")) else { continue };
                let is_known = found.iter().any(|user| user.name == name);
                if !is_known && !is_filled_in(name) && !is_filled_in(password) {
                    let is_admin = match entry.get("user").and_then(|user| user.get("is_admin")) {
                        Some(toml::Value::Boolean(is_admin)) => *is_admin,
                        Some(toml::Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
                        _ => false,
                    };
                    found.push(User { name: name.to_owned(), password: password.to_owned(), is_admin });
                }
            }
        }
        found
    }

    /// The `priorityConfigFile` of the http listener: of `deployment.toml`, else of `axis2.xml`. Its path is relative to that of the server.
    pub fn priorities(&self) -> Option<PathBuf> {
        let toml = |table: &toml::Table| {
            let listener = table.get("transport")?.get("http")?.get("listener")?;
            let custom =
                listener.get("parameter").and_then(|parameters| parameters.get("priorityConfigFile"));
            custom.or_else(|| listener.get("priority_config_file"))?.as_str().map(str::to_owned)
        };
        let axis2 = |document: &Document| {
            let receivers = document.children(document.document_element()?).filter(|node| {
                document.local(*node) == "transportReceiver"
                    && matches!(document.attribute(*node, "", "name"), Some("http" | "https"))
            });
            let mut parameters = receivers.flat_map(|receiver| document.children(receiver));
            let parameter = parameters.find(|node| is_parameter(document, *node, "priorityConfigFile"))?;
            Some(document.string_value(parameter).trim().to_owned())
        };
        let named = self.tables().find_map(toml).or_else(|| self.documents().find_map(axis2))?;
        (!named.is_empty()).then(|| self.path.join(named))
    }
}

/// A user of the file user store. Not `Debug`: nothing shows a password.
pub struct User {
    pub name: String,
    pub password: String,
    /// It has the role `admin`.
    pub is_admin: bool,
}

impl Directory {
    fn read(path: &Path) -> Directory {
        let (mut keys, mut toml) = (Vec::new(), None);
        for file in FILES.map(|name| path.join(name)) {
            let Ok(text) = read(&file) else { continue };
            let of_toml = is_toml(&file);
            let (mut flat, mut written) = (Vec::new(), Vec::new());
            if of_toml {
                written = toml_keys(&text).unwrap_or_default();
                toml = config::deployment_tables(&text).ok().map(|(tables, _)| tables);
                toml.iter().flatten().for_each(|(name, value)| flatten(name, value, &mut flat));
            } else {
                let properties = config::properties(&text).into_iter();
                flat.extend(properties.map(|(name, value)| (name, toml::Value::String(value))));
            }
            let place = |name: &str| {
                let of_key = written.iter().find(|key| key.key == name);
                let at = of_key.map(|key| line_and_column(&text, key.at.start));
                let file = file.display();
                at.map_or_else(|| file.to_string(), |(line, column)| format!("{file}:{line}:{column}"))
            };
            keys.extend(flat.into_iter().map(|(name, value)| {
                let place = place(&name);
                Key { name, value, of_toml, place }
            }));
        }
        Directory { keys, toml, axis2: Axis2::read(path) }
    }

    fn kinds(&self) -> Vec<(String, Kind)> {
        let mut found = Vec::new();
        let custom = self.toml.as_ref().and_then(|table| table.get("custom_message_builders")?.as_array());
        for entry in custom.into_iter().flatten() {
            let text = |name: &str| entry.get(name)?.as_str();
            found.extend(text("content_type").zip(text("class").and_then(read_by)).map(named));
        }
        let axis2 = self.axis2.document().and_then(|document| Some((document, document.document_element()?)));
        if let Some((document, root)) = axis2 {
            let builders = document.children(root).filter(|node| document.local(*node) == "messageBuilders");
            for builder in builders.flat_map(|node| document.children(node)) {
                let text = |name: &str| document.attribute(builder, "", name);
                found.extend(text("contentType").zip(text("class").and_then(read_by)).map(named));
            }
        }
        found
    }
}

impl Axis2 {
    fn read(directory: &Path) -> Axis2 {
        let files = ["axis2.xml", "axis2/axis2.xml"].map(|name| directory.join(name));
        let Some(bytes) = files.iter().find_map(|file| config::read_file(file).ok()) else {
            return Axis2::Absent;
        };
        Document::parse(bytes, &xml::ParseOptions::trusted())
            .map_or(Axis2::Broken, |document| Axis2::Read(Box::new(document)))
    }

    fn document(&self) -> Option<&Document> {
        match self {
            Axis2::Read(document) => Some(document),
            Axis2::Absent | Axis2::Broken => None,
        }
    }
}

fn is_parameter(document: &Document, node: xml::NodeId, name: &str) -> bool {
    document.local(node) == "parameter" && document.attribute(node, "", "name") == Some(name)
}

fn named((name, kind): (&str, Kind)) -> (String, Kind) {
    (name.trim().to_owned(), kind)
}
