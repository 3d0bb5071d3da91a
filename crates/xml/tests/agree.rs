//! Where two ways must agree: tree and tokenizer, one piece and any split, what is parsed and what is written.

use busbar_xml as xml;
use busbar_xml::{Document, Event, Interest, NodeId, NodeKind, ParseOptions, Tokenizer, XmlError};
use proptest::prelude::*;

/// Whether a document is well-formed, passing over all of it.
fn skim(pieces: &[&[u8]]) -> Result<(), XmlError> {
    let mut tokenizer = Tokenizer::default();
    for piece in pieces {
        tokenizer.feed(piece);
        assert!(!tokenizer.skim(&Interest::NOTHING)?);
    }
    tokenizer.finish();
    assert!(!tokenizer.skim(&Interest::NOTHING)?);
    Ok(())
}

/// A document as lines, with text put together.
fn events(pieces: &[&[u8]]) -> Result<Vec<String>, XmlError> {
    let mut tokenizer = Tokenizer::default();
    let mut lines: Vec<String> = Vec::new();
    let mut in_text = false;
    for i in 0..=pieces.len() {
        match pieces.get(i) {
            Some(piece) => tokenizer.feed(piece),
            None => tokenizer.finish(),
        }
        while let Some(event) = tokenizer.next()? {
            if let Event::Text(text) = event {
                if in_text && let Some(last) = lines.last_mut() {
                    last.push_str(text);
                } else {
                    lines.push(format!("text {text}"));
                }
                in_text = true;
                continue;
            }
            in_text = false;
            lines.push(match event {
                Event::StartElement { name, attributes, .. } => {
                    let declared: Vec<_> = attributes.declarations().collect();
                    let attributes: Vec<_> =
                        attributes.map(|a| format!("{:?}={:?}", a.name, a.value)).collect();
                    format!("start {}|{name:?} {attributes:?} {declared:?}", name.prefix())
                }
                Event::EndElement { name } => format!("end {name:?}"),
                Event::Comment(text) => format!("comment {text}"),
                Event::ProcessingInstruction { target, data } => format!("pi {target} {data}"),
                Event::Text(_) => String::new(),
            });
        }
    }
    Ok(lines)
}

fn tree(doc: &Document) -> Vec<String> {
    let name = |n: NodeId| format!("{{{}}}{}", doc.namespace(n), doc.local(n));
    let mut lines = Vec::new();
    let mut at = doc.first_child(Document::ROOT);
    while let Some(n) = at {
        match doc.kind(n) {
            NodeKind::Element => {
                let declared: Vec<_> = doc.namespace_declarations(n).collect();
                let attributes: Vec<_> =
                    doc.attributes(n).map(|a| format!("{}={:?}", name(a), doc.text(a))).collect();
                lines.push(format!("start {}|{} {attributes:?} {declared:?}", doc.prefix(n), name(n)));
            }
            NodeKind::Text => lines.push(format!("text {}", doc.text(n))),
            NodeKind::Comment => lines.push(format!("comment {}", doc.text(n))),
            NodeKind::ProcessingInstruction => lines.push(format!("pi {} {}", doc.local(n), doc.text(n))),
            _ => {}
        }
        let mut from = n;
        at = doc.first_child(n);
        while at.is_none() {
            if doc.kind(from) == NodeKind::Element {
                lines.push(format!("end {}", name(from)));
            }
            at = doc.next_sibling(from);
            if at.is_none() {
                match doc.parent(from) {
                    Some(parent) if parent != Document::ROOT => from = parent,
                    _ => break,
                }
            }
        }
    }
    lines
}

/// Documents, mostly well-formed, made of pieces that matter to a tokenizer.
fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[a-z \n\r<>&\\]\u{E9}\u{1F600}]{0,12}".prop_map(|t: String| t
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")),
        1 => Just("<![CDATA[x]]y\r\n<&>]]>".to_owned()),
        1 => Just("<![CDATA[]]>".to_owned()),
        1 => Just("<!--c - \r d-->".to_owned()),
        1 => Just("<?p some ? data?>".to_owned()),
        1 => Just("&#x1F600;&#13;&quot;".to_owned()),
        1 => Just("<e/>".to_owned()),
        1 => Just("]]".to_owned()),
    ];
    let attributes = prop::sample::select(vec![
        "",
        " a='1'",
        " a = \"x\ty&#9;&lt;>\" b='\u{E9}\r\n'",
        " xmlns='urn:d'",
        " xmlns:p='urn:p' p:a='1' a='2'",
        " xmlns:p='urn:q' xmlns=''",
        " xml:lang='de'",
    ]);
    let element = leaf.prop_recursive(5, 40, 6, move |inner| {
        let name = prop::sample::select(vec!["a", "bcd", "long-element-name", "\u{3042}"]);
        (name, attributes.clone(), prop::collection::vec(inner, 0..6)).prop_map(
            |(name, attributes, inside)| format!("<{name}{attributes}>{}</{name} >", inside.concat()),
        )
    });
    let damage = prop::option::weighted(0.3, (any::<prop::sample::Index>(), "[<>&'\"/!\\]a\u{1}-]{0,2}"));
    (prop::collection::vec(element, 0..4), damage).prop_map(|(inside, damage)| {
        let mut text = format!("<?xml version='1.0'?>\n<!--p--><root>{}</root>\n<?e?>", inside.concat());
        if let Some((index, with)) = damage {
            let mut at = index.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let to = at + text[at..].chars().next().map_or(0, char::len_utf8);
            text.replace_range(at..to, &with);
        }
        text
    })
}

#[test]
fn one_byte_order_mark_is_passed_over() {
    for (marks, accepted) in [(0, true), (1, true), (2, false)] {
        let text = format!("{}<a/>", "\u{FEFF}".repeat(marks));
        assert_eq!(
            Document::parse(text.clone(), &ParseOptions::default()).is_ok(),
            accepted,
            "tree, {marks}"
        );
        assert_eq!(events(&[text.as_bytes()]).is_ok(), accepted, "tokenizer, {marks}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_is_one_piece_is_the_tree(text in document(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let bytes = text.as_bytes();
        let whole = events(&[bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&events(&single), &whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|i| i.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        prop_assert_eq!(&events(&pieces), &whole);
        let found = whole.as_ref().map(|_| ()).map_err(Clone::clone);
        prop_assert_eq!(&skim(&[bytes]), &found);
        prop_assert_eq!(&skim(&pieces), &found);
        prop_assert_eq!(&skim(&single), &found);
        match (Document::parse(text.clone(), &ParseOptions::default()), whole) {
            (Ok(doc), Ok(lines)) => prop_assert_eq!(tree(&doc), lines),
            (Err(_), Err(_)) => {}
            (tree, events) => prop_assert!(false, "{:?} {:?}", tree.map(|_| ()), events),
        }
    }

    #[test]
    fn what_is_written_is_what_was_read(text in document()) {
        let Ok(doc) = Document::parse(text, &ParseOptions::default()) else { return Ok(()) };
        let mut out = Vec::new();
        xml::write(&doc, Document::ROOT, &Default::default(), &mut out);
        let again = Document::parse(out.clone(), &ParseOptions::default()).unwrap();
        prop_assert_eq!(tree(&again), tree(&doc));
        let mut copy = Document::new();
        copy.copy_from(Document::ROOT, &doc, Document::ROOT);
        prop_assert_eq!(tree(&copy), tree(&doc));
        for encoding in ["us-ascii", "utf-16", "iso-8859-15"] {
            let options = xml::WriteOptions { declaration: true, encoding: Some(encoding.into()), ..Default::default() };
            // Names, comments and processing instructions know no character references: they cannot be written in an
            // encoding that does not have their characters.
            let fixed = doc.descendants(Document::ROOT).any(|n| {
                matches!(doc.kind(n), NodeKind::Comment | NodeKind::ProcessingInstruction) && !doc.text(n).is_ascii()
            });
            if encoding != "utf-16" && (fixed || String::from_utf8_lossy(&out).contains('\u{3042}')) {
                continue;
            }
            let mut out = Vec::new();
            xml::write(&doc, Document::ROOT, &options, &mut out);
            let again = Document::parse(out, &ParseOptions::default()).unwrap();
            // The serializer does not repeat declarations that are in force.
            let plain = |doc| tree(doc).into_iter().map(|l| l.split("] [").next().map(str::to_owned)).collect::<Vec<_>>();
            prop_assert_eq!(plain(&again), plain(&doc));
        }
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"<>&'\"/!?[]-= ax:".to_vec())], 0..60)) {
        let _ = Document::parse(bytes.clone(), &ParseOptions::default());
        let _ = events(&[&bytes]);
        let dtd = ParseOptions { dtd: xml::Dtd::Internal, ..Default::default() };
        let _ = Document::parse([b"<!DOCTYPE a [", &bytes[..], b"]><a/>"].concat(), &dtd);
    }
}
