//! `<protocol>` of a cache: which requests are the same, and which answers are kept.

use super::question::{Considered, KeyParts, Questions};
use config::Element;
use diagnostics::Span;
use flow::{Compiler, Pattern};

const PROTOCOL: &[&str] = &[
    "methods",
    "headersToIncludeInHash",
    "headersToExcludeInHash",
    "responseCodes",
    "enableCacheControl",
    "includeAgeHeader",
    "hashGenerator",
];
const METHODS: &[&str] = &["POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH"];

pub(super) struct Protocol {
    /// That are looked for; `None`: all.
    methods: Option<Vec<String>>,
    pub(super) questions: Questions,
    /// Statuses of answers that are kept; `None`: all.
    pub(super) codes: Option<Pattern>,
    /// Obey the `Cache-Control` of the answers.
    pub(super) control: bool,
    /// Say how old an answer is.
    pub(super) age: bool,
}

impl Default for Protocol {
    fn default() -> Protocol {
        let questions = Questions::of(KeyParts::All(Considered::AllBut(Vec::new())));
        Protocol { methods: None, questions, codes: None, control: false, age: false }
    }
}

impl Protocol {
    /// Reads the settings of a `cache`; `None` after a recorded error.
    pub(super) fn compile(cache: &Element, compiler: &mut Compiler<'_>) -> Option<Protocol> {
        let protocol = cache.child("protocol");
        if let Some(protocol) = protocol {
            if protocol.attr("type").is_some_and(|kind| !kind.eq_ignore_ascii_case("http")) {
                let message =
                    format!("there is no cache for `{}`", protocol.attr("type").unwrap_or_default());
                compiler.error("bad-value", message, protocol.value_span("type"), "expected HTTP");
                return None;
            }
            for child in protocol.elements().filter(|child| !PROTOCOL.contains(&child.local())) {
                let message = format!("`{}` cannot stand inside of `protocol`", child.local());
                let label = format!("expected {}", PROTOCOL.join(", "));
                compiler.warning("unknown-element", message, child.name_span(), label);
            }
        }
        let settings = Settings { cache, protocol };
        Some(Protocol {
            methods: methods(&settings, compiler)?,
            questions: Questions::of(hash_generator(&settings, compiler)?),
            codes: codes(&settings, compiler)?,
            control: settings.flag("enableCacheControl"),
            age: settings.flag("includeAgeHeader"),
        })
    }

    /// Whether messages of this method are looked for.
    pub(super) fn looks_for(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.iter().any(|looked_for| looked_for == method))
    }

    /// Whether some of the messages that are looked for have to be read.
    pub(super) fn reads_bodies(&self) -> bool {
        self.methods
            .as_ref()
            .is_none_or(|methods| methods.iter().any(|method| self.questions.reads_body(method)))
    }
}

/// The texts of the elements inside.
struct Settings<'a> {
    cache: &'a Element,
    protocol: Option<&'a Element>,
}

impl<'a> Settings<'a> {
    fn text(&self, name: &str) -> Option<String> {
        let text = self.protocol?.child(name)?.text().trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// Where one stands; the cache, if it is not there.
    fn place(&self, name: &str) -> Span {
        self.protocol.and_then(|protocol| protocol.child(name)).unwrap_or(self.cache).start_tag()
    }
}

fn methods(settings: &Settings<'_>, compiler: &mut Compiler<'_>) -> Option<Option<Vec<String>>> {
    let Some(text) = settings.text("methods") else { return Some(None) };
    let names: Vec<_> = text.split(',').map(|name| name.trim().to_ascii_uppercase()).collect();
    if names.iter().any(|name| name == "*") {
        return Some(None);
    }
    if let Some(bad) = names.iter().find(|name| !METHODS.contains(&name.as_str())) {
        let message = format!("the cache knows no method `{bad}`");
        let expected = format!("expected {} or *", METHODS.join(", "));
        compiler.error("bad-value", message, settings.place("methods"), expected);
        return None;
    }
    Some(Some(names))
}

fn hash_generator(settings: &Settings<'_>, compiler: &mut Compiler<'_>) -> Option<KeyParts> {
    let generator =
        settings.text("hashGenerator").or_else(|| settings.cache.attr("hashGenerator").map(str::to_owned));
    match generator.as_deref().map(|class| class.rsplit('.').next().unwrap_or(class)) {
        None | Some("HttpRequestHashGenerator" | "REQUESTHASHGenerator") => {
            let names = |name: &str| {
                let text = settings.text(name)?;
                Some(text.split(',').map(|name| name.trim().to_ascii_lowercase()).collect::<Vec<_>>())
            };
            Some(KeyParts::All(match (names("headersToIncludeInHash"), names("headersToExcludeInHash")) {
                (Some(only), _) => Considered::Only(only),
                (None, Some(but)) if but.iter().any(|name| name == "*") => Considered::None,
                (None, but) => Considered::AllBut(but.unwrap_or_default()),
            }))
        }
        Some("DOMHASHGenerator") => Some(KeyParts::Body),
        Some(_) => {
            let class = generator.unwrap_or_default();
            let message = format!("the hash generator `{class}` is a Java class and cannot run here");
            let expected = "expected HttpRequestHashGenerator, REQUESTHASHGenerator or DOMHASHGenerator";
            compiler.error("bad-value", message, settings.place("hashGenerator"), expected);
            None
        }
    }
}

fn codes(settings: &Settings<'_>, compiler: &mut Compiler<'_>) -> Option<Option<Pattern>> {
    let Some(text) = settings.text("responseCodes") else { return Some(None) };
    match Pattern::compile(&text) {
        Ok(pattern) => Some(Some(pattern)),
        Err(why) => {
            let message = format!("`{text}` is not a valid regular expression");
            compiler.error("bad-value", message, settings.place("responseCodes"), why);
            None
        }
    }
}
