//! Valid restrictions of a base (Part 1, 3.4.6 and 3.9.6): attributes, and particles case by case.

use super::build::Builder;
use super::model::*;
use super::names::Name;

/// Least number of elements of a particle.
pub fn least(schema: &Components, particle: ParticleId) -> u64 {
    range(schema, particle, 0).0
}

/// The effective total range: (least, most), `None`: unbounded.
fn range(schema: &Components, particle: ParticleId, depth: usize) -> (u64, Option<u64>) {
    let Particle { min, max, term, .. } = &schema.particles[particle];
    let occurs = |low: u64, high: Option<u64>| {
        let most = match (*max, high) {
            (0, _) | (_, Some(0)) => Some(0),
            (UNBOUNDED, _) | (_, None) => None,
            (max, Some(high)) => Some(u64::from(max).saturating_mul(high)),
        };
        (u64::from(*min).saturating_mul(low), most)
    };
    let Term::Group(compositor, children) = term else { return occurs(1, Some(1)) };
    if depth > 500 {
        return (0, None);
    }
    let ranges = children.iter().map(|&c| range(schema, c, depth + 1));
    if *compositor == Compositor::Choice {
        let (mut low, mut high) = (u64::MAX, Some(0));
        for (l, h) in ranges {
            low = low.min(l);
            high = high.zip(h).map(|(a, b)| a.max(b));
        }
        return occurs(if children.is_empty() { 0 } else { low }, high);
    }
    let (mut low, mut high) = (0_u64, Some(0_u64));
    for (l, h) in ranges {
        low = low.saturating_add(l);
        high = high.zip(h).map(|(a, b)| a.saturating_add(b));
    }
    occurs(low, high)
}

/// Checks the attributes of a restriction against those of the base.
pub fn attributes(
    b: &mut Builder,
    place: Place,
    base: TypeId,
    uses: &[AttributeUse],
    wildcard: Option<&Wildcard>,
) {
    let Body::Complex(base_type) = &b.schema.types[base].body else { return };
    let (base_uses, base_wildcard) = (base_type.attributes.clone(), base_type.wildcard.clone());
    for derived in uses {
        let name = b.schema.names.show(derived.name);
        let old = base_uses.iter().find(|u| u.name == derived.name);
        if derived.prohibited {
            if old.is_some_and(|o| o.required) {
                b.problem(
                    derived.place,
                    "derivation-ok-restriction.3",
                    format!("attribute `{name}` is required in the base"),
                );
            }
            continue;
        }
        match old {
            Some(old) => {
                if old.required && !derived.required {
                    b.problem(
                        derived.place,
                        "derivation-ok-restriction.2.1.1",
                        format!("attribute `{name}` is required in the base"),
                    );
                }
                b.deferred.push(super::build::DeferredCheck::Attribute {
                    derived: derived.clone(),
                    old: old.clone(),
                });
            }
            None if base_wildcard.as_ref().is_some_and(|w| w.namespaces.allows(derived.name.ns)) => {}
            None => b.problem(
                derived.place,
                "derivation-ok-restriction.2.2",
                format!("the base does not allow attribute `{name}`"),
            ),
        }
    }
    if let Some(wildcard) = wildcard {
        match base_wildcard {
            None => b.problem(place, "derivation-ok-restriction.4.1", "the base has no attribute wildcard"),
            Some(old) if !wildcard.namespaces.is_subset(&old.namespaces) => {
                b.problem(
                    place,
                    "derivation-ok-restriction.4.2",
                    "the attribute wildcard is wider than that of the base",
                );
            }
            Some(old) if wildcard.process < old.process && base != ANY_TYPE => {
                b.problem(
                    place,
                    "derivation-ok-restriction.4.3",
                    "the attribute wildcard is weaker than that of the base",
                );
            }
            Some(_) => {}
        }
    }
}

/// The particles of the schema, and those that the check derives from them.
#[derive(Clone, Debug)]
struct P {
    min: u32,
    max: u32,
    term: T,
}

#[derive(Clone, Debug)]
enum T {
    Element(ElementId),
    Any(std::sync::Arc<Wildcard>),
    Group(Compositor, Vec<P>),
}

/// Most nodes that a check may visit.
const MAX_STEPS: usize = 2_000_000;

struct Checker<'a> {
    schema: &'a Components,
    steps: usize,
}

/// Whether a particle is a valid restriction of that of the base; else the reason.
pub fn particle(schema: &Components, derived: ParticleId, base: ParticleId) -> Result<(), String> {
    let mut checker = Checker { schema, steps: 0 };
    let (derived, base) = (checker.read(derived, 0), checker.read(base, 0));
    checker.restricts(&derived, &base, 0)
}

impl Checker<'_> {
    /// The particle without pointless groups: those with one occurrence and one member, or of the kind they are in.
    fn read(&mut self, id: ParticleId, depth: usize) -> P {
        let Particle { min, max, term, .. } = &self.schema.particles[id];
        let (min, max) = (*min, *max);
        let term = match term {
            Term::Element(element) => T::Element(*element),
            Term::Any(any) => T::Any(any.clone()),
            Term::Group(compositor, children) => {
                let mut parts = Vec::new();
                if depth < 500 {
                    for &child in children {
                        let part = self.read(child, depth + 1);
                        match part {
                            P { max: 0, .. } => {}
                            P { min: 1, max: 1, term: T::Group(inner, members) }
                                if inner == *compositor && inner != Compositor::All =>
                            {
                                parts.extend(members)
                            }
                            P { term: T::Group(inner, ref members), .. }
                                if members.is_empty() && inner != Compositor::Choice => {}
                            part => parts.push(part),
                        }
                    }
                }
                if min == 1
                    && max == 1
                    && parts.len() == 1
                    && let Some(only) = parts.pop()
                {
                    return only;
                }
                T::Group(*compositor, parts)
            }
        };
        P { min, max, term }
    }

    fn restricts(&mut self, r: &P, b: &P, depth: usize) -> Result<(), String> {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > 500 {
            return Ok(()); // too large to be judged; it is accepted
        }
        use Compositor::*;
        // An element with substitutes is a choice of them.
        if let T::Element(head) = b.term
            && let Some(members) = self.schema.members.get(&head).filter(|m| !m.is_empty())
            && !matches!(r.term, T::Element(element) if self.schema.elements[element].name == self.schema.elements[head].name)
        {
            let one = |&id: &ElementId| P { min: 1, max: 1, term: T::Element(id) };
            let choice = std::iter::once(&head).chain(members).map(one).collect();
            let choice = P { min: b.min, max: b.max, term: T::Group(Choice, choice) };
            return self.restricts_plainly(r, &choice, depth);
        }
        self.restricts_plainly(r, b, depth)
    }

    fn restricts_plainly(&mut self, r: &P, b: &P, depth: usize) -> Result<(), String> {
        use Compositor::*;
        match (&r.term, &b.term) {
            (T::Element(derived), T::Element(base)) => self.element(r, *derived, b, *base),
            (T::Element(derived), T::Any(any)) => {
                let name = self.schema.elements[*derived].name;
                if !any.namespaces.allows(name.ns) {
                    return Err(format!(
                        "the wildcard of the base does not allow `{}`",
                        self.schema.names.show(name)
                    ));
                }
                within(r, b)
            }
            (T::Any(derived), T::Any(base)) => {
                if !derived.namespaces.is_subset(&base.namespaces) {
                    return Err("a wildcard is wider than that of the base".into());
                }
                if derived.process < base.process {
                    return Err("a wildcard is weaker than that of the base".into());
                }
                within(r, b)
            }
            (T::Group(_, parts), T::Any(_)) => {
                let (low, high) = total(r);
                let fits = low >= u64::from(b.min)
                    && (b.max == UNBOUNDED || high.is_some_and(|h| h <= u64::from(b.max)));
                if !fits {
                    return Err("a group occurs more or less often than the wildcard of the base".into());
                }
                // Each member may be at any place in it: their number was counted above.
                let free = P { min: 0, max: UNBOUNDED, term: b.term.clone() };
                parts.iter().try_for_each(|p| self.restricts(p, &free, depth + 1))
            }
            (T::Element(_), T::Group(kind, members)) => {
                let as_group = P { min: 1, max: 1, term: T::Group(*kind, vec![r.clone()]) };
                match kind {
                    Choice => self.choice(&as_group, b, members, depth),
                    _ => self.ordered(&as_group, b, members, *kind == All, depth),
                }
            }
            (T::Group(All, _), T::Group(All, members))
            | (T::Group(Sequence, _), T::Group(Sequence, members)) => {
                self.ordered(r, b, members, false, depth)
            }
            (T::Group(Sequence, _), T::Group(All, members)) => self.ordered(r, b, members, true, depth),
            (T::Group(Choice, _), T::Group(Choice, members)) => self.choice(r, b, members, depth),
            (T::Group(Sequence, parts), T::Group(Choice, members)) => {
                // MapAndSum: each part restricts some member, and the sum of their occurrences is within that of the choice.
                let n = parts.len() as u32;
                let sum = P {
                    min: r.min.saturating_mul(n),
                    max: if r.max == UNBOUNDED { UNBOUNDED } else { r.max.saturating_mul(n) },
                    term: r.term.clone(),
                };
                within(&sum, b)?;
                parts.iter().try_for_each(|part| self.some_member(part, members, depth))
            }
            _ => Err("a group is of a kind that cannot restrict that of the base".into()),
        }
    }

    fn some_member(&mut self, part: &P, members: &[P], depth: usize) -> Result<(), String> {
        let found = members.iter().any(|m| self.restricts(part, m, depth + 1).is_ok());
        if found { Ok(()) } else { Err(format!("{} restricts nothing in the base", self.show(part))) }
    }

    fn element(&mut self, r: &P, derived: ElementId, b: &P, base: ElementId) -> Result<(), String> {
        let (d, e) = (&self.schema.elements[derived], &self.schema.elements[base]);
        let name = self.schema.names.show(d.name);
        if d.name != e.name {
            return Err(format!("`{name}` stands where the base has `{}`", self.schema.names.show(e.name)));
        }
        within(r, b)?;
        if derived == base {
            return Ok(());
        }
        if d.nillable && !e.nillable {
            return Err(format!("`{name}` is nillable, in the base it is not"));
        }
        if let Some(fixed) = e.constant.as_ref().filter(|c| c.fixed) {
            let same = d.constant.as_ref().is_some_and(|c| {
                c.fixed && (c.text == fixed.text || (c.value.is_some() && c.value == fixed.value))
            });
            if !same {
                return Err(format!("`{name}` does not have the fixed value of the base"));
            }
        }
        if d.block.0 & e.block.0 != e.block.0 {
            return Err(format!("`{name}` blocks less than in the base"));
        }
        if !d.constraints.iter().all(|c| {
            let constraint = &self.schema.constraints[*c];
            e.constraints.iter().any(|o| self.schema.constraints[*o].name == constraint.name)
        }) {
            return Err(format!("`{name}` has identity constraints that it does not have in the base"));
        }
        let banned = Ways(Ways::EXTENSION.0 | Ways::LIST.0 | Ways::UNION.0);
        match self.schema.derivation(d.ty, e.ty) {
            Some(ways) if e.ty == ANY_TYPE || !ways.meets(banned) || self.schema.simple(d.ty).is_some() => {
                Ok(())
            }
            _ => Err(format!("the type of `{name}` is not a restriction of its type in the base")),
        }
    }

    /// Recurse and RecurseUnordered: the parts map to members of the base; members without a part are emptiable.
    fn ordered(&mut self, r: &P, b: &P, members: &[P], any_order: bool, depth: usize) -> Result<(), String> {
        within(r, b)?;
        let T::Group(_, parts) = &r.term else { return Ok(()) };
        let mut used = vec![false; members.len()];
        let mut from = 0;
        for part in parts {
            let mut found = None;
            for (i, member) in members.iter().enumerate().skip(if any_order { 0 } else { from }) {
                if used[i] {
                    continue;
                }
                if self.restricts(part, member, depth + 1).is_ok() {
                    found = Some(i);
                    break;
                }
                if !any_order && total(member).0 > 0 {
                    break;
                }
            }
            match found {
                Some(i) => {
                    used[i] = true;
                    from = i + 1;
                }
                None => return Err(format!("{} restricts nothing in the base", self.show(part))),
            }
        }
        match members.iter().zip(&used).find(|(m, used)| !**used && total(m).0 > 0) {
            Some((missing, _)) => Err(format!("{} is required in the base", self.show(missing))),
            None => Ok(()),
        }
    }

    /// RecurseLax: the parts map to members of the base in their order.
    fn choice(&mut self, r: &P, b: &P, members: &[P], depth: usize) -> Result<(), String> {
        within(r, b)?;
        let T::Group(_, parts) = &r.term else { return Ok(()) };
        let mut from = 0;
        for part in parts {
            let found = (from..members.len()).find(|&i| self.restricts(part, &members[i], depth + 1).is_ok());
            match found {
                Some(i) => from = i + 1,
                None => return Err(format!("{} restricts nothing in the base", self.show(part))),
            }
        }
        Ok(())
    }

    fn show(&self, p: &P) -> String {
        match &p.term {
            T::Element(id) => format!("`{}`", self.schema.names.show(self.schema.elements[*id].name)),
            T::Any(_) => "a wildcard".to_owned(),
            T::Group(..) => "a group".to_owned(),
        }
    }
}

/// Occurrence range OK.
fn within(r: &P, b: &P) -> Result<(), String> {
    // (UNBOUNDED is the largest number.)
    if r.min >= b.min && r.max <= b.max {
        Ok(())
    } else {
        Err("something occurs more or less often than in the base".into())
    }
}

fn total(p: &P) -> (u64, Option<u64>) {
    let (low, high) = match &p.term {
        T::Group(Compositor::Choice, parts) => {
            let low = parts.iter().map(|p| total(p).0).min().unwrap_or(0);
            let high = parts.iter().map(|p| total(p).1).try_fold(0_u64, |a, b| b.map(|b| a.max(b)));
            (low, high)
        }
        T::Group(_, parts) => {
            let low = parts.iter().map(|p| total(p).0).fold(0, u64::saturating_add);
            (low, parts.iter().map(|p| total(p).1).try_fold(0_u64, |a, b| b.map(|b| a.saturating_add(b))))
        }
        _ => (1, Some(1)),
    };
    let most = match (p.max, high) {
        (0, _) | (_, Some(0)) => Some(0),
        (UNBOUNDED, _) | (_, None) => None,
        (max, Some(high)) => Some(u64::from(max).saturating_mul(high)),
    };
    (u64::from(p.min).saturating_mul(low), most)
}

/// Elements with the same name in a content must have the same type (Part 1, 3.8.6). Returns a name that violates this.
pub fn inconsistent(schema: &Components, particle: ParticleId) -> Option<Name> {
    let mut types: std::collections::HashMap<Name, TypeId> = std::collections::HashMap::new();
    let mut pending = vec![particle];
    while let Some(id) = pending.pop() {
        // One that never occurs is none (Part 1 section 3.9.6).
        if schema.particles[id].max == 0 {
            continue;
        }
        match &schema.particles[id].term {
            Term::Element(element) => {
                let members = schema.members.get(element).into_iter().flatten();
                for &id in std::iter::once(element).chain(members) {
                    let Element { name, ty, .. } = schema.elements[id];
                    let first = *types.entry(name).or_insert(ty);
                    if first != ty {
                        return Some(name);
                    }
                }
            }
            Term::Any(_) => {}
            Term::Group(_, children) => pending.extend(children),
        }
    }
    None
}
