//! The functions that expressions have in a stylesheet beyond those of XPath: those of XSLT here, extensions in [`exslt`](super::exslt).

use super::exslt::{constant, random};
use super::{DocHost, ExprHost};
use crate::compile::XSLT;
use crate::compile::availability::{Language, SYSTEM_PROPERTIES, system_property};
use crate::functions::{self, Builtin, Function, dates, strings};
use crate::run::{Focus, node_set};
use std::sync::Arc;
use xml::Document;
use xpath::atomic::{Atomic, AtomicType, Kind, MomentKind, NameValue};
use xpath::{Context, DocId, Host, Item, Node, NodeSet, Value};

/// A call of a function: with its arguments, and where it is made.
pub(super) struct Call<'c, 'h, 'e> {
    pub(super) host: &'c ExprHost<'h, 'e>,
    pub(super) builtin: &'c Builtin,
    pub(super) args: &'c [Value],
    pub(super) cx: &'c Context<'c>,
    /// As `cx`, for conversions of the arguments: they need the documents only.
    pub(super) conversions: Context<'c>,
}

impl ExprHost<'_, '_> {
    /// Calls a function of the table.
    pub(super) fn builtin(
        &self,
        builtin: &Builtin,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Value, String> {
        let documents = DocHost { engine: self.engine };
        Call { host: self, builtin, args, cx, conversions: Context { host: &documents, ..*cx } }.result()
    }
}

impl Call<'_, '_, '_> {
    /// The result of the function.
    fn result(&self) -> Result<Value, String> {
        match self.builtin.function {
            Function::Key => self.key(),
            Function::Document => self.document(),
            Function::FormatNumber => self.format_number(),
            Function::GenerateId => self.generate_id(),
            Function::SystemProperty => self.system_property(),
            Function::AvailableSystemProperties => {
                let name = |local: &str| {
                    let name =
                        NameValue { prefix: "xsl".into(), namespace: XSLT.into(), local: local.into() };
                    Item::Atomic(Atomic::Name(Arc::new(name)))
                };
                Ok(Value::from_items(SYSTEM_PROPERTIES.into_iter().map(name).collect()))
            }
            Function::ElementAvailable => self.element_available(),
            // (A function always has a namespace.)
            Function::FunctionAvailable if self.text(0)?.trim().starts_with("Q{}") => {
                Ok(Value::Boolean(false))
            }
            Function::FunctionAvailable => self.function_available(),
            Function::UnparsedEntityUri | Function::UnparsedEntityPublicId => self.unparsed_entity(),
            Function::NodeSet => self.node_set(),
            Function::ObjectType => self.object_type(),
            Function::Difference => self.difference(),
            Function::Intersection => self.intersection(),
            Function::HasSameNodes => self.has_same_nodes(),
            Function::Parse => self.parse(),
            Function::Serialize => self.serialize(),
            Function::RegexpTest => {
                Ok(Value::Boolean(functions::regexp::test(&self.text(0)?, &self.text(1)?, &self.text(2)?)?))
            }
            Function::RegexpReplace => Ok(Value::from(functions::regexp::replace(
                &self.text(0)?,
                &self.text(1)?,
                &self.text(2)?,
                &self.text(3)?,
            )?)),
            Function::RegexpMatch => self.regexp_match(),
            Function::HasSameNode => self.has_same_node(),
            Function::Distinct => self.distinct(),
            Function::Leading | Function::Trailing => self.leading_or_trailing(),
            Function::Min | Function::Max | Function::Highest | Function::Lowest => self.extreme(),
            Function::Power => Ok(Value::Number(self.number(0)?.powf(self.number(1)?))),
            Function::Atan2 => Ok(Value::Number(self.number(0)?.atan2(self.number(1)?))),
            Function::Real(function) => Ok(Value::Number(function(self.number(0)?))),
            Function::RandomNumber => Ok(Value::Number(random())),
            Function::Constant => Ok(Value::Number(constant(&self.text(0)?, self.number(1)?))),
            Function::Tokenize | Function::Split => self.tokens(),
            Function::Replace => self.replace(),
            Function::Padding => self.padding(),
            Function::Align => {
                Ok(Value::from(strings::align(&self.text(0)?, &self.text(1)?, &self.text(2)?)))
            }
            Function::Concat => Ok(Value::from(
                self.set(0)?.iter().map(|node| self.host.engine.node_string(node)).collect::<String>(),
            )),
            Function::EncodeUri => Ok(Value::from(strings::encode_uri(
                &self.text(0)?,
                self.args.get(1).is_some_and(Value::to_boolean),
            ))),
            Function::DecodeUri => Ok(Value::from(strings::decode_uri(&self.text(0)?))),
            Function::DateSum => Ok(Value::from(dates::sum(
                self.set(0)?.iter().map(|node| self.host.engine.node_string(node)),
            ))),
            Function::Date => self.date(),
            Function::Current => self.current(),
            Function::CurrentMergeKey => self.current_merge_key(),
            Function::CurrentMergeGroup => self.current_merge_group(),
            Function::CopyOf | Function::Snapshot => self.copies(),
            Function::CurrentGroup | Function::CurrentGroupingKey => self.current_group(),
            Function::CurrentOutputUri => {
                let output = self.host.engine.dynamic(self.host.dynamic).and_then(|d| d.output.clone());
                Ok(output.map_or(Value::Empty, |uri| Value::from(Atomic::Uri(uri))))
            }
            Function::Accumulator => self.accumulator(),
            Function::RegexGroup => self.regex_group(),
            Function::UnparsedText | Function::UnparsedTextAvailable => self.unparsed_text(),
            Function::FormatMoment => self.format_moment(),
            Function::TypeAvailable => self.type_available(),
            Function::StreamAvailable => {
                let base = self.host.xpath.base.as_deref().unwrap_or_default();
                let given = self.args.first().is_some_and(|uri| !uri.is_empty());
                Ok(Value::Boolean(
                    given && matches!(self.host.engine.load(&self.text(0)?, base), Ok(Some(_))),
                ))
            }
            Function::Evaluate => {
                Ok(self.host.evaluated(&self.text(0)?, self.cx)?.unwrap_or(Value::NodeSet(NodeSet::new())))
            }
            Function::Map => self.host.map(&self.set(0)?, &self.text(1)?, self.cx),
        }
    }

    /// An argument as a string; empty if it is absent.
    pub(super) fn text(&self, at: usize) -> Result<String, String> {
        match self.args.get(at) {
            Some(value) => {
                value.to_string_in(&self.conversions).map(|s| s.into_owned()).map_err(|e| e.message)
            }
            None => Ok(String::new()),
        }
    }

    /// An argument as a number; NaN if it is absent.
    pub(super) fn number(&self, at: usize) -> Result<f64, String> {
        self.args
            .get(at)
            .map_or(Ok(f64::NAN), |value| value.to_number_in(&self.conversions).map_err(|e| e.message))
    }

    /// An argument that has to be a node-set.
    pub(super) fn set(&self, at: usize) -> Result<NodeSet, String> {
        self.args
            .get(at)
            .and_then(node_set)
            .ok_or_else(|| format!("argument {} of {}() must be a node-set", at + 1, self.builtin.local))
    }

    /// Nodes in document order.
    fn sorted(&self, nodes: Vec<Node>) -> Result<Value, String> {
        NodeSet::sorted(nodes, &self.conversions).map(Value::NodeSet).map_err(|e| e.message)
    }

    /// `key()`: the nodes of a document that have a value of a key.
    fn key(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let name = self.text(0)?;
        let name = self.host.resolve(&name).and_then(|(ns, local)| engine.symbols.find(&ns, &local));
        let Some(name) = name.filter(|name| engine.plan.keys.contains_key(name)) else {
            return Err(engine.coded(format!("XTDE1260: there is no key \"{}\"", self.text(0)?)));
        };
        let within = match self.args.get(2).map(node_set) {
            None => None,
            Some(Some(nodes)) if nodes.len() == 1 => nodes.first(),
            Some(_) => {
                return Err("XPTY0004: the third argument of key() must be a single node".into());
            }
        };
        let doc = within.map_or(self.cx.node.doc, |node| node.doc);
        if doc == DocId::ATOMIC {
            return Err("XTDE1270: key() needs a context node or a third argument".into());
        }
        let node = within.unwrap_or(self.cx.node);
        if engine.plan.version2 && engine.doc(doc).root_of(node.id) != Document::ROOT {
            return Err("XTDE1270: key() is about a tree whose root is a document node".into());
        }
        let focus = Focus::new(Node::in_document(doc, Document::ROOT), self.host.depth, self.host.next);
        let index = engine.key_index(name, &focus).map_err(|error| self.host.keep(error))?;
        let collation = engine.collation_of_key(name);
        let list = |value: &str| index.get(&collation.key(value)).cloned().unwrap_or_default();
        let get = |value: &str| index.get(&collation.key(value)).map_or(&[][..], NodeSet::as_slice);
        let typed = engine.plan.keys.get(&name).is_some_and(|keys| keys.iter().any(|key| key.typed));
        let get_item = |item: Item| match engine.atom(item) {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => get(&s).to_vec(),
            other if typed => index.of_values(std::slice::from_ref(&other)).cloned().unwrap_or_default(),
            other => get(&other.to_text()).to_vec(),
        };
        let composite =
            engine.plan.keys.get(&name).and_then(|keys| keys.first()).is_some_and(|key| key.composite);
        let whole = || -> Vec<Node> {
            let items = self.args.get(1).into_iter().flat_map(Value::items);
            let atoms: Vec<Atomic> =
                items.map(|item| collation.atom(&engine.key_atom(item)).into_owned()).collect();
            index.of_values(&atoms).cloned().unwrap_or_default()
        };
        // (All nodes of the document are within its root.)
        let within = within.filter(|top| top.id != Document::ROOT);
        if composite && within.is_none() {
            return self.sorted(whole());
        }
        if let Some(top) = within {
            let mut found = Vec::new();
            if composite {
                found = whole();
            } else if let Some(values) = self.args.get(1) {
                found.extend(values.items().flat_map(get_item));
            }
            let doc = engine.doc(doc);
            found.retain(|node: &Node| {
                let mut at = Some(node.id);
                while let Some(id) = at {
                    if id == top.id {
                        return true;
                    }
                    at = doc.parent(id);
                }
                false
            });
            return self.sorted(found);
        }
        if let Some(values) = self.args.get(1)
            && (matches!(values, Value::Sequence(_))
                || typed && !matches!(values, Value::NodeSet(_) | Value::String(_)))
        {
            return self.sorted(values.items().flat_map(get_item).collect());
        }
        Ok(match self.args.get(1).and_then(node_set) {
            Some(values) => match values.as_slice() {
                [value] => Value::NodeSet(list(&engine.node_string(*value))),
                values => {
                    let mut found = Vec::new();
                    for value in values {
                        found.extend_from_slice(get(&engine.node_string(*value)));
                    }
                    self.sorted(found)?
                }
            },
            None => Value::NodeSet(list(&self.text(1)?)),
        })
    }

    /// `document()`: documents by URI, relative to a node or the stylesheet.
    fn document(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let failed = |message: String| match engine.plan.version3 {
            true => format!("FODC0002: {message}"),
            false => message,
        };
        let stylesheet = self.host.xpath.base.as_deref().unwrap_or("");
        let base = match self.args.get(1) {
            Some(_) => match self.set(1)?.first() {
                Some(node) => Some(engine.docs.uri(node.doc).to_owned()),
                // Without a base URI it cannot be resolved.
                None => return Ok(Value::NodeSet(NodeSet::new())),
            },
            None => None,
        };
        Ok(match self.args.first() {
            // The second argument, if there is one, is the base for all; else nodes have their own.
            Some(Value::NodeSet(_) | Value::Empty | Value::Sequence(_)) => {
                let mut found = Vec::new();
                for item in self.args[0].items() {
                    let base = match (&base, &item) {
                        (Some(base), _) => base.clone(),
                        (None, Item::Node(node)) => engine.docs.uri(node.doc).to_owned(),
                        (None, Item::Atomic(_)) => stylesheet.to_owned(),
                    };
                    found.extend(engine.load(&engine.item_text(&item), &base).map_err(failed)?);
                }
                self.sorted(found)?
            }
            _ => {
                let base = base.as_deref().unwrap_or(stylesheet);
                let found = engine.load(&self.text(0)?, base).map_err(failed)?;
                found.map_or(Value::NodeSet(NodeSet::new()), Value::from)
            }
        })
    }

    /// `format-number()`.
    fn format_number(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let format = match self.args.get(2) {
            None => Some(&engine.plan.default_format),
            Some(name) if engine.plan.version2 && name.is_empty() => Some(&engine.plan.default_format),
            Some(_) => self
                .host
                .resolve(&self.text(2)?)
                .and_then(|(ns, local)| engine.symbols.find(&ns, &local))
                .and_then(|name| engine.plan.formats.get(&name)),
        };
        let Some(format) = format else {
            let code = if engine.plan.version3 { "FODF1280" } else { "XTDE1280" };
            return Err(engine.coded(format!("{code}: there is no decimal format \"{}\"", self.text(2)?)));
        };
        if engine.plan.version2 && self.host.xpath.expression.version() != xpath::Version::V1 {
            let given = self.args.first().and_then(|value| value.item(0)).map(|item| engine.atom(item));
            let given = match given {
                None => Atomic::Double(f64::NAN),
                Some(atom) if atom.is_numeric() => atom,
                // (As 2.0 reads numbers: `1e2`.)
                Some(atom) => Atomic::Double(atom.to_double()),
            };
            let written =
                xpath::format::picture::format(&given, &self.text(1)?, format, engine.plan.version3);
            let code = if engine.plan.version3 { "FODF1310" } else { "XTDE1310" };
            return written.map(Value::from).map_err(|e| format!("{code}: {e}"));
        }
        Ok(Value::from(format.format(self.number(0)?, &self.text(1)?)?))
    }

    /// `generate-id()`.
    fn generate_id(&self) -> Result<Value, String> {
        let node = match self.args.first() {
            None => Some(self.cx.node),
            Some(_) => self.set(0)?.first(),
        };
        Ok(Value::from(node.map_or(String::new(), generated_id)))
    }

    /// `system-property()`.
    fn system_property(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let name = self.text(0)?;
        let Some((namespace, local)) = self.host.resolve(&name) else {
            return Err(engine.coded(format!("XTDE1390: the prefix of \"{name}\" is not declared")));
        };
        let language = Language { version3: engine.plan.version3, evaluates: engine.plan.evaluates };
        Ok(system_property(&namespace, &local, engine.plan.version2, language))
    }

    /// `element-available()`.
    fn element_available(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let name = self.text(0)?;
        let available = match self.host.resolve(&name) {
            Some((namespace, local)) => {
                // Unprefixed: the default namespace.
                let namespace = if name.contains(':') {
                    namespace
                } else {
                    self.host.lookup("").unwrap_or_default().to_owned()
                };
                let available = match engine.plan.version2 {
                    true => {
                        crate::compile::is_available_in_2(&local)
                            && (local != "evaluate" || engine.plan.evaluates)
                            || engine.plan.version3 && crate::compile::is_declaration(&local)
                    }
                    false => crate::compile::is_available(&local),
                };
                (namespace == crate::compile::XSLT && available)
                    || (namespace == functions::EXSLT_FUNCTIONS && local == "result")
                    || crate::compile::Extension::find(&namespace, &local).is_some()
            }
            None => {
                self.is_name("XTDE1440", &name)?;
                false
            }
        };
        Ok(Value::Boolean(available))
    }

    /// From 2.0 on a name given as a string has a prefix that is declared; the name was not resolved.
    fn is_name(&self, code: &str, name: &str) -> Result<(), String> {
        match self.host.engine.plan.version2 {
            true => Err(format!("{code}: \"{name}\" is not a name, or its prefix is not declared")),
            false => Ok(()),
        }
    }

    /// `function-available()`.
    fn function_available(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let name = self.text(0)?;
        if self.host.resolve(&name).is_none() {
            self.is_name("XTDE1400", &name)?;
        }
        let available = self.host.resolve(&self.text(0)?).is_some_and(|(namespace, local)| {
            engine.plan.version2
                && crate::compile::availability::function_available(&namespace, &local, engine.plan.version3)
                || (namespace.is_empty() && (functions::CORE.contains(&local.as_str()) || local == "current"))
                || functions::find(&namespace, &local, engine.plan.version2).is_some()
                || engine
                    .symbols
                    .find(&namespace, &local)
                    .is_some_and(|name| engine.plan.functions.values().any(|function| function.name == name))
        });
        let Some(arity) = self.args.get(1).filter(|_| available) else {
            return Ok(Value::Boolean(available));
        };
        let arity = arity.to_number_in(&self.conversions).map_err(|e| e.message)?;
        let found = self.host.resolve(&self.text(0)?).is_some_and(|(namespace, local)| {
            let uri = match namespace.as_str() {
                "" => "http://www.w3.org/2005/xpath-functions",
                other => other,
            };
            (0.0..1e6).contains(&arity)
                && (xpath::takes(uri, &local, arity as usize)
                    || self.host.find_function(uri, &local, arity as usize).is_some())
        });
        Ok(Value::Boolean(found))
    }

    /// `unparsed-entity-uri()`, `unparsed-entity-public-id()`.
    fn unparsed_entity(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let name = self.text(0)?;
        let document = match self.args.get(1) {
            None => self.cx.node.doc,
            Some(_) => self.set(1)?.first().map_or(DocId::ATOMIC, |node| node.doc),
        };
        if document == DocId::ATOMIC {
            let code = if self.builtin.local.ends_with("uri") { "XTDE1370" } else { "XTDE1380" };
            return Err(format!("{code}: {}() is about a node in a document", self.builtin.local));
        }
        let found = engine.doc(document).unparsed_entity(&name);
        Ok(match self.builtin.function {
            Function::UnparsedEntityPublicId => {
                Value::from(found.and_then(|(_, public)| public).unwrap_or_default())
            }
            _ => {
                let uri = found.map(|(system, _)| crate::resolver::join(engine.docs.uri(document), system));
                let uri = uri.unwrap_or_default();
                match engine.plan.version2 {
                    true => Value::Atomic(Atomic::Uri(uri.into())),
                    false => Value::from(uri),
                }
            }
        })
    }

    /// `current()`.
    fn current(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        Ok(match engine.item(self.host.current) {
            Some(item) => Value::from(item),
            None => return Err("XTDE1360: there is no context item here".into()),
        })
    }

    /// `current-merge-key()`.
    fn current_merge_key(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        engine
            .dynamic(self.host.dynamic)
            .filter(|d| d.merged.is_some())
            .map(|d| d.merge_key.clone())
            .ok_or_else(|| "XTDE3510: there is no current merge key here".to_owned())
    }

    /// `current-merge-group()`.
    fn current_merge_group(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let dynamic = engine.dynamic(self.host.dynamic);
        let Some(group) = dynamic.as_ref().and_then(|d| d.merged.as_ref()) else {
            return Err("XTDE3480: there is no current merge group here".into());
        };
        if self.args.is_empty() {
            return Ok(group.whole.clone());
        }
        let wanted = self.text(0)?;
        let found = group.named.iter().find(|(name, _)| **name == *wanted);
        found
            .map(|(_, items)| items.clone())
            .ok_or_else(|| format!("XTDE3490: xsl:merge has no source named \"{wanted}\""))
    }

    /// `copy-of()`, `snapshot()`.
    fn copies(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let items: Vec<Item> = match self.args.first() {
            Some(value) => value.items().collect(),
            None => match engine.item(self.cx.node).or_else(|| self.cx.item.cloned().map(Item::Atomic)) {
                Some(item) => vec![item],
                None => return Err("XPDY0002: there is no context item here".into()),
            },
        };
        let mut copies = Vec::with_capacity(items.len());
        for item in items {
            copies.push(match item {
                Item::Node(node) => match self.builtin.function {
                    Function::CopyOf => Item::Node(self.host.copy_of(node)?),
                    _ => Item::Node(self.host.snapshot(node)?),
                },
                item => item,
            });
        }
        Ok(Value::from_items(copies))
    }

    /// The context of the instructions around. In a function value there is none (XSLT 3.0 sections 14.2, 15.6 and 17.2).
    fn dynamic(&self) -> Option<std::sync::Arc<super::super::dynamic::Dynamic>> {
        if self.cx.referred { None } else { self.host.engine.dynamic(self.host.dynamic) }
    }

    /// `current-group()`, `current-grouping-key()`.
    fn current_group(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let group = matches!(self.builtin.function, Function::CurrentGroup);
        let dynamic = self.dynamic();
        let found = dynamic.and_then(|d| if group { d.group.clone() } else { d.key.clone() });
        Ok(match found {
            Some(value) => value,
            // An error from 3.0 on.
            None if engine.plan.version3 => {
                let code = if group { "XTDE1061" } else { "XTDE1071" };
                return Err(format!("{code}: {}(): there is none here", self.builtin.local));
            }
            None => Value::Empty,
        })
    }

    /// `accumulator-before()`, `accumulator-after()`.
    fn accumulator(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let given = self.text(0)?;
        let name = self.host.resolve(&given).and_then(|(ns, local)| engine.symbols.find(&ns, &local));
        let Some(name) = name else {
            return Err(format!("XTDE3340: there is no accumulator \"{given}\""));
        };
        let focus = Focus::new(self.cx.node, self.host.depth, self.host.next);
        let value = engine.accumulator_value(name, &focus, self.builtin.local == "accumulator-after");
        value.map_err(|error| self.host.keep(error))
    }

    /// `regex-group()`.
    fn regex_group(&self) -> Result<Value, String> {
        let number = self.number(0)?;
        let dynamic = self.dynamic();
        let found = dynamic.as_ref().and_then(|d| d.captures.get(number as usize)).filter(|_| number >= 0.0);
        Ok(Value::from(found.map_or("", |text| text)))
    }

    /// `unparsed-text()`, `unparsed-text-available()`.
    fn unparsed_text(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        if self.args.first().is_none_or(Value::is_empty) {
            return Ok(Value::Empty);
        }
        let encoding = if self.args.len() > 1 { Some(self.text(1)?) } else { None };
        let found = engine.unparsed_text(
            &self.text(0)?,
            self.host.xpath.base.as_deref().unwrap_or(""),
            encoding.as_deref(),
        );
        Ok(match self.builtin.function {
            Function::UnparsedText => Value::from(found?),
            _ => Value::Boolean(found.is_ok()),
        })
    }

    /// `format-date()`, `format-time()`, `format-dateTime()`.
    fn format_moment(&self) -> Result<Value, String> {
        let engine = self.host.engine;
        let kind = match self.builtin.local {
            "format-date" => MomentKind::Date,
            "format-time" => MomentKind::Time,
            _ => MomentKind::DateTime,
        };
        let Some(item) = self.args.first().and_then(|value| value.item(0)) else {
            return Ok(Value::Empty);
        };
        let atom = engine.atom(item);
        let atom = match &atom {
            Atomic::Untyped(_) => {
                let ty = AtomicType::of(Kind::Moment(kind));
                atom.cast(ty).map_err(|e| format!("{}: {}", e.code, e.message))?
            }
            _ => atom,
        };
        Ok(match &atom {
            Atomic::Moment(moment) if moment.kind == kind => {
                let argument = |at: usize| match self.args.get(at) {
                    None => Ok(None),
                    Some(value) if value.is_empty() => Ok(None),
                    Some(_) => self.text(at).map(Some),
                };
                let (language, calendar, place) = (argument(2)?, argument(3)?, argument(4)?);
                let prefix = calendar
                    .as_deref()
                    .filter(|name| !name.contains('{'))
                    .and_then(|name| name.split_once(':'));
                if let Some((prefix, _)) = prefix
                    && self.host.lookup(prefix.trim()).is_none()
                {
                    let code = if engine.plan.version3 { "FOFD1340" } else { "XTDE1340" };
                    return Err(format!("{code}: the prefix of the calendar is not declared: {prefix}"));
                }
                let manner = xpath::format::pictures::Manner {
                    language: language.as_deref(),
                    calendar: calendar.as_deref(),
                    place: place.as_deref(),
                };
                let written = xpath::format::pictures::format_as(moment, &self.text(1)?, &manner);
                // From 3.0 on the codes are those of XPath.
                Value::from(written.map_err(|message| match message.strip_prefix("XTDE") {
                    Some(rest) if engine.plan.version3 => format!("FOFD{rest}"),
                    _ => message,
                })?)
            }
            other => {
                let found = AtomicType::of(other.kind()).name;
                let wanted = AtomicType::of(Kind::Moment(kind)).name;
                return Err(format!(
                    "XPTY0004: {}() takes an xs:{wanted}, this is an xs:{found}",
                    self.builtin.local
                ));
            }
        })
    }

    /// `type-available()`.
    fn type_available(&self) -> Result<Value, String> {
        let name = self.text(0)?;
        let available = self.host.resolve(&name);
        if available.is_none() {
            self.is_name("XTDE1428", &name)?;
        }
        Ok(Value::Boolean(
            available.is_some_and(|(ns, local)| crate::compile::availability::type_available(&ns, &local)),
        ))
    }
}

/// An identifier that is an XML name, different for every node of the transformation.
fn generated_id(node: Node) -> String {
    if node.is_namespace() {
        return format!("id{}n{}s{}", node.doc.0, node.id.index(), node.namespace);
    }
    format!("id{}n{}", node.doc.0, node.id.index())
}
