//! Extension functions: EXSLT (node-sets, sets, mathematics, strings, regular expressions, dates), and those of Saxon and Xalan that
//! stylesheets use.

use super::functions::Call;
use crate::functions::{self, Function, dates, strings};
use crate::run::node_set;
use std::collections::HashSet;
use xml::{Document, NodeKind, ParseOptions};
use xpath::{Host, Node, NodeSet, Type, Value};

impl Call<'_, '_, '_> {
    /// `exsl:node-set()`, and the same function of other processors.
    pub(super) fn node_set(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        Ok(match self.args.first() {
            Some(Value::NodeSet(nodes)) => Value::NodeSet(nodes.clone()),
            _ => {
                let mut doc = Document::new();
                doc.append_text(Document::ROOT, &self.text(0)?);
                let Value::NodeSet(root) = engine.fragment(doc)? else { return Ok(Value::Empty) };
                let child = root.first().and_then(|root| {
                    let id = engine.doc(root.doc).first_child(root.id)?;
                    Some(Node::in_document(root.doc, id))
                });
                child.map_or(Value::NodeSet(NodeSet::new()), Value::from)
            }
        })
    }

    /// `exsl:object-type()`.
    pub(super) fn object_type(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        Ok(Value::from(match self.args.first() {
            Some(Value::NodeSet(nodes)) => match nodes.as_slice() {
                [node]
                    if engine.docs.is_fragment(node.doc)
                        && engine.doc(node.doc).kind(node.id) == NodeKind::Document =>
                {
                    "RTF"
                }
                _ => "node-set",
            },
            Some(value) => value.type_of().name(),
            None => Type::Any.name(),
        }))
    }

    /// `saxon:parse()`.
    pub(super) fn parse(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let source = self.text(0)?;
        engine.spend(source.len() as u64 >> 2).map_err(|e| e.message)?;
        let doc = Document::parse_str(&source, &ParseOptions::default())
            .map_err(|error| format!("FODC0006: saxon:parse(): {error}"))?;
        self.host.adopt(doc).map(Value::from)
    }

    /// `saxon:serialize()`.
    pub(super) fn serialize(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let Some(node) = self.set(0)?.first() else { return Ok(Value::from("")) };
        if node.is_namespace() {
            return Ok(Value::from(engine.node_string(node)));
        }
        let doc = engine.doc(node.doc);
        let mut bytes = Vec::new();
        xml::write(doc, node.id, &xml::WriteOptions::default(), &mut bytes);
        engine.spend(bytes.len() as u64 >> 4).map_err(|e| e.message)?;
        Ok(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// `set:difference()`.
    pub(super) fn difference(&self) -> Result<Value, String> {
        let other: HashSet<Node> = self.set(1)?.iter().collect();
        let kept: Vec<Node> = self.set(0)?.iter().filter(|node| !other.contains(node)).collect();
        Ok(Value::NodeSet(NodeSet::from_ordered(&kept)))
    }

    /// `set:intersection()`.
    pub(super) fn intersection(&self) -> Result<Value, String> {
        let other: HashSet<Node> = self.set(1)?.iter().collect();
        let kept: Vec<Node> = self.set(0)?.iter().filter(|node| other.contains(node)).collect();
        Ok(Value::NodeSet(NodeSet::from_ordered(&kept)))
    }

    /// `set:has-same-node()`.
    pub(super) fn has_same_node(&self) -> Result<Value, String> {
        let other: HashSet<Node> = self.set(1)?.iter().collect();
        Ok(Value::Boolean(self.set(0)?.iter().any(|node| other.contains(&node))))
    }

    /// Whether two node-sets have the same nodes (`hasSameNodes()` of Saxon and Xalan).
    pub(super) fn has_same_nodes(&self) -> Result<Value, String> {
        let (left, right): (HashSet<Node>, HashSet<Node>) =
            (self.set(0)?.iter().collect(), self.set(1)?.iter().collect());
        Ok(Value::Boolean(left == right))
    }

    /// `set:distinct()`.
    pub(super) fn distinct(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let mut seen = HashSet::new();
        let kept: Vec<Node> =
            self.set(0)?.iter().filter(|node| seen.insert(engine.node_string(*node))).collect();
        Ok(Value::NodeSet(NodeSet::from_ordered(&kept)))
    }

    /// `set:leading()`, `set:trailing()`.
    pub(super) fn leading_or_trailing(&self) -> Result<Value, String> {
        let (nodes, other) = (self.set(0)?, self.set(1)?);
        let Some(first) = other.first() else { return Ok(Value::NodeSet(nodes)) };
        let list = nodes.as_slice();
        let kept = match list.iter().position(|node| *node == first) {
            None => &[],
            Some(at) if matches!(self.builtin.function, Function::Leading) => &list[..at],
            Some(at) => &list[at + 1..],
        };
        Ok(Value::NodeSet(NodeSet::from_ordered(kept)))
    }

    /// `math:min()`, `math:max()`, `math:highest()`, `math:lowest()`.
    pub(super) fn extreme(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let nodes = self.set(0)?;
        let largest = matches!(self.builtin.function, Function::Max | Function::Highest);
        let mut best = f64::NAN;
        let mut at_best = Vec::new();
        for node in nodes.iter() {
            let value = xpath::number::parse(&engine.node_string(node));
            if value.is_nan() {
                best = f64::NAN;
                at_best.clear();
                break;
            }
            if best.is_nan() || (largest && value > best) || (!largest && value < best) {
                best = value;
                at_best.clear();
            }
            if value == best {
                at_best.push(node);
            }
        }
        Ok(match self.builtin.function {
            Function::Min | Function::Max => Value::Number(best),
            _ => Value::NodeSet(NodeSet::from_ordered(&at_best)),
        })
    }

    /// `str:tokenize()`, `str:split()`.
    pub(super) fn tokens(&self) -> Result<Value, String> {
        let tokenize = matches!(self.builtin.function, Function::Tokenize);
        let separator = match self.args.get(1) {
            Some(_) => self.text(1)?,
            None if tokenize => "\t\r\n ".to_owned(),
            None => " ".to_owned(),
        };
        let tokens = if tokenize {
            strings::tokenize(&self.text(0)?, &separator)
        } else {
            strings::split(&self.text(0)?, &separator)
        };
        let mut doc = Document::new();
        for token in &tokens {
            let element = doc.append_element(Document::ROOT, "", "", "token");
            doc.append_text(element, token);
        }
        self.host.children_of_fragment(doc)
    }

    /// `str:replace()`.
    pub(super) fn replace(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let list = |at: usize| -> Result<Vec<String>, String> {
            Ok(match self.args.get(at).and_then(node_set) {
                Some(nodes) => nodes.iter().map(|node| engine.node_string(node)).collect(),
                None => vec![self.text(at)?],
            })
        };
        let replaced = strings::replace(&self.text(0)?, &list(1)?, &list(2)?);
        let mut doc = Document::new();
        if !replaced.is_empty() {
            doc.append_text(Document::ROOT, &replaced);
        }
        self.host.children_of_fragment(doc)
    }

    /// `str:padding()`.
    pub(super) fn padding(&self) -> Result<Value, String> {
        let pattern = if self.args.len() > 1 { self.text(1)? } else { " ".to_owned() };
        Ok(Value::from(strings::padding(self.number(0)?, &pattern)))
    }

    /// `regexp:match()`.
    pub(super) fn regexp_match(&self) -> Result<Value, String> {
        let mut doc = Document::new();
        for found in functions::regexp::matches(&self.text(0)?, &self.text(1)?, &self.text(2)?)? {
            let element = doc.append_element(Document::ROOT, "", "", "match");
            doc.append_text(element, &found);
        }
        self.host.children_of_fragment(doc)
    }

    /// The functions of [`dates`].
    pub(super) fn date(&self) -> Result<Value, String> {
        let texts = (0..self.args.len()).map(|at| self.text(at)).collect::<Result<Vec<_>, _>>()?;
        Ok(match dates::call(self.builtin.local, &texts) {
            Some(dates::DateResult::Text(text)) => Value::from(text),
            Some(dates::DateResult::Number(number)) => Value::Number(number),
            Some(dates::DateResult::Boolean(value)) => Value::Boolean(value),
            None => return Err(format!("date:{}() cannot take these arguments", self.builtin.local)),
        })
    }
}

/// `math:constant`: to a number of decimal places.
pub(super) fn constant(name: &str, precision: f64) -> f64 {
    use std::f64::consts;
    let value = match name {
        "PI" => consts::PI,
        "E" => consts::E,
        "SQRRT2" => consts::SQRT_2,
        "LN2" => consts::LN_2,
        "LN10" => consts::LN_10,
        "LOG2E" => consts::LOG2_E,
        "SQRT1_2" => consts::FRAC_1_SQRT_2,
        _ => return f64::NAN,
    };
    if precision.is_nan() || precision < 0.0 {
        return f64::NAN;
    }
    let text = value.to_string();
    let digits = 2 + precision.min(20.0) as usize;
    text.get(..digits.min(text.len())).and_then(|t| t.trim_end_matches('.').parse().ok()).unwrap_or(value)
}

/// A pseudo-random number from 0 to 1.
pub(super) fn random() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0u64) >> 11) as f64 / (1u64 << 53) as f64
}
