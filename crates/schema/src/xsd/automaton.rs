//! Content models as automata: positions and their follow sets (the construction of Glushkov).
//!
//! A schema's models are deterministic (Unique Particle Attribution, checked here), so that running one is a look-up
//! by name for each element. Elements and wildcards that repeat are counted; groups that repeat a bounded number of times
//! are unrolled, and where that would be too much they are counted too.

use super::model::*;
use super::names::{Name, Sym};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Positions of one content model; groups that would make more are counted, see [`Builder::counted`].
const MAX_POSITIONS: usize = 5_000;
/// Runs of positions in the follow sets of one content model, …
const MAX_LINKS: usize = 1 << 20;
/// … and how many may be added to get there: many elements that are all optional have few runs, but each is added to all before.
const MAX_STEPS: usize = 1 << 25;
/// Names in the tables of follow sets; sets beyond have none ([`Set::find`]).
const MAX_NAMES: usize = 1 << 18;
/// Deepest nesting of groups.
const MAX_DEPTH: usize = 500;

/// A content model, ready to run.
#[derive(Debug)]
pub enum Model {
    /// Any order, each at most once.
    All { optional: bool, items: Vec<(ElementId, bool)>, by_name: HashMap<Name, (usize, ElementId)> },
    /// Everything else.
    Automaton { positions: Vec<Position>, sets: Vec<Set>, loops: Box<Loops>, named: Box<Named> },
}

/// The positions, in order, that take an element of a name, and its declaration.
type Named = HashMap<Name, Vec<(usize, ElementId)>>;

/// Groups that are counted.
#[derive(Debug, Default)]
pub struct Loops {
    /// How often each may occur.
    bounds: Vec<(u32, u32)>,
    /// From the end of a group to its beginning: which group begins anew.
    again: HashMap<(usize, usize), usize>,
}

impl Default for Model {
    /// Nothing.
    fn default() -> Model {
        let sets = vec![Set { accepts: true, ..Set::default() }];
        Model::Automaton { positions: Vec::new(), sets, loops: Box::default(), named: Box::default() }
    }
}

/// An element or wildcard in a model.
#[derive(Debug)]
pub struct Position {
    term: Symbol,
    min: u32,
    max: u32,
    /// The follow set.
    next: usize,
    /// The particle it comes from.
    particle: ParticleId,
    /// The place in the model where that is used: unrolled copies share it, but two references to a group are two places.
    origin: usize,
    /// The names it takes, and the declarations they mean: an element's own and those of its substitutes.
    names: Vec<(Name, ElementId)>,
    /// The counted groups around it, outermost first.
    groups: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Symbol {
    Element(ElementId),
    Any(Arc<Wildcard>),
}

/// A follow set.
#[derive(Debug, Default)]
pub struct Set {
    /// Whether the content may end here.
    accepts: bool,
    /// `None`: it would be too large.
    by_name: Option<HashMap<Name, (usize, ElementId)>>,
    wildcards: Vec<usize>,
    /// All positions, in order, as runs: those of optional elements one behind the other are one.
    all: Vec<Range<usize>>,
}

impl Set {
    /// The first of its positions that takes an element of that name.
    fn find(&self, name: Name, named: &Named) -> Option<(usize, ElementId)> {
        if let Some(by_name) = &self.by_name {
            return by_name.get(&name).copied();
        }
        let positions = named.get(&name)?;
        self.all.iter().find_map(|run| {
            let next = positions.partition_point(|(position, _)| *position < run.start);
            positions.get(next).copied().filter(|(position, _)| *position < run.end)
        })
    }
}

/// Adds runs of positions behind others.
fn add(runs: &mut Vec<Range<usize>>, more: &[Range<usize>]) {
    for run in more {
        match runs.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => runs.push(run.clone()),
        }
    }
}

fn contains(runs: &[Range<usize>], position: usize) -> bool {
    runs.iter().any(|run| run.contains(&position))
}

/// The same positions, each once, at its first place.
fn distinct(runs: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut sorted = runs.clone();
    sorted.sort_unstable_by_key(|run| run.start);
    if sorted.windows(2).all(|two| two[0].end <= two[1].start) {
        return runs;
    }
    let mut kept: Vec<Range<usize>> = Vec::new();
    if runs.len() <= 64 {
        for run in runs {
            let mut rest = vec![run];
            for seen in &kept {
                rest = rest
                    .into_iter()
                    .flat_map(|r| [r.start..r.end.min(seen.start), r.start.max(seen.end)..r.end])
                    .filter(|r| r.start < r.end)
                    .collect();
            }
            kept.extend(rest);
        }
        return kept;
    }
    let mut seen = std::collections::HashSet::new();
    for position in runs.into_iter().flatten().filter(|position| seen.insert(*position)) {
        add(&mut kept, std::slice::from_ref(&(position..position + 1)));
    }
    kept
}

/// The match of an element of the content.
#[derive(Clone, Debug)]
pub enum Match {
    Element(ElementId),
    Any(Arc<Wildcard>),
}

/// The state of a run.
#[derive(Debug)]
pub enum State {
    All {
        seen: Vec<bool>,
    },
    /// Before the first element `position` is `None`. Else the position and how often it has occurred.
    At {
        position: Option<usize>,
        count: u32,
        /// The iteration of each of the position's groups.
        times: Vec<u32>,
    },
}

impl Model {
    /// Before the first element.
    pub fn start(&self) -> State {
        match self {
            Model::All { items, .. } => State::All { seen: vec![false; items.len()] },
            Model::Automaton { .. } => State::At { position: None, count: 0, times: Vec::new() },
        }
    }

    /// Takes an element; `None`: it is not allowed here.
    pub fn step(&self, state: &mut State, name: Name) -> Option<Match> {
        match (self, state) {
            (Model::All { by_name, .. }, State::All { seen }) => {
                let &(item, element) = by_name.get(&name)?;
                (!std::mem::replace(&mut seen[item], true)).then_some(Match::Element(element))
            }
            (Model::Automaton { positions, sets, loops, named }, State::At { position, count, times }) => {
                let mut set = &sets[0];
                if let Some(at) = *position {
                    let current = &positions[at];
                    set = &sets[current.next];
                    if *count < current.max
                        && let Some(found) = current.takes(name)
                    {
                        *count += 1;
                        return Some(found);
                    }
                    if *count < current.min {
                        return None;
                    }
                }
                let found = match set.find(name, named) {
                    Some((at, element)) => (at, Match::Element(element)),
                    None => set.wildcards.iter().find_map(|&at| match &positions[at].term {
                        Symbol::Any(any) if any.namespaces.allows(name.ns) => {
                            Some((at, Match::Any(any.clone())))
                        }
                        _ => None,
                    })?,
                };
                if !loops.bounds.is_empty() {
                    *times = loops.step(positions, *position, found.0, times)?;
                }
                *position = Some(found.0);
                *count = 1;
                Some(found.1)
            }
            _ => None,
        }
    }

    /// Whether the content may end here.
    pub fn accepts(&self, state: &State) -> bool {
        match (self, state) {
            (Model::All { optional, items, .. }, State::All { seen }) => {
                (*optional && !seen.contains(&true))
                    || items.iter().zip(seen).all(|(&(_, required), &seen)| seen || !required)
            }
            (Model::Automaton { sets, .. }, State::At { position: None, .. }) => sets[0].accepts,
            (
                Model::Automaton { positions, sets, loops, .. },
                State::At { position: Some(at), count, times },
            ) => {
                *count >= positions[*at].min
                    && sets[positions[*at].next].accepts
                    && positions[*at]
                        .groups
                        .iter()
                        .zip(times)
                        .all(|(group, time)| *time >= loops.bounds[*group].0)
            }
            _ => false,
        }
    }

    /// What may come next, for messages.
    pub fn expected(&self, state: &State, schema: &Components) -> Vec<String> {
        let element = |id: ElementId| schema.names.show(schema.elements[id].name);
        let show = |positions: &[Position], at: usize| match &positions[at].term {
            Symbol::Element(id) => element(*id),
            Symbol::Any(any) => show_wildcard(&any.namespaces, schema),
        };
        let mut all: Vec<String> = match (self, state) {
            (Model::All { items, .. }, State::All { seen }) => {
                items.iter().zip(seen).filter(|(_, seen)| !**seen).map(|(item, _)| element(item.0)).collect()
            }
            (Model::Automaton { positions, sets, .. }, State::At { position: None, .. }) => {
                sets[0].all.iter().cloned().flatten().map(|at| show(positions, at)).collect()
            }
            (Model::Automaton { positions, sets, .. }, State::At { position: Some(at), count, .. }) => {
                let current = &positions[*at];
                let again = (*count < current.max).then(|| show(positions, *at));
                let next = (*count >= current.min)
                    .then(|| sets[current.next].all.iter().cloned().flatten().map(|at| show(positions, at)));
                again.into_iter().chain(next.into_iter().flatten()).collect()
            }
            _ => Vec::new(),
        };
        let mut listed = std::collections::HashSet::new();
        all.retain(|name| listed.insert(name.clone()));
        all
    }
}

impl Loops {
    /// The iteration of each group of position `to`, reached from `from` in the iterations `times`; `None`: a group has
    /// occurred too seldom, or too often.
    fn step(
        &self,
        positions: &[Position],
        from: Option<usize>,
        to: usize,
        times: &[u32],
    ) -> Option<Vec<u32>> {
        let inside = &positions[to].groups;
        let Some(from) = from else { return Some(vec![1; inside.len()]) };
        let outside = &positions[from].groups;
        let again = self.again.get(&(from, to)).copied();
        // Groups of both go on, but a group within one that begins anew begins too.
        let shared = inside.iter().zip(outside).take_while(|(a, b)| a == b).count();
        let kept = match again {
            Some(group) => inside[..shared].iter().position(|g| *g == group)?,
            None => shared,
        };
        for (group, time) in outside.iter().zip(times).skip(kept) {
            if Some(*group) != again && *time < self.bounds[*group].0 {
                return None;
            }
        }
        let mut next = times[..kept].to_vec();
        if let Some(group) = again {
            let time = times.get(kept)? + 1;
            if time > self.bounds[group].1 {
                return None;
            }
            next.push(time);
        }
        next.resize(inside.len(), 1);
        Some(next)
    }
}

impl Position {
    /// The match of an element with this name.
    fn takes(&self, name: Name) -> Option<Match> {
        match &self.term {
            Symbol::Any(any) => any.namespaces.allows(name.ns).then(|| Match::Any(any.clone())),
            Symbol::Element(_) => self.names.iter().find(|n| n.0 == name).map(|n| Match::Element(n.1)),
        }
    }

    /// Whether both could match some element.
    fn overlaps(&self, other: &Position) -> bool {
        match (&self.term, &other.term) {
            (Symbol::Any(a), Symbol::Any(b)) => a.namespaces.overlaps(&b.namespaces),
            (Symbol::Any(any), Symbol::Element(_)) => {
                other.names.iter().any(|n| any.namespaces.allows(n.0.ns))
            }
            (Symbol::Element(_), Symbol::Any(any)) => {
                self.names.iter().any(|n| any.namespaces.allows(n.0.ns))
            }
            (Symbol::Element(_), Symbol::Element(_)) => {
                self.names.iter().any(|n| other.names.iter().any(|o| o.0 == n.0))
            }
        }
    }
}

/// Why there is no automaton.
#[derive(Debug)]
pub struct Refused {
    pub rule: &'static str,
    pub message: String,
    /// The particle at fault.
    pub particle: ParticleId,
}

/// Builds the model of a content; an error where it is not deterministic or too large.
pub fn build(schema: &Components, particle: Option<ParticleId>) -> Result<Model, Refused> {
    let Some(top) = particle else { return Ok(Model::default()) };
    if let Particle { min, max: 1.., term: Term::Group(Compositor::All, children), .. } =
        &schema.particles[top]
    {
        return all_group(schema, *min == 0, children);
    }
    let mut builder = Builder {
        schema,
        positions: Vec::new(),
        follow: Vec::new(),
        links: 0,
        steps: 0,
        names: 0,
        loops: Loops::default(),
        places: HashMap::new(),
        named: Named::default(),
        wildcards: Vec::new(),
        shared: Vec::new(),
    };
    let fragment = builder.particle(top, 0, 0)?;
    builder.finish(fragment)
}

fn all_group(schema: &Components, optional: bool, children: &[ParticleId]) -> Result<Model, Refused> {
    let mut items = Vec::new();
    let mut by_name = HashMap::new();
    for &child in children {
        let particle = &schema.particles[child];
        let Term::Element(element) = particle.term else { continue };
        if particle.max == 0 {
            continue;
        }
        for (name, id) in names(schema, element) {
            if by_name.insert(name, (items.len(), id)).is_some() {
                return ambiguous(&schema.names.show(name), child);
            }
        }
        items.push((element, particle.min > 0));
    }
    Ok(Model::All { optional, items, by_name })
}

fn ambiguous<T>(part: &str, particle: ParticleId) -> Result<T, Refused> {
    let message = format!("the content model is ambiguous: {part} could belong to two of its particles");
    Err(Refused { rule: "cos-nonambig", message, particle })
}

/// The names that an element of a model matches.
fn names(schema: &Components, element: ElementId) -> Vec<(Name, ElementId)> {
    let members = schema.members.get(&element).into_iter().flatten();
    std::iter::once(&element).chain(members).map(|&id| (schema.elements[id].name, id)).collect()
}

/// A part of a model: first and last positions, and whether it may be empty.
#[derive(Default)]
struct Fragment {
    first: Vec<Range<usize>>,
    last: Vec<usize>,
    nullable: bool,
}

struct Builder<'a> {
    schema: &'a Components,
    positions: Vec<Position>,
    follow: Vec<Vec<Range<usize>>>,
    links: usize,
    steps: usize,
    /// Names in tables of sets so far.
    names: usize,
    loops: Loops,
    /// The places where particles are used, by the place around and the particle.
    places: HashMap<(usize, ParticleId), usize>,
    named: Named,
    /// All positions of wildcards.
    wildcards: Vec<usize>,
    /// The names that several places of the model take.
    shared: Vec<Name>,
}

impl Builder<'_> {
    /// The fragment of a particle that is used `within` another place of the model.
    fn particle(&mut self, id: ParticleId, depth: usize, within: usize) -> Result<Fragment, Refused> {
        let schema = self.schema;
        let next = self.places.len() + 1;
        let used = *self.places.entry((within, id)).or_insert(next);
        let Particle { min, max, term, .. } = &schema.particles[id];
        let (min, max) = (*min, *max);
        let nothing = Fragment { nullable: true, ..Fragment::default() };
        if max == 0 {
            return Ok(nothing);
        }
        let too_large =
            |message: &str| Err(Refused { rule: "limit", message: message.to_owned(), particle: id });
        if depth > MAX_DEPTH {
            return too_large("its groups nest too deeply");
        }
        let (term, names) = match term {
            Term::Element(element) => (Symbol::Element(*element), names(schema, *element)),
            Term::Any(any) => (Symbol::Any(any.clone()), Vec::new()),
            Term::Group(compositor, children) => {
                let before = self.positions.len();
                let mut body = self.group(*compositor, children, depth, used)?;
                let size = (self.positions.len() - before).max(1);
                let copies = if max == UNBOUNDED { min.max(1) } else { max };
                if copies > 1 && (copies as usize).saturating_mul(size) > MAX_POSITIONS {
                    return self.counted(body, before, (min, max), id);
                }
                // (x (x (x)?)?)?: from the last copy, which may occur again, to the first.
                let mut tail = Fragment { nullable: true, ..Fragment::default() };
                for copy in (0..copies).rev() {
                    let copied = match copy {
                        0 => std::mem::take(&mut body),
                        _ => self.group(*compositor, children, depth, used)?,
                    };
                    if max == UNBOUNDED && copy + 1 == copies {
                        self.link(&copied.last, &copied.first, id)?;
                    }
                    tail = self.concat(copied, tail, id)?;
                    tail.nullable |= copy >= min;
                }
                return Ok(tail);
            }
        };
        let at = self.positions.len();
        if at >= 4 * MAX_POSITIONS {
            return too_large("the content model is too large");
        }
        let groups = Vec::new();
        for (name, element) in &names {
            self.named.entry(*name).or_default().push((at, *element));
        }
        if matches!(term, Symbol::Any(_)) {
            self.wildcards.push(at);
        }
        self.positions.push(Position {
            term,
            min: min.max(1),
            max,
            next: 0,
            particle: id,
            origin: used,
            names,
            groups,
        });
        self.follow.push(Vec::new());
        Ok(Fragment { first: vec![Range { start: at, end: at + 1 }], last: vec![at], nullable: min == 0 })
    }

    /// A group that is counted, not unrolled; its positions are those from `before` on. One that may be empty may occur any number of
    /// times without content.
    fn counted(
        &mut self,
        body: Fragment,
        before: usize,
        (min, max): (u32, u32),
        id: ParticleId,
    ) -> Result<Fragment, Refused> {
        let group = self.loops.bounds.len();
        let least = if body.nullable { 0 } else { min };
        self.loops.bounds.push((least, max));
        // Outermost first: inner groups were added before.
        for position in &mut self.positions[before..] {
            position.groups.insert(0, group);
        }
        let firsts: usize = body.first.iter().map(Range::len).sum();
        if body.last.len().saturating_mul(firsts) > MAX_LINKS {
            return self.too_large(id);
        }
        for &from in &body.last {
            for to in body.first.iter().cloned().flatten() {
                // Links within the group stay within an iteration.
                if contains(&self.follow[from], to) {
                    if self.loops.again.contains_key(&(from, to)) {
                        let message = "groups that repeat many times are within one another";
                        return Err(Refused { rule: "limit", message: message.into(), particle: id });
                    }
                    continue;
                }
                self.loops.again.insert((from, to), group);
            }
        }
        self.link(&body.last, &body.first, id)?;
        Ok(Fragment { nullable: body.nullable || min == 0, ..body })
    }

    fn group(
        &mut self,
        compositor: Compositor,
        children: &[ParticleId],
        depth: usize,
        within: usize,
    ) -> Result<Fragment, Refused> {
        let mut group = Fragment {
            nullable: compositor != Compositor::Choice || children.is_empty(),
            ..Fragment::default()
        };
        for &child in children {
            let part = self.particle(child, depth + 1, within)?;
            if compositor == Compositor::Choice {
                add(&mut group.first, &part.first);
                group.last.extend(part.last);
                group.nullable |= part.nullable;
            } else {
                group = self.concat(group, part, child)?;
            }
        }
        Ok(group)
    }

    fn concat(&mut self, a: Fragment, b: Fragment, at: ParticleId) -> Result<Fragment, Refused> {
        self.link(&a.last, &b.first, at)?;
        let mut joined = Fragment { first: a.first, last: b.last, nullable: a.nullable && b.nullable };
        if a.nullable {
            add(&mut joined.first, &b.first);
        }
        if b.nullable {
            joined.last.extend(a.last);
        }
        Ok(joined)
    }

    fn too_large<T>(&self, particle: ParticleId) -> Result<T, Refused> {
        Err(Refused { rule: "limit", message: "the content model is too large".into(), particle })
    }

    fn link(&mut self, from: &[usize], to: &[Range<usize>], particle: ParticleId) -> Result<(), Refused> {
        self.steps += from.len() * to.len();
        if self.steps > MAX_STEPS {
            return self.too_large(particle);
        }
        for &position in from {
            let follow = &mut self.follow[position];
            let before = follow.len();
            add(follow, to);
            self.links += follow.len() - before;
            if self.links > MAX_LINKS {
                return self.too_large(particle);
            }
        }
        Ok(())
    }

    fn finish(mut self, whole: Fragment) -> Result<Model, Refused> {
        let mut sets = Vec::new();
        let origin = |at: usize| self.positions[at].origin;
        let is_shared =
            |list: &[(usize, ElementId)]| list.iter().any(|(at, _)| origin(*at) != origin(list[0].0));
        self.shared = self.named.iter().filter(|(_, list)| is_shared(list)).map(|(name, _)| *name).collect();
        // Equal sets are shared.
        let mut numbers: HashMap<(bool, Vec<Range<usize>>), usize> = HashMap::new();
        let mut ends = vec![false; self.positions.len()];
        whole.last.iter().for_each(|&at| ends[at] = true);
        let follow = std::mem::take(&mut self.follow);
        let starts = std::iter::once((whole.nullable, whole.first, None));
        let nexts = follow.into_iter().enumerate().map(|(at, members)| (ends[at], members, Some(at)));
        for (accepts, members, position) in starts.chain(nexts) {
            let members = distinct(members);
            if let Some(position) = position {
                // An element that may occur again or be followed by another position that matches it too.
                let current = &self.positions[position];
                if current.max > current.min
                    && let Some(other) = self.rival(position, &members)
                {
                    return ambiguous(&self.show(other), self.positions[other].particle);
                }
            }
            let set = match numbers.get(&(accepts, members.clone())) {
                Some(&set) => set,
                None => {
                    numbers.insert((accepts, members.clone()), sets.len());
                    sets.push(self.set(accepts, members)?);
                    sets.len() - 1
                }
            };
            if let Some(position) = position {
                self.positions[position].next = set;
            }
        }
        Ok(Model::Automaton {
            positions: self.positions,
            sets,
            loops: self.loops.into(),
            named: self.named.into(),
        })
    }

    /// One of these positions, from another place of the model, that could match an element that a position matches.
    fn rival(&self, position: usize, members: &[Range<usize>]) -> Option<usize> {
        let current = &self.positions[position];
        let is_rival = |at: &usize| {
            let other = &self.positions[*at];
            other.origin != current.origin && current.overlaps(other)
        };
        if matches!(current.term, Symbol::Any(_)) {
            return members.iter().cloned().flatten().find(is_rival);
        }
        let named =
            current.names.iter().filter_map(|(name, _)| self.named.get(name)).flatten().map(|(at, _)| at);
        named.chain(&self.wildcards).copied().find(|at| is_rival(at) && contains(members, *at))
    }

    fn set(&mut self, accepts: bool, all: Vec<Range<usize>>) -> Result<Set, Refused> {
        for name in &self.shared {
            let positions = self.named.get(name).into_iter().flatten().map(|(at, _)| *at);
            let mut inside = positions.filter(|at| contains(&all, *at));
            let Some(first) = inside.next() else { continue };
            let origin = self.positions[first].origin;
            if let Some(other) = inside.find(|at| self.positions[*at].origin != origin) {
                let name = format!("`{}`", self.schema.names.show(*name));
                return ambiguous(&name, self.positions[other].particle);
            }
        }
        let mut set = Set { accepts, ..Set::default() };
        for run in &all {
            let from = self.wildcards.partition_point(|at| *at < run.start);
            set.wildcards.extend(self.wildcards[from..].iter().take_while(|at| **at < run.end));
        }
        if let Some(other) = set.wildcards.iter().find_map(|&at| self.rival(at, &all)) {
            return ambiguous(&self.show(other), self.positions[other].particle);
        }
        self.names += all.iter().map(Range::len).sum::<usize>();
        if self.names <= MAX_NAMES {
            let mut by_name = HashMap::new();
            for at in all.iter().cloned().flatten() {
                for &(name, element) in &self.positions[at].names {
                    by_name.entry(name).or_insert((at, element));
                }
            }
            set.by_name = Some(by_name);
        }
        set.all = all;
        Ok(set)
    }

    fn show(&self, at: usize) -> String {
        match &self.positions[at].term {
            Symbol::Element(id) => format!("`{}`", self.schema.names.show(self.schema.elements[*id].name)),
            Symbol::Any(any) => show_wildcard(&any.namespaces, self.schema),
        }
    }
}

fn show_wildcard(namespaces: &Namespaces, schema: &Components) -> String {
    let uri = |ns: &Sym| match schema.names.text(*ns) {
        "" => "no namespace".to_owned(),
        uri => format!("`{uri}`"),
    };
    match namespaces {
        Namespaces::Any => "any element".to_owned(),
        Namespaces::Not(ns) => format!("any element not in {}", uri(ns)),
        Namespaces::Set(set) => {
            format!("any element of {}", set.iter().map(uri).collect::<Vec<_>>().join(", "))
        }
    }
}

impl Model {
    /// Its size: positions, runs of positions and names.
    pub fn size(&self) -> usize {
        match self {
            Model::All { items, .. } => items.len(),
            Model::Automaton { positions, sets, .. } => {
                let size = |set: &Set| set.all.len() + set.by_name.as_ref().map_or(0, HashMap::len);
                positions.len() + sets.iter().map(size).sum::<usize>()
            }
        }
    }
}
