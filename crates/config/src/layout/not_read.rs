//! Files of a project, home or archive that are not read, and why: one finding for each reason.

use diagnostics::{Diagnostic, Severity, SourceMap, Span};
use std::path::{Path, PathBuf};

/// Why a file is not read.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reason {
    Connector,
    Java,
    WebApplication,
    ApiDefinition,
    ServiceMetadata,
    Keystore,
    SetAside,
    Tenant,
    OtherServer,
    Transports,
    Elsewhere,
    OtherKind,
    Capitals,
    Registry,
    DataService,
    NoArtifact,
    Unlisted,
    Unknown,
    UnitTest,
    BuildOutput,
    Unpacked,
    ServerPart,
    Tooling,
}

impl Reason {
    /// The name of the group, why it is not read and what to do; the severity.
    fn explained(self) -> (&'static str, &'static str, Severity) {
        use Severity::{Note, Warning};
        match self {
            Reason::Connector => (
                "connectors",
                "Busbar has operations of its own; those that it lacks are reported where they are used",
                Note,
            ),
            Reason::Java => (
                "Java code",
                "Busbar runs no Java: write the logic as a script, or as a service of its own",
                Warning,
            ),
            Reason::WebApplication => {
                ("web applications and Axis2 services", "they need a Java server", Warning)
            }
            Reason::ApiDefinition => {
                ("API definitions", "they describe an API and do not change how it runs", Warning)
            }
            Reason::ServiceMetadata => {
                ("service metadata", "they are for the service catalogue, which is not part of this", Note)
            }
            Reason::Keystore => (
                "keystores",
                "Busbar reads certificates and keys from PEM files: see [tls], [[profile]] and vault.key in busbar.toml",
                Warning,
            ),
            Reason::SetAside => {
                ("files that were set aside", "their names end like those of copies (.bak, .old, …)", Warning)
            }
            Reason::Tenant => ("tenants", "only the super tenant, synapse-configs/default, is read", Warning),
            Reason::OtherServer => (
                "configuration of other parts of the server",
                "Busbar's own settings are in busbar.toml",
                Warning,
            ),
            Reason::Elsewhere => (
                "artifacts",
                "only those in a directory of artifacts are read: move it to the directory of its kind (api, sequences, …)",
                Warning,
            ),
            Reason::OtherKind => (
                "artifacts",
                "its directory is that of another kind of artifact: move it to the directory of its own kind (api, sequences, …)",
                Warning,
            ),
            Reason::Transports => (
                "transports of the server",
                "of axis2.xml only `hotdeployment`, the forward proxy of the sender (`http.proxyHost`, …), `priorityConfigFile` and `messageBuilders` have an effect: everything else is set in busbar.toml",
                Warning,
            ),
            Reason::Capitals => (
                "artifacts",
                "a server reads only names that end with .xml in small letters: rename them",
                Warning,
            ),
            Reason::Registry => {
                ("a registry", "the configuration names another directory as the registry", Warning)
            }
            Reason::DataService => {
                ("data services", "the name of the file of a data service ends with .dbs: rename it", Warning)
            }
            Reason::NoArtifact => (
                "XML files",
                "their root elements are not artifacts, and no artifact refers to them",
                Warning,
            ),
            Reason::Unlisted => (
                "parts of an archive",
                "no artifact in the list of dependencies of the archive refers to them",
                Warning,
            ),
            Reason::Unknown => ("files", "their kind is unknown, and no artifact refers to them", Warning),
            Reason::UnitTest => ("tests", "they are not part of what runs", Note),
            Reason::BuildOutput => ("results of a build", "the sources are read instead", Note),
            Reason::Unpacked => {
                ("archives that a server has unpacked", "the archives themselves are read instead", Note)
            }
            Reason::ServerPart => ("parts of the server", "Busbar has its own", Note),
            Reason::Tooling => ("files for people and tools", "they are not part of what runs", Note),
        }
    }
}

/// The files that are not read, in the order in which they were found.
#[derive(Default, Debug)]
pub(crate) struct NotRead(Vec<(Reason, PathBuf)>);

impl NotRead {
    /// Adds a file or directory.
    pub fn add(&mut self, reason: Reason, path: impl Into<PathBuf>) {
        self.0.push((reason, path.into()));
    }

    /// The paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(_, path)| path.as_path())
    }

    /// Artifacts that are not read: why, and their paths.
    pub fn artifacts(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.0.iter().filter_map(|(reason, path)| match reason {
            Reason::Elsewhere | Reason::OtherKind | Reason::Capitals => {
                Some((reason.explained().1, path.as_path()))
            }
            _ => None,
        })
    }

    /// One finding for each reason, without the files that `is_used` accepts.
    pub fn findings(
        &self,
        root: &Path,
        sources: &mut SourceMap,
        is_used: impl Fn(&Path) -> bool,
    ) -> Vec<Diagnostic> {
        let counted = |reason| {
            matches!(
                reason,
                Reason::Unknown
                    | Reason::NoArtifact
                    | Reason::ApiDefinition
                    | Reason::ServerPart
                    | Reason::Tooling
            )
        };
        let mut left: Vec<&(Reason, PathBuf)> =
            self.0.iter().filter(|(reason, path)| !(counted(*reason) && is_used(path))).collect();
        left.sort_by_key(|(reason, _)| *reason);
        left.chunk_by(|a, b| a.0 == b.0).map(|group| finding(group, root, sources)).collect()
    }
}

fn finding(group: &[&(Reason, PathBuf)], root: &Path, sources: &mut SourceMap) -> Diagnostic {
    /// The number of paths that are named.
    const NAMED: usize = 5;
    let (reason, first) = group[0];
    let (group_name, why, severity) = reason.explained();
    let names: Vec<String> = group
        .iter()
        .take(NAMED)
        .map(|(_, path)| {
            let shown = path.strip_prefix(root).ok().filter(|inside| !inside.as_os_str().is_empty());
            format!("`{}`", shown.unwrap_or(path).display())
        })
        .collect();
    let message = match group.len() {
        1 => format!("{} is not read ({group_name}): {why}", names[0]),
        count => format!("{count} paths are not read ({group_name}): {why}"),
    };
    let file = sources.add(first.display().to_string(), "");
    let label = if group.len() > NAMED { format!("{}, …", names.join(", ")) } else { names.join(", ") };
    Diagnostic::new("not-read", severity, message).at(Span::new(file, 0, 0), label)
}

/// Why a file outside of the known directories is not read, by its name.
pub(super) fn by_name(name: &str, extension: &str) -> Reason {
    let lower = name.to_ascii_lowercase();
    if lower.ends_with("_swagger.yaml") || lower.ends_with("_swagger.json") || lower.ends_with("_swagger.yml")
    {
        return Reason::ApiDefinition;
    }
    if lower.ends_with("_metadata.yaml") || lower.ends_with("_metadata.yml") {
        return Reason::ServiceMetadata;
    }
    // `LICENSE`, `Dockerfile.dev`; not `LicenseCheck.xml`.
    let stem = lower.split('.').next().unwrap_or_default();
    let for_people = [
        "license",
        "licence",
        "notice",
        "readme",
        "changelog",
        "contributing",
        "dockerfile",
        "docker-compose",
        "jenkinsfile",
        "makefile",
        "mvnw",
        "gradlew",
        "codeowners",
    ];
    if for_people.contains(&stem) || lower.starts_with('.') {
        return Reason::Tooling;
    }
    match &*lower {
        "pom.xml" | "build.xml" | "build.gradle" | "settings.gradle" | "logback.xml" | "package.json"
        | "package-lock.json" | "chart.yaml" | "values.yaml" => return Reason::Tooling,
        "axis2.xml" => return Reason::Transports,
        "axis2_client.xml"
        | "axis2_blocking_client.xml"
        | "carbon.xml"
        | "user-mgt.xml"
        | "log4j2.properties"
        | "log4j.properties"
        | "wrapper.conf" => return Reason::OtherServer,
        _ => {}
    }
    match extension {
        "jar" | "java" | "class" | "aar" | "xar" | "mar" | "groovy" => Reason::Java,
        "war" => Reason::WebApplication,
        "jks" | "p12" | "pfx" | "keystore" | "truststore" => Reason::Keystore,
        "back" | "bak" | "old" | "orig" | "disabled" => Reason::SetAside,
        "md" | "adoc" | "rst" | "txt" | "pdf" | "doc" | "docx" | "xlsx" | "pptx" | "odt" | "html" | "htm"
        | "css" | "png" | "jpg" | "jpeg" | "gif" | "svg" | "ico" | "webp" | "drawio" | "puml" | "sh"
        | "bat" | "cmd" | "ps1" | "py" | "iml" | "log" | "lock" | "tf" | "yaml" | "yml" | "prefs" | "mp4"
        // Drawings and samples of Integration Studio, and programs that are no part of the server.
        | "esb" | "esb_diagram" | "datamapper" | "datamapper_diagram" | "bal" => {
            Reason::Tooling
        }
        _ => Reason::Unknown,
    }
}
