//! Rules of XML Schema, each with what fits and what does not.

use busbar_schema::{Resolver, Source, Violation, XmlSchema};

/// Documents by name.
struct Beside<'a>(&'a [(&'a str, &'a str)]);

impl Resolver for Beside<'_> {
    fn resolve(&self, location: &str, _: &str) -> Result<Source, String> {
        let found = self.0.iter().find(|(name, _)| *name == location).map(|(_, text)| schema(text));
        found.map(|bytes| Source { name: location.to_owned(), bytes }).ok_or_else(|| "not found".to_owned())
    }
}

/// The text inside of `xs:schema`; `|` ends attributes of it.
fn schema(text: &str) -> Vec<u8> {
    let (attributes, body) = text.split_once('|').filter(|(a, _)| !a.contains('<')).unwrap_or(("", text));
    format!(r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" xmlns:o="urn:o" {attributes}>{body}</xs:schema>"#).into_bytes()
}

fn load(text: &str, beside: &[(&str, &str)]) -> Result<XmlSchema, Vec<Violation>> {
    XmlSchema::load(vec![Source { name: "main".into(), bytes: schema(text) }], &Beside(beside))
}

fn violations(schema: &XmlSchema, text: &str) -> Vec<Violation> {
    let document = xml::Document::parse(text.as_bytes().to_vec(), &xml::ParseOptions::trusted())
        .expect("it is well-formed");
    schema.validate(&document, document.document_element().expect("it has a root"))
}

/// Checks documents: (text, the rule it breaks, or "").
fn documents(text: &str, cases: &[(&str, &str)]) {
    let schema = load(text, &[]).unwrap_or_else(|why| panic!("{text}: {}", why[0]));
    for (document, rule) in cases {
        let found = violations(&schema, document);
        let first = found.first().map_or("", |v| v.rule);
        assert!(
            first.starts_with(rule) && first.is_empty() == rule.is_empty(),
            "{document}: expected `{rule}`, found {found:?}"
        );
    }
}

/// A particle that never occurs is none: its element may have another type.
#[test]
fn particles_that_never_occur() {
    let never = r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int" minOccurs="0" maxOccurs="0"/>
        <xs:choice minOccurs="0" maxOccurs="0"><xs:element name="a" type="xs:date"/></xs:choice><xs:element name="a" type="xs:string"/></xs:sequence></xs:complexType></xs:element>"#;
    documents(never, &[("<r><a>x</a></r>", ""), ("<r><a/><a/></r>", "cvc-complex-type.2.4")]);
}

#[test]
fn content_models() {
    let seq = r#"<xs:element name="r"><xs:complexType><xs:sequence>
        <xs:element name="a" minOccurs="0"/><xs:element name="b" maxOccurs="3"/>
        <xs:choice minOccurs="0" maxOccurs="2"><xs:element name="c"/><xs:sequence><xs:element name="d"/><xs:element name="e"/></xs:sequence></xs:choice>
        </xs:sequence></xs:complexType></xs:element>"#;
    documents(
        seq,
        &[
            ("<r><b/></r>", ""),
            ("<r><a/><b/><b/><b/><c/><d/><e/></r>", ""),
            ("<r>\n <!-- c --> <b/> <?p?></r>", ""),
            ("<r/>", "cvc-complex-type.2.4.b"),
            ("<r><a/></r>", "cvc-complex-type.2.4.b"),
            ("<r><b/><b/><b/><b/></r>", "cvc-complex-type.2.4"),
            ("<r><b/><c/><c/><c/></r>", "cvc-complex-type.2.4"),
            ("<r><b/><d/></r>", "cvc-complex-type.2.4.b"),
            ("<r><b/>text</r>", "cvc-complex-type.2.3"),
            ("<r><b/><b2/></r>", "cvc-complex-type.2.4"),
            ("<q/>", "cvc-elt.1"),
            (r#"<r x="1"><b/></r>"#, "cvc-complex-type.3.2.2"),
        ],
    );
    documents(
        r#"<xs:element name="r"><xs:complexType><xs:all minOccurs="0"><xs:element name="a"/><xs:element name="b" minOccurs="0"/></xs:all></xs:complexType></xs:element>"#,
        &[
            ("<r/>", ""),
            ("<r><b/><a/></r>", ""),
            ("<r><b/></r>", "cvc-complex-type.2.4.b"),
            ("<r><a/><a/></r>", "cvc-complex-type.2.4"),
        ],
    );
    // Counts far above what is unrolled.
    documents(
        r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" minOccurs="2" maxOccurs="999999999"/><xs:sequence minOccurs="0" maxOccurs="1000000"><xs:element name="b"/></xs:sequence></xs:sequence></xs:complexType></xs:element>"#,
        &[("<r><a/><a/><a/><b/><b/></r>", ""), ("<r><a/></r>", "cvc-complex-type.2.4.b")],
    );
}

#[test]
fn types_and_values() {
    documents(
        r#"<xs:element name="r"><xs:complexType><xs:simpleContent><xs:extension base="size"><xs:attribute name="u" use="required" type="unit"/><xs:attribute name="f" fixed="1.0" type="xs:decimal"/></xs:extension></xs:simpleContent></xs:complexType></xs:element>
        <xs:simpleType name="size"><xs:union memberTypes="xs:int"><xs:simpleType><xs:restriction base="xs:token"><xs:enumeration value="small"/></xs:restriction></xs:simpleType></xs:union></xs:simpleType>
        <xs:simpleType name="unit"><xs:restriction><xs:simpleType><xs:list itemType="xs:NCName"/></xs:simpleType><xs:maxLength value="2"/></xs:restriction></xs:simpleType>"#,
        &[
            (r#"<r u="cm"> 5 </r>"#, ""),
            (r#"<r u="a b" f="1"> small </r>"#, ""),
            (r#"<r u="cm">5.5</r>"#, "cvc-datatype-valid.1.2.3"),
            ("<r>5</r>", "cvc-complex-type.4"),
            (r#"<r u="a b c">5</r>"#, "cvc-maxLength-valid"),
            (r#"<r u="1">5</r>"#, "cvc-datatype-valid"),
            (r#"<r u="a" f="2">5</r>"#, "cvc-attribute.4"),
            (r#"<r u="a"><x/></r>"#, "cvc-complex-type.2.2"),
        ],
    );
    let xsi = r#"xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance""#;
    documents(
        r#"<xs:element name="r" type="base" nillable="true"/><xs:complexType name="base" abstract="true"><xs:sequence><xs:element name="a" type="xs:date"/></xs:sequence></xs:complexType>
        <xs:complexType name="more"><xs:complexContent><xs:extension base="base"><xs:sequence><xs:element name="b"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>
        <xs:complexType name="other"/>"#,
        &[
            (&format!(r#"<r {xsi} xsi:type="more"><a>2024-02-29</a><b/></r>"#), ""),
            (&format!(r#"<r {xsi} xsi:type="more" xsi:nil="true"/>"#), ""),
            (&format!(r#"<r {xsi} xsi:type="more" xsi:nil="1"><a>2024-01-01</a></r>"#), "cvc-elt.3.2.1"),
            (&format!(r#"<r {xsi} xsi:type="more"><a>2023-02-29</a><b/></r>"#), "cvc-datatype-valid"),
            (&format!(r#"<r {xsi} xsi:type="other"/>"#), "cvc-elt.4.3"),
            (&format!(r#"<r {xsi} xsi:type="gone"/>"#), "cvc-elt.4.2"),
            ("<r><a>2024-01-01</a></r>", "cvc-type.2"),
        ],
    );
}

#[test]
fn substitution_and_wildcards() {
    documents(
        r###"targetNamespace="urn:t" | <xs:element name="r"><xs:complexType><xs:sequence><xs:element ref="t:h" maxOccurs="2"/><xs:any namespace="##other" processContents="lax" minOccurs="0"/></xs:sequence><xs:anyAttribute namespace="##local" processContents="skip"/></xs:complexType></xs:element>
        <xs:element name="h" abstract="true" type="xs:integer"/><xs:element name="m" substitutionGroup="t:h" type="xs:byte"/><xs:element name="n" substitutionGroup="t:m"/>"###,
        &[
            (r#"<r xmlns="urn:t"><m>5</m><n>6</n></r>"#, ""),
            (r#"<r xmlns="urn:t" any="1"><m>5</m><x xmlns="urn:x"><y/></x></r>"#, ""),
            (r#"<r xmlns="urn:t"><h>5</h></r>"#, "cvc-elt.2"),
            (r#"<r xmlns="urn:t"><m>500</m></r>"#, "cvc-maxInclusive-valid"),
            (r#"<r xmlns="urn:t"><m>5</m><x xmlns=""/></r>"#, "cvc-complex-type.2.4"),
            (r#"<r xmlns="urn:t" xml:lang="en"><m>5</m></r>"#, "cvc-complex-type.3.2.2"),
        ],
    );
}

#[test]
fn identity() {
    documents(
        r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="k" maxOccurs="9"><xs:complexType><xs:attribute name="id" type="xs:decimal"/><xs:attribute name="x" type="xs:ID"/><xs:attribute name="y" type="xs:IDREFS"/></xs:complexType></xs:element><xs:element name="u" minOccurs="0" type="xs:decimal"/></xs:sequence></xs:complexType>
        <xs:key name="key"><xs:selector xpath="k"/><xs:field xpath="@id"/></xs:key><xs:keyref name="ref" refer="key"><xs:selector xpath=".//u"/><xs:field xpath="."/></xs:keyref></xs:element>"#,
        &[
            (r#"<r><k id="1"/><k id="2"/><u>2.0</u></r>"#, ""),
            (r#"<r><k id="1"/><k id="1.0"/></r>"#, "cvc-identity-constraint.4.2.2"),
            (r#"<r><k/></r>"#, "cvc-identity-constraint.4.2.1"),
            (r#"<r><k id="1"/><u>3</u></r>"#, "cvc-identity-constraint.4.3"),
            (r#"<r><k id="1" x="a"/><k id="2" x="b" y="a b"/></r>"#, ""),
            (r#"<r><k id="1" x="a"/><k id="2" x="a"/></r>"#, "cvc-id.2"),
            (r#"<r><k id="1" y="c"/></r>"#, "cvc-id.1"),
        ],
    );
}

/// A group that occurs twice or more, without a bound: the last copy repeats, no other one does.
#[test]
fn groups_that_repeat_without_a_bound() {
    let group = |bounds: &str, inside: &str| {
        format!(
            r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:choice {bounds} maxOccurs="unbounded">{inside}</xs:choice><xs:element name="t" minOccurs="0"/></xs:sequence></xs:complexType></xs:element>"#
        )
    };
    let ab = r#"<xs:sequence><xs:element name="a"/><xs:element name="b" minOccurs="0"/></xs:sequence><xs:element name="c"/>"#;
    documents(
        &group(r#"minOccurs="2""#, ab),
        &[
            ("<r><a/></r>", "cvc-complex-type.2.4"),
            ("<r><a/><b/></r>", "cvc-complex-type.2.4"),
            ("<r><a/><t/></r>", "cvc-complex-type.2.4"),
            ("<r><a/><a/></r>", ""),
            ("<r><a/><b/><c/><t/></r>", ""),
            ("<r><c/><c/><c/><a/><b/></r>", ""),
            ("<r><c/><b/></r>", "cvc-complex-type.2.4"),
        ],
    );
    let most = |count: usize| format!("<r>{}<t/></r>", "<a/><b/>".repeat(count));
    documents(
        &group(r#"minOccurs="5""#, ab),
        &[(&most(4), "cvc-complex-type.2.4"), (&most(5), ""), (&most(6), ""), (&most(50), "")],
    );
    documents(&group("", ab), &[("<r/>", "cvc-complex-type.2.4"), ("<r><a/></r>", ""), (&most(50), "")]);
}

/// Two references to one group are two particles.
#[test]
fn references_to_one_group_are_ambiguous() {
    let references = |inside: &str| {
        format!(
            r#"<xs:group name="g"><xs:sequence><xs:element name="a"/><xs:element name="b" minOccurs="0"/></xs:sequence></xs:group>
            <xs:element name="r"><xs:complexType>{inside}</xs:complexType></xs:element>"#
        )
    };
    let g = r#"<xs:group ref="g"/>"#;
    for (inside, fits) in [
        (format!("<xs:choice>{g}{g}</xs:choice>"), false),
        (format!(r#"<xs:sequence><xs:group ref="g" minOccurs="0"/>{g}</xs:sequence>"#), false),
        (format!(r#"<xs:sequence>{g}<xs:group ref="g" maxOccurs="3"/></xs:sequence>"#), true),
        (
            format!(r#"<xs:sequence maxOccurs="4">{g}<xs:element name="c" minOccurs="0"/></xs:sequence>"#),
            true,
        ),
    ] {
        let text = references(&inside);
        match load(&text, &[]) {
            Ok(_) => assert!(fits, "{inside}"),
            Err(why) => assert!(!fits && why[0].rule == "cos-nonambig", "{inside}: {}", why[0]),
        }
    }
}

/// An extension that adds nothing has the content of its base, mixed or not.
#[test]
fn extensions_that_add_nothing() {
    let derived = |base: &str, derived: &str, inside: &str| {
        format!(
            r#"<xs:complexType name="b" mixed="{base}"><xs:sequence><xs:element name="a" minOccurs="0"/></xs:sequence></xs:complexType>
            <xs:element name="r"><xs:complexType><xs:complexContent mixed="{derived}"><xs:extension base="b">{inside}</xs:extension></xs:complexContent></xs:complexType></xs:element>"#
        )
    };
    let attribute = r#"<xs:attribute name="x"/>"#;
    documents(&derived("true", "false", attribute), &[("<r x='1'>t<a/>t</r>", "")]);
    documents(&derived("true", "false", "<xs:sequence/>"), &[("<r>t<a/>t</r>", "")]);
    let one = r#"<xs:sequence><xs:element name="c"/></xs:sequence>"#;
    for wrong in [derived("true", "false", one), derived("false", "true", attribute)] {
        assert_eq!(load(&wrong, &[]).expect_err("it is wrong")[0].rule, "cos-ct-extends.1.4", "{wrong}");
    }
}

/// Large enumerations are looked up.
#[test]
fn enumerations() {
    let enumerated = |base: &str, values: &[String]| {
        let values: String = values.iter().map(|v| format!(r#"<xs:enumeration value="{v}"/>"#)).collect();
        format!(
            r#"<xs:element name="r"><xs:simpleType><xs:restriction base="xs:{base}">{values}</xs:restriction></xs:simpleType></xs:element>"#
        )
    };
    for count in [2, 40] {
        let numbers: Vec<String> = (0..count).map(|n| format!("{n}.50")).collect();
        let rule = "cvc-enumeration-valid";
        documents(
            &enumerated("decimal", &numbers),
            &[("<r>01.5</r>", ""), ("<r>1.50</r>", ""), ("<r>1.51</r>", rule), ("<r>-0.5</r>", rule)],
        );
        let codes: Vec<String> = (0..count).map(|n| format!("C{n}")).collect();
        documents(&enumerated("token", &codes), &[("<r> C1 </r>", ""), ("<r>c1</r>", rule), ("<r/>", rule)]);
        let times: Vec<String> = (10..10 + count).map(|n| format!("2020-01-01T00:00:{n}Z")).collect();
        let equal = "<r>2020-01-01T01:00:11+01:00</r>";
        documents(
            &enumerated("dateTime", &times),
            &[(equal, ""), ("<r>2020-01-01T00:00:11</r>", rule), ("<r>2020-01-01T00:00:09Z</r>", rule)],
        );
    }
}

/// Each field is evaluated, and a key has no fields that may be nil.
#[test]
fn fields_of_identity_constraints() {
    let constraint = |kind: &str, nillable: &str, fields: &str| {
        format!(
            r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="i" maxOccurs="9"><xs:complexType><xs:sequence><xs:element name="e" type="xs:int" minOccurs="0" maxOccurs="2" nillable="{nillable}"/></xs:sequence><xs:attribute name="x"/></xs:complexType></xs:element></xs:sequence></xs:complexType>
            <xs:{kind} name="k"><xs:selector xpath="i"/>{fields}</xs:{kind}></xs:element>"#
        )
    };
    let (x, e) = (r#"<xs:field xpath="@x"/>"#, r#"<xs:field xpath="e"/>"#);
    let many = "cvc-identity-constraint.3";
    // The first field has no value, the second one has two.
    documents(
        &constraint("unique", "false", &format!("{x}{e}")),
        &[("<r><i><e>1</e><e>2</e></i></r>", many), ("<r><i><e>1</e></i><i><e>1</e></i></r>", "")],
    );
    let nil = r#"<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><i><e xsi:nil="true"/></i><i><e xsi:nil="true"/></i></r>"#;
    documents(&constraint("unique", "true", e), &[(nil, ""), ("<r><i><e>1</e></i><i><e>2</e></i></r>", "")]);
    let may_be_nil = "cvc-identity-constraint.4.2.3";
    documents(&constraint("key", "true", e), &[(nil, may_be_nil), ("<r><i><e>1</e></i></r>", may_be_nil)]);
    documents(&constraint("key", "false", e), &[("<r><i><e>1</e></i></r>", "")]);
}

/// Keys of elements within, and references from around them and from each.
#[test]
fn tables_of_many_scopes_are_joined_once() {
    let schema = load(
        r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="g" maxOccurs="unbounded"><xs:complexType><xs:sequence><xs:element name="i" maxOccurs="unbounded"><xs:complexType><xs:attribute name="x"/><xs:attribute name="y"/></xs:complexType></xs:element></xs:sequence></xs:complexType>
        <xs:key name="k"><xs:selector xpath="i"/><xs:field xpath="@x"/></xs:key>
        <xs:keyref name="own" refer="k"><xs:selector xpath="i"/><xs:field xpath="@y"/></xs:keyref></xs:element></xs:sequence></xs:complexType>
        <xs:keyref name="all" refer="k"><xs:selector xpath="g/i"/><xs:field xpath="@y"/></xs:keyref></xs:element>"#,
        &[],
    )
    .expect("it is a schema");
    let text = |count: usize, last: &str| {
        let groups = (0..count).map(|n| format!("<g><i x='{n}' y='{n}'/></g>"));
        format!("<r>{}{last}</r>", groups.collect::<String>())
    };
    let units = |count: usize| {
        let (found, used) = meter::inline(u32::MAX, || violations(&schema, &text(count, "")));
        assert!(found.is_empty(), "{found:?}");
        used.units
    };
    assert!(units(4000) < units(2000) * 2 + 100, "{} and {}", units(2000), units(4000));
    // `7` is a key of another group only, `z` is none.
    for (last, expected) in [("<g><i x='a' y='7'/></g>", 1), ("<g><i x='a' y='z'/></g>", 2)] {
        let found = violations(&schema, &text(50, last));
        assert!(found.iter().all(|v| v.rule == "cvc-identity-constraint.4.3"), "{found:?}");
        assert_eq!(found.len(), expected, "{last}: {found:?}");
    }
}

#[test]
fn places() {
    let schema = load(
        r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="n" type="xs:int" maxOccurs="9"/></xs:sequence></xs:complexType></xs:element>"#,
        &[],
    );
    let schema = schema.expect("a schema");
    let found = violations(&schema, "<r>\n <n>1</n>\n <n>x</n>\n <n y='1'>z</n>\n</r>");
    let places: Vec<_> = found.iter().map(|v| (v.place.as_str(), v.line, v.column)).collect();
    assert_eq!(places, [("/r/n[2]", 3, 2), ("/r/n[3]/@y", 4, 5), ("/r/n[3]", 4, 2)], "{found:?}");
}

#[test]
fn schemas_of_several_documents() {
    let main = r#"targetNamespace="urn:t" | <xs:include schemaLocation="inc"/><xs:import namespace="urn:o" schemaLocation="imp"/><xs:element name="r" type="t:own"/><xs:complexType name="own"><xs:sequence><xs:element ref="o:e"/></xs:sequence><xs:attribute name="c" type="t:code"/></xs:complexType>"#;
    let inc = r#"<xs:simpleType name="code"><xs:restriction base="up"/></xs:simpleType><xs:simpleType name="up"><xs:restriction base="xs:string"><xs:pattern value="[A-Z]*"/></xs:restriction></xs:simpleType>"#;
    let imp = r#"targetNamespace="urn:o" | <xs:element name="e" type="xs:int"/>"#;
    let schema = load(main, &[("inc", inc), ("imp", imp)]).unwrap_or_else(|why| panic!("{}", why[0]));
    assert!(violations(&schema, r#"<r xmlns="urn:t" c="A"><e xmlns="urn:o">1</e></r>"#).is_empty());
    assert_eq!(violations(&schema, r#"<r xmlns="urn:t" c="a"><e xmlns="urn:o">x</e></r>"#).len(), 2);
    let missing = load(main, &[("inc", inc)]).expect_err("a document is missing");
    assert!(missing[0].message.contains("`imp`: not found"), "{}", missing[0]);
    let redefining = r#"<xs:redefine schemaLocation="inc"><xs:simpleType name="up"><xs:restriction base="up"><xs:maxLength value="2"/></xs:restriction></xs:simpleType></xs:redefine><xs:element name="r" type="code"/>"#;
    let schema = load(redefining, &[("inc", inc)]).unwrap_or_else(|why| panic!("{}", why[0]));
    assert!(violations(&schema, "<r>AB</r>").is_empty());
    assert_eq!(violations(&schema, "<r>ABC</r>").len(), 1);
    // A redefinition of what is a redefinition itself.
    let inner = redefining.replace(r#"<xs:element name="r" type="code"/>"#, "");
    let outer = redefining.replace("inc", "inner").replace(r#"value="2""#, r#"value="1""#);
    let schema = load(&outer, &[("inner", &inner), ("inc", inc)]).unwrap_or_else(|why| panic!("{}", why[0]));
    assert!(violations(&schema, "<r>A</r>").is_empty());
    assert_eq!(violations(&schema, "<r>AB</r>")[0].rule, "cvc-maxLength-valid");
    // The main document has what it imports under the name of another document, too: `imp` is included, imported and copied.
    let main = r#"targetNamespace="urn:t" | <xs:include schemaLocation="inc"/><xs:import schemaLocation="plain"/><xs:import namespace="urn:o" schemaLocation="imp"/><xs:element name="r" type="t:code"/>"#;
    let plain = r#"<xs:import namespace="urn:o" schemaLocation="copy"/><xs:import namespace="urn:o" schemaLocation="including"/>"#;
    let including = r#"targetNamespace="urn:o" | <xs:include schemaLocation="imp"/>"#;
    let beside =
        |copy| [("inc", inc), ("plain", plain), ("imp", imp), ("including", including), ("copy", copy)];
    assert!(load(main, &beside(imp)).is_ok());
    let other = imp.replace("xs:int", "xs:string");
    let twice = load(main, &beside(&other)).expect_err("`e` has two types");
    assert_eq!(twice[0].rule, "sch-props-correct.2", "{}", twice[0]);
    let circular = load(
        r#"<xs:include schemaLocation="a"/><xs:element name="r"/>"#,
        &[("a", r#"<xs:include schemaLocation="b"/>"#), ("b", r#"<xs:include schemaLocation="a"/>"#)],
    );
    assert!(circular.is_ok());
    // What redefines itself has no original: `inc` is the name of the other document in `redefining`.
    let other = redefining.replace("\"inc\"", "\"other\"");
    for documents in [vec![("inc", redefining)], vec![("inc", &*other), ("other", redefining)]] {
        let circular =
            load(r#"<xs:include schemaLocation="inc"/>"#, &documents).expect_err("it redefines itself");
        assert_eq!(circular[0].rule, "src-redefine.2", "{}", circular[0]);
    }
}

#[test]
fn wrong_schemas() {
    for (text, rule) in [
        ("<xs:elemen name='a'/>", "s4s"),
        ("<xs:element/>", "s4s"),
        ("<xs:element name='a' ref='b'/>", "s4s"),
        ("<xs:element name='a' colour='b'/>", "s4s"),
        ("<xs:element name='a' type='xs:strin'/>", "src-resolve"),
        ("<xs:element name='a' type='q:b'/>", "src-resolve"),
        ("<xs:element name='a' type='o:b'/>", "src-resolve.4"),
        ("<xs:element name='a'/><xs:element name='a'/>", "sch-props-correct.2"),
        ("<xs:element name='a' default='1' fixed='1'/>", "src-element"),
        ("<xs:element name='a' type='xs:int' default='x'/>", "e-props-correct.2"),
        ("<xs:element name='a' type='xs:ID' default='x'/>", "e-props-correct.5"),
        ("<xs:element name='a' type='xs:NOTATION'/>", "enumeration-required-notation"),
        ("<xs:attribute name='xmlns'/>", "no-xmlns"),
        ("<xs:simpleType name='a'><xs:restriction base='a'/></xs:simpleType>", "circular"),
        (
            "<xs:simpleType name='a'><xs:restriction base='xs:int'><xs:length value='1'/></xs:restriction></xs:simpleType>",
            "cos-applicable-facets",
        ),
        (
            "<xs:simpleType name='a'><xs:restriction base='xs:int'><xs:minInclusive value='5'/><xs:maxInclusive value='4'/></xs:restriction></xs:simpleType>",
            "st-restrict-facets",
        ),
        (
            "<xs:simpleType name='a'><xs:restriction base='xs:byte'><xs:maxInclusive value='300'/></xs:restriction></xs:simpleType>",
            "facet-valid",
        ),
        (
            "<xs:simpleType name='a'><xs:restriction base='xs:string'><xs:pattern value='('/></xs:restriction></xs:simpleType>",
            "InvalidRegex",
        ),
        ("<xs:simpleType name='a'><xs:list itemType='xs:NMTOKENS'/></xs:simpleType>", "cos-st-restricts.2.1"),
        (
            "<xs:simpleType name='a' final='list'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='b'><xs:list itemType='a'/></xs:simpleType>",
            "st-props-correct.3",
        ),
        (
            "<xs:group name='g'><xs:sequence><xs:group ref='g'/></xs:sequence></xs:group>",
            "mg-props-correct.2",
        ),
        (
            "<xs:complexType name='a'><xs:sequence><xs:element name='x' minOccurs='0'/><xs:element name='x'/></xs:sequence></xs:complexType>",
            "cos-nonambig",
        ),
        (
            "<xs:complexType name='a'><xs:sequence><xs:any minOccurs='0'/><xs:element name='x'/></xs:sequence></xs:complexType>",
            "cos-nonambig",
        ),
        (
            "<xs:complexType name='a'><xs:sequence><xs:element name='x' type='xs:int'/><xs:element name='x' type='xs:byte'/></xs:sequence></xs:complexType>",
            "cos-element-consistent",
        ),
        (
            "<xs:complexType name='a'><xs:all><xs:element name='x' maxOccurs='2'/></xs:all></xs:complexType>",
            "cos-all-limited",
        ),
        (
            "<xs:complexType name='a'><xs:attribute name='x'/><xs:attribute name='x'/></xs:complexType>",
            "ct-props-correct.4",
        ),
        (
            "<xs:complexType name='a'><xs:attribute name='x' type='xs:ID'/><xs:attribute name='y' type='xs:ID'/></xs:complexType>",
            "ct-props-correct.5",
        ),
        (
            "<xs:complexType name='a'><xs:sequence><xs:element name='x'/></xs:sequence></xs:complexType><xs:complexType name='b'><xs:complexContent><xs:restriction base='a'><xs:sequence><xs:element name='x' minOccurs='0'/></xs:sequence></xs:restriction></xs:complexContent></xs:complexType>",
            "derivation-ok-restriction.5",
        ),
        (
            "<xs:complexType name='a' final='#all'/><xs:complexType name='b'><xs:complexContent><xs:extension base='a'/></xs:complexContent></xs:complexType>",
            "derivation-ok",
        ),
        (
            "<xs:element name='h' type='xs:int'/><xs:element name='m' substitutionGroup='h' type='xs:string'/>",
            "e-props-correct.4",
        ),
        (
            "<xs:element name='r'><xs:key name='k'><xs:selector xpath='//a'/><xs:field xpath='@i'/></xs:key></xs:element>",
            "c-selector-xpath",
        ),
        (
            "<xs:element name='r'><xs:keyref name='k' refer='gone'><xs:selector xpath='a'/><xs:field xpath='@i'/></xs:keyref></xs:element>",
            "src-resolve",
        ),
        ("<xs:element name='a' minOccurs='2'/>", "s4s"),
        (
            "<xs:complexType name='a'><xs:sequence minOccurs='3' maxOccurs='2'/></xs:complexType>",
            "p-props-correct.2.1",
        ),
    ] {
        match load(text, &[]) {
            Ok(_) => panic!("accepted: {text}"),
            Err(why) => assert!(why.iter().any(|v| v.rule.starts_with(rule)), "{text}: {why:?}"),
        }
    }
}

#[test]
fn hostile_schemas_end() {
    let nested = format!(
        "<xs:complexType name='a'>{}{}</xs:complexType>",
        "<xs:sequence>".repeat(400),
        "</xs:sequence>".repeat(400)
    );
    assert!(load(&nested, &[]).is_ok());
    let chain: String = (0..2000)
        .map(|i| format!("<xs:simpleType name='t{i}'><xs:restriction base='t{}'/></xs:simpleType>", i + 1))
        .collect();
    assert!(load(&chain, &[]).is_err());
    let wide = format!(
        "<xs:complexType name='a'><xs:choice maxOccurs='unbounded'>{}</xs:choice></xs:complexType>",
        (0..3000).map(|i| format!("<xs:element name='e{i}'/>")).collect::<String>()
    );
    let _ = load(&wide, &[]);
    let bombs = "<xs:complexType name='a'><xs:sequence minOccurs='500' maxOccurs='500'><xs:sequence minOccurs='500' maxOccurs='500'><xs:sequence minOccurs='500' maxOccurs='500'><xs:element name='e'/></xs:sequence></xs:sequence></xs:sequence></xs:complexType>";
    let _ = load(bombs, &[]);
    for bad in ["<!DOCTYPE x", "", "{}", "<a/>"] {
        assert!(
            XmlSchema::load(vec![Source { name: "x".into(), bytes: bad.into() }], &Beside(&[])).is_err(),
            "{bad}"
        );
    }
}

/// Each `a` of a document has a key of its own and a reference to it.
const PAIRS: &str = r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" type="xs:string" maxOccurs="unbounded">
    <xs:key name="k"><xs:selector xpath="."/><xs:field xpath="."/></xs:key>
    <xs:keyref name="f" refer="k"><xs:selector xpath="."/><xs:field xpath="."/></xs:keyref>
    </xs:element></xs:sequence></xs:complexType></xs:element>"#;

#[test]
fn the_work_on_a_document_is_counted_and_ends_when_it_is_too_much() {
    let schema = load(PAIRS, &[]).expect("it is a schema");
    let text = |count: usize| format!("<r>{}</r>", "<a>x</a>".repeat(count));
    let units = |count: usize| {
        let document = xml::Document::parse(text(count).into_bytes(), &xml::ParseOptions::trusted())
            .expect("it is well-formed");
        let root = document.document_element().expect("it has a root");
        let (_, used) = meter::inline(100_000, || schema.validate(&document, root));
        used
    };
    assert_eq!(units(100).stopped, None);
    let stopped = units(20_000);
    assert_eq!(stopped.stopped, Some(meter::Stop::Long));
    assert!(stopped.units < 110_000, "{stopped:?}");
}

#[test]
fn rows_of_a_table_are_not_compared_pair_by_pair() {
    for (kind, one, other) in [
        ("dateTime", "2020-01-01T00:00:{}Z", "2020-01-01T01:00:{}+01:00"),
        ("duration", "P{}D", "P{}DT0H"),
        ("double", "{}", "{}.0"),
        ("listOfInts", "1 {}", "01 {}"),
    ] {
        let schema = load(
            &format!(
                r#"<xs:simpleType name="listOfInts"><xs:list itemType="xs:int"/></xs:simpleType>
                <xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" type="{}" maxOccurs="unbounded"/></xs:sequence></xs:complexType>
                <xs:unique name="u"><xs:selector xpath="a"/><xs:field xpath="."/></xs:unique></xs:element>"#,
                if kind == "listOfInts" { kind.to_owned() } else { format!("xs:{kind}") }
            ),
            &[],
        )
        .unwrap_or_else(|why| panic!("{}", why[0]));
        let number = |n: usize| if kind == "dateTime" { format!("59.{n:05}1") } else { n.to_string() };
        let rows: String = (0..2000).map(|n| format!("<a>{}</a>", one.replace("{}", &number(n)))).collect();
        let text = |last: &str| format!("<r>{rows}{last}</r>");
        let (found, used) = meter::inline(u32::MAX, || violations(&schema, &text("")));
        assert!(found.is_empty(), "{kind}: {found:?}");
        assert!(used.units < 100_000, "{kind}: {used:?}");
        let twice = text(&format!("<a>{}</a>", other.replace("{}", &number(7))));
        let found = violations(&schema, &twice);
        assert_eq!(found.len(), 1, "{kind}: {found:?}");
    }
}

/// Thousands of elements that are all optional take little, and stay as strict as few.
#[test]
fn many_optional_elements() {
    const MANY: usize = 5_000;
    let elements = |from: usize, to: usize| {
        (from..to).map(|n| format!(r#"<xs:element name="e{n}" minOccurs="0"/>"#)).collect::<String>()
    };
    let root = |content: &str| {
        format!(r#"<xs:element name="r"><xs:complexType>{content}</xs:complexType></xs:element>"#)
    };
    let all: String = (0..MANY).map(|n| format!("<e{n}/>")).collect();
    let (all, twice) = (format!("<r>{all}</r>"), format!("<r>{all}{all}</r>"));
    let sequence = |bounds: &str, more: &str| {
        root(&format!("<xs:sequence {bounds}>{}{more}</xs:sequence>", elements(0, MANY)))
    };
    let wrong = "cvc-complex-type.2.4";
    documents(
        &sequence("", ""),
        &[
            ("<r/>", ""),
            ("<r><e7/><e4000/></r>", ""),
            (&all, ""),
            ("<r><e4000/><e7/></r>", wrong),
            (&twice, wrong),
        ],
    );
    documents(
        &sequence(r#"maxOccurs="unbounded""#, ""),
        &[("<r><e4000/><e7/><e7/></r>", ""), (&twice, ""), ("<r><e4000/><x/></r>", wrong)],
    );
    let any = r###"<xs:any namespace="##other" processContents="skip" maxOccurs="2"/>"###;
    let other = "<o xmlns='urn:o'/>";
    let (one, three) = (format!("<r><e9/>{other}</r>"), format!("<r>{other}{other}{other}</r>"));
    documents(&sequence("", any), &[("<r><e9/></r>", wrong), (&one, ""), (&three, wrong)]);
    let choice = format!(
        r#"<xs:choice maxOccurs="unbounded"><xs:sequence><xs:element name="a"/>{}</xs:sequence><xs:element name="b"/></xs:choice>"#,
        elements(0, MANY)
    );
    documents(
        &root(&choice),
        &[
            ("<r><b/><a/><e5/><e6/><a/><b/></r>", ""),
            ("<r><e5/></r>", wrong),
            ("<r><a/><e6/><e5/></r>", wrong),
        ],
    );
    // Two places for one name, far apart.
    let why = load(&sequence("", r#"<xs:element name="e17"/>"#), &[]).map(|_| ()).unwrap_err();
    assert_eq!(why[0].rule, "cos-nonambig", "{}", why[0]);
}

/// Groups that are too many to be unrolled keep their bounds.
#[test]
fn large_bounds() {
    let group = |inside: &str, bounds: &str| {
        format!(
            r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="h" minOccurs="0"/><xs:sequence {bounds}>{inside}</xs:sequence><xs:element name="t" minOccurs="0"/></xs:sequence></xs:complexType></xs:element>"#
        )
    };
    let made = |element: &str, count: usize| format!("<r>{}</r>", element.repeat(count));
    let bounds = r#"minOccurs="2" maxOccurs="6000""#;
    let ab = r#"<xs:element name="a"/><xs:element name="b" minOccurs="0" maxOccurs="2"/>"#;
    let (less, most, more) = (made("<a/>", 1), made("<a/><b/>", 6000), made("<a/><b/>", 6001));
    let twice = made("<a/><b/><b/>", 2);
    documents(
        &group(ab, bounds),
        &[
            (&less, "cvc-complex-type.2.4"),
            (&twice, ""),
            (&most, ""),
            (&more, "cvc-complex-type.2.4"),
            ("<r><h/><a/><a/><t/></r>", ""),
            ("<r><h/><a/><t/></r>", "cvc-complex-type.2.4"),
            ("<r><a/><b/><b/><b/></r>", "cvc-complex-type.2.4"),
        ],
    );
    // What may be empty need not come.
    let (most, more) = (made("<b/><b/>", 6000), made("<b/><b/>", 6001));
    let optional =
        r#"<xs:element name="b" minOccurs="0" maxOccurs="2"/><xs:element name="c" minOccurs="0"/>"#;
    documents(&group(optional, bounds), &[("<r/>", ""), (&most, ""), (&more, "cvc-complex-type.2.4")]);
    // Unbounded, and one within another.
    let least = r#"minOccurs="6000" maxOccurs="unbounded""#;
    let (few, enough, many) = (made("<a/>", 5999), made("<a/>", 6000), made("<a/>", 7000));
    documents(
        &group(r#"<xs:element name="a"/>"#, least).replace(
            "<xs:element name=\"a\"/>",
            "<xs:element name=\"a\"/><xs:element name=\"b\" minOccurs=\"0\"/>",
        ),
        &[(&few, "cvc-complex-type.2.4"), (&enough, ""), (&many, "")],
    );
    let inner = format!(r#"<xs:element name="x"/><xs:sequence {bounds}>{ab}</xs:sequence>"#);
    let nested = |inner: usize, outer: usize| made(&format!("<x/>{}", "<a/>".repeat(inner)), outer);
    let (fits, short, once) = (nested(2, 2), nested(1, 2), nested(2, 1));
    let long = nested(6001, 2);
    documents(
        &group(&inner, bounds),
        &[
            (&fits, ""),
            (&short, "cvc-complex-type.2.4"),
            (&once, "cvc-complex-type.2.4"),
            (&long, "cvc-complex-type.2.4"),
        ],
    );
}
