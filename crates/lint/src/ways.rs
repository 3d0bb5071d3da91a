//! The ways that a message can take through a list of steps: whether it can reach the end, and whether a step has dealt with it by
//! then. Of what is not known here (scripts, connectors, keys that expressions give) it is assumed that it deals with the message
//! and lets it pass.

use crate::look::Look;
use crate::references::literal_key;
use config::Element;
use std::collections::HashMap;

/// Sequences that name each other deeper than this are not followed.
const DEEPEST: usize = 40;

/// How messages come to a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Ways {
    /// Some, with which no step has done anything that is seen outside.
    pub untouched: bool,
    /// Some that a step has dealt with: sent, stored, given to a script.
    pub dealt: bool,
}

impl Ways {
    /// Where a flow begins.
    pub const BEGIN: Ways = Ways { untouched: true, dealt: false };
    /// Any message.
    pub const ANY: Ways = Ways { untouched: true, dealt: true };
    /// No message comes here.
    pub const NONE: Ways = Ways { untouched: false, dealt: false };

    /// Whether a message can come here.
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

/// Steps that change the message or look at it, and do nothing that is seen outside.
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

/// Steps that nobody needs whose message goes nowhere.
const PREPARING: &[&str] =
    &["header", "payloadFactory", "enrich", "xslt", "fastXSLT", "datamapper", "jsontransform", "rewrite"];

/// Operations of connectors that read files, and are seen by nobody either.
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

/// Whether a step changes the message, and nobody needs it where the message goes nowhere.
pub fn prepares(step: &Element) -> bool {
    PREPARING.contains(&step.local()) || (step.local().starts_with("CSV.") && keeps_body(step))
}

/// Whether a step waits for the answer of a backend that then is the message.
pub fn calls(step: &Element) -> bool {
    let name = step.local();
    name == "call" || (name.starts_with("http.") && name != "http.init" && keeps_body(step))
}

/// Whether the result of an operation of a connector becomes the message.
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

/// Properties that say what the client gets though nothing answers: whoever sets one means it.
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
    /// A branch that is not written counts as one that deals with the message.
    pub branches_complete: bool,
    /// `filter`s and `switch`es that a message passes because no branch is for it, while another one ends or deals with it.
    pub incomplete: Vec<&'a Element>,
    /// The steps that messages have come to; those of a sequence as often as messages come into it in another way.
    pub passed: Vec<&'a Element>,
    /// The sequences and templates that are being followed.
    inside: Vec<*const Element>,
    /// How messages come out of a sequence or template into which they come in this way. Each is followed once: where it is run from
    /// two places, and what it runs again from two, the ways would double with each.
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

    /// How messages come to the end of a list.
    pub fn list(&mut self, list: &'a Element, mut ways: Ways) -> Ways {
        for step in self.look.language.steps(list) {
            if !ways.any() {
                break;
            }
            ways = self.step(step, ways);
        }
        ways
    }

    /// How messages come past a step.
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

    /// What no branch is for passes.
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

    /// What ends inside of a template goes on nowhere.
    fn template(&mut self, step: &'a Element, ways: Ways) -> Ways {
        let template =
            literal_key(step, "target").and_then(|name| self.look.configuration.sequence_templates.get(name));
        match template {
            Some(template) => self.follow(&template.sequence.element, ways),
            None => ways.dealt(),
        }
    }

    /// What is cut off, because it is too deep or leads back, counts as something that deals with the message.
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
