//! Faults of a data service, as its clients see them: `DataServiceFault`, with the codes and fields of WSO2.

use crate::output::{Form, escape};
use crate::plan::Service;
use crate::plan::{Source, With};
use crate::value::{Givens, RequestValue};
use message::SoapVersion;
use std::fmt::Write;

/// The codes of faults.
pub(crate) mod code {
    pub const DATABASE: &str = "DATABASE_ERROR";
    pub const UNAVAILABLE: &str = "CONNECTION_UNAVAILABLE_ERROR";
    pub const VALIDATION: &str = "VALIDATION_ERROR";
    pub const PARAMETERS: &str = "INCOMPATIBLE_PARAMETERS_ERROR";
    pub const UNKNOWN: &str = "UNKNOWN_ERROR";
}

/// A failure of a request.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// Of [`code`].
    pub code: &'static str,
    /// The message.
    pub message: String,
    /// The message of the database or of a check.
    pub nested: String,
    /// The status of the response.
    pub status: u16,
    /// The operation or resource.
    pub request: String,
    /// Its parameters, as Java's `Map.toString` writes them.
    pub parameters: Option<String>,
    /// The database does not know a table or a column.
    pub unknown_name: bool,
}

/// Whether a table or a column does not exist: by the SQLSTATE (PostgreSQL, MySQL), or the words of SQLite.
fn is_unknown_name(error: &sql::Error) -> bool {
    matches!(error.state.as_deref(), Some("42P01" | "42703" | "42S02" | "42S22"))
        || ["no such table", "no such column"].iter().any(|words| error.message.starts_with(words))
        || error.message.contains(" has no column named ")
}

impl Trouble {
    pub fn new(code: &'static str, message: impl Into<String>) -> Trouble {
        Trouble {
            code,
            message: message.into(),
            nested: String::new(),
            status: 500,
            request: String::new(),
            parameters: None,
            unknown_name: false,
        }
    }

    pub fn because(self, nested: impl Into<String>) -> Trouble {
        Trouble { nested: nested.into(), ..self }
    }

    /// From an error of the database, whose text has no parameters in it.
    pub fn of(error: &sql::Error, query: &str) -> Trouble {
        let (code, status) = match error.reason {
            sql::Reason::Unavailable => (code::UNAVAILABLE, 503),
            _ => (code::DATABASE, 500),
        };
        let message =
            format!("Error in 'SQLQuery.processPreNormalQuery' of the query {query}: {}", error.message);
        Trouble {
            status,
            unknown_name: is_unknown_name(error),
            ..Trouble::new(code, message).because(error.detail())
        }
    }

    /// With the parameters of the request, whose names in lower case stand for those that `parameters` were written with.
    pub fn during(mut self, request: &str, given: &Givens, parameters: &[With]) -> Trouble {
        if self.parameters.is_none() {
            self.request = request.to_owned();
            let mut all: Vec<_> = given.iter().collect();
            all.sort_by_key(|(name, _)| name.as_str());
            let mut text = String::from("{");
            for (name, value) in all {
                let separator = if text.len() > 1 { ", " } else { "" };
                let is_it =
                    |with: &&With| matches!(&with.source, Source::Parameter(source) if source == name);
                let name = parameters.iter().find(is_it).map_or(name, |with| &with.written);
                let _ = match value {
                    RequestValue::One(value) => write!(text, "{separator}{name}={}", shown(value.as_deref())),
                    RequestValue::Many(values) => {
                        let values: Vec<_> = values.iter().map(|value| shown(value.as_deref())).collect();
                        write!(text, "{separator}{name}=[{}]", values.join(", "))
                    }
                };
            }
            text.push('}');
            self.parameters = Some(text);
        }
        self
    }

    /// The whole fault as one text, for the reason of a SOAP fault.
    pub fn text(&self, service: &Service) -> String {
        let mut out = format!("DS Fault Message: {}\nDS Code: {}\n", self.message, self.code);
        let _ = write!(
            out,
            "Source Data Service:-\nName: {}\nLocation: {}\nDescription: {}\nDefault Namespace: {}\n",
            service.name,
            service.location,
            service.description.as_deref().unwrap_or("N/A"),
            service.namespace
        );
        let _ = writeln!(out, "Current Request Name: {}", self.request);
        let _ = writeln!(out, "Current Params: {}", self.parameters.as_deref().unwrap_or("{}"));
        if !self.nested.is_empty() {
            let _ = write!(out, "Nested Exception:-\n{}\n", self.nested);
        }
        out
    }

    fn fields(&self, service: &Service) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
        let one = |name: &'static str, value: &str| (name, vec![("", value.to_owned())]);
        let source = vec![
            ("data_service_name", service.name.clone()),
            ("description", service.description.clone().unwrap_or_else(|| "N/A".to_owned())),
            ("location", service.location.clone()),
            ("default_namespace", service.namespace.to_string()),
        ];
        let mut all = vec![
            one("current_params", self.parameters.as_deref().unwrap_or("{}")),
            one("current_request_name", &self.request),
        ];
        // Without a nested exception the message is its own reason.
        all.push(one("nested_exception", if self.nested.is_empty() { &self.message } else { &self.nested }));
        all.push(("source_data_service", source));
        all.push(one("ds_code", self.code));
        all
    }

    /// The element `DataServiceFault`.
    fn element(&self, service: &Service) -> String {
        let mut out = format!("<DataServiceFault xmlns=\"{}\">", config::DATA_SERVICE_NAMESPACE);
        for (name, values) in self.fields(service) {
            out += &format!("<{name}>");
            for (inner, value) in values {
                match inner {
                    "" => escape(&value, &mut out),
                    inner => {
                        out += &format!("<{inner}>");
                        escape(&value, &mut out);
                        out += &format!("</{inner}>");
                    }
                }
            }
            out += &format!("</{name}>");
        }
        out + "</DataServiceFault>"
    }

    fn json(&self, service: &Service) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for (name, values) in self.fields(service) {
            let value = match values.as_slice() {
                [("", value)] => value.clone().into(),
                values => {
                    let inner = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into()));
                    serde_json::Value::Object(inner.collect())
                }
            };
            all.insert(name.to_owned(), value);
        }
        serde_json::Value::Object(all)
    }

    /// The body of the response.
    pub fn body(&self, service: &Service, form: Form) -> Vec<u8> {
        let detail = self.element(service);
        let mut reason = String::new();
        escape(&self.text(service), &mut reason);
        let code = format!("<{{}} xmlns:ds=\"{}\">ds:{}</{{}}>", config::DATA_SERVICE_NAMESPACE, self.code);
        let text = match form {
            Form::Xml => detail,
            Form::Json => serde_json::json!({
                "Fault": {
                    "faultcode": self.code,
                    "faultstring": self.text(service),
                    "detail": { "DataServiceFault": self.json(service) },
                }
            })
            .to_string(),
            Form::Soap(SoapVersion::V11) => format!(
                "<soapenv:Fault>{}<faultstring>{reason}</faultstring><detail>{detail}</detail></soapenv:Fault>",
                code.replace("{}", "faultcode")
            ),
            Form::Soap(SoapVersion::V12) => format!(
                "<soapenv:Fault><soapenv:Code><soapenv:Value>soapenv:Receiver</soapenv:Value><soapenv:Subcode>{}</soapenv:Subcode>\
                 </soapenv:Code><soapenv:Reason><soapenv:Text xml:lang=\"en-US\">{reason}</soapenv:Text></soapenv:Reason>\
                 <soapenv:Detail>{detail}</soapenv:Detail></soapenv:Fault>",
                code.replace("{}", "soapenv:Value")
            ),
        };
        let (before, after) = form.frame();
        [before.as_bytes(), text.as_bytes(), after.as_bytes()].concat()
    }
}

/// A value in a fault, cut after some characters.
fn shown(value: Option<&str>) -> String {
    const MOST: usize = 200;
    let value = value.unwrap_or("null");
    match value.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.to_owned(),
    }
}
