//! From stylesheet documents to a [`Plan`]: modules are loaded and ordered by import precedence
//! here, top-level elements are read in [`declarations`], template bodies in [`instructions`].

mod agreement;
pub(crate) mod availability;
mod character_maps;
mod decimal_formats;
mod declarations;
mod declared_types;
mod elements;
mod evaluate;
mod functions;
mod instructions;
mod literal;
mod modes;
mod packages;
mod parameters;
mod scope;
mod sorts;
mod statics;
mod version2;
mod version3;
mod versions;

pub(crate) use elements::{Extension, is_available, is_available_in_2, is_declaration};
pub(crate) use scope::is_qname;

use crate::error::XsltError;
use crate::expr::{Dialect, ElementScope, Expr, Level, Library, SimpleScope};
use crate::model::{Place, Plan};
use crate::names::{Name, Names};
use crate::pattern::{Pattern, PatternContext};
use crate::resolver::Resolver;
use agreement::Agreement;
use std::collections::HashMap;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};
use xpath::NamePool;

/// Deepest nesting of elements in a stylesheet.
const MAX_NESTING: usize = 1_000;

/// The namespace of XSLT.
pub(crate) const XSLT: &str = "http://www.w3.org/1999/XSL/Transform";

/// Options of compilation.
#[derive(Clone, Copy)]
pub struct CompileOptions<'a> {
    /// URI or path of the stylesheet: base of its references, and shown in errors.
    pub uri: &'a str,
    /// Finds included and imported modules.
    pub resolver: &'a dyn Resolver,
    /// Which parts of a document type declaration in a stylesheet are read; none by default.
    pub dtd: &'a xml::Dtd,
    /// `--processor`: 1.0 behaves as an XSLT 1.0 processor whatever the stylesheet's version; others run as
    /// forwards-compatible 1.0 then.
    pub processor: Processor,
    /// Whether there may be further results ([`crate::RunOptions::results`]): else an `xsl:result-document` that has a
    /// fixed `href` is an error. Default no.
    pub results: bool,
    /// Whether `xsl:evaluate` may run: expressions from documents and messages. Default no.
    pub evaluate: bool,
    /// Values of static parameters (XSLT 3.0), by local name or `{uri}local`: untyped, as texts. Default none.
    pub static_parameters: &'a [(String, String)],
    /// Most modules (files) of one stylesheet. Default 1,000.
    pub max_modules: usize,
}

/// The version of the language a processor behaves by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Processor {
    /// By the stylesheet's version: 2.0 if a module of it is of version 2.0 or later.
    #[default]
    ByStylesheet,
    /// XSLT 1.0.
    V1,
    /// At least XSLT 2.0: stylesheets of version 1.0 run in its backwards-compatible mode; those of version 3.0 have 3.0, as what 2.0
    /// does not know would be ignored without a word.
    V2,
    /// XSLT 3.0 as far as it is implemented: a missing feature is an error that names it.
    V3,
}

static REFUSE: xml::Dtd = xml::Dtd::Refuse;

impl Default for CompileOptions<'_> {
    fn default() -> Self {
        CompileOptions {
            uri: "",
            resolver: &crate::resolver::NoResolver,
            dtd: &REFUSE,
            processor: Processor::default(),
            results: false,
            evaluate: false,
            static_parameters: &[],
            max_modules: 1000,
        }
    }
}

/// A document with the modules that were read for it.
type Parsed = (Document, HashMap<NodeId, ReadAhead>);

/// A loaded module.
struct Module {
    doc: Document,
    /// `xsl:stylesheet`, or the literal result element of a simplified stylesheet.
    root: NodeId,
    /// The index of its file in [`Plan::modules`].
    file: u16,
    uri: String,
    /// It has an `xml:base` attribute.
    has_bases: bool,
    /// The modules that it imports and includes, if they were read already.
    read: HashMap<NodeId, ReadAhead>,
}

/// The module of an `xsl:import` or `xsl:include`, or why there is none.
struct ReadAhead {
    module: Option<Arc<Module>>,
    errors: Vec<XsltError>,
}

/// A top-level element with its position in the import tree.
#[derive(Clone)]
struct Declaration {
    module: Arc<Module>,
    node: NodeId,
    precedence: u32,
    imports_from: u32,
}

struct Compiler<'a> {
    options: &'a CompileOptions<'a>,
    plan: Plan,
    pool: NamePool,
    symbols: Names,
    errors: Vec<XsltError>,
    declarations: Vec<Declaration>,
    next_precedence: u32,
    files: usize,
    /// Modes, globals, named templates, attribute sets and functions by name.
    modes: HashMap<Name, usize>,
    /// Those that an `xsl:mode` declares.
    declared_modes: std::collections::HashSet<usize>,
    globals: HashMap<Name, usize>,
    named: HashMap<Name, usize>,
    sets: HashMap<Name, usize>,
    functions: HashMap<Name, u32>,
    /// `xsl:function`s by name and number of arguments.
    version2_functions: functions::Version2Functions,
    /// The types of their parameters and results, by slot.
    function_types: HashMap<u32, xpath::FunctionTypes>,
    /// `xsl:character-map`s: the maps that each uses, and its own characters.
    character_maps: HashMap<Name, character_maps::CharacterMap>,
    /// By the name of an `xsl:output`: the maps that it uses, and its place.
    used_maps: HashMap<Option<Name>, (Vec<Name>, Place)>,
    /// Calls of templates in 2.0, whose arguments are checked when all templates are known.
    calls: Vec<functions::Call>,
    /// Static variables so far.
    statics: Vec<statics::StaticVariable>,
    /// The modules that are being read, from the principal one down.
    reading: Vec<String>,
    /// Of these those that are imported, by number: see [`statics::Preparation::levels`].
    levels: Vec<u32>,
    next_level: u32,
    /// The `xsl:iterate`s around.
    iterates: version3::Iterates,
    /// Template rules of `mode="#all"`.
    all_modes: Vec<crate::pattern::Rule>,
    /// Import precedences of accumulators.
    accumulator_precedence: HashMap<Name, u32>,
    /// The accumulators that `use-accumulators` attributes name.
    accumulators_used: Vec<(Name, Place)>,
    /// The attributes of `xsl:mode` so far, by mode and attribute.
    mode_attributes: Agreement<(usize, &'static str)>,
    /// What `xsl:namespace-alias` says of the namespaces of the stylesheet.
    alias_targets: Agreement<String>,
    /// Those of `xsl:output`, by the name of the output.
    output_attributes: Agreement<(Option<Name>, &'static str)>,
    /// Import precedences of character maps.
    map_precedence: HashMap<Name, u32>,
    /// All modules: their outermost elements are checked when the version of the processor is known.
    modules: Vec<Arc<Module>>,
    /// `xsl:namespace-alias`: stylesheet URI to (result URI, result prefix, precedence).
    aliases: HashMap<String, (String, String, u32)>,
    // The state of the compiler.
    module: Arc<Module>,
    precedence: u32,
    imports_from: u32,
    forwards: bool,
    /// The version in effect is 2.0 or later, in a processor of 2.0.
    version2: bool,
    locals: Vec<(Name, usize)>,
    slots: usize,
    /// Slots and names of variables with result tree fragments.
    fragments: Vec<usize>,
    global_fragments: std::collections::HashSet<Name>,
    /// Locals below this number belong to an outer template (never visible).
    depth: usize,
    /// In `func:function`.
    in_function: bool,
    /// The global variables to which the present declaration refers.
    referred: std::cell::RefCell<Vec<usize>>,
    /// Java functions that the present expression calls.
    unavailable: std::cell::RefCell<Vec<String>>,
    /// The nesting depth of the present element in its template.
    nesting: usize,
    bases: std::cell::RefCell<Vec<String>>,
}

/// The result of compilation.
pub(crate) struct Compiled {
    pub plan: Plan,
    pub pool: Vec<(Box<str>, Box<str>)>,
    pub symbols: Names,
}

/// Compiles the stylesheet `source`.
pub(crate) fn compile(source: &[u8], options: &CompileOptions<'_>) -> Result<Compiled, Vec<XsltError>> {
    let empty = Document::new();
    let module = Arc::new(Module {
        doc: empty,
        root: Document::ROOT,
        file: 0,
        uri: options.uri.to_owned(),
        has_bases: false,
        read: HashMap::new(),
    });
    let mut compiler = Compiler {
        options,
        plan: Plan::default(),
        pool: NamePool::new(),
        symbols: Names::default(),
        errors: Vec::new(),
        declarations: Vec::new(),
        next_precedence: 0,
        files: 0,
        modes: HashMap::new(),
        declared_modes: Default::default(),
        globals: HashMap::new(),
        named: HashMap::new(),
        sets: HashMap::new(),
        functions: HashMap::new(),
        version2_functions: HashMap::new(),
        function_types: HashMap::new(),
        character_maps: HashMap::new(),
        used_maps: HashMap::new(),
        calls: Vec::new(),
        iterates: Vec::new(),
        statics: Vec::new(),
        reading: Vec::new(),
        levels: vec![0],
        next_level: 0,
        all_modes: Vec::new(),
        accumulator_precedence: HashMap::new(),
        accumulators_used: Vec::new(),
        mode_attributes: Agreement::default(),
        output_attributes: Agreement::default(),
        alias_targets: Agreement::default(),
        map_precedence: HashMap::new(),
        modules: Vec::new(),
        aliases: HashMap::new(),
        module,
        precedence: 0,
        imports_from: 0,
        forwards: false,
        version2: false,
        locals: Vec::new(),
        slots: 0,
        fragments: Vec::new(),
        global_fragments: Default::default(),
        depth: 0,
        in_function: false,
        referred: Default::default(),
        unavailable: Default::default(),
        nesting: 0,
        bases: Default::default(),
    };
    compiler.plan.principal = source.into();
    crate::stack::on_this(|| {
        compiler.principal(source);
        if compiler.errors.is_empty() {
            compiler.declare();
        }
    });
    compiler.plan.bases = compiler.bases.take();
    compiler.plan.named = std::mem::take(&mut compiler.named);
    compiler.plan.mode_names = std::mem::take(&mut compiler.modes);
    if compiler.errors.is_empty() {
        Ok(Compiled { plan: compiler.plan, pool: compiler.pool.names(), symbols: compiler.symbols })
    } else {
        Err(compiler.errors)
    }
}

impl Compiler<'_> {
    /// Loads the principal stylesheet, which may be a document with an `xml-stylesheet` instruction.
    fn principal(&mut self, source: &[u8]) {
        let uri = self.options.uri.to_owned();
        let Some((doc, read)) = self.parse(source, &uri) else { return };
        let is_stylesheet = doc.document_element().is_some_and(|e| {
            doc.namespace(e) == XSLT && elements::is_outermost(doc.local(e))
                || doc.attribute(e, XSLT, "version").is_some()
        });
        let associated = associated_stylesheet(&doc);
        // A document that contains its stylesheet elsewhere is not a simplified stylesheet itself.
        let inside = doc.document_element().is_some_and(|e| doc.namespace(e) != XSLT)
            && associated.as_ref().is_some_and(|href| href.len() > 1 && href.starts_with('#'));
        if let Some(href) = associated.filter(|_| inside || !is_stylesheet) {
            if let Some(id) = href.strip_prefix('#') {
                let root = find_id(&doc, id);
                match root {
                    Some(root) => self.principal_module((doc, read), root, uri),
                    None => self.fail(&uri, format!("there is no element with the id \"{id}\"")),
                }
                return;
            }
            if let Some(module) = self.load(&href, &uri) {
                self.level(module, &mut vec![uri]);
            }
            return;
        }
        match doc.document_element() {
            Some(root) => self.principal_module((doc, read), root, uri),
            None => self.fail(&uri, "the stylesheet has no element".into()),
        }
    }

    fn principal_module(&mut self, (doc, read): Parsed, root: NodeId, uri: String) {
        let file = self.file(&uri);
        let has_bases = has_bases(&doc);
        self.level(Arc::new(Module { doc, root, file, uri, has_bases, read }), &mut Vec::new());
    }

    fn file(&mut self, uri: &str) -> u16 {
        self.files += 1;
        match self.plan.modules.iter().position(|m| m == uri) {
            Some(at) => at as u16,
            None => {
                self.plan.modules.push(uri.to_owned());
                (self.plan.modules.len() - 1).min(u16::MAX as usize) as u16
            }
        }
    }

    fn parse(&mut self, source: &[u8], uri: &str) -> Option<Parsed> {
        let options = ParseOptions {
            dtd: self.options.dtd.clone(),
            base_uri: Some(uri.to_owned()),
            ..ParseOptions::trusted()
        };
        match Document::parse(source.to_vec(), &options) {
            Ok(mut doc) => {
                let read = match self.options.processor {
                    Processor::V1 => HashMap::new(),
                    _ => self.use_when(&mut doc, uri),
                };
                Some((doc, read))
            }
            Err(error) => {
                self.errors.push(XsltError {
                    message: error.message,
                    uri: uri.to_owned(),
                    line: error.position.line,
                    column: error.position.column,
                    raised: None,
                });
                None
            }
        }
    }

    fn load(&mut self, href: &str, base: &str) -> Option<Arc<Module>> {
        let absolute = self.options.resolver.absolute(href, base);
        let (uri, fragment) = match absolute.split_once('#') {
            Some((uri, fragment)) => (uri.to_owned(), Some(fragment.to_owned())),
            None => (absolute, None),
        };
        if self.files >= self.options.max_modules {
            self.fail(base, format!("more than {} modules", self.options.max_modules));
            return None;
        }
        let bytes = match self.options.resolver.read(&uri) {
            Ok(bytes) => bytes,
            Err(message) => {
                self.fail(base, self.coded("XTSE0165", message));
                return None;
            }
        };
        let (doc, read) = self.parse(&bytes, &uri)?;
        let root = match &fragment {
            Some(id) => find_id(&doc, id),
            None => doc.document_element(),
        };
        let Some(root) = root else {
            self.fail(&uri, "there is no stylesheet".into());
            return None;
        };
        let file = self.file(&uri);
        let has_bases = has_bases(&doc);
        Some(Arc::new(Module { doc, root, file, uri, has_bases, read }))
    }

    /// The module of an `xsl:import` or `xsl:include`.
    fn referred_module(
        &mut self,
        module: &Module,
        node: NodeId,
        href: &str,
        base: &str,
    ) -> Option<Arc<Module>> {
        let Some(read) = module.read.get(&node) else { return self.load(href, base) };
        self.errors.extend(read.errors.iter().cloned());
        read.module.clone()
    }

    /// Collects the declarations of a module and of its imports: those first, since they have lower precedence.
    fn level(&mut self, module: Arc<Module>, open: &mut Vec<String>) {
        let imports_from = self.next_precedence;
        open.push(module.uri.clone());
        let mut nodes = Vec::new();
        let mut imports = Vec::new();
        self.collect(&module, &mut nodes, &mut imports, open);
        for (importing, node, href) in imports {
            self.enter(&importing);
            let base = self.base_of(&importing, node);
            let uri = self.options.resolver.absolute(&href, &base);
            if open.contains(&uri) {
                self.error_as(node, "XTSE0210", format!("the stylesheet \"{href}\" imports itself"));
                continue;
            }
            let before = self.errors.len();
            match self.referred_module(&importing, node, &href, &base) {
                Some(imported) => self.level(imported, open),
                None => self.place_last_error(before, &importing, node),
            }
        }
        open.pop();
        let precedence = self.next_precedence;
        self.next_precedence += 1;
        self.declarations.extend(nodes.into_iter().map(|(module, node)| Declaration {
            module,
            node,
            precedence,
            imports_from,
        }));
    }

    fn collect(
        &mut self,
        module: &Arc<Module>,
        nodes: &mut Vec<(Arc<Module>, NodeId)>,
        imports: &mut Vec<(Arc<Module>, NodeId, String)>,
        open: &mut Vec<String>,
    ) {
        self.enter(module);
        self.modules.push(module.clone());
        let (doc, root) = (&module.doc, module.root);
        if doc.namespace(root) != XSLT || !elements::is_outermost(doc.local(root)) {
            if doc.attribute(root, XSLT, "version").is_none() {
                let message = if doc.namespace(root) == XSLT {
                    format!("xsl:{} cannot be the outermost element", doc.local(root))
                } else {
                    "a stylesheet begins with xsl:stylesheet or xsl:transform, or its outermost element has an \
                     xsl:version attribute"
                        .to_owned()
                };
                self.error_as(root, "XTSE0150", message);
                return;
            }
            nodes.push((module.clone(), root));
            return;
        }
        self.forwards = self.is_forwards(root);
        self.check_stylesheet_element(root);
        let mut imports_allowed = true;
        for child in doc.children(root) {
            match doc.kind(child) {
                NodeKind::Text if !is_space(doc.text(child)) => {
                    self.error_as(
                        child,
                        "XTSE0120",
                        "text is not allowed at the top level of a stylesheet".into(),
                    );
                    continue;
                }
                NodeKind::Element => {}
                _ => continue,
            }
            if doc.namespace(child) == XSLT && matches!(doc.local(child), "import" | "include") {
                self.attributes(child, &["href"], &["href"]);
                self.empty(child);
                let Some(href) = doc.attribute(child, "", "href") else { continue };
                if doc.local(child) == "import" {
                    // From 3.0 on it may stand anywhere.
                    let anywhere = matches!(self.options.processor, Processor::V3)
                        || self.options.processor == Processor::ByStylesheet
                            && versions::version_of(doc, root) >= 3.0;
                    if !imports_allowed && !anywhere {
                        self.error_as(
                            child,
                            "XTSE0200",
                            "xsl:import must come before all other top-level elements".into(),
                        );
                    }
                    imports.push((module.clone(), child, href.to_owned()));
                    continue;
                }
                imports_allowed = false;
                let base = self.base_of(module, child);
                let uri = self.options.resolver.absolute(href, &base);
                if open.contains(&uri) {
                    self.error_as(child, "XTSE0180", format!("the stylesheet \"{href}\" includes itself"));
                    continue;
                }
                let before = self.errors.len();
                match self.referred_module(module, child, href, &base) {
                    Some(included) => {
                        open.push(uri);
                        self.collect(&included, nodes, imports, open);
                        open.pop();
                        self.enter(module);
                        self.forwards = self.is_forwards(root);
                    }
                    None => self.place_last_error(before, module, child),
                }
                continue;
            }
            imports_allowed = false;
            nodes.push((module.clone(), child));
        }
    }

    /// Checks the outermost elements, `xsl:include` and `xsl:import` once more, by the version of the processor.
    fn check_modules(&mut self) {
        if !self.plan.version2 {
            return;
        }
        for module in std::mem::take(&mut self.modules) {
            self.enter(&module);
            let (doc, root) = (&module.doc, module.root);
            if doc.namespace(root) != XSLT || !elements::is_outermost(doc.local(root)) {
                continue;
            }
            self.at_version_of(root);
            self.check_stylesheet_element(root);
            for child in doc.children(root) {
                if doc.namespace(child) == XSLT && matches!(doc.local(child), "import" | "include") {
                    self.attributes(child, &["href"], &["href"]);
                    self.empty(child);
                }
            }
        }
    }

    fn check_stylesheet_element(&mut self, root: NodeId) {
        let module = self.module.clone();
        if module.doc.local(root) == "package" {
            return self.check_package(root);
        }
        self.attributes(
            root,
            &["id", "version", "exclude-result-prefixes", "extension-element-prefixes"],
            &["version"],
        );
        if let Some(version) = module.doc.attribute(root, "", "version")
            && version.trim().parse::<f64>().is_err()
        {
            self.error_as(root, "XTSE0110", format!("version=\"{version}\" is not a number"));
        }
    }

    fn enter(&mut self, module: &Arc<Module>) {
        self.module = module.clone();
    }

    // Errors.

    fn fail(&mut self, uri: &str, message: String) {
        self.errors.push(XsltError { message, uri: uri.to_owned(), line: 0, column: 0, raised: None });
    }

    /// Errors from loading without a place get the place of the element that refers to the module.
    fn place_last_error(&mut self, before: usize, module: &Arc<Module>, node: NodeId) {
        let place = self.place_in(module, node);
        for error in &mut self.errors[before..] {
            if error.line == 0 {
                error.uri = module.uri.clone();
                error.line = place.line;
                error.column = place.column;
            }
        }
    }

    /// An error that has a code from XSLT 2.0 on.
    fn error_as(&mut self, node: NodeId, code: &str, message: String) {
        let message = self.coded(code, message);
        self.error(node, message);
    }

    /// A message with its code, where there are codes.
    fn coded(&self, code: &str, message: String) -> String {
        // (While modules are loaded the version of the whole is not known: that of the module counts.)
        let version = self.module.doc.attribute(self.module.root, "", "version");
        let is_later = version.is_some_and(|version| version.trim().parse::<f64>().is_ok_and(|v| v >= 2.0));
        let is_coded = match self.options.processor {
            Processor::V1 => false,
            Processor::V2 | Processor::V3 => true,
            Processor::ByStylesheet => self.plan.version2 || is_later,
        };
        if is_coded { format!("{code}: {message}") } else { message }
    }

    fn error(&mut self, node: NodeId, message: String) {
        let place = self.place(node);
        self.error_there(place, message);
    }

    /// An error of a declaration that was left already.
    fn error_there(&mut self, place: Place, message: String) {
        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
        self.errors.push(XsltError { message, uri, line: place.line, column: place.column, raised: None });
    }

    fn place(&self, node: NodeId) -> Place {
        self.place_in(&self.module, node)
    }

    fn place_in(&self, module: &Module, node: NodeId) -> Place {
        let position = module.doc.position(node).unwrap_or_default();
        let base = if module.has_bases { self.base_of(module, node) } else { module.uri.clone() };
        let mut bases = self.bases.borrow_mut();
        let base_at = bases.iter().position(|b| *b == base);
        let base = base_at.unwrap_or_else(|| {
            bases.push(base);
            bases.len() - 1
        });
        let base = base.min(u16::MAX as usize) as u16;
        Place { module: module.file, base, line: position.line, column: position.column }
    }

    /// The base URI of an element of the stylesheet.
    fn base_of(&self, module: &Module, node: NodeId) -> String {
        if !module.has_bases {
            return module.uri.clone();
        }
        base_within(&module.doc, node, &module.uri)
    }

    /// The depth guard: all nesting of a stylesheet is compiled through it.
    fn nested(&mut self, node: NodeId, go_on: impl FnOnce(&mut Self) + Send) {
        if self.nesting >= MAX_NESTING {
            let message = format!("XPDY0130: elements are nested too deeply (limit {MAX_NESTING})");
            if self.errors.last().is_none_or(|last| last.message != message) {
                self.error(node, message);
            }
            return;
        }
        self.nesting += 1;
        if crate::stack::is_left() {
            go_on(self);
        } else if let Err(error) = crate::stack::on_new(|| {
            go_on(self);
            Ok(())
        }) {
            self.errors.push(*error);
        }
        self.nesting -= 1;
    }

    // Expressions and patterns.

    fn library(&self) -> Library<'_> {
        Library {
            locals: &self.locals[self.depth..],
            globals: &self.globals,
            functions: &self.functions,
            version2_functions: &self.version2_functions,
            types: &self.function_types,
            version2: self.plan.version2,
            symbols: &self.symbols,
            variables: true,
            current: true,
            strict: self.version2 && !self.forwards,
            referred: Some(&self.referred),
            unavailable: Some(&self.unavailable),
        }
    }

    /// The language of expressions at the present element.
    fn language(&self) -> Level {
        match (self.plan.version2, self.version2) {
            (false, _) => Level::V1,
            (true, true) if self.plan.version3 => Level::V3,
            (true, true) => Level::V2,
            (true, false) => Level::Compatible,
        }
    }

    /// Compiles an expression that stands in an attribute of `node`.
    fn expression(&mut self, node: NodeId, source: &str) -> Expr {
        let module = self.module.clone();
        let scope = ElementScope { doc: &module.doc, node };
        let default = self.default_namespace(node);
        let dialect = Dialect { level: self.language(), namespace: &default };
        let base = self.base_of(&module, node);
        let compiled = Expr::compile(source, &scope, &self.library(), &self.pool, &base, dialect);
        for message in self.unavailable.take() {
            let place = self.place(node);
            if !self.plan.unavailable.iter().any(|(m, _)| *m == message) {
                self.plan.unavailable.push((message, place));
            }
        }
        match compiled {
            Ok(mut expr) => {
                if let Expr::XPath(xpath) = &mut expr {
                    let mut names = std::mem::take(&mut self.plan.names);
                    xpath.specialize(&mut SimpleScope {
                        locals: &self.locals[self.depth..],
                        symbols: &self.symbols,
                        scope: &scope,
                        names: &mut names,
                        default: &default,
                    });
                    self.plan.names = names;
                    self.plan.needs_size |= xpath.expression.needs().size || xpath.evaluates;
                }
                expr
            }
            Err(message) if self.forwards => Expr::Deferred(message.into()),
            Err(message) => {
                self.error(node, message);
                Expr::Deferred("".into())
            }
        }
    }

    /// The expression in attribute `name` of `node`, if it is there.
    fn expression_attribute(&mut self, node: NodeId, name: &str) -> Option<Expr> {
        let module = self.module.clone();
        module.doc.attribute(node, "", name).map(|source| self.expression(node, source))
    }

    /// Compiles the pattern in attribute `name`. `definition`: of a template rule or key, where variables are not
    /// allowed.
    fn pattern_attribute(&mut self, node: NodeId, name: &str, definition: bool) -> Option<Pattern> {
        let module = self.module.clone();
        let source = module.doc.attribute(node, "", name)?;
        let scope = ElementScope { doc: &module.doc, node };
        let mut names = std::mem::take(&mut self.plan.names);
        // XSLT 2.0 allows variables in all patterns.
        let allowed = !definition || self.version2;
        let library = Library { variables: allowed, current: allowed, ..self.library() };
        let default = self.default_namespace(node);
        let dialect = Dialect { level: self.language(), namespace: &default };
        let base = self.base_of(&module, node);
        let compiled = Pattern::compile(
            source,
            &mut PatternContext {
                base: &base,
                scope: &scope,
                library: &library,
                pool: &self.pool,
                names: &mut names,
                symbols: &self.symbols,
                dialect,
            },
        );
        self.plan.names = names;
        match compiled {
            Ok(pattern) => Some(pattern),
            Err(_) if self.forwards && !definition => Some(Pattern::default()),
            Err(message) => {
                let message = message.strip_prefix("XPST0003: ").map_or(message.clone(), str::to_owned);
                let is_coded = XsltError::new(message.as_str()).has_code();
                if is_coded {
                    self.error(node, message)
                } else {
                    self.error_as(node, "XTSE0340", message)
                }
                None
            }
        }
    }
}

/// The base URI of an element: that of its document with `xml:base` applied.
pub(crate) fn base_within(doc: &Document, node: NodeId, uri: &str) -> String {
    let mut chain = Vec::new();
    let mut at = Some(node);
    while let Some(element) = at {
        chain.extend(doc.attribute(element, xml::XML_NS, "base"));
        at = doc.parent(element);
    }
    chain.into_iter().rev().fold(uri.to_owned(), |base, reference| crate::resolver::join(&base, reference))
}

fn has_bases(doc: &Document) -> bool {
    let has = |n| doc.kind(n) == NodeKind::Element && doc.attribute(n, xml::XML_NS, "base").is_some();
    doc.descendants(Document::ROOT).any(has)
}

fn is_space(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The `href` of the first `<?xml-stylesheet?>` instruction for XSLT.
fn associated_stylesheet(doc: &Document) -> Option<String> {
    doc.children(Document::ROOT)
        .filter(|n| doc.kind(*n) == NodeKind::ProcessingInstruction && doc.local(*n) == "xml-stylesheet")
        .find_map(|n| {
            let data = doc.text(n);
            let kind = pseudo_attribute(data, "type")?;
            let is_xslt = matches!(
                kind.as_str(),
                "text/xsl" | "text/xml" | "application/xml" | "application/xslt+xml" | "text/xslt"
            );
            is_xslt.then(|| pseudo_attribute(data, "href"))?
        })
}

fn pseudo_attribute(data: &str, name: &str) -> Option<String> {
    let mut rest = data;
    loop {
        rest = rest.trim_start();
        let equals = rest.find('=')?;
        let (found, tail) = rest.split_at(equals);
        let tail = tail[1..].trim_start();
        let quote = tail.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let end = tail[1..].find(quote)?;
        if found.trim() == name {
            return Some(tail[1..=end].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
        }
        rest = &tail[end + 2..];
    }
}

fn find_id(doc: &Document, id: &str) -> Option<NodeId> {
    doc.element_by_id(id).or_else(|| {
        doc.descendants(Document::ROOT)
            .find(|n| doc.kind(*n) == NodeKind::Element && doc.attribute(*n, "", "id") == Some(id))
    })
}
