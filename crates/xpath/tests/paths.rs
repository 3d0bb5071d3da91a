//! Paths as a whole against the same path evaluated step by step, node by node: order, duplicates, positions.

#![allow(clippy::unwrap_used)]

use busbar_xpath::{CompileOptions, Context, Expression, Node, NodeSet, Value};
use proptest::prelude::*;

const AXES: [&str; 13] = [
    "child",
    "descendant",
    "descendant-or-self",
    "parent",
    "ancestor",
    "ancestor-or-self",
    "following",
    "following-sibling",
    "preceding",
    "preceding-sibling",
    "self",
    "attribute",
    "namespace",
];
const TESTS: [&str; 5] = ["node()", "*", "a", "b", "text()"];
const PREDICATES: [&str; 8] = ["", "", "", "[1]", "[last()]", "[@x]", "[position() > 1]", "[a][2]"];

const DOCUMENT: &str =
    "<a x='1'><b y='2'>t<a><a x='3'>u</a><b/></a></b><!--c--><a><b><b x='1'><a/></b>v</b></a><b/></a>";

fn compile(src: &str) -> Expression {
    Expression::compile(src, &CompileOptions::default()).unwrap_or_else(|e| panic!("{src}: {e}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_path_is_its_steps(steps in proptest::collection::vec((0usize..13, 0usize..5, 0usize..8), 1..5)) {
        let doc = xml::Document::parse(DOCUMENT.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
        let step = |(a, t, p): &(usize, usize, usize)| format!("{}::{}{}", AXES[*a], TESTS[*t], PREDICATES[*p]);
        let mut nodes = vec![Node::new(xml::Document::ROOT)];
        let root = Context::root(&doc);
        for s in &steps {
            let e = compile(&step(s));
            let mut next = Vec::new();
            for n in &nodes {
                next.extend(e.evaluate_nodes(&Context::at(&doc, *n)).unwrap());
            }
            nodes = NodeSet::sorted(next, &root).unwrap().as_slice().to_vec();
        }
        let path = format!("/{}", steps.iter().map(step).collect::<Vec<_>>().join("/"));
        let e = compile(&path);
        prop_assert_eq!(&e.evaluate_nodes(&root).unwrap(), &nodes, "{}", &path);
        prop_assert_eq!(e.evaluate_first(&root).unwrap(), nodes.first().copied(), "{}", &path);
        prop_assert_eq!(e.evaluate_boolean(&root).unwrap(), !nodes.is_empty(), "{}", &path);
        let count = compile(&format!("count({path})")).evaluate_number(&root).unwrap();
        prop_assert_eq!(count, nodes.len() as f64, "{}", &path);
        // The same from an expression as its start, and filtered as a whole.
        let second = compile(&format!("({path})[2]")).evaluate_first(&root).unwrap();
        prop_assert_eq!(second, nodes.get(1).copied(), "({})[2]", &path);
        let last = compile(&format!("({path})[last()]/self::node()")).evaluate_first(&root).unwrap();
        prop_assert_eq!(last, nodes.last().copied(), "({})[last()]", &path);
        let string = match nodes.first() {
            Some(n) => Value::from(*n).to_string_in(&root).unwrap().into_owned(),
            None => String::new(),
        };
        prop_assert_eq!(e.evaluate_string(&root).unwrap(), string, "{}", &path);
    }
}

/// `//name[n]` has a way of its own; a condition that says the same goes the long way.
#[test]
fn nodes_below_by_position_are_those_of_the_long_way() {
    let mut changed =
        xml::Document::parse(DOCUMENT.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
    let parsed = changed.clone();
    // Nodes are no longer stored in document order.
    let first = changed.first_child(changed.document_element().unwrap()).unwrap();
    let last = changed.last_child(changed.document_element().unwrap()).unwrap();
    changed.detach(last);
    assert!(changed.insert_before(first, last));
    for doc in [&parsed, &changed] {
        for name in ["a", "b", "none"] {
            for n in [0, 1, 2, 3, 9] {
                for around in [
                    "//NODE",
                    "//NODE/@x",
                    "//NODE//NODE/..",
                    "/a/b//NODE/text()",
                    "count(//NODE)",
                    "//@y/..//NODE",
                    "//NODE = 't'",
                    "string(//NODE)",
                ] {
                    let short = around.replace("NODE", &format!("{name}[{n}]"));
                    let long = around.replace("NODE", &format!("{name}[position() = {n} and true()]"));
                    let root = Context::root(doc);
                    let [short_value, long_value] =
                        [&short, &long].map(|path| format!("{:?}", compile(path).evaluate(&root).unwrap()));
                    assert_eq!(short_value, long_value, "{short}");
                }
            }
        }
    }
}

/// From attributes a step reaches the same nodes again: they count once.
#[test]
fn what_is_reached_from_several_attributes_counts_once() {
    let doc = xml::Document::parse(DOCUMENT.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
    let root = Context::root(&doc);
    for (path, wanted) in [("//@*/following::node()", 13.0), ("//@*/following::node()/self::b", 5.0)] {
        let count = compile(&format!("count({path})")).evaluate_number(&root).unwrap();
        assert_eq!(count, wanted, "{path}");
    }
}
