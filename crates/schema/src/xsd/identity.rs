//! Identity constraints: the paths of selectors and fields (Part 1, 3.11), and the tables of keys.

use super::model::{Components, Constraint, ConstraintKind};
use super::names::{NONE, Name, Names, Sym};
use super::validate::{AssessedValues, Lookup, Scope};
use super::value::{Value, hash};
use std::collections::HashMap;
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

/// A key sequence and the node that has it.
type Row = (Vec<Value>, NodeId);

/// A violation: at a node, by a rule.
type Problem = (NodeId, &'static str, String);

/// Whether a bucket has a row; each comparison counts as work. A stopped run finds it.
fn has(bucket: &[Row], row: &Row) -> bool {
    bucket.iter().any(|other| meter::spend(1).is_err() || other.0 == row.0)
}

/// The rows of a key, by hash key.
type Table = HashMap<String, Vec<Row>>;

/// Checks the constraints of all elements that have some. `scopes`: those elements, in document order.
pub fn check(
    schema: &Components,
    scopes: &[Scope],
    found: &AssessedValues,
    lookup: &mut Lookup<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    // By constraint: the tables, with the numbers of their scopes.
    let mut tables: HashMap<usize, Vec<(usize, Table)>> = HashMap::new();
    let mut references = Vec::new();
    for (number, scope) in scopes.iter().enumerate() {
        if meter::stopped().is_some() {
            return problems;
        }
        for &id in &schema.elements[scope.declaration].constraints {
            let constraint = &schema.constraints[id];
            let rows = rows(schema, constraint, scope.node, found, lookup, &mut problems);
            if let ConstraintKind::KeyRef(key) = constraint.kind {
                references.push((number..scope.end, id, key, rows));
                continue;
            }
            let mut table = Table::new();
            for row in rows {
                let bucket = table.entry(hash(&row.0)).or_default();
                if has(bucket, &row) {
                    let rule = if constraint.kind == ConstraintKind::Key {
                        "cvc-identity-constraint.4.2.2"
                    } else {
                        "cvc-identity-constraint.4.1"
                    };
                    let name = schema.names.show(constraint.name);
                    problems.push((row.1, rule, format!("the value of `{name}` is there twice")));
                } else {
                    bucket.push(row);
                }
            }
            tables.entry(id).or_default().push((number, table));
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
        let mut joined: HashMap<&str, Vec<&[Row]>> = HashMap::new();
        if in_reach.len() > 1 {
            for (hash, bucket) in in_reach.iter().flat_map(|(_, table)| table) {
                if meter::spend(1).is_err() {
                    return problems;
                }
                joined.entry(hash).or_default().push(bucket);
            }
        }
        for row in rows {
            let hash = hash(&row.0);
            let is_there = match in_reach {
                [(_, table)] => table.get(&hash).is_some_and(|bucket| has(bucket, &row)),
                _ => joined.get(&*hash).is_some_and(|buckets| buckets.iter().any(|bucket| has(bucket, &row))),
            };
            if !is_there {
                let name = schema.names.show(schema.constraints[id].name);
                problems.push((
                    row.1,
                    "cvc-identity-constraint.4.3",
                    format!("`{name}` refers to a key that is not there"),
                ));
            }
        }
    }
    problems
}

fn rows(
    schema: &Components,
    constraint: &Constraint,
    node: NodeId,
    found: &AssessedValues,
    lookup: &mut Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for selected in constraint.selector.select(node, lookup) {
        let name = || schema.names.show(constraint.name);
        let mut row = Vec::new();
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
                    row.push(value.clone())
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
            rows.push((row, selected));
        }
    }
    rows
}
