//! What a reader wants of the tokenizer, so that it need not stop at the rest.

/// What [`Tokenizer::skim`] stops at. Skipped content is checked all the same.
///
/// ```
/// # use busbar_xml::{Tokenizer, Event, Interest};
/// let mut tokenizer = Tokenizer::default();
/// tokenizer.feed(b"<a><b>x</b><c/></a>");
/// let mut classes = vec![0; 64];
/// let c = tokenizer.intern("", "c");
/// classes[c.index()] = 8;
/// let interest = Interest { classes: &classes, anywhere: 8, ..Interest::NOTHING };
/// assert!(matches!(tokenizer.skim(&interest), Ok(true)));
/// assert!(matches!(tokenizer.event(), Event::StartElement { name, .. } if name.local() == "c"));
/// ```
#[derive(Copy, Clone)]
pub struct Interest<'a> {
    /// The classes of elements: a set of bits for each name, by [`NameId::index`]. A name without an entry has
    /// all bits.
    pub classes: &'a [u32],
    /// The classes that are wanted at any depth.
    pub anywhere: u32,
    /// The classes that are wanted in the element at depth `level`.
    pub children: u32,
    /// The number of open elements at which the end of an element is wanted.
    pub level: usize,
    /// The classes of elements that [`Interest::leaf`] decides about, if they hold only one piece of text.
    pub leaves: u32,
    /// Whether an element of this class with this text is wanted. `None`: all are.
    pub leaf: Option<AskLeaf<'a>>,
}

/// See [`Interest::leaf`].
pub type AskLeaf<'a> = &'a dyn Fn(u32, &str) -> bool;

impl std::fmt::Debug for Interest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Interest { anywhere, children, level, leaves, .. } = self;
        write!(f, "Interest({anywhere:#x}, {children:#x} at {level}, asks {leaves:#x})")
    }
}

impl Interest<'_> {
    /// Nothing is wanted: the rest is only checked.
    pub const NOTHING: Interest<'static> =
        Interest { classes: &[], anywhere: 0, children: 0, level: usize::MAX, leaves: 0, leaf: None };
    /// The class of text.
    pub const TEXT: u32 = 1;
    /// The class of comments.
    pub const COMMENT: u32 = 2;
    /// The class of processing instructions.
    pub const INSTRUCTION: u32 = 4;
}

/// The events that a reader wants. `depth`: the number of elements around it.
pub(super) trait Wants {
    /// The class of a name.
    fn class_of(&self, name: u32) -> u32;
    fn class(&self, class: u32, depth: usize) -> bool;
    /// Whether [`Wants::leaf`] decides about elements of this class that are wanted.
    fn asks(&self, class: u32, depth: usize) -> bool;
    /// Whether an element of this class with nothing but this text is wanted.
    fn leaf(&self, class: u32, text: &str) -> bool;
    fn end(&self, depth: usize) -> bool;
}

pub(super) struct Everything;

impl Wants for Everything {
    #[inline(always)]
    fn class_of(&self, _: u32) -> u32 {
        0
    }
    #[inline(always)]
    fn class(&self, _: u32, _: usize) -> bool {
        true
    }
    #[inline(always)]
    fn asks(&self, _: u32, _: usize) -> bool {
        false
    }
    #[inline(always)]
    fn leaf(&self, _: u32, _: &str) -> bool {
        true
    }
    #[inline(always)]
    fn end(&self, _: usize) -> bool {
        true
    }
}

impl Wants for Interest<'_> {
    #[inline(always)]
    fn class_of(&self, name: u32) -> u32 {
        self.classes.get(name as usize).copied().unwrap_or(u32::MAX)
    }
    #[inline(always)]
    fn asks(&self, class: u32, depth: usize) -> bool {
        let wanted = self.anywhere | if depth == self.level { self.children } else { 0 };
        class & wanted & !self.leaves == 0
    }
    #[inline(always)]
    fn leaf(&self, class: u32, text: &str) -> bool {
        self.leaf.is_none_or(|leaf| leaf(class, text))
    }
    #[inline(always)]
    fn class(&self, class: u32, depth: usize) -> bool {
        class & self.anywhere != 0 || depth == self.level && class & self.children != 0
    }
    #[inline(always)]
    fn end(&self, depth: usize) -> bool {
        depth + 1 == self.level
    }
}
