//! Data services (`.dbs`): queries of databases as operations of a service and as resources.

use super::data_shape::{
    CALL, CONFIG, FIELD, OPERATION, PARAM, QUERY, RESULT, SHAPE, TRIGGER, WITH, check, property,
};
use super::data_source::value;
use super::{Policy, Reading};
use crate::element::{Element, Scope};
use crate::endpoint::{AddressEndpoint, Definition, Endpoint, EndpointKind, Format};
use crate::parameter::Parameter;
use crate::read;
use crate::value::Key;
use diagnostics::{Diagnostic, Span};

/// The namespace of requests and answers where a service names none.
pub const DATA_SERVICE_NAMESPACE: &str = "http://ws.wso2.org/dataservice";

/// A data service.
#[derive(Clone, Debug)]
pub struct DataService {
    /// Its name.
    pub name: Key,
    /// The namespace of its requests, and of answers that name none.
    pub namespace: String,
    /// The description.
    pub description: Option<String>,
    /// The transports (`http`, `https`); empty: both.
    pub transports: Vec<String>,
    /// It serves from the start (`serviceStatus`).
    pub active: bool,
    /// Operations take many requests at once (`enableBatchRequests`).
    pub batch: bool,
    /// A request may have several operations in it (`enableBoxcarring`).
    pub boxcarring: bool,
    /// Answers are whole before they leave (`disableStreaming`).
    pub held: bool,
    /// Where data comes from.
    pub configs: Vec<DataConfig>,
    /// The queries.
    pub queries: Vec<DataQuery>,
    /// The operations and resources.
    pub operations: Vec<DataOperation>,
    /// The events that queries may cause.
    pub triggers: Vec<DataTrigger>,
    /// Require WS-Security.
    pub enable_sec: bool,
    /// The policies of WS-Security.
    pub policies: Vec<Policy>,
    /// Parameters that say who is let in: `accessProfile`, `accessScopes`, and with WS-Security `allowRoles`.
    pub parameters: Vec<Parameter>,
    /// Parts that have no effect here, with the reason.
    pub ignored: Vec<(Key, &'static str)>,
    /// The whole element.
    pub span: Span,
}

/// Where data comes from: a data source by name or by its own settings, a file.
#[derive(Clone, Debug)]
pub struct DataConfig {
    /// Its id.
    pub id: Key,
    /// Its properties by name.
    pub properties: Vec<(String, Key)>,
    /// `enableOData`.
    pub odata: bool,
    /// The element.
    pub span: Span,
}

impl DataConfig {
    /// A property that is not empty.
    pub fn property(&self, name: &str) -> Option<&Key> {
        let found = self.properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value).filter(|value| !value.value.trim().is_empty())
    }
}

/// An event that a query causes where an expression is true of its parameters or of its result (`event-trigger`).
#[derive(Clone, Debug)]
pub struct DataTrigger {
    /// Its id.
    pub id: Key,
    /// XPath 1.0 on the element of the parameters, or on the result.
    pub expression: Key,
    /// The namespaces of the expression.
    pub scope: Scope,
    /// The topic of the event; empty: none.
    pub topic: String,
    /// Where events are sent to, as SOAP 1.1.
    pub subscriptions: Vec<Endpoint>,
}

/// A query.
#[derive(Clone, Debug)]
pub struct DataQuery {
    /// Its id.
    pub id: Key,
    /// The id of the config that it queries; `None`: the only one.
    pub config: Option<Key>,
    /// Statements, each with the databases that it is for; none: for all.
    pub sql: Vec<(Vec<String>, Key)>,
    /// The element that it has in place of `sql`: `expression`, `excel`, `sparql`, …
    pub other: Option<Key>,
    /// The elements in `excel`: which rows of a workbook are its rows.
    pub excel: Vec<(String, Key)>,
    /// Its parameters.
    pub parameters: Vec<DataParameter>,
    /// Its properties (time limit, fetch size, …), by name.
    pub properties: Vec<(String, Key)>,
    /// The form of its result; `None`: there is no response.
    pub result: Option<DataResult>,
    /// Its rows are the generated keys (`returnGeneratedKeys`).
    pub generated_keys: bool,
    /// The columns of these keys.
    pub key_columns: Vec<String>,
    /// Its one row is the number of changed rows (`returnUpdatedRowCount`).
    pub row_count: bool,
    /// The trigger for its parameters (`input-event-trigger`).
    pub input_trigger: Option<Key>,
    /// The trigger for its result (`output-event-trigger`).
    pub output_trigger: Option<Key>,
    /// The element.
    pub span: Span,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirection {
    /// To the database (`IN`).
    In,
    /// From the database (`OUT`).
    Out,
    /// Both (`INOUT`).
    InOut,
}

/// A parameter of a query.
#[derive(Clone, Debug)]
pub struct DataParameter {
    /// Its name.
    pub name: Key,
    /// Its type; `None`: a text.
    pub sql_type: Option<Key>,
    /// Its direction.
    pub direction: DataDirection,
    /// It has many values (`paramType="ARRAY"`).
    pub is_array: bool,
    /// The number of its question mark, from 1; 0: not given.
    pub ordinal: usize,
    /// The value where a request has none (`defaultValue`).
    pub default: Option<Key>,
    /// A request may leave it out.
    pub optional: bool,
    /// The validators of its values.
    pub validators: Vec<DataValidator>,
    /// The element.
    pub span: Span,
}

/// A validator of values.
#[derive(Clone, Debug)]
pub enum DataValidator {
    /// A length in characters, from the first to the second.
    Length(Option<i64>, Option<i64>),
    /// A whole number from the first to the second.
    Long(Option<i64>, Option<i64>),
    /// A number from the first to the second.
    Double(Option<f64>, Option<f64>),
    /// A regular expression of Java, which has to match the whole value.
    Pattern(Key),
}

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    /// Elements.
    Xml,
    /// The elements are described as JSON.
    Json,
    /// RDF in XML.
    Rdf,
}

/// The form of a result.
#[derive(Clone, Debug)]
pub struct DataResult {
    /// The element around all rows; empty: none.
    pub element: String,
    /// The element of a row; empty: none.
    pub row: String,
    /// The namespace; `None`: that of the service.
    pub namespace: Option<String>,
    /// Its format.
    pub format: DataFormat,
    /// The subject of the RDF of a row: a URI with the names of columns in braces (`rdfBaseURI`).
    pub about: Option<Key>,
    /// Columns are named by their numbers.
    pub column_numbers: bool,
    /// Characters that XML does not have become question marks.
    pub escape: bool,
    /// The description in JSON.
    pub json: Option<Key>,
    /// The stylesheet that transforms it (`xsltPath`).
    pub stylesheet: Option<Key>,
    /// The parts of a row.
    pub children: Vec<DataOutput>,
    /// The element.
    pub span: Span,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataValue {
    /// A column of the row.
    Column(String),
    /// A parameter of the query, or of the request.
    Parameter(String),
    /// A constant.
    Constant(String),
    /// A URI with the names of columns in braces, which RDF refers to (`rdf-ref-uri`).
    Reference(String),
}

/// A part of a row.
#[derive(Clone, Debug)]
pub enum DataOutput {
    /// An element or an attribute with a value.
    Field(DataField),
    /// An element with parts.
    Group {
        /// Its name.
        name: String,
        /// Its namespace; `None`: that around it.
        namespace: Option<String>,
        /// The roles that see it; empty: everybody does.
        roles: Vec<String>,
        /// Its parts.
        children: Vec<DataOutput>,
    },
    /// The rows of another query.
    Call(DataCall),
}

/// An element or an attribute with a value.
#[derive(Clone, Debug)]
pub struct DataField {
    /// Its name.
    pub name: Key,
    /// It is an attribute.
    pub is_attribute: bool,
    /// Its value.
    pub value: DataValue,
    /// The local name of its type in XML Schema (`string`).
    pub xsd_type: String,
    /// It is left out where there is no such value.
    pub optional: bool,
    /// Later operations of the request know the value by this name; whether all of them.
    pub export: Option<(String, bool)>,
    /// Its namespace; `None`: that around it.
    pub namespace: Option<String>,
    /// The roles that see it; empty: everybody does.
    pub roles: Vec<String>,
    /// The element.
    pub span: Span,
}

/// A call of a query, with its parameters.
#[derive(Clone, Debug)]
pub struct DataCall {
    /// The query.
    pub query: Key,
    /// Parameters by name.
    pub parameters: Vec<(Key, DataValue)>,
    /// The roles that see its result; empty: everybody does.
    pub roles: Vec<String>,
    /// The element.
    pub span: Span,
}

/// An operation or resource.
#[derive(Clone, Debug)]
pub struct DataOperation {
    /// Its name; of a resource the path.
    pub name: Key,
    /// The method of a resource.
    pub method: Option<Key>,
    /// The description.
    pub description: Option<String>,
    /// It responds with a status where the query has no result (`returnRequestStatus`).
    pub status: bool,
    /// Its response is complete before it is sent (`disableStreaming`).
    pub held: bool,
    /// The call of its query.
    pub call: DataCall,
    /// The element.
    pub span: Span,
}

/// The parameters of a data service that have an effect.
const PARAMETERS: [&str; 3] = ["accessProfile", "accessScopes", "allowRoles"];

impl DataService {
    /// The query of an id. Of several the last one counts, as in WSO2.
    pub fn query(&self, id: &str) -> Option<&DataQuery> {
        self.queries.iter().rfind(|query| query.id.value == id)
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataService> {
        check(&SHAPE, element, reading);
        let name = read::required(element, "name", reading.diagnostics)?;
        let truth = |name: &str| is_true(element, name);
        let mut ignored = Vec::new();
        let mut ignore = |child: &Element, why| {
            ignored.push((Key { value: child.local().to_owned(), span: child.start_tag() }, why));
        };
        for child in element.elements() {
            match child.local() {
                "xa-datasource" => ignore(child, "transactions are over one database"),
                "authorization_provider" => ignore(
                    child,
                    "there is no Java: roles are those of `http.roles`, and the scopes of who was let in",
                ),
                "passwordManager" => ignore(child, "secrets are where those of all artifacts are"),
                "parameter" if child.attr("name").is_none_or(|name| !PARAMETERS.contains(&name.trim())) => {
                    ignore(
                        child,
                        "parameters of data services are `accessProfile`, `accessScopes`, `allowRoles`",
                    );
                }
                _ => {}
            }
        }
        if truth("enableDTP") {
            let key = Key { value: "enableDTP".to_owned(), span: element.value_span("enableDTP") };
            ignored.push((key, "transactions are over one database"));
        }
        let mut configs = Vec::new();
        for config in element.children_named("config") {
            check(&CONFIG, config, reading);
            let id = read::optional(config, "id")
                .unwrap_or(Key { value: "default".to_owned(), span: config.start_tag() });
            let properties = config.children_named("property");
            let properties = properties.map(|property| {
                (property.attr("name").unwrap_or_default().trim().to_owned(), value(property, reading))
            });
            configs.push(DataConfig {
                id,
                properties: properties.collect(),
                odata: is_true(config, "enableOData"),
                span: config.span(),
            });
        }
        let queries =
            element.children_named("query").filter_map(|query| DataQuery::parse(query, reading)).collect();
        let operations = element
            .elements()
            .filter(|child| child.is("operation") || child.is("resource"))
            .filter_map(|child| DataOperation::parse(child, reading))
            .collect();
        Some(DataService {
            name,
            namespace: text(element, "serviceNamespace").unwrap_or_else(|| DATA_SERVICE_NAMESPACE.to_owned()),
            description: super::description(element),
            transports: element.attr("transports").map(read::names).unwrap_or_default(),
            active: element
                .attr("serviceStatus")
                .is_none_or(|status| !status.trim().eq_ignore_ascii_case("inactive")),
            batch: truth("enableBatchRequests"),
            boxcarring: truth("enableBoxcarring"),
            held: truth("disableStreaming"),
            configs,
            queries,
            operations,
            triggers: element
                .children_named("event-trigger")
                .filter_map(|trigger| DataTrigger::parse(trigger, reading))
                .collect(),
            enable_sec: element.child("enableSec").is_some(),
            policies: element
                .children_named("policy")
                .filter_map(|policy| Policy::parse(policy, reading.diagnostics))
                .collect(),
            parameters: Parameter::children(element, reading.injector, reading.diagnostics),
            ignored,
            span: element.span(),
        })
    }
}

impl DataTrigger {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataTrigger> {
        check(&TRIGGER, element, reading);
        let id = read::required(element, "id", reading.diagnostics)?;
        if let Some(language) = read::optional(element, "language")
            && !language.value.trim().eq_ignore_ascii_case("XPath")
        {
            let message = format!("`language` of the event trigger `{id}` cannot be `{language}`");
            let found = Diagnostic::warning("bad-value", message);
            reading.diagnostics.push(found.at(language.span, "expected XPath; its queries cause no event"));
            return None;
        }
        let Some(expression) = element.child("expression").filter(|child| !child.text().trim().is_empty())
        else {
            let error =
                Diagnostic::error("missing-element", format!("the event trigger `{id}` has no expression"));
            reading.diagnostics.push(error.at(element.start_tag(), "expected `expression` inside"));
            return None;
        };
        let topic = element.child("target-topic").map(|child| child.text().trim().to_owned());
        let subscriptions = element.child("subscriptions").into_iter();
        let subscriptions = subscriptions.flat_map(|child| child.children_named("subscription"));
        Some(DataTrigger {
            id,
            scope: expression.scope().clone(),
            expression: Key { value: expression.text().trim().to_owned(), span: expression.text_span() },
            topic: topic.unwrap_or_default(),
            subscriptions: subscriptions.filter_map(subscriber).collect(),
        })
    }
}

/// The endpoint of a subscription, whose text is an address.
fn subscriber(element: &Element) -> Option<Endpoint> {
    let uri = Key { value: element.text().trim().to_owned(), span: element.text_span() };
    let definition = Box::new(Definition { format: Some(Format::Soap11), ..Definition::default() });
    (!uri.value.is_empty()).then(|| Endpoint {
        name: None,
        kind: EndpointKind::Address(AddressEndpoint { uri, definition }),
        on_error: None,
        properties: Vec::new(),
        description: None,
        implicit: false,
        element: element.clone(),
        span: element.span(),
    })
}

impl DataQuery {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataQuery> {
        check(&QUERY, element, reading);
        let id = read::required(element, "id", reading.diagnostics)?;
        let sql = element.children_named("sql").map(|statement| {
            let dialects = statement.attr("dialect").map(read::names).unwrap_or_default();
            (dialects, Key { value: statement.text().trim().to_owned(), span: statement.text_span() })
        });
        let other = element.elements().find(|child| {
            matches!(
                child.local(),
                "excel" | "gspread" | "sparql" | "expression" | "query" | "scraperVariable"
            )
        });
        let excel = element.child("excel").into_iter().flat_map(|e| e.elements());
        let excel = excel
            .map(|child| {
                let text = Key { value: child.text().trim().to_owned(), span: child.text_span() };
                (child.local().to_ascii_lowercase(), text)
            })
            .collect();
        let properties = element.child("properties").into_iter().flat_map(|p| p.elements());
        let properties = properties.map(|element| property(element, reading)).collect();
        let parameters = element
            .children_named("param")
            .filter_map(|param| DataParameter::parse(param, reading))
            .collect();
        let result = element.child("result").map(|r| DataResult::parse(r, reading));
        Some(DataQuery {
            id,
            config: read::optional(element, "useConfig"),
            sql: sql.collect(),
            other: other.map(|child| Key { value: child.local().to_owned(), span: child.start_tag() }),
            excel,
            parameters,
            properties,
            result,
            generated_keys: is_true(element, "returnGeneratedKeys"),
            key_columns: element.attr("keyColumns").map(read::names).unwrap_or_default(),
            row_count: is_true(element, "returnUpdatedRowCount"),
            input_trigger: read::optional(element, "input-event-trigger"),
            output_trigger: read::optional(element, "output-event-trigger"),
            span: element.start_tag(),
        })
    }
}

impl DataParameter {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataParameter> {
        check(&PARAM, element, reading);
        let name = read::required(element, "name", reading.diagnostics)?;
        let word = |name: &str| {
            element.attr(name).map(|value| value.trim().to_ascii_uppercase()).unwrap_or_default()
        };
        let direction = match &*word("type") {
            "" | "IN" => DataDirection::In,
            "OUT" => DataDirection::Out,
            "INOUT" => DataDirection::InOut,
            other => {
                let span = element.value_span("type");
                let error = read::bad_value("type", other, span, "IN, OUT or INOUT");
                reading.diagnostics.push(error);
                return None;
            }
        };
        let mut validators = Vec::new();
        for child in element.elements() {
            match child.local() {
                "validateLength" => {
                    let (least, most) = bounds(child, whole, "a whole number", reading);
                    validators.push(DataValidator::Length(least, most));
                }
                "validateLongRange" => {
                    let (least, most) = bounds(child, whole, "a whole number", reading);
                    validators.push(DataValidator::Long(least, most));
                }
                "validateDoubleRange" => {
                    let real = |text: &str| text.parse().ok().filter(|bound: &f64| !bound.is_nan());
                    let (least, most) = bounds(child, real, "a number", reading);
                    validators.push(DataValidator::Double(least, most));
                }
                "validatePattern" => {
                    if let Some(pattern) = read::required(child, "pattern", reading.diagnostics) {
                        validators.push(DataValidator::Pattern(pattern));
                    }
                }
                "validateCustom" => {
                    let message = "a validator in Java cannot run here";
                    let error = Diagnostic::error("unsupported-artifact", message)
                        .at(child.start_tag(), "values would not be checked by it")
                        .help("write it as validatePattern, or check the message in front of the service");
                    reading.diagnostics.push(error);
                }
                _ => {}
            }
        }
        let ordinal = element.attr("ordinal").and_then(|value| value.trim().parse().ok()).unwrap_or(0);
        Some(DataParameter {
            name,
            sql_type: read::optional(element, "sqlType"),
            direction,
            is_array: word("paramType") == "ARRAY",
            ordinal,
            default: element.attribute("defaultValue").map(Key::of),
            optional: is_true(element, "optional"),
            validators,
            span: element.start_tag(),
        })
    }
}

impl DataResult {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> DataResult {
        check(&RESULT, element, reading);
        let format =
            match element.attr("outputType").map(|value| value.trim().to_ascii_lowercase()).as_deref() {
                Some("json") => DataFormat::Json,
                Some("rdf") => DataFormat::Rdf,
                _ => DataFormat::Xml,
            };
        let json = (format == DataFormat::Json)
            .then(|| Key { value: element.text().trim().to_owned(), span: element.text_span() });
        let name = |name: &str| element.attr(name).unwrap_or_default().trim().to_owned();
        DataResult {
            element: name("element"),
            row: name("rowName"),
            namespace: text(element, "defaultNamespace"),
            format,
            about: read::optional(element, "rdfBaseURI"),
            column_numbers: is_true(element, "useColumnNumbers"),
            escape: is_true(element, "escapeNonPrintableChar"),
            json,
            stylesheet: read::optional(element, "xsltPath"),
            children: outputs(element, reading),
            span: element.start_tag(),
        }
    }
}

/// The parts of a row, or of an element in it.
fn outputs(element: &Element, reading: &mut Reading<'_>) -> Vec<DataOutput> {
    let mut all = Vec::new();
    for child in element.elements() {
        match child.local() {
            "call-query" => all.extend(DataCall::parse(child, reading).map(DataOutput::Call)),
            "call-query-group" => {
                let calls = child.children_named("call-query");
                all.extend(calls.filter_map(|call| DataCall::parse(call, reading)).map(DataOutput::Call));
            }
            "element" | "attribute" => {
                check(&FIELD, child, reading);
                let Some(name) = read::required(child, "name", reading.diagnostics) else { continue };
                let roles = roles(child);
                let namespace = text(child, "namespace");
                let Some(value) = value_of(child) else {
                    let children = outputs(child, reading);
                    all.push(DataOutput::Group { name: name.value, namespace, roles, children });
                    continue;
                };
                let xsd_type = child.attr("xsdType").map(str::trim).filter(|t| !t.is_empty());
                let xsd_type = xsd_type.unwrap_or("string");
                let export = text(child, "export");
                let all_values = child.attr("exportType").is_some_and(|t| t.trim() == "ARRAY");
                all.push(DataOutput::Field(DataField {
                    name,
                    is_attribute: child.is("attribute"),
                    value,
                    xsd_type: xsd_type.rsplit(':').next().unwrap_or(xsd_type).to_owned(),
                    optional: is_true(child, "optional"),
                    export: export.map(|name| (name, all_values)),
                    namespace,
                    roles,
                    span: child.start_tag(),
                }));
            }
            _ => {}
        }
    }
    all
}

/// The roles that see a part.
fn roles(element: &Element) -> Vec<String> {
    element.attr("requiredRoles").map(read::names_by_comma).unwrap_or_default()
}

fn value_of(element: &Element) -> Option<DataValue> {
    let of = |name: &str| element.attr(name).map(str::to_owned);
    of("column")
        .map(DataValue::Column)
        .or_else(|| of("query-param").map(DataValue::Parameter))
        .or_else(|| of("value").map(DataValue::Constant))
        .or_else(|| of("rdf-ref-uri").map(DataValue::Reference))
}

impl DataCall {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataCall> {
        check(&CALL, element, reading);
        let query = read::required(element, "href", reading.diagnostics)?;
        let mut parameters = Vec::new();
        for param in element.children_named("with-param") {
            check(&WITH, param, reading);
            let name = read::required(param, "name", reading.diagnostics)?;
            // Without a source it is the parameter of the same name.
            let value = value_of(param).unwrap_or_else(|| DataValue::Parameter(name.value.clone()));
            parameters.push((name, value));
        }
        let roles = roles(element);
        Some(DataCall { query, parameters, roles, span: element.start_tag() })
    }
}

impl DataOperation {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<DataOperation> {
        check(&OPERATION, element, reading);
        let is_resource = element.is("resource");
        let name = read::required(element, if is_resource { "path" } else { "name" }, reading.diagnostics)?;
        let method = is_resource.then(|| {
            let attribute = read::optional(element, "method");
            attribute.unwrap_or(Key { value: "GET".to_owned(), span: element.start_tag() })
        });
        let inside = element.child("call-query-group").unwrap_or(element);
        let mut calls = inside.children_named("call-query");
        let Some(call) = calls.next() else {
            let message = format!("`{}` of `{name}` runs no query", element.local());
            let error = Diagnostic::error("missing-element", message);
            reading.diagnostics.push(error.at(element.start_tag(), "expected `call-query` inside"));
            return None;
        };
        // As in WSO2.
        for other in calls {
            let message = format!("only the first `call-query` of `{name}` is run");
            let found = Diagnostic::warning("ignored-parameter", message);
            reading.diagnostics.push(
                found
                    .at(other.start_tag(), "it has no effect")
                    .help("make it an operation, and ask for both with a request_box (enableBoxcarring)"),
            );
        }
        Some(DataOperation {
            name,
            method,
            description: super::description(element),
            status: is_true(element, "returnRequestStatus"),
            held: is_true(element, "disableStreaming"),
            call: DataCall::parse(call, reading)?,
            span: element.start_tag(),
        })
    }
}

/// `minimum` and `maximum` of a validator.
fn bounds<T>(
    element: &Element,
    parse: impl Fn(&str) -> Option<T>,
    expected: &str,
    reading: &mut Reading<'_>,
) -> (Option<T>, Option<T>) {
    let mut bound = |name: &str| {
        let key = read::optional(element, name)?;
        let value = parse(&key.value);
        if value.is_none() {
            reading.diagnostics.push(read::bad_value(name, &key.value, key.span, expected));
        }
        value
    };
    (bound("minimum"), bound("maximum"))
}

/// A bound of whole numbers. One outside of 64 bits bounds nothing. `10.0` is a whole number.
fn whole(text: &str) -> Option<i64> {
    let real = || text.parse::<f64>().ok().filter(|bound| !bound.is_nan()).map(|bound| bound as i64);
    text.parse().ok().or_else(real)
}

fn is_true(element: &Element, name: &str) -> bool {
    element.attr(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

fn text(element: &Element, name: &str) -> Option<String> {
    element.attr(name).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}
