//! Classification of a compiled stylesheet: see [`crate::stream`].

use super::NotStreamable;
use super::reach::{At, Downward, Use, downward, reach};
use crate::expr::Expr;
use crate::model::{Argument, Avt, AvtPart, Binding, Instruction, Op, Place, Plan, Sort};
use crate::pattern::Anchor;
use crate::version2::{Content, Grouping, Version2};
use crate::version3::{Part, Version3};
use std::collections::HashMap;
use xpath::{Type, Version};

/// The outcome, in the form that the run needs.
#[derive(Debug)]
pub(crate) struct Classified {
    /// Why the whole document is needed.
    pub whole: Option<NotStreamable>,
    /// By template: why its node must be complete.
    pub templates: Vec<Option<NotStreamable>>,
    /// How the selections of `xsl:apply-templates` and `xsl:for-each` are made on a node that is incomplete.
    pub selections: HashMap<(u16, u32, u32), Selection>,
    /// By mode and rule: its pattern looks into the node.
    pub looking: Vec<Vec<bool>>,
}

/// A selection made window by window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selection {
    /// It can only be made on complete nodes.
    pub predicates: bool,
    /// The body of the loop runs on incomplete nodes.
    pub streams: bool,
    /// How many levels it descends.
    pub steps: usize,
}

/// The depth to which templates and attribute sets are followed.
const MAX_DEPTH: usize = 200;

/// The key of a place.
pub(crate) fn key(place: Place) -> (u16, u32, u32) {
    (place.module, place.line, place.column)
}

/// Classifies a stylesheet.
pub(crate) fn classify(plan: &Plan) -> Classified {
    let mut c = Classifier {
        plan,
        whole: None,
        templates: vec![Memo::No; plan.templates.len()],
        selections: HashMap::new(),
        atomic: true,
        size: None,
        depth: 0,
    };
    for global in &plan.globals {
        let read = match &global.value {
            Binding::Select(e) => c.expr(e, Use::Value, At::Focus, global.place).map(|_| 0),
            value => c.binding(value, At::Focus, global.place),
        };
        if !matches!(read, Ok(0)) {
            let why = "a global variable reads the document";
            c.refuse(global.place, why.to_owned());
        }
    }
    if let Some(context) = plan.global_context.as_ref().filter(|context| context.declared.is_some()) {
        c.refuse(context.place, "xsl:global-context-item requires a type of the document".into());
    }
    if plan.output.collects() {
        let why = "the items of the result are collected (by its output method, or for item-separator)";
        c.refuse(plan.output_place, why.into());
    }
    let mut looking = Vec::new();
    if let Some(accumulator) = plan.accumulators.values().next() {
        c.refuse(accumulator.place, "accumulators are computed from the whole document".into());
    }
    if plan.modes.iter().any(|mode| mode.no_match != crate::pattern::NoMatch::TextOnlyCopy) {
        c.refuse(Place::default(), "xsl:mode chooses other built-in rules".into());
    }
    for rules in &plan.modes {
        let mut list = Vec::new();
        for rule in &rules.rules {
            let place = plan.templates[rule.template].place;
            if !matches!(rule.alternative.anchor, Anchor::None | Anchor::Root) {
                c.refuse(place, "a pattern looks nodes up in the whole document".into());
            }
            let mut looks = false;
            for (at, step) in rule.alternative.steps.iter().enumerate() {
                for predicate in &step.predicates {
                    if predicate.positional {
                        c.refuse(place, "a pattern counts siblings".into());
                    }
                    if c.expr(&predicate.expr, Use::Exists, At::Focus, place).is_err() {
                        if at > 0 {
                            c.refuse(place, "a pattern reads the content of an ancestor".into());
                        }
                        looks = true;
                    }
                }
            }
            list.push(looks);
        }
        looking.push(list);
    }
    for at in 0..plan.templates.len() {
        let _ = c.template(at);
    }
    let templates = c.templates.iter().map(|template| match template {
        Memo::Yes(Err(why)) => Some(why.clone()),
        _ => None,
    });
    Classified { templates: templates.collect(), whole: c.whole, selections: c.selections, looking }
}

/// How often the content of the node is read (0 or 1), or why it must be complete.
type Reads = Result<u8, NotStreamable>;

#[derive(Clone)]
enum Memo {
    No,
    Busy,
    Yes(Reads),
}

struct Classifier<'p> {
    plan: &'p Plan,
    whole: Option<NotStreamable>,
    templates: Vec<Memo>,
    selections: HashMap<(u16, u32, u32), Selection>,
    /// The variables of the template are strings, numbers and booleans.
    atomic: bool,
    /// The place where the number of nodes of the present selection is used.
    size: Option<NotStreamable>,
    /// Nesting of templates and attribute sets.
    depth: usize,
}

impl Classifier<'_> {
    fn at(&self, place: Place, reason: String) -> NotStreamable {
        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
        NotStreamable { reason, uri, line: place.line, column: place.column }
    }

    fn version(&self) -> Version {
        if self.plan.version2 { Version::V2 } else { Version::V1 }
    }

    fn refuse(&mut self, place: Place, reason: String) {
        if self.whole.is_none() {
            self.whole = Some(self.at(place, reason));
        }
    }

    fn template(&mut self, at: usize) -> Reads {
        match &self.templates[at] {
            Memo::Yes(reads) => return reads.clone(),
            Memo::Busy => {
                return Err(self.at(self.plan.templates[at].place, "it calls itself on the same node".into()));
            }
            Memo::No if self.depth >= MAX_DEPTH => {
                return Err(
                    self.at(self.plan.templates[at].place, "templates call one another too deeply".into())
                );
            }
            Memo::No => {}
        }
        self.depth += 1;
        let reads = self.new_template(at);
        self.depth -= 1;
        reads
    }

    fn new_template(&mut self, at: usize) -> Reads {
        self.templates[at] = Memo::Busy;
        let (atomic, size) = (std::mem::replace(&mut self.atomic, true), self.size.take());
        let template = &self.plan.templates[at];
        let reads = match template.returns {
            // The result is collected before its type is checked.
            Some(_) => self.inner(&template.body, At::Focus, template.place),
            None => self.body(&template.body, At::Focus),
        };
        self.atomic = atomic;
        if let Some(why) = std::mem::replace(&mut self.size, size)
            && self.whole.is_none()
        {
            self.whole = Some(why);
        }
        self.templates[at] = Memo::Yes(reads.clone());
        reads
    }

    fn body(&mut self, body: &[Instruction], base: At) -> Reads {
        let mut sum = Ok(0);
        for instruction in body {
            let reads = self.instruction(instruction, base);
            sum =
                match (sum, reads) {
                    (Err(why), _) => Err(why),
                    (_, Err(why)) => Err(why),
                    (Ok(a), Ok(b)) if a + b > 1 => Err(self
                        .at(instruction.place, "the content of the node is read a second time here".into())),
                    (Ok(a), Ok(b)) => Ok(a + b),
                };
        }
        sum
    }

    /// A body whose result is collected first: it may not read content.
    fn inner(&mut self, body: &[Instruction], base: At, place: Place) -> Reads {
        match self.body(body, base)? {
            0 => Ok(0),
            _ => Err(self.at(place, "content of the node is put together into a value".into())),
        }
    }

    fn instruction(&mut self, instruction: &Instruction, base: At) -> Reads {
        let place = instruction.place;
        match &instruction.op {
            Op::Text { .. } | Op::EndLiteral { .. } => Ok(0),
            Op::Leaf(leaf) => self.expr(&leaf.select, Use::Value, base, place).map(|_| 0),
            Op::ValueOf { select, .. } => self.expr(select, Use::Value, base, place).map(|_| 0),
            Op::ApplyTemplates { select, sorts, arguments, .. } => {
                let arguments = self.arguments(arguments, base);
                let selected = self.select(select.as_ref(), sorts, base, place, true);
                arguments.and(selected).map(|(reads, _)| reads)
            }
            Op::ForEach { select, sorts, body } => {
                let selected = self.select(Some(select), sorts, base, place, false);
                let outer = self.size.take();
                // On a complete node: what the body reads elsewhere must be there.
                let nodes = selected.as_ref().map_or(At::Below, |(_, nodes)| *nodes);
                let inside = self.body(body, nodes);
                let size = std::mem::replace(&mut self.size, outer);
                let (reads, _) = selected?;
                if reads == 0 {
                    // On complete nodes, such as attributes, the body may read everything.
                    return Ok(0);
                }
                let streams = inside.is_ok();
                if !self.atomic {
                    return Err(self.at(place, "the loop goes on with variables that hold nodes".into()));
                }
                if let Some(selection) = self.selections.get_mut(&key(place)) {
                    selection.streams = streams;
                }
                size.map_or(Ok(1), Err)
            }
            Op::ApplyImports { arguments } => {
                self.arguments(arguments, base)?;
                if base == At::Focus {
                    return Err(self.at(place, "xsl:apply-imports goes on with the same node".into()));
                }
                Ok(0)
            }
            Op::CallTemplate { template, arguments, .. } => {
                let arguments = self.arguments(arguments, base);
                let reads = self.template(*template);
                arguments?;
                if base == At::Focus { reads } else { Ok(0) }
            }
            Op::If { test, body } => {
                let test = self.expr(test, Use::Exists, base, place);
                let reads = self.body(body, base);
                test?;
                reads
            }
            Op::Choose { when, otherwise } => {
                let mut most = self.body(otherwise, base);
                for (test, body) in when {
                    let test = self.expr(test, Use::Exists, base, place);
                    let reads = self.body(body, base);
                    most = match (most, test, reads) {
                        (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => Err(why),
                        (Ok(a), _, Ok(b)) => Ok(a.max(b)),
                    };
                }
                most
            }
            Op::Literal(literal) => {
                let head = self.sets(&literal.sets, base, place);
                let mut values = Ok(());
                for attribute in &literal.attributes {
                    values = values.and(self.avt(&attribute.value, base, place));
                }
                head?;
                values.map(|()| 0)
            }
            Op::Element { name, namespace, sets, body, .. } => {
                let name = self.avt(name, base, place);
                let namespace = namespace.as_ref().map_or(Ok(()), |n| self.avt(n, base, place));
                let head = self.sets(sets, base, place);
                let reads = self.body(body, base);
                name?;
                namespace?;
                head?;
                reads
            }
            Op::Attribute { name, namespace, body, .. } => {
                let name = self.avt(name, base, place);
                let namespace = namespace.as_ref().map_or(Ok(()), |n| self.avt(n, base, place));
                let reads = self.inner(body, base, place);
                name?;
                namespace?;
                reads
            }
            Op::Comment { body } | Op::Message { body, .. } => self.inner(body, base, place),
            Op::Pi { name, body } => {
                let name = self.avt(name, base, place);
                let reads = self.inner(body, base, place);
                name?;
                reads
            }
            Op::Copy { sets, body } => {
                let head = self.sets(sets, base, place);
                let reads = self.body(body, base);
                head?;
                reads
            }
            Op::CopyOf { select } => self.expr(select, Use::Value, base, place).map(|_| 0),
            Op::Number(number) => match &number.value {
                Some(value) => {
                    let format = self.avt(&number.format, base, place);
                    self.expr(value, Use::Value, base, place)?;
                    format?;
                    Ok(0)
                }
                None => {
                    self.refuse(place, "xsl:number counts nodes that may be gone".into());
                    Ok(0)
                }
            },
            Op::Variable { value, .. } | Op::Param { value, .. } => {
                self.atomic &= is_atomic(value);
                self.binding(value, base, place)
            }
            Op::Unknown { fallback, .. } => fallback.as_ref().map_or(Ok(0), |body| self.body(body, base)),
            Op::Result { value } => self.binding(value, base, place),
            Op::Version2(version2) => self.version2(version2, base, place),
        }
    }

    /// An instruction that only XSLT 2.0 has.
    fn version2(&mut self, version2: &Version2, base: At, place: Place) -> Reads {
        match version2 {
            Version2::Sequence { select } | Version2::CopyOf { select, .. } => {
                self.expr(select, Use::Value, base, place).map(|_| 0)
            }
            Version2::TextTemplate(text) => self.avt(text, base, place).map(|()| 0),
            Version2::Values { content, .. } | Version2::Comment { content } => {
                self.content(content, base, place)
            }
            Version2::Attribute { name, namespace, content, .. } => {
                let name = self.avt(name, base, place);
                let namespace = namespace.as_ref().map_or(Ok(()), |n| self.avt(n, base, place));
                let reads = self.content(content, base, place);
                name.and(namespace).and(reads)
            }
            Version2::Pi { name, content }
            | Version2::Namespace { name, content }
            | Version2::Message { content, terminate: name, .. } => {
                let name = self.avt(name, base, place);
                let reads = self.content(content, base, place);
                let code = match version2 {
                    Version2::Message { code: Some(code), .. } => self.avt(code, base, place),
                    _ => Ok(()),
                };
                name.and(code).and(reads)
            }
            Version2::Sequential(body) => self.body(body, base),
            Version2::Copy { select: Some(select), sets, body, .. } => {
                let select = self.expr(select, Use::Value, base, place);
                let _ = (self.sets(sets, At::Below, place), self.body(body, At::Below));
                select?;
                Err(self.at(place, "xsl:copy goes on with another node".into()))
            }
            Version2::Copy { sets, body, .. } => {
                let head = self.sets(sets, base, place);
                let reads = self.body(body, base);
                head.and(reads)
            }
            Version2::TunnelParam { value, .. } => {
                self.atomic &= is_atomic(value);
                self.binding(value, base, place)
            }
            Version2::Convert { .. } | Version2::Isolate => Ok(0),
            Version2::Version3(version3) => {
                self.version3(version3, base, place);
                Err(self.at(place, "instructions of XSLT 3.0 need the complete node".into()))
            }
            Version2::NextMatch { arguments } => {
                self.arguments(arguments, base)?;
                match base {
                    At::Focus => Err(self.at(place, "xsl:next-match goes on with the same node".into())),
                    _ => Ok(0),
                }
            }
            Version2::Document { body } => self.inner(body, base, place),
            Version2::ResultDocument(result) => {
                let values =
                    [&result.href, &result.format, &result.cdata_section_elements, &result.character_maps];
                let values =
                    values.into_iter().flatten().chain(result.properties.iter().map(|(_, value)| value));
                let mut outcome = Ok(());
                for value in values {
                    outcome = outcome.and(self.avt(value, base, place));
                }
                outcome.and(self.body(&result.body, base))
            }
            Version2::ForEachGroup(grouping) => {
                let select = self.expr(&grouping.select, Use::Exists, base, place).map(|_| ());
                match &grouping.by {
                    Grouping::By(key) | Grouping::Adjacent(key) => {
                        let _ = self.expr(key, Use::Value, At::Below, place);
                    }
                    Grouping::StartingWith(_) | Grouping::EndingWith(_) => {
                        self.refuse(place, "groups that begin or end with a pattern".into());
                    }
                }
                let collation = grouping.collation.as_ref().map_or(Ok(()), |avt| self.avt(avt, base, place));
                self.sorts(&grouping.sorts);
                let _ = self.body(&grouping.body, At::Below);
                select.and(collation).map(|()| 0)
            }
            Version2::Analyze { select, regex, flags, matching, other } => {
                let select = self.expr(select, Use::Value, base, place).map(|_| ());
                let regex = self.avt(regex, base, place);
                let flags = flags.as_ref().map_or(Ok(()), |flags| self.avt(flags, base, place));
                // On strings: the document is out of reach.
                let _ = (self.body(matching, At::Elsewhere), self.body(other, At::Elsewhere));
                select.and(regex).and(flags).map(|()| 0)
            }
            Version2::PerformSort { select, body, sorts } => {
                self.sorts(sorts);
                let select =
                    select.as_ref().map_or(Ok(()), |e| self.expr(e, Use::Value, base, place).map(|_| ()));
                let reads = self.inner(body, base, place);
                select.and(reads)
            }
        }
    }

    /// An instruction of XSLT 3.0, on a complete node: whether it reads the document elsewhere.
    fn version3(&mut self, version3: &Version3, base: At, place: Place) {
        match version3 {
            Version3::Iterate { select, params, body, completion } => {
                let _ = self.expr(select, Use::Value, base, place);
                for param in params {
                    let _ = self.binding(&param.value, base, place);
                }
                let outer = self.size.take();
                let _ = self.body(body, At::Below);
                self.size = outer;
                if let Some(completion) = completion {
                    let _ = self.content(completion, base, place);
                }
            }
            Version3::NextIteration { arguments } => {
                for (_, argument) in arguments {
                    let _ = self.binding(&argument.value, base, argument.place);
                }
            }
            Version3::Break { content } => {
                let _ = self.content(content, base, place);
            }
            Version3::Try { content, catches, .. } => {
                let _ = self.content(content, base, place);
                for caught in catches {
                    let _ = self.content(&caught.content, base, place);
                }
            }
            Version3::Map { body } | Version3::WherePopulated { body } => {
                let _ = self.body(body, base);
            }
            Version3::MapEntry { key, content } => {
                let _ = (self.expr(key, Use::Value, base, place), self.content(content, base, place));
            }
            Version3::Conditional { parts } => {
                for part in parts {
                    let _ = match part {
                        Part::Always(body) => self.body(body, base),
                        Part::OnEmpty(content) | Part::OnNonEmpty(content) => {
                            self.content(content, base, place)
                        }
                    };
                }
            }
            Version3::SourceDocument { href, body, .. } => {
                let _ = (self.avt(href, base, place), self.body(body, At::Elsewhere));
            }
            Version3::Assert { test, content, code, .. } => {
                let _ = (self.expr(test, Use::Value, base, place), self.content(content, base, place));
                if let Some(code) = code {
                    let _ = self.avt(code, base, place);
                }
            }
            Version3::Merge { sources, action } => {
                for source in sources {
                    let outside = [&source.each, &source.sources];
                    for e in outside.into_iter().flatten() {
                        let _ = self.expr(e, Use::Value, base, place);
                    }
                    let _ = self.expr(&source.select, Use::Value, base, place);
                    for key in &source.keys {
                        let _ = self.content(&key.content, At::Below, place);
                        let avts =
                            [&key.descending, &key.lang, &key.case_order, &key.data_type, &key.collation];
                        for avt in avts.into_iter().flatten() {
                            let _ = self.avt(avt, base, place);
                        }
                    }
                }
                let outer = self.size.take();
                let _ = self.body(action, At::Below);
                self.size = outer;
            }
            Version3::Evaluate(_) => self.refuse(place, "xsl:evaluate may read the whole document".into()),
            Version3::ContextItem { .. } => {}
        }
    }

    /// Content by `select` or a body: it is collected first.
    fn content(&mut self, content: &Content, base: At, place: Place) -> Reads {
        let select =
            content.select.as_ref().map_or(Ok(()), |e| self.expr(e, Use::Value, base, place).map(|_| ()));
        let separator = content.separator.as_ref().map_or(Ok(()), |avt| self.avt(avt, base, place));
        let reads = self.inner(&content.body, base, place);
        select.and(separator).and(reads)
    }

    /// Sort keys, of complete nodes.
    fn sorts(&mut self, sorts: &[Sort]) {
        for sort in sorts {
            if let Some(e) = &sort.select {
                let _ = self.expr(e, Use::Value, At::Below, sort.place);
            }
            let _ = self.inner(&sort.body, At::Below, sort.place);
            let avts = [&sort.order, &sort.data_type, &sort.case_order, &sort.collation];
            for avt in avts.into_iter().flatten() {
                let _ = self.avt(avt, At::Below, sort.place);
            }
        }
    }

    /// A selection: how often it reads the content of the node, and where its nodes lie.
    fn select(
        &mut self,
        select: Option<&Expr>,
        sorts: &[Sort],
        base: At,
        place: Place,
        templates: bool,
    ) -> Result<(u8, At), NotStreamable> {
        self.sorts(sorts);
        if base == At::Focus {
            let step_by_step = match select {
                None => Some(Downward { predicates: false, steps: 1 }),
                Some(Expr::XPath(xpath)) => downward(&xpath.tree),
                Some(Expr::Deferred(_)) => None,
            };
            if let Some(Downward { predicates, steps }) = step_by_step {
                if let Some(select) = select {
                    // What the predicates reach.
                    let _ = self.expr(select, Use::Exists, base, place);
                }
                if !sorts.is_empty() {
                    return Err(self.at(place, "sorting needs all nodes".into()));
                }
                if predicates && !self.atomic {
                    return Err(self.at(place, "predicates go on with variables that hold nodes".into()));
                }
                self.selections.insert(key(place), Selection { predicates, streams: templates, steps });
                return Ok((1, At::Focus));
            }
        }
        let Some(select) = select else { return Ok((0, At::Below)) };
        let nodes = self.expr(select, Use::Exists, base, place)?;
        match nodes {
            At::Above => {
                self.refuse(place, "it goes on with ancestors".into());
                Ok((0, At::Below))
            }
            At::Focus => Err(self.at(place, "it goes on with the same node".into())),
            nodes => Ok((0, nodes)),
        }
    }

    fn sets(&mut self, sets: &[usize], base: At, place: Place) -> Result<(), NotStreamable> {
        let mut outcome = Ok(());
        for set in sets {
            for part in &self.plan.sets[*set].parts {
                if self.depth >= MAX_DEPTH {
                    self.refuse(place, "attribute sets lead to one another too deeply".into());
                    return Ok(());
                }
                self.depth += 1;
                let uses = self.sets(&part.uses, base, place);
                let read = self.inner(&part.body, base, place);
                self.depth -= 1;
                outcome = outcome.and(uses).and(read.map(|_| ()));
            }
        }
        outcome
    }

    /// Arguments of a template that may continue in another window: values, not nodes.
    fn arguments(&mut self, arguments: &[Argument], base: At) -> Result<(), NotStreamable> {
        let mut outcome = Ok(());
        for argument in arguments {
            let read = self.binding(&argument.value, base, argument.place).map(|_| ());
            let atomic = if base == At::Focus && !is_atomic(&argument.value) {
                Err(self.at(argument.place, "a parameter may be a node-set or a tree".into()))
            } else {
                Ok(())
            };
            outcome = outcome.and(read).and(atomic);
        }
        outcome
    }

    fn binding(&mut self, binding: &Binding, base: At, place: Place) -> Reads {
        match binding {
            Binding::Select(e) => self.expr(e, Use::Value, base, place).map(|_| 0),
            Binding::Body(body) | Binding::Text(body) | Binding::Sequence(body) => {
                self.inner(body, base, place)
            }
            Binding::As(typed) => self.binding(&typed.value, base, place),
            Binding::Empty | Binding::Required(_) => Ok(0),
        }
    }

    fn avt(&mut self, avt: &Avt, base: At, place: Place) -> Result<(), NotStreamable> {
        let Avt::Parts(parts) = avt else { return Ok(()) };
        let mut outcome = Ok(());
        for part in parts {
            if let AvtPart::Expr(e) | AvtPart::Items(e) = part {
                outcome = outcome.and(self.expr(e, Use::Value, base, place).map(|_| ()));
            }
        }
        outcome
    }

    /// An expression: where its nodes lie; or that it reads the content of the node.
    fn expr(&mut self, expr: &Expr, using: Use, base: At, place: Place) -> Result<At, NotStreamable> {
        let Expr::XPath(xpath) = expr else { return Ok(At::Elsewhere) };
        let source = xpath.expression.source();
        let (reach, at) = reach(&xpath.tree, self.version(), using, base, !self.plan.functions.is_empty());
        if let Some(why) = reach.leaves {
            self.refuse(place, format!("{why} (in the expression \"{source}\")"));
        }
        if reach.size && self.size.is_none() {
            let why = format!("the number of nodes is not known in advance (in the expression \"{source}\")");
            self.size = Some(self.at(place, why));
        }
        if reach.content {
            return Err(
                self.at(place, format!("the content of the node is read (in the expression \"{source}\")"))
            );
        }
        Ok(at)
    }
}

/// Whether a value is certainly a string, a number or a boolean.
fn is_atomic(binding: &Binding) -> bool {
    match binding {
        Binding::Select(Expr::XPath(xpath)) => {
            matches!(xpath.expression.returns(), Type::String | Type::Number | Type::Boolean)
        }
        Binding::As(typed) => typed.declared.ty.is_atomic(),
        Binding::Empty => true,
        _ => false,
    }
}
