//! The paths of a message through a list of steps: whether it can reach the end, and whether a step has handled it by
//! then. Steps that are unknown here (scripts, connectors, keys that expressions give) are assumed to handle the message
//! and to continue.

use crate::look::Look;
use crate::references::literal_key;
use config::Element;
use std::collections::HashMap;

/// Sequences that name each other deeper than this are not followed.
const DEEPEST: usize = 40;

/// The state of messages at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Ways {
    /// Messages arrive, and no step has had a visible effect.
    pub untouched: bool,
    /// Messages arrive that a step has handled: sent, stored, passed to a script.
    pub dealt: bool,
}

impl Ways {
    /// The start of a flow.
    pub const BEGIN: Ways = Ways { untouched: true, dealt: false };
    /// Any message.
    pub const ANY: Ways = Ways { untouched: true, dealt: true };
    /// No message arrives here.
    pub const NONE: Ways = Ways { untouched: false, dealt: false };

    /// Whether a message can arrive here.
    pub fn any(self) -> bool {
        self.untouched || self.dealt
    }

    fn or(self, other: Ways) -> Ways {
        Ways { untouched: self.untouched || other.untouched, dealt: self.dealt || other.dealt }
    }

    fn dealt(self) -> Ways {
        Ways { untouched: false, dealt: self.any() }
    }
}

/// Steps that change or read the message, and have no visible effect.
const NEUTRAL: &[&str] = &[
    "log",
    "propertyGroup",
    "variable",
    "header",
    "payloadFactory",
    "enrich",
    "xslt",
    "fastXSLT",
    "datamapper",
    "jsontransform",
    "builder",
    "rewrite",
    "transaction",
];

/// Whether a step changes or reads the message, and has no visible effect.
pub fn is_neutral(name: &str) -> bool {
    NEUTRAL.contains(&name) || READING.contains(&name)
}

/// Steps without a use if the message goes nowhere.
const PREPARING: &[&str] =
    &["header", "payloadFactory", "enrich", "xslt", "fastXSLT", "datamapper", "jsontransform", "rewrite"];

/// Whether a step in a copy of a message calls nothing.
fn stays(name: &str) -> bool {
    const STAYING: [&str; 10] = [
        "property",
        "filter",
        "switch",
        "callout",
        "store",
        "drop",
        "respond",
        "send",
        "loopback",
        "throwError",
    ];
    NEUTRAL.contains(&name) || STAYING.contains(&name)
}

/// Operations of connectors that read files, and have no visible effect either.
const READING: &[&str] = &[
    "file.read",
    "file.listFiles",
    "file.fetchDirectoryContent",
    "file.checkExist",
    "file.exploreZipFile",
    "fileconnector.read",
    "fileconnector.readALine",
    "fileconnector.readSpecifiedLines",
    "fileconnector.search",
    "fileconnector.isFileExist",
    "fileconnector.listFileZip",
    "fileconnector.getSize",
    "fileconnector.getLastModifiedTime",
];

/// Whether a step changes the message, which has no use if the message goes nowhere.
pub fn prepares(step: &Element) -> bool {
    PREPARING.contains(&step.local()) || (step.local().starts_with("CSV.") && keeps_body(step))
}

/// Whether a step waits for the response of a backend, which becomes the message.
pub fn calls(step: &Element) -> bool {
    let name = step.local();
    name == "call" || (name.starts_with("http.") && name != "http.init" && keeps_body(step))
}

/// Whether the result of a connector operation becomes the message.
fn keeps_body(step: &Element) -> bool {
    let written = |name: &str| {
        let child = step.child(name).map(|child| child.text());
        child
            .as_deref()
            .or(step.attr(name))
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    written("responseVariable").is_none() || written("overwriteBody").is_some_and(|value| value == "true")
}

/// Properties for the client's response without a message: a flow that sets one means it.
pub const INTENTIONS: &[&str] = &[
    "HTTP_SC",
    "FORCE_SC_ACCEPTED",
    "NO_ENTITY_BODY",
    "OUT_ONLY",
    "RESPONSE",
    "HTTP_SC_DESC",
    "ClientApiNonBlocking",
];

/// Follows messages through lists.
pub struct Walk<'l, 'a> {
    look: &'l Look<'a>,
    /// A missing branch counts as one that handles the message.
    pub branches_complete: bool,
    /// `filter`s and `switch`es that a message passes without a branch, while another branch ends it or handles it.
    pub incomplete: Vec<&'a Element>,
    /// The steps that messages have reached; those of a sequence once for each state in which messages enter it.
    pub passed: Vec<&'a Element>,
    /// The sequences and templates that are being followed.
    inside: Vec<*const Element>,
    /// The state after a sequence or template, by the state before. Each is followed once: otherwise the number of
    /// paths would double with each sequence that is run twice.
    followed: HashMap<(*const Element, Ways), Ways>,
}

impl<'l, 'a> Walk<'l, 'a> {
    /// Nothing was followed yet.
    pub fn new(look: &'l Look<'a>) -> Walk<'l, 'a> {
        Walk {
            look,
            branches_complete: false,
            incomplete: Vec::new(),
            passed: Vec::new(),
            inside: Vec::new(),
            followed: HashMap::new(),
        }
    }

    /// The state at the end of a list.
    pub fn list(&mut self, list: &'a Element, mut ways: Ways) -> Ways {
        for step in self.look.language.steps(list) {
            if !ways.any() {
                break;
            }
            ways = self.step(step, ways);
        }
        ways
    }

    /// The state after a step.
    pub fn step(&mut self, step: &'a Element, ways: Ways) -> Ways {
        self.passed.push(step);
        match step.local() {
            "respond" | "drop" | "loopback" | "throwError" => Ways::NONE,
            "send" if !self.look.settings.synapse_dialect => Ways::NONE,
            "property" => match step.attr("name").is_some_and(|name| INTENTIONS.contains(&name.trim()))
                || step.attr("scope").is_some_and(|scope| scope.trim() == "registry")
            {
                true => ways.dealt(),
                false => ways,
            },
            "iterate" | "clone" if !self.goes_on(step) => Ways::NONE,
            "filter" => self.filter(step, ways),
            "switch" => self.switch(step, ways),
            "validate" => match step.child("on-fail") {
                Some(fails) => self.list(fails, ways).or(ways),
                None => ways,
            },
            "sequence" if step.attribute("key").is_some() => self.sequence(step, ways),
            "call-template" => self.template(step, ways),
            name if NEUTRAL.contains(&name) || READING.contains(&name) || name.starts_with("CSV.") => ways,
            _ => ways.dealt(),
        }
    }

    /// Whether messages come behind a split: the one that is split, or copies, which go on there when a `call` of theirs was answered.
    fn goes_on(&self, split: &'a Element) -> bool {
        let is_kept = split.attr("continueParent").is_some_and(|value| value.trim() != "false");
        let names = |element: &Element| element.attribute("sequence").is_some();
        // What is in a sequence by key is not looked at.
        let may_call = |step: &&Element| !stays(step.local()) || step.elements().any(names);
        is_kept
            || split.children_named("target").any(names)
            || self
                .look
                .language
                .lists(split)
                .into_iter()
                .any(|list| self.look.steps_in(list).iter().any(may_call))
    }

    fn filter(&mut self, step: &'a Element, ways: Ways) -> Ways {
        let then = match step.child("then") {
            Some(then) => self.branch(then, ways),
            None => self.list(step, ways),
        };
        match step.child("else") {
            Some(other) => then.or(self.branch(other, ways)),
            None => self.passes(step, ways, then),
        }
    }

    fn switch(&mut self, step: &'a Element, ways: Ways) -> Ways {
        let mut all = Ways::NONE;
        for case in step.children_named("case") {
            all = all.or(self.list(case, ways));
        }
        match step.child("default") {
            Some(default) => all.or(self.list(default, ways)),
            None if step.child("case").is_none() => ways,
            None => self.passes(step, ways, all),
        }
    }

    /// Messages without a branch continue.
    fn passes(&mut self, step: &'a Element, ways: Ways, branches: Ways) -> Ways {
        if self.branches_complete {
            return branches.or(ways.dealt());
        }
        if ways.untouched && !branches.untouched {
            self.incomplete.push(step);
        }
        branches.or(ways)
    }

    fn branch(&mut self, branch: &'a Element, ways: Ways) -> Ways {
        match branch.attribute("sequence") {
            Some(_) => self.named(literal_key(branch, "sequence"), ways),
            None => self.list(branch, ways),
        }
    }

    fn sequence(&mut self, step: &'a Element, ways: Ways) -> Ways {
        self.named(literal_key(step, "key"), ways)
    }

    fn named(&mut self, name: Option<&str>, ways: Ways) -> Ways {
        let Some(name) = name else { return ways.dealt() };
        let Some(sequence) = self.look.sequence(name) else { return ways.dealt() };
        self.follow(&sequence.element, ways)
    }

    /// A template that ends the flow ends it for its caller too.
    fn template(&mut self, step: &'a Element, ways: Ways) -> Ways {
        let template =
            literal_key(step, "target").and_then(|name| self.look.configuration.sequence_templates.get(name));
        match template {
            Some(template) => self.follow(&template.sequence.element, ways),
            None => ways.dealt(),
        }
    }

    /// A path that is cut off, because it is too deep or circular, counts as one that handles the message.
    fn follow(&mut self, list: &'a Element, ways: Ways) -> Ways {
        let place = std::ptr::from_ref(list);
        if let Some(out) = self.followed.get(&(place, ways)) {
            return *out;
        }
        if self.inside.len() >= DEEPEST || self.inside.contains(&place) {
            return ways.dealt();
        }
        self.inside.push(place);
        let out = self.list(list, ways);
        self.inside.pop();
        self.followed.insert((place, ways), out);
        out
    }
}
