//! Declared types: `as` of variables, parameters and arguments.

use super::{Compiler, XSLT};
use crate::expr::ElementScope;
use crate::model::{Binding, Declared, Instruction, Op, Typed};
use crate::names::Name;
use crate::version2::Version2;
use xml::NodeId;
use xpath::SeqType;

impl Compiler<'_> {
    /// The parameter at `node`: its instructions at the beginning of the template. `true`: it takes the slot of an argument.
    pub(super) fn version2_parameter(&mut self, node: NodeId, name: Name) -> (Vec<Instruction>, bool) {
        let place = self.place(node);
        let module = self.module.clone();
        let of_function =
            module.doc.parent(node).is_some_and(|parent| module.doc.is_element(parent, XSLT, "function"));
        let title = self.title(node);
        let declared = self.declared(node, if of_function { "XTTE0790" } else { "XTTE0590" }, &title);
        let required = self.flag(node, "required", false);
        if of_function && !required && module.doc.attribute(node, "", "required").is_some() {
            let code = if self.plan.version3 { "XTSE0020" } else { "XTSE0090" };
            self.error(node, format!("{code}: {title} of a function is always required"));
        }
        let has_default = module.doc.attribute(node, "", "select").is_some() || self.has_content(node);
        if has_default && required {
            self.error(node, format!("XTSE0010: {title} is required: it has no default"));
        }
        if has_default && of_function {
            self.error(node, format!("XTSE0760: {title} of a function has no default"));
        }
        let tunnel = self.flag(node, "tunnel", false);
        if tunnel && of_function {
            self.error(node, format!("XTSE0020: {title} of a function is no tunnel parameter"));
        }
        let value = if required {
            let shown = self.symbols.show(name);
            Binding::Required(format!("XTDE0700: the parameter ${shown} is required").into())
        } else if of_function {
            Binding::Empty
        } else {
            self.binding(node)
        };
        let slot = self.declare_local(node, name);
        if tunnel {
            let op = Op::Version2(Box::new(Version2::TunnelParam { slot, name, value, declared }));
            return (vec![Instruction { op, place }], false);
        }
        let mut ops = vec![Instruction { op: Op::Param { slot, value }, place }];
        if let Some(declared) = declared {
            ops.push(Instruction { op: Op::Version2(Box::new(Version2::Convert { slot, declared })), place });
        }
        (ops, true)
    }

    /// The value of a variable, argument or default of a parameter with a declared type.
    pub(super) fn typed_binding(&mut self, node: NodeId) -> Option<Binding> {
        let parameter = self.module.doc.local(node) == "param";
        let code = if parameter { "XTTE0600" } else { "XTTE0570" };
        let of = self.title(node);
        let mut declared = self.declared(node, code, &of)?;
        self.no_content_beside_select(node);
        let select = self.expression_attribute(node, "select");
        let value = match select {
            Some(select) => Binding::Select(select),
            None => Binding::Sequence(self.body(node)),
        };
        if parameter && matches!(&value, Binding::Sequence(body) if body.is_empty()) {
            // Without a default, where an empty value is not of the type: it is required.
            declared.code = "XTDE0610";
        }
        Some(Binding::As(Box::new(Typed { value, declared })))
    }

    /// The type in attribute `as`; `code` and `of` as in [`Declared`].
    pub(super) fn declared(&mut self, node: NodeId, code: &'static str, of: &str) -> Option<Declared> {
        Some(Declared { ty: self.declared_type(node)?, code, of: of.into() })
    }

    /// The types of the parameters and of the result of an `xsl:function`.
    pub(super) fn function_types(&mut self, node: NodeId) -> xpath::FunctionTypes {
        let params = self.children_named(node, "param");
        let params = params.into_iter().map(|param| self.declared_type(param)).collect();
        xpath::FunctionTypes { params, result: self.declared_type(node) }
    }

    /// The sequence type in attribute `as`.
    fn declared_type(&mut self, node: NodeId) -> Option<SeqType> {
        if !self.version2 {
            return None;
        }
        let source = self.attribute(node, "as")?;
        let default = self.default_namespace(node);
        let module = self.module.clone();
        let scope = ElementScope { doc: &module.doc, node };
        let compiled = xpath::parse_sequence_type(&source)
            .and_then(|ty| SeqType::compile(&ty, &source, &scope, &default));
        match compiled {
            Ok(ty) => Some(ty),
            Err(error) => {
                self.error(node, format!("{} (in as=\"{source}\")", error.sentence()));
                None
            }
        }
    }

    /// The name of the variable or parameter at `node` in errors.
    pub(super) fn title(&self, node: NodeId) -> String {
        let doc = &self.module.doc;
        let kind = match doc.local(node) {
            "variable" => "variable",
            "with-param" => "argument",
            _ => "parameter",
        };
        format!("the {kind} ${}", doc.attribute(node, "", "name").unwrap_or_default().trim())
    }
}
