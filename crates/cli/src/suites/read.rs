//! Reads suites of the unit-test framework of Synapse: files with the root `unit-test`, as WSO2's tools write them, or `synapse-unit-test`.
//!
//! Source: section 13 of the runtime reference (`synapse-unit-test` of WSO2's Synapse).

use base64::Engine;
use config::Element;
use diagnostics::SourceMap;
use std::path::{Path, PathBuf};

/// A suite.
#[derive(Debug)]
pub struct Suite {
    /// The file.
    pub file: PathBuf,
    /// What is tested.
    pub artifact: Artifact,
    /// What it needs.
    pub supportive: Vec<Artifact>,
    pub resources: Vec<Resource>,
    pub connectors: Vec<Connector>,
    /// The values from outside that the project has (`.env`).
    pub environment: Option<Vec<u8>>,
    pub cases: Vec<Case>,
    pub mocks: Vec<Mock>,
}

/// An artifact of the configuration.
#[derive(Debug)]
pub struct Artifact {
    /// Where it is written: its file, or the suite.
    pub file: PathBuf,
    pub content: Vec<u8>,
    /// The element, such as `api`.
    pub element: String,
    /// Empty for those that have a key.
    pub name: String,
}

/// What the registry has at a path.
#[derive(Debug)]
pub struct Resource {
    pub path: String,
    pub content: Vec<u8>,
}

/// The archive of a connector.
#[derive(Debug)]
pub struct Connector {
    /// The name of its file.
    pub name: String,
    pub content: Vec<u8>,
}

/// A test.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub path: String,
    pub method: Option<String>,
    pub https: bool,
    pub payload: String,
    /// Name, value and scope.
    pub properties: Vec<(String, String, String)>,
    pub assertions: Vec<Assertion>,
}

/// What has to hold.
#[derive(Debug)]
pub struct Assertion {
    pub actual: String,
    /// `None`: anything that is there (`assertNotNull`).
    pub expected: Option<String>,
    pub message: String,
}

/// A service in the place of a backend.
#[derive(Clone, Debug)]
pub struct Mock {
    /// The endpoint that it takes the place of.
    pub endpoint: String,
    pub resources: Vec<MockResource>,
}

/// A path of a mock service.
#[derive(Clone, Debug)]
pub struct MockResource {
    /// Context and sub-context, with the query.
    pub path: String,
    pub method: String,
    /// A request has to have this payload and these headers, where there are any.
    pub payload: Option<String>,
    pub headers: Vec<(String, String)>,
    pub status: u16,
    pub response: String,
    pub response_headers: Vec<(String, String)>,
}

/// The root of the suite in a file; `None`: it is none.
///
/// # Errors
/// The file cannot be read, or is a suite that is not well-formed.
pub fn root(file: &Path) -> Result<Option<Element>, String> {
    let bytes = content_of(file)?;
    let may_be_one = bytes.windows(ROOTS[0].len()).any(|part| part == ROOTS[0].as_bytes());
    let text = match config::decode(bytes) {
        Ok(text) => text,
        Err(why) if may_be_one => return Err(format!("{}: {why}", file.display())),
        Err(_) => return Ok(None),
    };
    if !ROOTS.iter().any(|root| text.contains(&format!("<{root}"))) {
        return Ok(None);
    }
    let root = parse(file, &text)?;
    Ok(ROOTS.contains(&root.local()).then_some(root))
}

/// The roots of suites: as tools write them, and merged into one document.
const ROOTS: [&str; 2] = ["unit-test", MERGED];
const MERGED: &str = "synapse-unit-test";

/// Reads a suite.
///
/// # Errors
/// It names a file that cannot be read, or something in it is wrong: the reason, with the file.
pub fn suite(file: &Path, root: &Element) -> Result<Suite, String> {
    let shown = file.display();
    let within = |element: &Element, known: &[&str]| spelt(file, element, known);
    within(root, &["artifacts", "test-cases", "mock-services"])?;
    let artifacts = first(root, "artifacts").ok_or_else(|| format!("{shown}: `artifacts` is missing"))?;
    within(
        artifacts,
        &["test-artifact", "supportive-artifacts", "registry-resources", "connector-resources"],
    )?;
    let tested = first(artifacts, "test-artifact").and_then(|tested| first(tested, "artifact"));
    let tested = tested.ok_or_else(|| format!("{shown}: `test-artifact` names no `artifact`"))?;
    let listed = |parent: &Element, list: &str, each: &str| -> Result<Vec<Element>, String> {
        let Some(list) = first(parent, list) else { return Ok(Vec::new()) };
        within(list, &[each])?;
        Ok(all(list, each).cloned().collect())
    };
    let is_merged = root.local() == MERGED;
    let resource = |element: &Element| resource(file, element, is_merged);
    let mut resources: Vec<Resource> = listed(artifacts, "registry-resources", "registry-resource")?
        .iter()
        .map(resource)
        .collect::<Result<_, _>>()?;
    let mut connectors = Vec::new();
    for element in listed(artifacts, "connector-resources", "connector-resource")? {
        connectors.extend(connector(file, element.text().trim(), connectors.len())?);
    }
    let mock = |element: &Element| -> Result<Mock, String> {
        if element.elements().next().is_some() {
            return mock_service(file, element);
        }
        let found = find(file, &element.text()).ok_or_else(|| nowhere(file, &element.text()))?;
        mock_service(&found, &read(&found)?)
    };
    let mut mocks: Vec<Mock> =
        listed(root, "mock-services", "mock-service")?.iter().map(mock).collect::<Result<_, _>>()?;
    for mock in &mut mocks {
        let wanted = config::registry_path(&mock.endpoint);
        let of_endpoint =
            resources.iter_mut().find(|resource| config::registry_path(&resource.path) == wanted);
        if let Some(name) = of_endpoint.and_then(|resource| resource.as_endpoint(&mock.endpoint)) {
            mock.endpoint = name;
        }
    }
    let artifact_of = artifact(file, tested)?;
    let mut supportive: Vec<Artifact> = Vec::new();
    for element in listed(artifacts, "supportive-artifacts", "artifact")? {
        let artifact = artifact(file, &element)?;
        // Some list a file twice, or what is tested too.
        let is_same = |other: &Artifact| other.file == artifact.file && artifact.file != file;
        if !is_same(&artifact_of) && !supportive.iter().any(is_same) {
            supportive.push(artifact);
        }
    }
    Ok(Suite {
        file: file.to_owned(),
        artifact: artifact_of,
        supportive,
        resources,
        connectors,
        environment: find(file, ".env").and_then(|found| std::fs::read(found).ok()),
        cases: listed(root, "test-cases", "test-case")?
            .iter()
            .map(|element| case(file, element))
            .collect::<Result<_, _>>()?,
        mocks,
    })
}

/// An element within another one that is almost called as one of those that count there would be passed over.
fn spelt(file: &Path, element: &Element, known: &[&str]) -> Result<(), String> {
    let unknown = element.elements().filter(|child| !known.contains(&child.local()));
    for child in unknown {
        if let Some(hint) = diagnostics::did_you_mean(child.local(), known.iter().copied()) {
            let (file, child, element) = (file.display(), child.local(), element.local());
            return Err(format!("{file}: `{element}` has no `{child}`: {hint}"));
        }
    }
    Ok(())
}

fn resource(file: &Path, element: &Element, is_merged: bool) -> Result<Resource, String> {
    let path = child(element, "registry-path").unwrap_or_default();
    let name = child(element, "file-name").unwrap_or_default();
    let written = first(element, "artifact")
        .ok_or_else(|| format!("{}: a resource has no `artifact`", file.display()))?;
    let content = match written.elements().next() {
        Some(inline) => inline.to_xml_in_scope().into_bytes(),
        None => match find(file, &written.text()) {
            Some(found) => content_of(&found)?,
            None if is_merged => written.text().into_bytes(),
            None => return Err(nowhere(file, &written.text())),
        },
    };
    // The path may be that of the collection.
    let last = path.rsplit('/').next().unwrap_or_default();
    let path =
        if name.is_empty() || last == name { path } else { format!("{}/{name}", path.trim_end_matches('/')) };
    Ok(Resource { path, content })
}

impl Resource {
    /// The name of the endpoint that the resource is; one without a name gets this one. `None`: it is no endpoint.
    fn as_endpoint(&mut self, unnamed: &str) -> Option<String> {
        let text = std::str::from_utf8(&self.content).ok()?;
        let root = parse(Path::new(""), text).ok().filter(|root| root.local() == "endpoint")?;
        if let Some(name) = root.attr("name") {
            return Some(name.to_owned());
        }
        let end = root.name_span().end as usize;
        self.content = format!("{} name=\"{unnamed}\"{}", &text[..end], &text[end..]).into_bytes();
        Some(unnamed.to_owned())
    }
}

/// A connector by its path, its content in Base64 (merged suites), or its name and version: that is one which the build of the project
/// fetches. `None`: it is not there; where its operations are not part of the bus, they say so themselves.
fn connector(file: &Path, written: &str, number: usize) -> Result<Option<Connector>, String> {
    // What each zip file begins with.
    if written.starts_with("UEsD") {
        let packed: String = written.split_whitespace().collect();
        let content = base64::engine::general_purpose::STANDARD.decode(packed);
        let content =
            content.map_err(|why| format!("{}: the connector {}: {why}", file.display(), number + 1))?;
        return Ok(Some(Connector { name: format!("{number}.zip"), content }));
    }
    let is_name = !written.contains('/') && !written.ends_with(".zip");
    let found = match is_name {
        true => CONNECTORS.iter().find_map(|folder| find(file, &format!("{folder}/{written}.zip"))),
        false => Some(find(file, written).ok_or_else(|| nowhere(file, written))?),
    };
    let Some(found) = found else { return Ok(None) };
    let content = content_of(&found)?;
    let name = found.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    Ok(Some(Connector { name, content }))
}

/// Where a project keeps connectors.
const CONNECTORS: [&str; 3] =
    ["src/main/wso2mi/resources/connectors", "deployment/libs", "target/dependency"];

fn artifact(suite: &Path, element: &Element) -> Result<Artifact, String> {
    let (file, content, root) = match element.elements().next() {
        Some(inline) => (suite.to_owned(), inline.to_xml_in_scope().into_bytes(), inline.clone()),
        None => {
            let file = find(suite, &element.text()).ok_or_else(|| nowhere(suite, &element.text()))?;
            let content = content_of(&file)?;
            let root = read(&file)?;
            (file, content, root)
        }
    };
    let name = root.attr("name").unwrap_or_default().trim().to_owned();
    Ok(Artifact { file, content, element: root.local().to_owned(), name })
}

/// The scopes of properties.
const SCOPES: [&str; 4] = ["default", "synapse", "axis2", "transport"];

fn case(file: &Path, element: &Element) -> Result<Case, String> {
    let input = first(element, "input");
    let part = |name: &str| input.and_then(|input| child(input, name));
    spelt(file, element, &["input", "assertions"])?;
    if let Some(input) = input {
        spelt(file, input, &["request-path", "request-method", "request-protocol", "payload", "properties"])?;
    }
    let attribute = |property: &Element, name: &str| property.attr(name).unwrap_or_default().to_owned();
    let property = |property: &Element| {
        let (name, scope) = (attribute(property, "name"), attribute(property, "scope"));
        if !scope.is_empty() && !SCOPES.contains(&scope.as_str()) {
            let hint = diagnostics::did_you_mean(&scope, SCOPES).unwrap_or_else(|| {
                format!("there are {}", SCOPES.map(|scope| format!("`{scope}`")).join(", "))
            });
            let file = file.display();
            return Err(format!("{file}: the property `{name}` has the scope `{scope}`: {hint}"));
        }
        Ok((name, attribute(property, "value"), scope))
    };
    let properties = input.and_then(|input| first(input, "properties"));
    let properties =
        properties.map_or_else(|| Ok(Vec::new()), |list| all(list, "property").map(property).collect());
    let assertion = |assertion: &Element| {
        let expected = match assertion.local() {
            "assertNotNull" => None,
            "assertEquals" => {
                let missing = || format!("{}: an `assertEquals` has no `expected`", file.display());
                Some(content(assertion, "expected").ok_or_else(missing)?)
            }
            other => {
                let hint = diagnostics::did_you_mean(other, ["assertEquals", "assertNotNull"]);
                let hint = hint.unwrap_or_else(|| "there are `assertEquals` and `assertNotNull`".to_owned());
                return Err(format!("{}: `{other}` is no assertion: {hint}", file.display()));
            }
        };
        let actual = child(assertion, "actual").unwrap_or_default();
        Ok(Assertion { actual, expected, message: child(assertion, "message").unwrap_or_default() })
    };
    let assertions = first(element, "assertions");
    let assertions =
        assertions.map_or_else(|| Ok(Vec::new()), |list| list.elements().map(assertion).collect());
    Ok(Case {
        name: element.attr("name").unwrap_or_default().to_owned(),
        path: part("request-path").unwrap_or_default(),
        method: part("request-method")
            .filter(|method| !method.is_empty())
            .map(|method| method.to_uppercase()),
        https: part("request-protocol").is_some_and(|protocol| protocol.eq_ignore_ascii_case("https")),
        payload: input.and_then(|input| content(input, "payload")).unwrap_or_default(),
        properties: properties?,
        assertions: assertions?,
    })
}

fn mock_service(file: &Path, element: &Element) -> Result<Mock, String> {
    let context = child(element, "context").unwrap_or_default();
    let endpoint = child(element, "service-name").unwrap_or_default();
    let wrong = |why: String| format!("{}: the mock service `{endpoint}`: {why}", file.display());
    let headers = |of: Option<&Element>| -> Result<Vec<(String, String)>, String> {
        let list = of.and_then(|of| first(of, "headers"));
        let each = |header: &Element| {
            let (name, value) =
                (header.attr("name").unwrap_or_default(), header.attr("value").unwrap_or_default());
            let is_sound = !name.is_empty()
                && name.bytes().all(message::is_token_byte)
                && !value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
            is_sound.then(|| (name.to_owned(), value.to_owned())).ok_or_else(|| {
                wrong(format!("`{name}` with the value `{}` is no header", value.escape_debug()))
            })
        };
        list.map_or_else(|| Ok(Vec::new()), |list| all(list, "header").map(each).collect())
    };
    let resource = |resource: &Element| -> Result<MockResource, String> {
        let (request, response) = (first(resource, "request"), first(resource, "response"));
        let sub = child(resource, "sub-context").unwrap_or_default();
        let status =
            response.and_then(|response| child(response, "status-code")).filter(|status| !status.is_empty());
        let status = match &status {
            None => 200,
            Some(status) => {
                status.parse().ok().filter(|status| (200..600).contains(status)).ok_or_else(|| {
                    wrong(format!("`{status}` is no status of an answer: expected 200 to 599"))
                })?
            }
        };
        Ok(MockResource {
            path: joined(&context, &sub),
            method: child(resource, "method").unwrap_or_default(),
            payload: request
                .and_then(|request| content(request, "payload"))
                .filter(|payload| !payload.trim().is_empty()),
            headers: headers(request)?,
            status,
            response: response.and_then(|response| content(response, "payload")).unwrap_or_default(),
            response_headers: headers(response)?,
        })
    };
    let resources = first(element, "resources");
    let resources =
        resources.map_or_else(|| Ok(Vec::new()), |list| all(list, "resource").map(resource).collect());
    Ok(Mock { resources: resources?, endpoint })
}

/// Context and sub-context of a mock service, one behind the other.
fn joined(context: &str, sub: &str) -> String {
    let context = context.trim_matches('/');
    let context = if context.is_empty() { String::new() } else { format!("/{context}") };
    match sub.is_empty() || sub.starts_with(['/', '?']) {
        true => format!("{context}{sub}"),
        false => format!("{context}/{sub}"),
    }
}

/// The first child of a name. Suites have no namespace.
fn first<'a>(element: &'a Element, name: &str) -> Option<&'a Element> {
    element.elements().find(|child| child.local() == name)
}

fn all<'a>(element: &'a Element, name: &'a str) -> impl Iterator<Item = &'a Element> {
    element.elements().filter(move |child| child.local() == name)
}

/// The trimmed text of a child.
fn child(element: &Element, name: &str) -> Option<String> {
    first(element, name).map(|child| child.text().trim().to_owned())
}

/// What is in a child: its text, or its element where that was written without CDATA.
fn content(element: &Element, name: &str) -> Option<String> {
    let child = first(element, name)?;
    Some(child.elements().next().map_or_else(|| child.text().trim().to_owned(), Element::to_xml_in_scope))
}

/// The file of a path in a suite: paths are relative to the project or to the workspace around it, whatever that is called, and may begin
/// with a slash.
fn find(suite: &Path, path: &str) -> Option<PathBuf> {
    let relative = path.trim().trim_start_matches('/');
    if relative.is_empty() {
        return None;
    }
    let suite = suite.canonicalize().ok()?;
    let mut around = suite.ancestors().skip(1);
    around.find_map(|folder| {
        let inside =
            folder.file_name().and_then(|name| relative.strip_prefix(name.to_str()?)?.strip_prefix('/'));
        let places = [Some(relative), inside];
        places
            .into_iter()
            .flatten()
            .map(|relative| folder.join(relative))
            .find(|file| file.is_file() && *file != suite)
    })
}

fn nowhere(suite: &Path, path: &str) -> String {
    let path = path.trim();
    format!("{}: there is no file `{path}` in any directory around the suite", suite.display())
}

fn read(file: &Path) -> Result<Element, String> {
    parse(file, &text_of(file)?)
}

fn content_of(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|why| format!("{}: {why}", file.display()))
}

fn text_of(file: &Path) -> Result<String, String> {
    config::decode(content_of(file)?).map_err(|why| format!("{}: {why}", file.display()))
}

fn parse(file: &Path, text: &str) -> Result<Element, String> {
    let mut sources = SourceMap::default();
    let id = sources.add(file.display().to_string(), text);
    config::parse(id, text).map_err(|found| diagnostics::render::human(&found, &sources, Default::default()))
}
