//! Reads suites of the unit-test framework of Synapse: files with the root `unit-test`, as WSO2's tools write them, or `synapse-unit-test`.
//!
//! Source: section 13 of the runtime reference (`synapse-unit-test` of WSO2's Synapse).

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
    /// Archives of connectors.
    pub connectors: Vec<PathBuf>,
    pub cases: Vec<Case>,
    pub mocks: Vec<Mock>,
}

/// An artifact of the configuration.
#[derive(Debug)]
pub struct Artifact {
    /// Where it is written: its file, or the suite.
    pub file: PathBuf,
    pub text: String,
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

/// Whether a file is a suite.
pub fn is_suite(text: &str) -> bool {
    parse(Path::new(""), text).is_ok_and(|root| matches!(root.local(), "unit-test" | "synapse-unit-test"))
}

/// Reads the suite of a file.
///
/// # Errors
/// It is none, or names a file that cannot be read: the reason, with the file.
pub fn suite(file: &Path) -> Result<Suite, String> {
    let shown = file.display();
    let root = read(file)?;
    if !matches!(root.local(), "unit-test" | "synapse-unit-test") {
        return Err(format!("{shown}: this is no suite of unit tests: its root is `{}`", root.local()));
    }
    let artifacts = first(&root, "artifacts").ok_or_else(|| format!("{shown}: `artifacts` is missing"))?;
    let tested = first(artifacts, "test-artifact").and_then(|tested| first(tested, "artifact"));
    let tested = tested.ok_or_else(|| format!("{shown}: `test-artifact` names no `artifact`"))?;
    let listed = |list: &str, each: &str| -> Vec<Element> {
        first(artifacts, list).map_or_else(Vec::new, |list| all(list, each).cloned().collect())
    };
    let supportive = listed("supportive-artifacts", "artifact");
    let resources = listed("registry-resources", "registry-resource");
    let connectors = listed("connector-resources", "connector-resource");
    let resource = |element: &Element| -> Result<Resource, String> {
        let path = child(element, "registry-path").unwrap_or_default();
        let name = child(element, "file-name").unwrap_or_default();
        let written =
            first(element, "artifact").ok_or_else(|| format!("{shown}: a resource has no `artifact`"))?;
        let content = match written.elements().next() {
            Some(inline) => inline.to_xml_in_scope().into_bytes(),
            None => match find(file, &written.text()) {
                Some(found) => std::fs::read(&found).map_err(|why| format!("{}: {why}", found.display()))?,
                // In a merged suite the content stands there itself.
                None if root.local() == "synapse-unit-test" => written.text().into_bytes(),
                None => return Err(nowhere(file, &written.text())),
            },
        };
        // The path may be that of the collection.
        let last = path.rsplit('/').next().unwrap_or_default();
        let path = if name.is_empty() || last == name {
            path
        } else {
            format!("{}/{name}", path.trim_end_matches('/'))
        };
        Ok(Resource { path, content })
    };
    let connector = |element: &Element| {
        let path = element.text();
        find(file, &path).ok_or_else(|| nowhere(file, &path))
    };
    let mocks: Vec<&Element> =
        first(&root, "mock-services").map_or_else(Vec::new, |list| all(list, "mock-service").collect());
    let mock = |element: &Element| -> Result<Mock, String> {
        if element.elements().next().is_some() {
            return mock_service(file, element);
        }
        let found = find(file, &element.text()).ok_or_else(|| nowhere(file, &element.text()))?;
        mock_service(&found, &read(&found)?)
    };
    let cases: Vec<&Element> =
        first(&root, "test-cases").map_or_else(Vec::new, |list| all(list, "test-case").collect());
    Ok(Suite {
        file: file.to_owned(),
        artifact: artifact(file, tested)?,
        supportive: supportive.iter().map(|element| artifact(file, element)).collect::<Result<_, _>>()?,
        resources: resources.iter().map(resource).collect::<Result<_, _>>()?,
        connectors: connectors.iter().map(connector).collect::<Result<_, _>>()?,
        cases: cases.into_iter().map(|element| case(file, element)).collect::<Result<_, _>>()?,
        mocks: mocks.into_iter().map(mock).collect::<Result<_, _>>()?,
    })
}

fn artifact(suite: &Path, element: &Element) -> Result<Artifact, String> {
    let (file, text, root) = match element.elements().next() {
        Some(inline) => (suite.to_owned(), inline.to_xml_in_scope(), inline.clone()),
        None => {
            let file = find(suite, &element.text()).ok_or_else(|| nowhere(suite, &element.text()))?;
            let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
            let root = parse(&file, &text)?;
            (file, text, root)
        }
    };
    let name = root.attr("name").unwrap_or_default().trim().to_owned();
    Ok(Artifact { file, text, element: root.local().to_owned(), name })
}

fn case(file: &Path, element: &Element) -> Result<Case, String> {
    let input = first(element, "input");
    let part = |name: &str| input.and_then(|input| child(input, name));
    let attribute = |property: &Element, name: &str| property.attr(name).unwrap_or_default().to_owned();
    let properties = input.and_then(|input| first(input, "properties")).map_or_else(Vec::new, |list| {
        let each = |property: &Element| {
            (attribute(property, "name"), attribute(property, "value"), attribute(property, "scope"))
        };
        all(list, "property").map(each).collect()
    });
    let assertion = |assertion: &Element| {
        let expected = match assertion.local() {
            "assertNotNull" => None,
            "assertEquals" => Some(content(assertion, "expected").unwrap_or_default()),
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
        properties,
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
    let context = context.trim_end_matches('/');
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
        places.into_iter().flatten().map(|relative| folder.join(relative)).find(|file| file.is_file())
    })
}

fn nowhere(suite: &Path, path: &str) -> String {
    let path = path.trim();
    format!("{}: there is no file `{path}` in any directory around the suite", suite.display())
}

fn read(file: &Path) -> Result<Element, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    parse(file, &text)
}

fn parse(file: &Path, text: &str) -> Result<Element, String> {
    let mut sources = SourceMap::default();
    let id = sources.add(file.display().to_string(), text);
    config::parse(id, text).map_err(|found| diagnostics::render::human(&found, &sources, Default::default()))
}
