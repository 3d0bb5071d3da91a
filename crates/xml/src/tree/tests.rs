use crate::*;
use std::cmp::Ordering;

fn parse(text: &str) -> Document {
    Document::parse(text.to_owned(), &ParseOptions::default()).unwrap()
}

fn show(doc: &Document) -> String {
    to_string(doc, Document::ROOT)
}

#[test]
fn round_trips() {
    for text in [
        "<a/>",
        "<a b=\"c\">t<c/>u<!--x--><?p d?></a>",
        "<!--1--><?p?><a xmlns=\"urn:a\" xmlns:p=\"urn:p\"><p:b p:x=\"1\" x=\"2\"/><c xmlns=\"\"/></a><!--2-->",
        "<a>&lt;&amp;&gt;</a>",
        "<a xml:space=\"preserve\"> \n </a>",
    ] {
        assert_eq!(show(&parse(text)), text);
    }
    for (text, want) in [
        ("<a\n b = 'x\ty&#9;z'></a >", "<a b=\"x y&#9;z\"/>"),
        ("<a>x\r\ny\rz&#13;</a>", "<a>x\ny\nz&#13;</a>"),
        ("<a>x<![CDATA[<&>]]>y</a>", "<a>x&lt;&amp;&gt;y</a>"),
        ("<a><![CDATA[]]></a>", "<a/>"),
    ] {
        assert_eq!(show(&parse(text)), want);
    }
}

#[test]
fn links_are_right() {
    let doc = parse("<a x='1' y='2'>t<b/><c><d/></c></a>");
    let a = doc.document_element().unwrap();
    let children: Vec<_> = doc.children(a).collect();
    assert_eq!(children.len(), 3);
    assert_eq!(doc.last_child(a), Some(children[2]));
    assert_eq!(doc.prev_sibling(children[2]), Some(children[1]));
    assert_eq!(doc.prev_sibling(children[0]), None);
    assert_eq!(doc.next_sibling(children[2]), None);
    let attributes: Vec<_> = doc.attributes(a).collect();
    assert_eq!(attributes, [NodeId(a.0 + 1), NodeId(a.0 + 2)]);
    assert_eq!((doc.next_sibling(attributes[0]), doc.prev_sibling(attributes[1])), (None, None));
    assert_eq!(doc.parent(attributes[1]), Some(a));
    assert_eq!(doc.attribute(a, "", "y"), Some("2"));
    assert_eq!(doc.descendants(Document::ROOT).count(), 5);
    assert_eq!(doc.subtree_end(a).index(), doc.node_count());
    assert_eq!(doc.subtree_end(children[1]), children[2]);
}

#[test]
fn what_is_not_well_formed() {
    for (text, kind, at) in [
        ("", ErrorKind::UnexpectedEnd, "1:1"),
        ("<a>", ErrorKind::UnexpectedEnd, "1:4"),
        ("<a></b>", ErrorKind::Syntax, "1:4"),
        ("<a>\n </b>", ErrorKind::Syntax, "2:2"),
        ("<a/><b/>", ErrorKind::Syntax, "1:5"),
        ("<a/>x", ErrorKind::Syntax, "1:5"),
        ("x<a/>", ErrorKind::Syntax, "1:1"),
        ("<a b='1' b='2'/>", ErrorKind::Syntax, "1:10"),
        ("<a b='1'c='2'/>", ErrorKind::Syntax, "1:9"),
        ("<a b=1/>", ErrorKind::Syntax, "1:6"),
        ("<a b='<'/>", ErrorKind::Syntax, "1:7"),
        ("<a>]]></a>", ErrorKind::Syntax, "1:4"),
        ("<a>&x;</a>", ErrorKind::Entity, "1:4"),
        ("<a b='&x;'/>", ErrorKind::Entity, "1:7"),
        ("<a>&</a>", ErrorKind::Syntax, "1:5"),
        ("<a><!-- -- --></a>", ErrorKind::Syntax, "1:9"),
        ("<a><?xml x?></a>", ErrorKind::Syntax, "1:6"),
        (" <?xml version='1.0'?><a/>", ErrorKind::Syntax, "1:4"),
        ("<p:a/>", ErrorKind::Namespace, "1:2"),
        ("<a p:b=''/>", ErrorKind::Namespace, "1:4"),
        ("<a xmlns:p=''/>", ErrorKind::Namespace, "1:4"),
        ("<a xmlns:xml='urn:x'/>", ErrorKind::Namespace, "1:4"),
        ("<a xmlns:xmlns='urn:x'/>", ErrorKind::Namespace, "1:4"),
        ("<a xmlns:p='urn:x' xmlns:q='urn:x' p:a='' q:a=''/>", ErrorKind::Syntax, "1:43"),
        ("<a xmlns='urn:x' xmlns='urn:y'/>", ErrorKind::Syntax, "1:18"),
        ("<!DOCTYPE a><a/>", ErrorKind::Doctype, "1:1"),
        ("<a>\u{1}</a>", ErrorKind::Character, "1:4"),
        ("<\u{D7}/>", ErrorKind::Syntax, "1:2"),
        ("<a", ErrorKind::UnexpectedEnd, "1:3"),
        ("<a><", ErrorKind::UnexpectedEnd, "1:5"),
        ("<a><![CDATA[", ErrorKind::UnexpectedEnd, "1:13"),
    ] {
        let mut doc = parse("<old/>");
        let e = doc.parse_into(Document::ROOT, text.to_owned(), &ParseOptions::default()).unwrap_err();
        assert_eq!((e.kind, e.position.to_string().as_str()), (kind, at), "{text}: {e}");
        assert_eq!(show(&doc), "<old/>");
    }
}

#[test]
fn limits_are_named() {
    let small = Limits {
        depth: 3,
        attributes: 2,
        name_length: 5,
        text_length: 8,
        total: 60,
        nodes: 8,
        ..Limits::default()
    };
    let options = ParseOptions { limits: small, ..ParseOptions::default() };
    for (text, name) in [
        ("<a><a><a><a/></a></a></a>", "depth"),
        ("<a a='' b='' c=''/>", "attributes"),
        ("<abcdef/>", "name_length"),
        ("<a>123456789</a>", "text_length"),
        ("<a b='123456789'/>", "text_length"),
        ("<a><b/><b/><b/><b/><b/><b/><b/><b/></a>", "nodes"),
        ("<a>                                                                             </a>", "total"),
    ] {
        let e = Document::parse(text.to_owned(), &options).unwrap_err();
        assert_eq!(e.kind, ErrorKind::Limit);
        assert!(e.message.contains(&format!("`{name}`")), "{text}: {e}");
    }
    let options =
        ParseOptions { limits: Limits { namespaces: 2, ..Limits::default() }, ..ParseOptions::default() };
    let tokens = |text: &str| {
        let mut tokenizer = crate::Tokenizer::new(options.limits.clone());
        tokenizer.feed(text.as_bytes());
        tokenizer.finish();
        loop {
            match tokenizer.next() {
                Ok(Some(_)) => {}
                end => return end.map(|_| ()),
            }
        }
    };
    for (text, is_accepted) in [
        (
            "<a xmlns:b='u' xmlns:c='u' xmlns='u'><a xmlns:b='v'><a xmlns:c='v' xmlns:b='u'/></a><a xmlns=''/></a>",
            true,
        ),
        ("<a><b xmlns:b='u' xmlns:c='u'/><b xmlns:d='u' xmlns:e='u'/><b xmlns:f='u'/></a>", true),
        ("<a xmlns:b='u' xmlns:c='u'><a xmlns:d='u'/></a>", false),
        ("<a xmlns:b='u'><a><a xmlns:c='u' xmlns:d='&#117;'/></a></a>", false),
    ] {
        for result in [Document::parse(text.to_owned(), &options).map(|_| ()), tokens(text)] {
            match result {
                Ok(()) => assert!(is_accepted, "{text}"),
                Err(e) => assert!(!is_accepted && e.message.contains("`namespaces`"), "{text}: {e}"),
            }
        }
    }
}

/// As with a few, a copy or a moved element declares what it had in scope and what its new place does not have.
#[test]
fn many_namespaces_go_along() {
    let declared = |range: std::ops::Range<usize>, uri: &str| {
        range.map(|n| format!(" xmlns:p{n}=\"{uri}\"")).collect::<String>()
    };
    let (all, some, rest) = (declared(0..40, "u"), declared(0..30, "u"), declared(30..40, "u"));
    let text =
        format!("<a xmlns=\"d\"{all}><b xmlns:p3=\"v\"><c p39:x=\"1\"/></b><t{}/></a>", declared(0..5, "w"));
    let from = parse(&text);
    let a = from.document_element().unwrap();
    let b = from.first_child(a).unwrap();
    let sorted = |doc: &Document, node: NodeId| {
        let text = crate::to_string(doc, node);
        let (tag, behind) =
            text.split_once('>').map(|(tag, behind)| (tag.to_owned(), behind.to_owned())).unwrap();
        let mut parts: Vec<String> = tag.split(' ').map(str::to_owned).collect();
        parts[1..].sort();
        format!("{}>{behind}", parts.join(" "))
    };
    let expected =
        |declarations: &str| sorted(&parse(&format!("<b{declarations}><c p39:x=\"1\"/></b>")), NodeId(1));
    let own = " xmlns=\"d\" xmlns:p3=\"v\"";
    // Alone, and where some are in scope already.
    let mut to = parse(&format!("<r{some}><s/></r>"));
    let root = to.document_element().unwrap();
    let place = to.first_child(root).unwrap();
    let copy = to.copy_from(place, &from, b);
    let mut alone = Document::new();
    let single = alone.copy_from(Document::ROOT, &from, b);
    let but_p3 = all.replacen(" xmlns:p3=\"u\"", "", 1);
    assert_eq!(sorted(&alone, single), expected(&format!("{own}{but_p3}")));
    let declarations: Vec<_> = to
        .namespace_declarations(copy)
        .map(|(p, u)| format!(" xmlns{}{p}=\"{u}\"", if p.is_empty() { "" } else { ":" }))
        .collect();
    let mut wanted: Vec<_> = format!("{own}{rest}")
        .split_inclusive('"')
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| pair.concat())
        .collect();
    let mut found = declarations.clone();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    // Moved below an element that declares others.
    let mut moved = parse(&text);
    let a = moved.document_element().unwrap();
    let (b, t) = (moved.first_child(a).unwrap(), moved.last_child(a).unwrap());
    assert!(moved.append(t, b));
    let mut found: Vec<_> = moved.namespace_declarations(b).map(|(p, u)| format!("{p}={u}")).collect();
    found.sort();
    assert_eq!(found, ["p0=u", "p1=u", "p2=u", "p3=v", "p4=u"]);
}

#[test]
fn changes_keep_order() {
    let mut doc = parse("<a><b/><c/></a>");
    let a = doc.document_element().unwrap();
    let (b, c) = (doc.first_child(a).unwrap(), doc.last_child(a).unwrap());
    assert!(doc.is_ordered());
    let d = doc.append_element(a, "", "", "d");
    assert!(doc.is_dense());
    let x = doc.set_attribute(b, "", "", "x", "1");
    assert!(!doc.is_ordered());
    assert_eq!(doc.compare_order(x, c), Ordering::Less);
    assert_eq!(doc.compare_order(x, b), Ordering::Greater);
    assert!(doc.insert_before(b, d));
    assert_eq!(doc.compare_order(d, b), Ordering::Less);
    assert!(doc.insert_after(c, b));
    assert_eq!(show(&doc), "<a><d/><c/><b x=\"1\"/></a>");
    assert!(!doc.append(d, a), "no circles");
    doc.detach(c);
    assert_eq!(show(&doc), "<a><d/><b x=\"1\"/></a>");
    assert!(doc.replace(d, c));
    doc.append_text(c, "t");
    doc.append_text(c, "u");
    doc.append_comment(c, "--");
    doc.append_pi(a, "p", "d");
    doc.remove_attribute(b, "", "x");
    assert_eq!(show(&doc), "<a><c>tu<!--- - --></c><b/><?p d?></a>");
    doc.set_text(c, "new");
    doc.rename(c, "p", "urn:p", "e");
    assert_eq!(show(&doc), "<a><p:e xmlns:p=\"urn:p\">new</p:e><b/><?p d?></a>");
}

#[test]
fn namespaces_are_kept_and_repaired() {
    let from = parse("<r xmlns='urn:d' xmlns:p='urn:p' xmlns:q='urn:q'><p:a q:x='1'><b/></p:a></r>");
    let a = from.first_child(from.document_element().unwrap()).unwrap();
    assert_eq!(
        to_string(&from, a),
        "<p:a xmlns:p=\"urn:p\" xmlns:q=\"urn:q\" q:x=\"1\"><b xmlns=\"urn:d\"/></p:a>"
    );
    let mut to = parse("<t xmlns='urn:t' xmlns:p='urn:other'/>");
    let t = to.document_element().unwrap();
    to.copy_from(t, &from, a);
    let text = show(&to);
    let again = parse(&text);
    let a = again.first_child(again.document_element().unwrap()).unwrap();
    assert!(again.is_element(a, "urn:p", "a"), "{text}");
    assert!(again.is_element(again.first_child(a).unwrap(), "urn:d", "b"), "{text}");
    assert_eq!(again.attribute(a, "urn:q", "x"), Some("1"));

    let mut doc = Document::new();
    let root = doc.append_element(Document::ROOT, "", "urn:a", "a");
    doc.append_element(root, "", "", "b");
    doc.set_attribute(root, "", "urn:x", "c", "v");
    doc.set_attribute(root, "", "urn:x", "d", "v");
    doc.set_attribute(root, "ns0", "urn:y", "d", "v");
    let text = show(&doc);
    let again = parse(&text);
    let root = again.document_element().unwrap();
    assert_eq!(again.attribute(root, "urn:x", "d"), Some("v"), "{text}");
    assert_eq!(again.attribute(root, "urn:y", "d"), Some("v"), "{text}");
    assert!(again.is_element(again.first_child(root).unwrap(), "", "b"), "{text}");
}

#[test]
fn positions_are_kept() {
    let text = "<a>\n  <b x='1'\n y=\"&lt;\"/>\n</a>";
    let doc = Document::parse(text.to_owned(), &ParseOptions::trusted()).unwrap();
    let b = doc.descendants(Document::ROOT).find(|&n| doc.local(n) == "b").unwrap();
    assert_eq!(doc.position(b).unwrap().to_string(), "2:3");
    let y = doc.attribute_node(b, "", "y").unwrap();
    let span = doc.span(y).unwrap();
    assert_eq!(doc.position(y).unwrap().to_string(), "3:2");
    assert_eq!(&text[span.start as usize..span.end as usize], "y");
    assert_eq!(&text[span.value_start as usize..span.value_end as usize], "&lt;");
}

/// Columns in long lines are counted from the block before, with the same result as from the start of the line.
#[test]
fn positions_in_long_lines() {
    let element = "<äö x='é'>ü€</äö>";
    let text = format!("<a>\n{}\n<b/>{}</a>", element.repeat(2000), element.repeat(super::BLOCK));
    let doc = Document::parse(text.clone(), &ParseOptions::trusted()).unwrap();
    let mut offsets: Vec<usize> = doc
        .descendants(Document::ROOT)
        .filter_map(|node| doc.span(node))
        .map(|span| span.start as usize)
        .step_by(97)
        .collect();
    offsets.extend(
        [0, 1, 4, text.len(), super::BLOCK - 1, super::BLOCK, super::BLOCK + 1]
            .map(|at| text.floor_char_boundary(at)),
    );
    for offset in offsets {
        assert_eq!(doc.locate(offset), crate::Position::of(text.as_bytes(), offset), "{offset}");
    }
    assert_eq!(doc.characters.get().map(|blocks| blocks.len()), Some(text.len().div_ceil(super::BLOCK)));
}

#[test]
fn deep_documents_need_no_stack() {
    let depth = 200_000;
    let text = "<a>".repeat(depth) + &"</a>".repeat(depth);
    let options = ParseOptions { limits: Limits { depth, ..Limits::default() }, ..ParseOptions::default() };
    let doc = Document::parse(text.clone(), &options).unwrap();
    assert_eq!(show(&doc).len(), text.len() - 3);
    let mut copy = Document::new();
    copy.copy_from(Document::ROOT, &doc, Document::ROOT);
    assert_eq!(copy.node_count(), doc.node_count());
    assert_eq!(doc.string_value(Document::ROOT), "");
}

#[test]
fn building_and_reuse() {
    let mut doc = Document::new();
    for _ in 0..2 {
        doc.clear();
        let mut b = Builder::new(&mut doc, Document::ROOT);
        b.start_element("s", "urn:s", "Envelope");
        b.start_element("s", "urn:s", "Body");
        b.attribute("", "", "id", "1");
        b.text("x");
        b.text("y");
        b.copy(&parse("<o xmlns='urn:o'>z</o>"), Document::ROOT);
        b.text("w");
        b.finish();
        assert!(doc.is_dense());
        let want = "<s:Envelope xmlns:s=\"urn:s\"><s:Body id=\"1\">xy<o xmlns=\"urn:o\">z</o>w</s:Body></s:Envelope>";
        assert_eq!(show(&doc), want);
        let body = doc.descendants(Document::ROOT).nth(1).unwrap();
        assert_eq!(doc.string_value(body), "xyzw");
        assert_eq!(doc.text(doc.last_child(body).unwrap()), "w");
    }
}

#[test]
fn a_parsed_fragment_takes_a_place() {
    let part = "<n:x xmlns:n='urn:n' a='1' n:b='&lt;'>t<!--c--><?p q?></n:x><y xmlns=''><z/></y>tail&amp;";
    for (text, path, dense) in [
        ("<d xmlns='urn:d'><old><deep/></old></d>", 0, true),
        ("<d xmlns='urn:d'><old/><r/></d>", 0, false),
        ("<d xmlns='urn:d'><l/><old/></d>", 1, true),
        ("<d xmlns='urn:d'><l/><old/><r/></d>", 1, false),
    ] {
        for part in [part, "", "text", "<one/>"] {
            let mut doc = parse(text);
            let root = doc.document_element().unwrap();
            let old = doc.children(root).nth(path).unwrap();
            let fragment = parse(&format!("<within xmlns='urn:d'>{part}</within>"));
            let within = fragment.document_element().unwrap();
            let copies = doc.graft(old, &fragment, within).unwrap();
            assert_eq!(copies, doc.children(root).skip(path).take(copies.len()).collect::<Vec<_>>());
            let want = show(&parse(&text.replace("<old><deep/></old>", part).replace("<old/>", part)));
            assert_eq!(show(&doc), want, "{text} {part}");
            // Links are symmetric, and the order is known.
            let forth: Vec<_> = doc.children(root).collect();
            let mut back: Vec<_> =
                std::iter::successors(doc.last_child(root), |n| doc.prev_sibling(*n)).collect();
            back.reverse();
            assert_eq!(forth, back, "{text} {part}");
            assert!(!dense || doc.is_ordered(), "{text} {part}");
            let all: Vec<_> = doc.descendants(Document::ROOT).collect();
            assert!(all.is_sorted_by(|a, b| doc.compare_order(*a, *b).is_lt()), "{text} {part}");
            doc.append_element(root, "", "urn:d", "more");
            assert!(show(&doc).ends_with("<more/></d>"), "{}", show(&doc));
            assert_eq!(doc.graft(old, &fragment, within), None, "it has no place any more");
        }
    }
}

#[test]
fn text_is_written_in_its_place() {
    let mut doc = parse("<a><b/></a>");
    let b = doc.descendants(Document::ROOT).nth(1).unwrap();
    doc.append_text_with(b, |to| to.push_str("x<"));
    doc.append_text(b, "y");
    assert_eq!(show(&doc), "<a><b>x&lt;y</b></a>");
}

/// What is known of a document that was read does not hold any more when something is added or renamed.
#[test]
fn as_read() {
    let namespaces = |doc: &Document| {
        let mut found = Vec::new();
        let root = doc.document_element().unwrap();
        doc.each_in_scope_namespace(root, &mut |prefix, uri| found.push(format!("{prefix}={uri}")));
        found.join(" ")
    };
    let doc = parse("<a xml:lang='en'><b/></a>");
    assert!(doc.is_as_read() && namespaces(&doc).is_empty());
    let doc = parse("<a xmlns:p='u'><p:b/></a>");
    assert!(doc.is_as_read() && namespaces(&doc) == "p=u");
    let mut doc = parse("<a><b/></a>");
    let root = doc.document_element().unwrap();
    doc.rename(root, "p", "u", "a");
    assert!(!doc.is_as_read() && namespaces(&doc) == "p=u");
    let mut doc = parse("<a/>");
    let root = doc.document_element().unwrap();
    doc.append_element(root, "p", "u", "b");
    assert!(!doc.is_as_read());
    doc.clear();
    doc.parse_into(Document::ROOT, "<c/>", &crate::ParseOptions::default()).unwrap();
    assert!(doc.is_as_read());
    let root = doc.document_element().unwrap();
    doc.parse_into(root, "<d/>", &crate::ParseOptions::default()).unwrap();
    assert!(!doc.is_as_read());
}
