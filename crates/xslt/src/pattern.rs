//! Match patterns (XSLT 1.0 section 5.2), compiled backwards: from the node to be matched up to its ancestors; and the
//! dispatch tables that find the template rules of a node by its kind and name.

mod selected;

use crate::expr::{ElementScope, Expr, Library};
use crate::names::{Name, Names};
pub(crate) use selected::Selected;
use std::sync::Arc;
use xpath::NamePool;
use xpath::ast::{self, Axis, BinaryOp, ExprKind, Start};

/// A pattern: alternatives between `|`.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    pub alternatives: Vec<Alternative>,
    /// A step of it leads to namespace nodes.
    pub namespaces: bool,
}

/// One location path pattern.
#[derive(Debug)]
pub(crate) struct Alternative {
    /// From the last step to the first.
    pub steps: Box<[Step]>,
    pub anchor: Anchor,
}

#[derive(Debug)]
pub(crate) struct Step {
    /// On the attribute axis (otherwise the child axis).
    pub attribute: bool,
    pub test: Test,
    pub predicates: Box<[Predicate]>,
    /// `//` stands to the left of this step (otherwise `/` or nothing).
    pub ancestor: bool,
    /// A predicate asks for the node that is matched: `current()`.
    pub current: bool,
    /// The test names a type.
    pub typed: bool,
}

/// The start of the first step.
#[derive(Debug)]
pub(crate) enum Anchor {
    /// Nothing: a relative pattern.
    None,
    /// The root node.
    Root,
    /// `id('…')`.
    Id(Box<str>),
    /// `key('name', '…')`.
    Key(Name, Box<str>),
    /// `id()` or `key()` with a value that is known at run time.
    Nodes(Expr),
    /// `.[p]…`: any item for which the predicates hold (XSLT 3.0).
    Item(Box<[Predicate]>),
    /// A pattern that must be evaluated as an expression (XSLT 3.0).
    Selected(Box<Selected>, f64),
}

/// A node test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Name(Name),
    Namespace(Box<str>),
    /// A local name in any namespace.
    Local(Box<str>),
    AnyName,
    Node,
    Text,
    Comment,
    Pi(Option<Box<str>>),
    /// No node.
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Predicate {
    pub expr: Expr,
    /// May depend on the position or size, or be a number.
    pub positional: bool,
    /// It selects by a fixed position, or the last one.
    pub place: Option<FixedPlace>,
}

/// See [`Predicate::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixedPlace {
    At(usize),
    Last,
}

impl FixedPlace {
    /// Of `[2]`, `[position() = 2]`, `[last()]`, `[position() = last()]`.
    fn of(tree: &ast::Expr) -> Option<FixedPlace> {
        let is = |tree: &ast::Expr, function: &str| {
            matches!(&tree.kind, ExprKind::Call(name, list)
                if name.prefix.is_empty() && name.local == function && list.is_empty())
        };
        let plain = |tree: &ast::Expr| match &tree.kind {
            ExprKind::Number(n) if *n >= 1.0 && *n < 1e9 && n.fract() == 0.0 => {
                Some(FixedPlace::At(*n as usize))
            }
            ExprKind::Integer(n) if (1..1_000_000_000).contains(n) => {
                usize::try_from(*n).ok().map(FixedPlace::At)
            }
            _ if is(tree, "last") => Some(FixedPlace::Last),
            _ => None,
        };
        match &tree.kind {
            ExprKind::Binary(BinaryOp::Equal, a, b) if is(a, "position") => plain(b),
            ExprKind::Binary(BinaryOp::Equal, a, b) if is(b, "position") => plain(a),
            _ => plain(tree),
        }
    }
}

/// The static context of a pattern.
pub(crate) struct PatternContext<'a> {
    pub scope: &'a ElementScope<'a>,
    pub library: &'a Library<'a>,
    pub pool: &'a NamePool,
    /// Names of patterns.
    pub names: &'a mut Names,
    /// Names of keys.
    pub symbols: &'a Names,
    /// The base URI of the element.
    pub base: &'a str,
    /// The version of the language, and the namespace of unprefixed element names.
    pub dialect: crate::expr::Dialect<'a>,
}

impl Pattern {
    /// Whether a match depends on the node alone, not on local variables.
    pub fn is_of_node(&self) -> bool {
        let free = |expr: &Expr| match expr {
            Expr::XPath(xpath) => {
                let mut variables = xpath.expression.needs().variables.iter();
                variables.all(|name| name.slot & crate::expr::GLOBAL != 0) && !xpath.evaluates
            }
            Expr::Deferred(_) => true,
        };
        let all_free = |predicates: &[Predicate]| predicates.iter().all(|predicate| free(&predicate.expr));
        self.alternatives.iter().all(|alternative| {
            let anchor = match &alternative.anchor {
                Anchor::None | Anchor::Root | Anchor::Id(_) | Anchor::Key(..) => true,
                Anchor::Nodes(nodes) => free(nodes),
                Anchor::Item(predicates) => all_free(predicates),
                Anchor::Selected(selected, _) => selected.all(&free),
            };
            anchor && alternative.steps.iter().all(|step| all_free(&step.predicates))
        })
    }

    /// Compiles `source`. Errors: a message.
    pub fn compile(source: &str, cx: &mut PatternContext<'_>) -> Result<Pattern, String> {
        let version = cx.dialect.version();
        let tree = xpath::parse(source, version).map_err(|error| crate::expr::explain(source, &error))?;
        if matches!(cx.dialect.level, crate::expr::Level::V2 | crate::expr::Level::V3) {
            let mut wrong = None;
            tree.walk(&mut |e| {
                if let ExprKind::Call(name, _) = &e.kind
                    && name.prefix.is_empty()
                {
                    match name.local.as_str() {
                        "current-merge-group" => {
                            wrong = Some("XTSE3470: current-merge-group() is not for patterns");
                        }
                        "current-merge-key" => {
                            wrong = Some("XTSE3500: current-merge-key() is not for patterns");
                        }
                        "current-group" => wrong = Some("XTSE1060: current-group() is not for patterns"),
                        "current-grouping-key" => {
                            wrong = Some("XTSE1070: current-grouping-key() is not for patterns");
                        }
                        _ => {}
                    }
                }
            });
            if let Some(message) = wrong {
                return Err(message.into());
            }
        }
        if cx.dialect.level == crate::expr::Level::V3 {
            let mut alternatives = Vec::new();
            selected::alternatives(source, &tree, cx, &mut alternatives)?;
            let mut namespaces = false;
            tree.walk(&mut |e| {
                if let ExprKind::Path(_, steps) = &e.kind {
                    namespaces |= steps.iter().any(|step| step.axis == Axis::Namespace);
                }
            });
            return Ok(Pattern { alternatives, namespaces });
        }
        let alternatives = match &tree.kind {
            ExprKind::Union(list) if !source.trim_start().starts_with('(') => {
                list.iter().map(|e| Alternative::compile(source, e, cx)).collect::<Result<_, _>>()?
            }
            _ => vec![Alternative::compile(source, &tree, cx)?],
        };
        Ok(Pattern { alternatives, namespaces: false })
    }
}

impl Pattern {
    /// Whether an attribute can match.
    pub fn may_match_attributes(&self) -> bool {
        self.alternatives.iter().any(|a| a.steps.first().is_none_or(|step| step.attribute))
    }
}

/// Whether an expression calls `current()`.
fn asks_for_current(tree: &ast::Expr) -> bool {
    let mut found = false;
    tree.walk(&mut |e| {
        found |= matches!(&e.kind, ExprKind::Call(name, arguments) if name.local == "current" && arguments.is_empty());
    });
    found
}

impl Alternative {
    fn compile(source: &str, tree: &ast::Expr, cx: &mut PatternContext<'_>) -> Result<Alternative, String> {
        let text = &source[tree.span.range()];
        let refuse = || format!("\"{text}\" is not a pattern");
        if text.starts_with('(') {
            return Err(refuse());
        }
        let (start, path): (&Start, &[ast::Step]) = match &tree.kind {
            // `document-node()`, of XPath 2.0.
            ExprKind::Path(Start::Context, steps) if matches!(steps.as_slice(), [ast::Step { axis: Axis::Child, test: ast::NodeTest::Document(None), predicates, .. }] if predicates.is_empty()) =>
            {
                return Ok(Alternative { steps: Box::default(), anchor: Anchor::Root });
            }
            // `document-node(element(a))`.
            ExprKind::Path(Start::Context, steps) if matches!(steps.as_slice(), [ast::Step { axis: Axis::Child, test: ast::NodeTest::Document(Some(_)), predicates, .. }] if predicates.is_empty()) =>
            {
                return selected::of_document(source, tree, cx);
            }
            ExprKind::Path(start, steps) => (start, steps),
            ExprKind::Call(..) => {
                return Ok(Alternative {
                    steps: Box::default(),
                    anchor: Anchor::call(source, tree, cx).ok_or_else(refuse)?,
                });
            }
            _ => return Err(refuse()),
        };
        let anchor = match start {
            Start::Root => Anchor::Root,
            Start::Context => Anchor::None,
            Start::Expr(call) => Anchor::call(source, call, cx).ok_or_else(refuse)?,
        };
        // `document-node()/a` is `/a`.
        let (anchor, path) = match path {
            [first, rest @ ..]
                if matches!(anchor, Anchor::None)
                    && first.axis == Axis::Child
                    && first.test == ast::NodeTest::Document(None)
                    && first.predicates.is_empty()
                    && !rest.is_empty() =>
            {
                (Anchor::Root, rest)
            }
            path => (anchor, path),
        };
        let mut steps = Vec::new();
        let mut ancestor = false;
        for step in path {
            if step.axis == Axis::DescendantOrSelf {
                let is_slashes = source.get(step.span.range()).is_some_and(|s| s.trim() == "//");
                if !is_slashes || ancestor || (matches!(anchor, Anchor::None) && steps.is_empty()) {
                    return Err(refuse());
                }
                ancestor = true;
                continue;
            }
            let attribute = match step.axis {
                Axis::Child => false,
                Axis::Attribute => true,
                axis => {
                    return Err(format!("the axis {} is not allowed in the pattern \"{text}\"", axis.name()));
                }
            };
            let mut predicates = Vec::new();
            let current = step.predicates.iter().any(asks_for_current);
            for predicate in &step.predicates {
                let mut expr = Expr::compile_tree(
                    source,
                    predicate.clone(),
                    cx.dialect.version(),
                    cx.scope,
                    cx.library,
                    cx.pool,
                    cx.base,
                    cx.dialect,
                )
                .map_err(|error| crate::expr::explain(source, &error))?;
                if let Expr::XPath(xpath) = &mut expr {
                    // (Most patterns have no local variables.)
                    xpath.specialize(&mut crate::expr::SimpleScope {
                        locals: &[],
                        symbols: cx.symbols,
                        scope: cx.scope,
                        names: &mut *cx.names,
                        default: cx.dialect.namespace,
                    });
                }
                predicates.push(Predicate {
                    expr,
                    positional: is_positional(predicate),
                    place: FixedPlace::of(predicate),
                });
            }
            steps.push(Step {
                attribute,
                test: Test::compile(&step.test, attribute, cx)?,
                predicates: predicates.into(),
                ancestor,
                current,
                typed: step.typed,
            });
            ancestor = false;
        }
        if ancestor {
            return Err(refuse());
        }
        steps.reverse();
        Ok(Alternative { steps: steps.into(), anchor })
    }

    /// The default priority (XSLT 1.0 and 2.0, section 5.5 and 6.4; 3.0, section 6.5).
    pub fn priority(&self, version2: bool) -> f64 {
        match (&*self.steps, &self.anchor) {
            ([], Anchor::Root) if version2 => -0.5,
            (_, Anchor::Item(predicates)) if predicates.is_empty() => -1.0,
            (_, Anchor::Item(_)) => 1.0,
            (_, Anchor::Selected(_, priority)) => *priority,
            ([step], Anchor::None) if step.predicates.is_empty() => match step.test {
                Test::Name(_) if step.typed => 0.25,
                _ if step.typed => 0.0,
                Test::Name(_) | Test::Pi(Some(_)) => 0.0,
                Test::Namespace(_) | Test::Local(_) => -0.25,
                _ => -0.5,
            },
            _ => 0.5,
        }
    }

    /// Whether every node of the right kind and name matches.
    pub fn is_plain(&self) -> bool {
        matches!((&*self.steps, &self.anchor), ([step], Anchor::None)
            if step.predicates.is_empty() && matches!(step.test, Test::Name(_) | Test::AnyName | Test::Node | Test::Text | Test::Comment | Test::Pi(None)))
            || (self.steps.is_empty() && matches!(self.anchor, Anchor::Root))
    }
}

impl Anchor {
    fn call(source: &str, tree: &ast::Expr, cx: &PatternContext<'_>) -> Option<Anchor> {
        let ExprKind::Call(name, arguments) = &tree.kind else { return None };
        if !name.prefix.is_empty() {
            return None;
        }
        fn literal(e: &ast::Expr) -> Option<&str> {
            match &e.kind {
                ExprKind::Literal(text) => Some(text),
                _ => None,
            }
        }
        // XSLT 2.0 allows variables as values.
        let by_variable = matches!(cx.dialect.level, crate::expr::Level::V2 | crate::expr::Level::V3)
            && matches!(arguments.last().map(|value| &value.kind), Some(ExprKind::Variable(_)))
            && match (name.local.as_str(), arguments.as_slice()) {
                ("id", [_]) => true,
                ("key", [key, _]) => literal(key).is_some(),
                _ => false,
            };
        if by_variable {
            let version = cx.dialect.version();
            return Expr::compile_tree(
                source,
                tree.clone(),
                version,
                cx.scope,
                cx.library,
                cx.pool,
                cx.base,
                cx.dialect,
            )
            .ok()
            .map(Anchor::Nodes);
        }
        match (name.local.as_str(), arguments.as_slice()) {
            ("id", [value]) => Some(Anchor::Id(literal(value)?.into())),
            ("key", [key, value]) => {
                let key = literal(key)?;
                let (prefix, local) = key.split_once(':').unwrap_or(("", key));
                let namespace = if prefix.is_empty() {
                    ""
                } else {
                    crate::expr::namespace_of(cx.scope.doc, cx.scope.node, prefix)?
                };
                Some(Anchor::Key(
                    cx.symbols.find(namespace, local).unwrap_or(Name::NONE),
                    literal(value)?.into(),
                ))
            }
            _ => None,
        }
    }
}

impl Test {
    fn compile(test: &ast::NodeTest, attribute: bool, cx: &mut PatternContext<'_>) -> Result<Test, String> {
        fn uri<'t>(scope: &'t ElementScope<'_>, prefix: &'t str) -> Result<&'t str, String> {
            match prefix.strip_prefix('{') {
                Some(uri) => Ok(uri),
                None => crate::expr::namespace_of(scope.doc, scope.node, prefix)
                    .ok_or_else(|| format!("the prefix \"{prefix}\" is not declared")),
            }
        }
        Ok(match test {
            ast::NodeTest::Node => Test::Node,
            ast::NodeTest::Text => Test::Text,
            ast::NodeTest::Comment => Test::Comment,
            ast::NodeTest::ProcessingInstruction(target) => Test::Pi(target.as_deref().map(Into::into)),
            ast::NodeTest::AnyName => Test::AnyName,
            ast::NodeTest::AnyLocal(prefix) => Test::Namespace(uri(cx.scope, prefix)?.into()),
            ast::NodeTest::Name(name) => {
                let namespace = match name.prefix.as_str() {
                    "" if attribute => "",
                    "" => cx.dialect.namespace,
                    prefix => uri(cx.scope, prefix)?,
                };
                Test::Name(cx.names.intern(namespace, &name.local))
            }
            ast::NodeTest::AnyNamespace(local) => Test::Local(local.as_str().into()),
            ast::NodeTest::Element(None) if !attribute => Test::AnyName,
            ast::NodeTest::Attribute(None) if attribute => Test::AnyName,
            ast::NodeTest::Element(Some(name)) if !attribute => {
                return Test::compile(&ast::NodeTest::Name(name.clone()), false, cx);
            }
            ast::NodeTest::Attribute(Some(name)) if attribute => {
                return Test::compile(&ast::NodeTest::Name(name.clone()), true, cx);
            }
            // This axis has no such nodes.
            ast::NodeTest::Element(_)
            | ast::NodeTest::Attribute(_)
            | ast::NodeTest::NamespaceNode
            | ast::NodeTest::Document(_) => Test::Nothing,
        })
    }
}

/// Whether the truth of a predicate may depend on the position of its node.
pub(crate) fn is_positional(tree: &ast::Expr) -> bool {
    let boolean = match &tree.kind {
        ExprKind::Or(_)
        | ExprKind::And(_)
        | ExprKind::Union(_)
        | ExprKind::Path(..)
        | ExprKind::ValueComparison(..)
        | ExprKind::Quantified(..)
        | ExprKind::InstanceOf(..)
        | ExprKind::Castable(..)
        | ExprKind::Literal(_) => true,
        // `(b)[1]` is nodes, `$numbers[1]` may be a number.
        ExprKind::Filter(a, _) => !is_positional(a),
        ExprKind::Binary(op, ..) => !matches!(
            op,
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo
        ),
        ExprKind::Call(name, _) => {
            name.prefix.is_empty()
                && matches!(
                    name.local.as_str(),
                    "not"
                        | "true"
                        | "false"
                        | "boolean"
                        | "contains"
                        | "starts-with"
                        | "lang"
                        | "string"
                        | "concat"
                        | "key"
                        | "id"
                )
        }
        _ => false,
    };
    !boolean || mentions_position(tree)
}

fn mentions_position(tree: &ast::Expr) -> bool {
    match &tree.kind {
        ExprKind::Number(_)
        | ExprKind::Literal(_)
        | ExprKind::Variable(_)
        | ExprKind::Integer(_)
        | ExprKind::Large(_)
        | ExprKind::Decimal(_)
        | ExprKind::ContextItem => false,
        ExprKind::ValueComparison(_, a, b) => mentions_position(a) || mentions_position(b),
        ExprKind::Or(list) | ExprKind::And(list) | ExprKind::Union(list) => {
            list.iter().any(mentions_position)
        }
        ExprKind::Binary(_, a, b) => mentions_position(a) || mentions_position(b),
        ExprKind::Negate(a) => mentions_position(a),
        ExprKind::Call(name, arguments) => {
            matches!(name.local.as_str(), "position" | "last") || arguments.iter().any(mentions_position)
        }
        // Inner predicates have positions of their own.
        ExprKind::Filter(a, _) => mentions_position(a),
        ExprKind::Path(Start::Expr(a), _) => mentions_position(a),
        ExprKind::Path(..) => false,
        // Of XPath 2.0: it may.
        _ => true,
    }
}

/// The action for a node without a rule (`xsl:mode` of XSLT 3.0).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum NoMatch {
    #[default]
    TextOnlyCopy,
    ShallowCopy,
    DeepCopy,
    ShallowSkip,
    DeepSkip,
    Fail,
}

/// The template rules of one mode.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Best first: by import precedence, then priority, then the place in the stylesheet.
    pub rules: Vec<Rule>,
    pub no_match: NoMatch,
    /// Its `xsl:mode` that says so.
    pub place: crate::model::Place,
    /// A multiple match is an error.
    pub one_match: bool,
    /// Nodes without a type are an error (`typed`): all nodes, as there are no schemas.
    pub typed: bool,
    /// Names in patterns are those of declared elements (`typed="strict"`).
    pub strict: bool,
    /// The accumulators of the source document if the transformation begins in this mode.
    pub accumulators: crate::version3::Applicable,
    /// Lists of rules, best first, by kind and name.
    lists: Vec<Box<[u32]>>,
    /// Index into `lists` by name; names beyond the end have the list for any name.
    elements: Vec<u32>,
    attributes: Vec<u32>,
    /// By name.
    plain: Vec<Quick>,
    plain_any: Quick,
    plain_attributes: Vec<Quick>,
    plain_any_attribute: Quick,
    plain_text: Quick,
    any_element: u32,
    any_attribute: u32,
    text: u32,
    comment: u32,
    pi: u32,
    root: u32,
    item: u32,
    namespace: u32,
}

/// One alternative of the pattern of a template rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// Shared by the rules of all its modes.
    pub alternative: Arc<Alternative>,
    pub plain: bool,
    pub template: usize,
    pub precedence: u32,
    pub priority: f64,
    pub order: u32,
}

/// The dispatch key of a node.
#[derive(Debug, Copy, Clone)]
pub(crate) enum Kind {
    Root,
    Element(Name),
    Attribute(Name),
    Text,
    Comment,
    Pi,
    /// A namespace node.
    Namespace,
    /// No node.
    Atomic,
}

/// What kind and name alone determine about the rule of a node.
#[derive(Debug, Copy, Clone, PartialEq, Default)]
pub(crate) enum Quick {
    /// The rules must be tested.
    #[default]
    Ask,
    /// The built-in rule.
    BuiltIn,
    /// A template that does nothing.
    Nothing,
    /// This template, by this rule.
    Template(u32, u32),
}

impl Rules {
    /// Sorts the rules and builds the tables.
    pub fn build(&mut self, names: usize) {
        self.rules.sort_by(|a, b| {
            (b.precedence.cmp(&a.precedence))
                .then(b.priority.total_cmp(&a.priority))
                .then(b.order.cmp(&a.order))
        });
        let collect = |wanted: &dyn Fn(&Rule) -> bool| -> Box<[u32]> {
            self.rules.iter().enumerate().filter(|(_, r)| wanted(r)).map(|(at, _)| at as u32).collect()
        };
        // Patterns without steps: "/", id() and key().
        let keyed =
            |r: &Rule| r.alternative.steps.is_empty() && !matches!(r.alternative.anchor, Anchor::Root);
        let on = |r: &Rule, attribute: bool, fits: &dyn Fn(&Test) -> bool| match r.alternative.steps.first() {
            Some(step) => step.attribute == attribute && fits(&step.test),
            None => keyed(r),
        };
        let general =
            |test: &Test| matches!(test, Test::AnyName | Test::Node | Test::Namespace(_) | Test::Local(_));
        let mut lists = vec![
            collect(&|r| on(r, false, &general)),
            collect(&|r| on(r, true, &general)),
            collect(&|r| on(r, false, &|t| matches!(t, Test::Text | Test::Node))),
            collect(&|r| on(r, false, &|t| matches!(t, Test::Comment | Test::Node))),
            collect(&|r| on(r, false, &|t| matches!(t, Test::Pi(_) | Test::Node))),
            collect(&|r| r.alternative.steps.is_empty()),
            collect(&|r| matches!(r.alternative.anchor, Anchor::Item(_))),
            collect(&|r| matches!(r.alternative.anchor, Anchor::Item(_) | Anchor::Selected(..))),
        ];
        let mut tables = [vec![0u32; names], vec![1u32; names]];
        for (attribute, table) in [(false, 0), (true, 1)] {
            let mut specific: Vec<Name> = self
                .rules
                .iter()
                .filter_map(|r| match r.alternative.steps.first() {
                    Some(Step { attribute: a, test: Test::Name(name), .. }) if *a == attribute => Some(*name),
                    _ => None,
                })
                .collect();
            specific.sort();
            specific.dedup();
            for name in specific {
                tables[table][name.0 as usize] = lists.len() as u32;
                lists.push(collect(&|r| on(r, attribute, &|t| general(t) || *t == Test::Name(name))));
            }
        }
        let [elements, attributes] = tables;
        (self.any_element, self.any_attribute, self.text, self.comment, self.pi, self.root) =
            (0, 1, 2, 3, 4, 5);
        (self.item, self.namespace) = (6, 7);
        let plain =
            |list: &u32| match lists[*list as usize].first().map(|at| (*at, &self.rules[*at as usize])) {
                _ if self.typed => Quick::Ask,
                None if self.no_match != NoMatch::TextOnlyCopy => Quick::Ask,
                None => Quick::BuiltIn,
                Some((at, rule)) if rule.plain => Quick::Template(rule.template as u32, at),
                Some(_) => Quick::Ask,
            };
        self.plain = elements.iter().map(plain).collect();
        self.plain_any = plain(&0);
        self.plain_attributes = attributes.iter().map(plain).collect();
        self.plain_any_attribute = plain(&1);
        self.plain_text = plain(&2);
        self.lists = lists;
        self.elements = elements;
        self.attributes = attributes;
    }

    /// Marks the templates that do nothing.
    pub fn know_empty(&mut self, is_empty: impl Fn(usize) -> bool) {
        let leave_out = |quick: &mut Quick| {
            if matches!(quick, Quick::Template(template, _) if is_empty(*template as usize)) {
                *quick = Quick::Nothing;
            }
        };
        self.plain.iter_mut().for_each(leave_out);
        leave_out(&mut self.plain_any);
        leave_out(&mut self.plain_text);
    }

    /// Template and number of a rule.
    #[inline]
    pub fn numbered(&self, rule: u32) -> (usize, u32) {
        (self.rules[rule as usize].template, rule)
    }

    /// For an element of that name.
    #[inline]
    pub fn of_element(&self, name: Name) -> Quick {
        self.plain.get(name.0 as usize).copied().unwrap_or(self.plain_any)
    }

    /// For an attribute of that name.
    #[inline]
    pub fn of_attribute(&self, name: Name) -> Quick {
        self.plain_attributes.get(name.0 as usize).copied().unwrap_or(self.plain_any_attribute)
    }

    /// For a text node.
    #[inline]
    pub fn of_text(&self) -> Quick {
        self.plain_text
    }

    /// The rules that may match a node, best first.
    pub fn candidates(&self, kind: Kind) -> &[u32] {
        let list = match kind {
            Kind::Element(name) => self.elements.get(name.0 as usize).copied().unwrap_or(self.any_element),
            Kind::Attribute(name) => {
                self.attributes.get(name.0 as usize).copied().unwrap_or(self.any_attribute)
            }
            Kind::Text => self.text,
            Kind::Comment => self.comment,
            Kind::Pi => self.pi,
            Kind::Root => self.root,
            Kind::Namespace => self.namespace,
            Kind::Atomic => self.item,
        };
        self.lists.get(list as usize).map_or(&[], |list| list)
    }
}
