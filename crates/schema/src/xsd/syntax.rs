//! The syntax of schema documents: the schema for schemas (Part 1, appendix A), as one table.

use super::model::Ways;
use super::names::XS_NS;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use xml::{Document, NodeId, NodeKind};

/// The type of an attribute's value.
#[derive(Copy, Clone, PartialEq)]
enum Of {
    Any,
    Id,
    NcName,
    QName,
    QNames,
    Uri,
    Boolean,
    Natural,
    Positive,
    Occurs,
    /// A list of these words, or `#all`.
    Ways(&'static [&'static str]),
    /// One of these words.
    One(&'static [&'static str]),
    Namespaces,
}

/// An attribute: name, type, whether it must be there.
type Attribute = (&'static str, Of, bool);

/// The content of an element: its attributes, and its children as a regular expression over the letters of [`letter`].
struct Rule {
    attributes: &'static [Attribute],
    content: &'static str,
}

const OCCURS: [Attribute; 2] = [("minOccurs", Of::Natural, false), ("maxOccurs", Of::Occurs, false)];
const FORM: Of = Of::One(&["qualified", "unqualified"]);
const DERIVATION: Of = Of::Ways(&["extension", "restriction"]);
const SIMPLE_FINAL: Of = Of::Ways(&["list", "union", "restriction"]);

/// The rule for an element, by its name, its parent's name and whether it is top-level (below schema or redefine).
fn rule(local: &str, parent: &str, top: bool, has_ref: bool) -> Option<Rule> {
    const VALUE: Attribute = ("value", Of::Any, true);
    const FIXED: Attribute = ("fixed", Of::Boolean, false);
    let rule = |attributes, content| Some(Rule { attributes, content });
    match local {
        "schema" => rule(
            const {
                &[
                    ("targetNamespace", Of::Uri, false),
                    ("version", Of::Any, false),
                    ("finalDefault", Of::Ways(&["extension", "restriction", "list", "union"]), false),
                    ("blockDefault", Of::Ways(&["extension", "restriction", "substitution"]), false),
                    ("attributeFormDefault", FORM, false),
                    ("elementFormDefault", FORM, false),
                ]
            },
            "[imdn]*([scgAeao]n*)*",
        ),
        "include" => rule(&[("schemaLocation", Of::Uri, true)], "n?"),
        "redefine" => rule(&[("schemaLocation", Of::Uri, true)], "[nscgA]*"),
        "import" => rule(&[("namespace", Of::Uri, false), ("schemaLocation", Of::Uri, false)], "n?"),
        "annotation" => rule(&[], "[Dp]*"),
        "element" if top => rule(
            const {
                &[
                    ("name", Of::NcName, true),
                    ("type", Of::QName, false),
                    ("substitutionGroup", Of::QName, false),
                    ("default", Of::Any, false),
                    ("fixed", Of::Any, false),
                    ("nillable", Of::Boolean, false),
                    ("abstract", Of::Boolean, false),
                    ("final", DERIVATION, false),
                    ("block", Of::Ways(&["extension", "restriction", "substitution"]), false),
                ]
            },
            "n?[sc]?[UKR]*",
        ),
        "element" if has_ref => rule(const { &[("ref", Of::QName, true), OCCURS[0], OCCURS[1]] }, "n?"),
        "element" => rule(
            const {
                &[
                    ("name", Of::NcName, true),
                    ("type", Of::QName, false),
                    ("default", Of::Any, false),
                    ("fixed", Of::Any, false),
                    ("nillable", Of::Boolean, false),
                    ("block", Of::Ways(&["extension", "restriction", "substitution"]), false),
                    ("form", FORM, false),
                    OCCURS[0],
                    OCCURS[1],
                ]
            },
            "n?[sc]?[UKR]*",
        ),
        "attribute" if top => rule(
            &[
                ("name", Of::NcName, true),
                ("type", Of::QName, false),
                ("default", Of::Any, false),
                ("fixed", Of::Any, false),
            ],
            "n?s?",
        ),
        "attribute" => {
            const USE: Attribute = ("use", Of::One(&["optional", "prohibited", "required"]), false);
            if has_ref {
                return rule(
                    const {
                        &[
                            ("ref", Of::QName, true),
                            USE,
                            ("default", Of::Any, false),
                            ("fixed", Of::Any, false),
                        ]
                    },
                    "n?",
                );
            }
            rule(
                const {
                    &[
                        ("name", Of::NcName, true),
                        ("type", Of::QName, false),
                        ("default", Of::Any, false),
                        ("fixed", Of::Any, false),
                        ("form", FORM, false),
                        USE,
                    ]
                },
                "n?s?",
            )
        }
        "simpleType" if top => {
            rule(const { &[("name", Of::NcName, true), ("final", SIMPLE_FINAL, false)] }, "n?[rlu]")
        }
        "simpleType" => rule(&[], "n?[rlu]"),
        "complexType" if top => rule(
            const {
                &[
                    ("name", Of::NcName, true),
                    ("mixed", Of::Boolean, false),
                    ("abstract", Of::Boolean, false),
                    ("final", DERIVATION, false),
                    ("block", DERIVATION, false),
                ]
            },
            "n?(S|C|[gLhq]?[aA]*Y?)",
        ),
        "complexType" => rule(&[("mixed", Of::Boolean, false)], "n?(S|C|[gLhq]?[aA]*Y?)"),
        "simpleContent" => rule(&[], "n?[rx]"),
        "complexContent" => rule(&[("mixed", Of::Boolean, false)], "n?[rx]"),
        "restriction" if parent == "simpleType" => rule(&[("base", Of::QName, false)], "n?s?F*"),
        "restriction" | "extension" => rule(
            &[("base", Of::QName, true)],
            match (parent, local) {
                ("simpleContent", "restriction") => "n?s?F*[aA]*Y?",
                ("simpleContent", _) => "n?[aA]*Y?",
                _ => "n?[gLhq]?[aA]*Y?",
            },
        ),
        "list" => rule(&[("itemType", Of::QName, false)], "n?s?"),
        "union" => rule(&[("memberTypes", Of::QNames, false)], "n?s*"),
        "length" | "minLength" | "maxLength" | "fractionDigits" => {
            rule(const { &[("value", Of::Natural, true), FIXED] }, "n?")
        }
        "totalDigits" => rule(const { &[("value", Of::Positive, true), FIXED] }, "n?"),
        "whiteSpace" => {
            rule(const { &[("value", Of::One(&["preserve", "replace", "collapse"]), true), FIXED] }, "n?")
        }
        "minInclusive" | "maxInclusive" | "minExclusive" | "maxExclusive" => {
            rule(const { &[VALUE, FIXED] }, "n?")
        }
        "enumeration" | "pattern" => rule(const { &[VALUE] }, "n?"),
        "group" if top => rule(&[("name", Of::NcName, true)], "n?[Lhq]"),
        "group" => rule(const { &[("ref", Of::QName, true), OCCURS[0], OCCURS[1]] }, "n?"),
        "attributeGroup" if top => rule(&[("name", Of::NcName, true)], "n?[aA]*Y?"),
        "attributeGroup" => rule(&[("ref", Of::QName, true)], "n?"),
        // The group reference has the occurrence, not the model of a named group.
        "sequence" | "choice" if parent == "group" => rule(&[], "n?[eghqy]*"),
        "all" if parent == "group" => rule(&[], "n?e*"),
        "sequence" | "choice" => rule(const { &[OCCURS[0], OCCURS[1]] }, "n?[eghqy]*"),
        "all" => rule(
            const { &[("minOccurs", Of::One(&["0", "1"]), false), ("maxOccurs", Of::One(&["1"]), false)] },
            "n?e*",
        ),
        "any" => rule(
            const {
                &[
                    ("namespace", Of::Namespaces, false),
                    ("processContents", Of::One(&["skip", "lax", "strict"]), false),
                    OCCURS[0],
                    OCCURS[1],
                ]
            },
            "n?",
        ),
        "anyAttribute" => rule(
            &[
                ("namespace", Of::Namespaces, false),
                ("processContents", Of::One(&["skip", "lax", "strict"]), false),
            ],
            "n?",
        ),
        "notation" => {
            rule(&[("name", Of::NcName, true), ("public", Of::Any, false), ("system", Of::Uri, false)], "n?")
        }
        "unique" | "key" => rule(&[("name", Of::NcName, true)], "n?tf+"),
        "keyref" => rule(&[("name", Of::NcName, true), ("refer", Of::QName, true)], "n?tf+"),
        "selector" | "field" => rule(&[("xpath", Of::Any, true)], "n?"),
        _ => None,
    }
}

/// The letter of a child in a content rule.
fn letter(local: &str) -> Option<char> {
    Some(match local {
        "annotation" => 'n',
        "simpleType" => 's',
        "complexType" => 'c',
        "element" => 'e',
        "group" => 'g',
        "attribute" => 'a',
        "attributeGroup" => 'A',
        "simpleContent" => 'S',
        "complexContent" => 'C',
        "restriction" => 'r',
        "extension" => 'x',
        "list" => 'l',
        "union" => 'u',
        "sequence" => 'q',
        "choice" => 'h',
        "all" => 'L',
        "any" => 'y',
        "anyAttribute" => 'Y',
        "unique" => 'U',
        "key" => 'K',
        "keyref" => 'R',
        "notation" => 'o',
        "include" => 'i',
        "import" => 'm',
        "redefine" => 'd',
        "selector" => 't',
        "field" => 'f',
        "documentation" => 'D',
        "appinfo" => 'p',
        "length" | "minLength" | "maxLength" | "totalDigits" | "fractionDigits" | "whiteSpace"
        | "minInclusive" | "maxInclusive" | "minExclusive" | "maxExclusive" | "enumeration" | "pattern" => {
            'F'
        }
        _ => return None,
    })
}

/// A problem: place, rule, message.
pub type Problem = (NodeId, &'static str, String);

const RULE: &str = "s4s";

/// Checks a schema document below its root.
pub fn check(tree: &Document, root: NodeId) -> Vec<Problem> {
    let mut checker = Checker { tree, problems: Vec::new(), ids: HashSet::new() };
    let mut pending = vec![root];
    while let Some(node) = pending.pop() {
        checker.element(node, root, &mut pending);
    }
    // In the order of the document.
    checker.problems.sort_by_key(|p| p.0);
    checker.problems
}

struct Checker<'a> {
    tree: &'a Document,
    problems: Vec<Problem>,
    ids: HashSet<&'a str>,
}

impl<'a> Checker<'a> {
    fn problem(&mut self, node: NodeId, rule: &'static str, message: String) {
        self.problems.push((node, rule, message));
    }

    fn element(&mut self, node: NodeId, root: NodeId, pending: &mut Vec<NodeId>) {
        let tree = self.tree;
        let local = tree.local(node);
        let parent_node = tree.parent(node).filter(|_| node != root);
        let parent = parent_node.map_or("", |p| tree.local(p));
        let top = matches!(parent, "schema" | "redefine");
        let has_ref = tree.attribute(node, "", "ref").is_some();
        if matches!(local, "documentation" | "appinfo") {
            let allowed: &[Attribute] = &[("source", Of::Uri, false)];
            self.attributes(node, allowed, false);
            return;
        }
        let Some(rule) = rule(local, parent, top, has_ref) else { return };
        self.attributes(node, rule.attributes, true);
        let mut letters = String::new();
        for child in tree.children(node) {
            match tree.kind(child) {
                NodeKind::Text if !tree.text(child).trim_matches([' ', '\t', '\n', '\r']).is_empty() => {
                    self.problem(node, RULE, format!("text stands in `{}`", tree.qname(node)));
                }
                NodeKind::Element => {
                    let child_letter =
                        if tree.namespace(child) == XS_NS { letter(tree.local(child)) } else { None };
                    match child_letter {
                        Some(letter) => letters.push(letter),
                        None => {
                            self.problem(
                                child,
                                RULE,
                                format!("`{}` is not an element of XML Schema", tree.qname(child)),
                            );
                            return;
                        }
                    }
                    pending.push(child);
                }
                _ => {}
            }
        }
        if !allows(rule.content, &letters) {
            self.problem(
                node,
                RULE,
                format!(
                    "the children of `{}` are not what XML Schema allows there, or not in its order",
                    tree.qname(node)
                ),
            );
            return;
        }
        self.combinations(node, local, top, &letters);
    }

    fn attributes(&mut self, node: NodeId, allowed: &'static [Attribute], with_id: bool) {
        let tree = self.tree;
        for attribute in tree.attributes(node) {
            let (ns, local) = (tree.namespace(attribute), tree.local(attribute));
            if ns == XS_NS {
                self.problem(node, RULE, format!("attribute `{}` is not allowed", tree.qname(attribute)));
            }
            if !ns.is_empty() {
                continue;
            }
            let text = tree.text(attribute);
            let kind = match allowed.iter().find(|a| a.0 == local) {
                Some(allowed) => allowed.1,
                None if local == "id" && with_id => Of::Id,
                None => {
                    self.problem(
                        node,
                        RULE,
                        format!("attribute `{local}` is not allowed in `{}`", tree.qname(node)),
                    );
                    continue;
                }
            };
            if !fits(kind, text) {
                self.problem(node, RULE, format!("`{text}` is not a valid value of attribute `{local}`"));
            }
            if kind == Of::Id && !self.ids.insert(text.trim()) {
                self.problem(node, RULE, format!("the id `{text}` is there twice"));
            }
        }
        for (name, _, required) in allowed {
            if *required && tree.attribute(node, "", name).is_none() {
                self.problem(node, RULE, format!("`{}` needs attribute `{name}`", tree.qname(node)));
            }
        }
    }

    /// Checks attributes and children that exclude or require each other.
    fn combinations(&mut self, node: NodeId, local: &str, top: bool, letters: &str) {
        let tree = self.tree;
        let has = |name| tree.attribute(node, "", name).is_some();
        let mut conflict = |rule, message: &str| self.problem(node, rule, message.to_owned());
        match local {
            "element" | "attribute" => {
                let rule = if local == "element" { "src-element" } else { "src-attribute" };
                if has("default") && has("fixed") {
                    conflict(rule, "`default` and `fixed` exclude each other");
                }
                if has("type") && letters.contains(['s', 'c']) {
                    conflict(rule, "`type` and a type inside exclude each other");
                }
                if has("ref") && has("name") {
                    conflict(rule, "`ref` and `name` exclude each other");
                }
                if local == "attribute" {
                    if has("default") && tree.attribute(node, "", "use").is_some_and(|u| u != "optional") {
                        conflict(rule, "an attribute with a default must be optional");
                    }
                    if tree.attribute(node, "", "name").map(str::trim) == Some("xmlns") {
                        conflict("no-xmlns", "no attribute can be called `xmlns`");
                    }
                } else if !top && tree.parent(node).is_some_and(|p| tree.local(p) == "all") {
                    let most = tree.attribute(node, "", "maxOccurs").map_or("1", str::trim);
                    if !matches!(number(most), Some(0 | 1)) {
                        conflict("cos-all-limited", "an element of `all` occurs at most once");
                    }
                }
                self.occurs(node);
            }
            "restriction"
                if tree.parent(node).is_some_and(|p| tree.local(p) == "simpleType")
                    && has("base") == letters.contains('s') =>
            {
                conflict("src-simple-type.2", "a restriction needs either `base` or a type inside");
            }
            "list" if has("itemType") == letters.contains('s') => {
                conflict("src-simple-type.3", "a list needs either `itemType` or a type inside");
            }
            "union"
                if tree.attribute(node, "", "memberTypes").is_none_or(|m| m.trim().is_empty())
                    && !letters.contains('s') =>
            {
                conflict(
                    "src-union-memberTypes-or-simpleTypes",
                    "a union needs `memberTypes` or types inside",
                );
            }
            "import" => {
                let target =
                    tree.document_element().and_then(|root| tree.attribute(root, "", "targetNamespace"));
                if !has("namespace") && target.is_none() {
                    conflict(
                        "src-import.1.2",
                        "an import without `namespace` needs a target namespace around it",
                    );
                }
            }
            "schema" if tree.attribute(node, "", "targetNamespace") == Some("") => {
                conflict(RULE, "`targetNamespace` is empty; leave it out for none");
            }
            "notation" if !has("public") && !has("system") => {
                conflict(RULE, "a notation needs `public` or `system`")
            }
            "group" | "sequence" | "choice" | "any" => self.occurs(node),
            _ => {}
        }
    }

    fn occurs(&mut self, node: NodeId) {
        let value = |name| self.tree.attribute(node, "", name).map_or(Some(1), |text| number(text.trim()));
        if let (Some(min), Some(max)) = (value("minOccurs"), value("maxOccurs"))
            && min > max
        {
            self.problem(node, "p-props-correct.2.1", "`minOccurs` is larger than `maxOccurs`".to_owned());
        }
    }
}

/// An occurrence count; too large ones count as the largest.
pub fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if text == "unbounded" {
        return Some(u32::MAX);
    }
    let is_zero = text.strip_prefix('-').is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b == b'0'));
    if is_zero {
        return Some(0);
    }
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u32::MAX - 1).min(u32::MAX - 1))
}

fn allows(content: &'static str, letters: &str) -> bool {
    static COMPILED: LazyLock<std::sync::Mutex<HashMap<&'static str, regex::Regex>>> =
        LazyLock::new(Default::default);
    let Ok(mut compiled) = COMPILED.lock() else { return true };
    let regex = match compiled.entry(content) {
        std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
        std::collections::hash_map::Entry::Vacant(entry) => {
            match regex::Regex::new(&format!("^(?:{content})$")) {
                Ok(regex) => entry.insert(regex),
                Err(_) => return true, // the rules of the table compile: a test sees to it
            }
        }
    };
    regex.is_match(letters)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', '\n', '\r']).filter(|w| !w.is_empty())
}

fn is_qname(text: &str) -> bool {
    match text.split_once(':') {
        Some((prefix, local)) => xml::is_ncname(prefix) && xml::is_ncname(local),
        None => xml::is_ncname(text),
    }
}

fn fits(kind: Of, text: &str) -> bool {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    match kind {
        Of::Any => true,
        Of::Id | Of::NcName => xml::is_ncname(trimmed),
        Of::QName => is_qname(trimmed),
        Of::QNames => words(text).all(is_qname),
        Of::Uri => super::value::parse(trimmed, super::value::Primitive::AnyUri, &|_| None).is_some(),
        Of::Boolean => matches!(trimmed, "true" | "false" | "1" | "0"),
        Of::Natural => trimmed != "unbounded" && number(trimmed).is_some(),
        Of::Positive => trimmed != "unbounded" && number(trimmed).is_some_and(|n| n > 0),
        Of::Occurs => number(trimmed).is_some(),
        Of::Ways(allowed) => trimmed == "#all" || words(text).all(|w| allowed.contains(&w)),
        Of::One(allowed) => allowed.contains(&trimmed),
        Of::Namespaces => {
            matches!(trimmed, "##any" | "##other")
                || words(text).all(|w| {
                    matches!(w, "##targetNamespace" | "##local") || (!w.starts_with("##") && fits(Of::Uri, w))
                })
        }
    }
}

/// The methods of a `final` or `block`.
pub fn ways(text: &str) -> Ways {
    words(text).fold(Ways::NONE, |ways, word| {
        ways.with(match word {
            "#all" => Ways::ALL,
            "extension" => Ways::EXTENSION,
            "restriction" => Ways::RESTRICTION,
            "list" => Ways::LIST,
            "union" => Ways::UNION,
            "substitution" => Ways::SUBSTITUTION,
            _ => Ways::NONE,
        })
    })
}
