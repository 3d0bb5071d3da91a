//! The built-in types (Part 2, 3).

use super::automaton::Model;
use super::model::*;
use super::names::{Name, XS};
use super::value::{Primitive, Value};

/// Whether a normalised text has the form.
pub fn conforms(form: Form, text: &str) -> bool {
    match form {
        Form::Any => true,
        Form::Integer => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        }
        Form::Language => text.split('-').enumerate().all(|(i, part)| {
            (1..=8).contains(&part.len())
                && part
                    .bytes()
                    .all(|b| if i == 0 { b.is_ascii_alphabetic() } else { b.is_ascii_alphanumeric() })
        }),
        Form::NmToken => !text.is_empty() && text.chars().all(xml::is_name_char),
        Form::Name => xml::is_name(text),
        Form::NcName => xml::is_ncname(text),
    }
}

/// Name, base, form, role, bounds of the derived atomic types.
type Derived = (&'static str, &'static str, Form, Role, Option<&'static str>, Option<&'static str>);

#[rustfmt::skip] // a table
const DERIVED: &[Derived] = &[
    ("normalizedString", "string", Form::Any, Role::None, None, None),
    ("token", "normalizedString", Form::Any, Role::None, None, None),
    ("language", "token", Form::Language, Role::None, None, None),
    ("NMTOKEN", "token", Form::NmToken, Role::None, None, None),
    ("Name", "token", Form::Name, Role::None, None, None),
    ("NCName", "Name", Form::NcName, Role::None, None, None),
    ("ID", "NCName", Form::NcName, Role::Id, None, None),
    ("IDREF", "NCName", Form::NcName, Role::IdRef, None, None),
    ("ENTITY", "NCName", Form::NcName, Role::Entity, None, None),
    ("integer", "decimal", Form::Integer, Role::None, None, None),
    ("nonPositiveInteger", "integer", Form::Integer, Role::None, None, Some("0")),
    ("negativeInteger", "nonPositiveInteger", Form::Integer, Role::None, None, Some("-1")),
    ("long", "integer", Form::Integer, Role::None, Some("-9223372036854775808"), Some("9223372036854775807")),
    ("int", "long", Form::Integer, Role::None, Some("-2147483648"), Some("2147483647")),
    ("short", "int", Form::Integer, Role::None, Some("-32768"), Some("32767")),
    ("byte", "short", Form::Integer, Role::None, Some("-128"), Some("127")),
    ("nonNegativeInteger", "integer", Form::Integer, Role::None, Some("0"), None),
    ("unsignedLong", "nonNegativeInteger", Form::Integer, Role::None, Some("0"), Some("18446744073709551615")),
    ("unsignedInt", "unsignedLong", Form::Integer, Role::None, Some("0"), Some("4294967295")),
    ("unsignedShort", "unsignedInt", Form::Integer, Role::None, Some("0"), Some("65535")),
    ("unsignedByte", "unsignedShort", Form::Integer, Role::None, Some("0"), Some("255")),
    ("positiveInteger", "nonNegativeInteger", Form::Integer, Role::None, Some("1"), None),
];

const PRIMITIVES: &[(&str, Primitive)] = &[
    ("string", Primitive::String),
    ("boolean", Primitive::Boolean),
    ("decimal", Primitive::Decimal),
    ("float", Primitive::Float),
    ("double", Primitive::Double),
    ("duration", Primitive::Duration),
    ("dateTime", Primitive::DateTime),
    ("time", Primitive::Time),
    ("date", Primitive::Date),
    ("gYearMonth", Primitive::GYearMonth),
    ("gYear", Primitive::GYear),
    ("gMonthDay", Primitive::GMonthDay),
    ("gDay", Primitive::GDay),
    ("gMonth", Primitive::GMonth),
    ("hexBinary", Primitive::HexBinary),
    ("base64Binary", Primitive::Base64Binary),
    ("anyURI", Primitive::AnyUri),
    ("QName", Primitive::QName),
    ("NOTATION", Primitive::Notation),
];

/// Puts the built-in types into an empty schema.
pub fn install(schema: &mut Components, anywhere: Place) {
    let add = |schema: &mut Components, local: &str, base: TypeId, derivation: Ways, body: Body| {
        let name = Name { ns: XS, local: schema.names.intern(local) };
        let id = schema.types.len();
        schema.types.push(Type {
            name: Some(name),
            base,
            derivation,
            is_final: Ways::NONE,
            place: None,
            body,
        });
        schema.global_types.insert(name, id);
        id
    };
    let lax = || Wildcard { namespaces: Namespaces::Any, process: Process::Lax };
    schema.particles.push(Particle {
        min: 0,
        max: UNBOUNDED,
        term: Term::Any(lax().into()),
        place: anywhere,
    });
    schema.particles.push(Particle {
        min: 1,
        max: 1,
        term: Term::Group(Compositor::Sequence, vec![0]),
        place: anywhere,
    });
    let any = Complex {
        is_abstract: false,
        block: Ways::NONE,
        attributes: Vec::new(),
        wildcard: Some(lax()),
        content: Content::Elements { mixed: true, particle: Some(1), model: Model::default() },
    };
    add(schema, "anyType", ANY_TYPE, Ways::RESTRICTION, Body::Complex(any));
    let atomic = |primitive, facets| {
        Body::Simple(Box::new(Simple { variety: Variety::Atomic(primitive), facets, role: Role::None }))
    };
    let free = Facets::new(WhiteSpace::Preserve, false);
    add(schema, "anySimpleType", ANY_TYPE, Ways::RESTRICTION, atomic(Primitive::Any, free.clone()));
    for &(name, primitive) in PRIMITIVES {
        let facets = match primitive {
            Primitive::String => free.clone(),
            _ => Facets::new(WhiteSpace::Collapse, true),
        };
        add(schema, name, ANY_SIMPLE, Ways::RESTRICTION, atomic(primitive, facets));
    }
    for &(name, base, form, role, min, max) in DERIVED {
        let base_name = Name { ns: XS, local: schema.names.intern(base) };
        let base = schema.global_types[&base_name];
        let Some(mut simple) = schema.simple(base).cloned() else { continue };
        simple.role = role;
        let facets = &mut simple.facets;
        facets.form = form;
        match name {
            "normalizedString" => facets.white_space.value = WhiteSpace::Replace,
            "token" => facets.white_space.value = WhiteSpace::Collapse,
            "integer" => facets.fraction_digits = Some(Facet { value: 0, fixed: true }),
            _ => {}
        }
        let bound = |text: &str| super::decimal::Decimal::parse(text).map(Value::Decimal);
        let facet = |text: Option<&str>| text.and_then(bound).map(|value| Facet { value, fixed: false });
        facets.min_inclusive = facet(min).or(facets.min_inclusive.take());
        facets.max_inclusive = facet(max).or(facets.max_inclusive.take());
        add(schema, name, base, Ways::RESTRICTION, Body::Simple(Box::new(simple)));
    }
    for (name, item) in [("NMTOKENS", "NMTOKEN"), ("IDREFS", "IDREF"), ("ENTITIES", "ENTITY")] {
        let item_name = Name { ns: XS, local: schema.names.intern(item) };
        let item = schema.global_types[&item_name];
        let mut facets = Facets::new(WhiteSpace::Collapse, true);
        facets.min_length = Some(Facet { value: 1, fixed: false });
        let list = Simple { variety: Variety::List(item), facets, role: Role::None };
        add(schema, name, ANY_SIMPLE, Ways::LIST, Body::Simple(Box::new(list)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_built_in_types() {
        let mut schema = Components::default();
        install(&mut schema, Place { doc: 0, node: xml::Document::ROOT });
        for (ty, good, bad) in [
            ("byte", vec!["127", "-128", "+1", " 5 "], vec!["128", "1.0", "", "1 2"]),
            ("unsignedLong", vec!["18446744073709551615"], vec!["18446744073709551616", "-1"]),
            ("language", vec!["en", "en-GB-x1"], vec!["", "e1", "en-", "abcdefghi"]),
            ("NMTOKENS", vec!["a 1 -b"], vec!["", " ", "a,b"]),
            ("token", vec!["", " a  b "], vec![]),
            ("NCName", vec!["a", "é-1"], vec!["1a", "a:b", ""]),
            ("IDREFS", vec!["a b"], vec!["1"]),
            ("boolean", vec![" true "], vec!["True"]),
        ] {
            let name = Name { ns: XS, local: schema.names.find(ty) };
            let id = schema.global_types[&name];
            let check = |text: &str| schema.check(id, text, &|_| None, false).is_ok();
            good.iter().for_each(|text| assert!(check(text), "{ty} {text:?}"));
            bad.iter().for_each(|text| assert!(!check(text), "{ty} {text:?}"));
        }
    }
}
