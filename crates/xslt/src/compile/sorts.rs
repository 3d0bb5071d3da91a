//! `xsl:sort` and `xsl:number`: the order of nodes, and their numbers.

use super::{Compiler, XSLT, is_space};
use crate::model::{Avt, Body, Level, Number, Op, Sort};
use xml::{NodeId, NodeKind};

impl Compiler<'_> {
    pub(super) fn sorts(&mut self, node: NodeId) -> Box<[Sort]> {
        let module = self.module.clone();
        let doc = &module.doc;
        let children: Vec<NodeId> = doc.children(node).filter(|n| doc.is_element(*n, XSLT, "sort")).collect();
        let mut sorts = Vec::new();
        for child in children {
            self.attributes(child, &["select", "lang", "data-type", "order", "case-order"], &[]);
            let collation = if self.version2 { self.collation(child, "XTDE1035") } else { None };
            // (It may be a template, of which nothing is known here.)
            let stable = doc.attribute(child, "", "stable").filter(|value| !value.contains('{'));
            if self.version2 && stable.is_some() {
                self.yes_no(child, "stable");
            }
            if self.version2 && doc.attribute(child, "", "stable").is_some() && !sorts.is_empty() {
                self.error(child, "XTSE1017: stable belongs to the first xsl:sort".into());
            }
            if !self.version2 {
                self.empty(child);
            }
            let select = self.expression_attribute(child, "select");
            let content = if self.version2 { self.body(child) } else { Body::default() };
            if select.is_some() && !content.is_empty() {
                self.error(child, "XTSE1015: xsl:sort has both a select attribute and content".into());
            }
            for (name, values) in
                [("order", ["ascending", "descending"]), ("case-order", ["upper-first", "lower-first"])]
            {
                if let Some(value) = doc.attribute(child, "", name)
                    && !value.contains('{')
                    && !values.contains(&value)
                    && !self.forwards
                {
                    self.error_as(
                        child,
                        "XTSE0020",
                        format!("{name}=\"{value}\" must be {} or {}", values[0], values[1]),
                    );
                }
            }
            if let Some(value) = doc.attribute(child, "", "data-type")
                && !value.contains(['{', ':'])
                && !matches!(value, "text" | "number")
                && !self.forwards
            {
                self.error_as(child, "XTSE0020", format!("data-type=\"{value}\" must be text or number"));
            }
            // The order of strings does not depend on the language; the attribute must still be well-formed.
            self.avt_attribute(child, "lang");
            let sort = Sort {
                select,
                body: content,
                order: self.avt_attribute(child, "order"),
                data_type: self.avt_attribute(child, "data-type"),
                case_order: self.avt_attribute(child, "case-order"),
                typed: self.version2,
                words: doc.attribute(child, "", "lang").is_some()
                    || doc.attribute(child, "", "case-order").is_some(),
                collation,
                plain: None,
                place: self.place(child),
            };
            sorts.push(sort.prepare());
        }
        sorts.into()
    }

    pub(super) fn sorts_first(&mut self, node: NodeId) {
        let module = self.module.clone();
        let doc = &module.doc;
        let (mut leading, mut misplaced) = (true, false);
        for child in doc.children(node) {
            match doc.kind(child) {
                NodeKind::Element if doc.is_element(child, XSLT, "sort") => {
                    misplaced |= !leading;
                }
                NodeKind::Element => leading = false,
                NodeKind::Text if !is_space(doc.text(child)) => leading = false,
                _ => {}
            }
        }
        if misplaced && !self.forwards {
            self.error_as(node, "XTSE0010", "xsl:sort must come first".into());
        }
    }

    pub(super) fn number(&mut self, node: NodeId) -> Op {
        self.attributes(
            node,
            &[
                "level",
                "count",
                "from",
                "value",
                "format",
                "lang",
                "letter-value",
                "grouping-separator",
                "grouping-size",
            ],
            &[],
        );
        self.empty(node);
        let level = match self.attribute(node, "level").as_deref() {
            None | Some("single") => Level::Single,
            Some("multiple") => Level::Multiple,
            Some("any") => Level::Any,
            Some(other) => {
                if !self.forwards {
                    self.error_as(
                        node,
                        "XTSE0020",
                        format!("level=\"{other}\" must be single, multiple or any"),
                    );
                }
                Level::Single
            }
        };
        if self.version2 && self.attribute(node, "value").is_some() {
            let more = ["select", "level", "count", "from"]
                .into_iter()
                .find(|name| self.attribute(node, name).is_some());
            if let Some(more) = more {
                self.error(node, format!("XTSE0975: xsl:number has both value and {more}"));
            }
        }
        let select = if self.version2 { self.expression_attribute(node, "select") } else { None };
        let ordinal = if self.version2 { self.avt_attribute(node, "ordinal") } else { None };
        let start_at = if self.plan.version3 { self.avt_attribute(node, "start-at") } else { None };
        Op::Number(Box::new(Number {
            value: self.expression_attribute(node, "value"),
            select,
            version2: self.version2,
            start_at,
            ordinal,
            level,
            count: self.pattern_attribute(node, "count", false),
            from: self.pattern_attribute(node, "from", false),
            format: self.avt_attribute(node, "format").unwrap_or(Avt::Fixed("1".into())),
            lang: self.avt_attribute(node, "lang"),
            letter_value: self.avt_attribute(node, "letter-value"),
            grouping_separator: self.avt_attribute(node, "grouping-separator"),
            grouping_size: self.avt_attribute(node, "grouping-size"),
        }))
    }
}
