//! Identity constraints: the paths of selectors and fields (Part 1, 3.11), and the tables of keys.

use super::model::{Components, Constraint, ConstraintKind};
use super::names::{NONE, Name, Names, Sym};
use super::validate::{AssessedValues, Lookup, Scope};
use super::value::{Value, hash};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use xml::{NodeId, NodeKind};

/// A selector or a field: a union of paths.
#[derive(Debug)]
pub struct Selector(Vec<Path>);

#[derive(Debug)]
struct Path {
    /// It begins with `.//`.
    anywhere: bool,
    steps: Vec<Test>,
    attribute: Option<Test>,
}

#[derive(Debug)]
enum Test {
    Any,
    Namespace(Sym),
    Name(Name),
}

impl Test {
    fn accepts(&self, name: Name) -> bool {
        match self {
            Test::Any => true,
            Test::Namespace(ns) => name.ns == *ns,
            Test::Name(test) => *test == name,
        }
    }
}

impl Selector {
    /// Parses the XPath subset of selectors, or of fields.
    pub fn parse(
        text: &str,
        is_field: bool,
        prefixes: &dyn Fn(&str) -> Option<String>,
        names: &mut Names,
    ) -> Result<Selector, String> {
        let mut paths = Vec::new();
        for alternative in text.split('|') {
            let mut rest = alternative.trim();
            let mut path = Path { anywhere: false, steps: Vec::new(), attribute: None };
            if let Some(after) =
                rest.strip_prefix('.').map(str::trim_start).and_then(|r| r.strip_prefix("//"))
            {
                path.anywhere = true;
                rest = after;
            }
            for step in rest.split('/') {
                let step = step.trim();
                if path.attribute.is_some() {
                    return Err("nothing can follow an attribute".into());
                }
                if step == "." {
                    continue;
                }
                let axis = |name: &str| {
                    step.strip_prefix(name)
                        .map(str::trim_start)
                        .and_then(|r| r.strip_prefix("::"))
                        .map(str::trim)
                };
                let attribute = step.strip_prefix('@').map(str::trim).or_else(|| axis("attribute"));
                let test = attribute.or_else(|| axis("child")).unwrap_or(step);
                let test = match test.split_once(':') {
                    _ if test == "*" => Test::Any,
                    Some((prefix, local))
                        if xml::is_ncname(prefix) && (local == "*" || xml::is_ncname(local)) =>
                    {
                        let uri = prefixes(prefix)
                            .ok_or_else(|| format!("the prefix `{prefix}` is not declared"))?;
                        let ns = names.intern(&uri);
                        if local == "*" {
                            Test::Namespace(ns)
                        } else {
                            Test::Name(Name { ns, local: names.intern(local) })
                        }
                    }
                    None if xml::is_ncname(test) => Test::Name(Name { ns: NONE, local: names.intern(test) }),
                    _ => return Err(format!("`{step}` is not allowed in such a path")),
                };
                match attribute {
                    Some(_) if !is_field => return Err("a selector selects elements".into()),
                    Some(_) => path.attribute = Some(test),
                    None => path.steps.push(test),
                }
            }
            paths.push(path);
        }
        Ok(Selector(paths))
    }

    /// The nodes it selects from `context`, each once, in document order; none where the run was stopped.
    fn select(&self, context: NodeId, lookup: &mut Lookup<'_>) -> Vec<NodeId> {
        let doc = lookup.doc;
        let mut all = Vec::new();
        for path in &self.0 {
            let mut nodes = vec![context];
            if path.anywhere {
                let below = doc.descendants(context).take_while(|_| meter::spend(1).is_ok());
                nodes.extend(below.filter(|&n| doc.kind(n) == NodeKind::Element));
            }
            for test in &path.steps {
                let mut next = Vec::new();
                for node in nodes {
                    let children = doc.children(node).take_while(|_| meter::spend(1).is_ok());
                    for child in children.filter(|&n| doc.kind(n) == NodeKind::Element) {
                        if test.accepts(lookup.name(child)) {
                            next.push(child);
                        }
                    }
                }
                nodes = next;
            }
            match &path.attribute {
                None => all.extend(nodes),
                Some(test) => {
                    for node in nodes {
                        for attribute in doc.attributes(node) {
                            if test.accepts(lookup.name(attribute)) {
                                all.push(attribute);
                            }
                        }
                    }
                }
            }
        }
        if meter::stopped().is_some() {
            return Vec::new();
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A violation: at a node, by a rule.
type Problem = (NodeId, &'static str, String);

/// Most rows that are kept of one document: elements within one another have each a table of its own.
const MOST_ROWS: usize = if cfg!(test) { 1000 } else { 1 << 22 };

/// The rows of a constraint in one element: key sequences, and the nodes that have them.
struct Rows<'f> {
    /// How many values a row has.
    width: usize,
    values: Vec<&'f Value>,
    nodes: Vec<NodeId>,
}

impl<'f> Rows<'f> {
    fn new(width: usize) -> Rows<'f> {
        Rows { width, values: Vec::new(), nodes: Vec::new() }
    }

    fn row(&self, at: usize) -> &[&'f Value] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    fn push(&mut self, row: &[&'f Value], node: NodeId) {
        self.values.extend_from_slice(row);
        self.nodes.push(node);
    }

    fn iter(&self) -> impl Iterator<Item = (&[&'f Value], NodeId)> {
        self.nodes.iter().enumerate().map(|(at, node)| (self.row(at), *node))
    }
}

/// The rows of a key, each once, by the hash of their values.
struct Table<'f> {
    rows: Rows<'f>,
    /// The last row with a hash, …
    last: HashMap<u64, u32>,
    /// … and for each row the one before it with the same hash, or [`u32::MAX`].
    before: Vec<u32>,
}

impl<'f> Table<'f> {
    fn new(width: usize) -> Table<'f> {
        Table { rows: Rows::new(width), last: HashMap::new(), before: Vec::new() }
    }

    /// Whether it has a row; each comparison counts as work. A stopped run finds it.
    fn has(&self, hash: u64, row: &[&Value]) -> bool {
        let mut next = self.last.get(&hash).copied();
        while let Some(at) = next.filter(|at| *at != u32::MAX) {
            if meter::spend(1).is_err() || self.rows.row(at as usize) == row {
                return true;
            }
            next = self.before.get(at as usize).copied();
        }
        false
    }

    fn add(&mut self, hash: u64, row: &[&'f Value], node: NodeId) {
        let before = self.last.insert(hash, self.before.len() as u32);
        self.before.push(before.unwrap_or(u32::MAX));
        self.rows.push(row, node);
    }
}

/// Checks the constraints of all elements that have some. `scopes`: those elements, in document order.
pub fn check(
    schema: &Components,
    scopes: &[Scope],
    found: &AssessedValues,
    lookup: &mut Lookup<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let seed = RandomState::new();
    let hash = |row: &[&Value]| seed.hash_one(hash(row.iter().copied()));
    let referred: HashSet<usize> = schema
        .constraints
        .iter()
        .filter_map(|constraint| match constraint.kind {
            ConstraintKind::KeyRef(key) => key,
            _ => None,
        })
        .collect();
    // By constraint that others refer to: the tables, with the numbers of their scopes.
    let mut tables: HashMap<usize, Vec<(usize, Table<'_>)>> = HashMap::new();
    let mut references = Vec::new();
    let mut kept = 0;
    for (number, scope) in scopes.iter().enumerate() {
        if meter::stopped().is_some() {
            return problems;
        }
        for &id in &schema.elements[scope.declaration].constraints {
            let constraint = &schema.constraints[id];
            let rows = rows(schema, constraint, scope.node, found, lookup, &mut problems);
            let is_kept = referred.contains(&id) || matches!(constraint.kind, ConstraintKind::KeyRef(_));
            kept += if is_kept { rows.nodes.len() } else { 0 };
            if kept > MOST_ROWS {
                let message = format!("the document has more than {MOST_ROWS} keys and references to keys");
                problems.push((scope.node, "limit", message));
                return problems;
            }
            if let ConstraintKind::KeyRef(key) = constraint.kind {
                references.push((number..scope.end, id, key, rows));
                continue;
            }
            let mut table = Table::new(rows.width);
            for (row, node) in rows.iter() {
                let hash = hash(row);
                if table.has(hash, row) {
                    let rule = if constraint.kind == ConstraintKind::Key {
                        "cvc-identity-constraint.4.2.2"
                    } else {
                        "cvc-identity-constraint.4.1"
                    };
                    let name = schema.names.show(constraint.name);
                    problems.push((node, rule, format!("the value of `{name}` is there twice")));
                } else {
                    table.add(hash, row, node);
                }
            }
            if is_kept {
                tables.entry(id).or_default().push((number, table));
            }
        }
    }
    for (inside, id, key, rows) in references {
        if meter::stopped().is_some() {
            return problems;
        }
        let of_key = key.and_then(|key| tables.get(&key)).map_or(&[][..], Vec::as_slice);
        let at = |scope: usize| of_key.partition_point(|(number, _)| *number < scope);
        let in_reach = &of_key[at(inside.start)..at(inside.end)];
        // Several tables are looked through once, not for each row.
        let mut joined: HashMap<u64, Vec<&Table<'_>>> = HashMap::new();
        if in_reach.len() > 1 {
            for (_, table) in in_reach {
                for hash in table.last.keys() {
                    if meter::spend(1).is_err() {
                        return problems;
                    }
                    joined.entry(*hash).or_default().push(table);
                }
            }
        }
        for (row, node) in rows.iter() {
            let hash = hash(row);
            let is_there = match in_reach {
                [(_, table)] => table.has(hash, row),
                _ => joined.get(&hash).is_some_and(|tables| tables.iter().any(|table| table.has(hash, row))),
            };
            if !is_there {
                let name = schema.names.show(schema.constraints[id].name);
                problems.push((
                    node,
                    "cvc-identity-constraint.4.3",
                    format!("`{name}` refers to a key that is not there"),
                ));
            }
        }
    }
    problems
}

fn rows<'f>(
    schema: &Components,
    constraint: &Constraint,
    node: NodeId,
    found: &'f AssessedValues,
    lookup: &mut Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Rows<'f> {
    let mut rows = Rows::new(constraint.fields.len());
    let mut row = Vec::new();
    for selected in constraint.selector.select(node, lookup) {
        let name = || schema.names.show(constraint.name);
        row.clear();
        let mut is_complete = true;
        for field in &constraint.fields {
            let nodes = field.select(selected, lookup);
            let mut values = nodes.iter();
            let (first, more) = (values.next(), values.next());
            if more.is_some() {
                problems.push((
                    selected,
                    "cvc-identity-constraint.3",
                    format!("a field of `{}` selects more than one node", name()),
                ));
                is_complete = false;
                continue;
            }
            let value = match first {
                Some(node) => match found.values.get(node) {
                    Some(value) => value.as_ref(),
                    None => {
                        let doc = lookup.doc;
                        // Element content has no value here, and what is not assessed has none.
                        if doc.kind(*node) == NodeKind::Element
                            && doc.children(*node).any(|c| doc.kind(c) == NodeKind::Element)
                        {
                            problems.push((
                                *node,
                                "cvc-identity-constraint.3",
                                format!("a field of `{}` selects an element without simple content", name()),
                            ));
                        }
                        None
                    }
                },
                None => field.0.iter().find_map(|path| match &path.attribute {
                    Some(Test::Name(attribute)) if path.steps.is_empty() && !path.anywhere => {
                        found.defaults.get(&(selected, *attribute))
                    }
                    _ => None,
                }),
            };
            let nillable = first.is_some_and(|n| found.nillable.contains(n));
            match value {
                Some(value) if !(nillable && constraint.kind == ConstraintKind::Key) => {
                    row.push(value);
                }
                _ => {
                    is_complete = false;
                    if constraint.kind == ConstraintKind::Key {
                        let (rule, why) = match nillable {
                            true => ("cvc-identity-constraint.4.2.3", "may be nil"),
                            false => ("cvc-identity-constraint.4.2.1", "has no value"),
                        };
                        problems.push((selected, rule, format!("a field of the key `{}` {why}", name())));
                    }
                }
            }
        }
        if is_complete {
            rows.push(&row, selected);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use crate::{Nothing, Source, XmlSchema};

    /// Elements within one another, each with a constraint on all that is in it: only the rows that references look for are kept.
    #[test]
    fn rows_of_nested_elements_are_limited() {
        let schema = |constraints: &str| {
            let text = format!(
                "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='r' minOccurs='0'/>\
                 <xs:element name='q' type='xs:int' minOccurs='0' maxOccurs='unbounded'/></xs:sequence></xs:complexType>{constraints}</xs:element></xs:schema>"
            );
            let source = Source { name: "s.xsd".to_owned(), bytes: text.into_bytes() };
            XmlSchema::load(vec![source], &Nothing).unwrap_or_else(|why| panic!("{}", why[0]))
        };
        let inside = |depth: usize, count: usize| {
            let rows: String = (0..count).map(|n| format!("<q>{n}</q>")).collect();
            format!("{}{rows}{}", "<r>".repeat(depth), "</r>".repeat(depth))
        };
        let unique = "<xs:unique name='u'><xs:selector xpath='.//q'/><xs:field xpath='.'/></xs:unique>";
        let key = "<xs:key name='k'><xs:selector xpath='.//q'/><xs:field xpath='.'/></xs:key>\
                   <xs:keyref name='f' refer='k'><xs:selector xpath='.//q'/><xs:field xpath='.'/></xs:keyref>";
        for (constraints, depth, wanted) in [(unique, 20, None), (key, 2, None), (key, 6, Some("limit"))] {
            let text = inside(depth, 100);
            let document =
                xml::Document::parse(text, &xml::ParseOptions::trusted()).expect("it is well-formed");
            let root = document.document_element().expect("it has a root");
            let found = schema(constraints).validate(&document, root);
            assert_eq!(
                found.first().map(|violation| violation.rule),
                wanted,
                "{constraints}, {depth}: {found:?}"
            );
        }
    }
}
