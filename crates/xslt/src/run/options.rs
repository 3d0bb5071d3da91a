//! What a transformation is run with: its limits, and where documents, messages and results come from and go to.

use crate::resolver::Resolver;

/// Options of a transformation.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Bounds.
    pub limits: &'a RunLimits,
    /// Finds the documents of `document()`; none by default.
    pub resolver: &'a dyn Resolver,
    /// Which parts of a document type declaration in them are read; none by default.
    pub dtd: &'a xml::Dtd,
    /// Receives the text of `xsl:message`; dropped by default.
    pub messages: Option<&'a (dyn Fn(&str) + Sync)>,
    /// Receives the documents of `xsl:result-document`; without it, one that has an `href` is an error.
    pub results: Option<&'a dyn crate::Results>,
    /// The input was parsed with [`crate::Stylesheet::strip_space`]: nothing is left to strip.
    pub stripped: bool,
    /// Where the result would decide the output method, it is XML, also for `html`.
    pub as_xml: bool,
    /// URI of the input, for relative references in it.
    pub input_uri: &'a str,
    /// The initial template: `local` or `{namespace}local`.
    pub initial_template: Option<&'a str>,
    /// The initial mode: the same, or `#unnamed`, `#default`.
    pub initial_mode: Option<&'a str>,
    /// There is no source document: no initial context item, and none for global variables.
    pub no_input: bool,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            limits: const { &LIMITS },
            resolver: &crate::resolver::NoResolver,
            dtd: &REFUSE,
            messages: None,
            results: None,
            stripped: false,
            as_xml: false,
            input_uri: "",
            initial_template: None,
            initial_mode: None,
            no_input: false,
        }
    }
}

/// Limits of a transformation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Nesting of instructions and templates. Default 60,000 (some 20,000 nested templates).
    pub depth: usize,
    /// Instructions executed. Default 2^40.
    pub steps: u64,
    /// Bytes of text and attribute values written, in all results together. Default 4 GiB.
    pub output: usize,
    /// Documents and result tree fragments of one transformation. Default 16 Mi.
    pub documents: usize,
    /// Documents of `xsl:result-document` of one transformation. Default 10,000.
    pub results: usize,
    /// Bytes of a document that are held at once when it is streamed. Default 128 KiB.
    pub window: usize,
}

const LIMITS: RunLimits = RunLimits {
    depth: 60_000,
    steps: 1 << 40,
    output: 4 << 30,
    documents: 16 << 20,
    results: 10_000,
    window: 128 << 10,
};

impl Default for RunLimits {
    fn default() -> Self {
        LIMITS
    }
}

static REFUSE: xml::Dtd = xml::Dtd::Refuse;
