//! Classes of nodes: the set of a plan's node tests that a node passes, as bits. The class of an element follows from
//! its name, so it is computed once for each name.

use super::{ItemTest, StepKind, StreamPlan, StreamStep};
use xml::Interest;

/// The namespaces of SOAP 1.1 and 1.2.
const SOAP: [&str; 2] =
    ["http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"];
/// Any element.
const ELEMENT: u32 = 8;
/// The first bit of a test of names; each has its own.
const FIRST: u32 = 16;
/// The bit that further tests share.
const SHARED: u32 = 1 << 30;
/// The class of a new name. (No class has all bits.)
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Sets the masks of the steps. Returns the tests of names with their bits.
pub(super) fn number<'s>(steps: impl Iterator<Item = &'s mut StreamStep>) -> Vec<(ItemTest, u32)> {
    let mut tests: Vec<(ItemTest, u32)> = Vec::new();
    for step in steps {
        (step.mask, step.exact) = match &step.test {
            _ if step.kind == StepKind::Attribute => (0, false),
            ItemTest::Node => (Interest::TEXT | Interest::COMMENT | Interest::INSTRUCTION | ELEMENT, true),
            ItemTest::Text => (Interest::TEXT, true),
            ItemTest::Comment => (Interest::COMMENT, true),
            ItemTest::Instruction(target) => (Interest::INSTRUCTION, target.is_none()),
            ItemTest::Any => (ELEMENT, true),
            test => {
                let bit = bit(&mut tests, test);
                (bit, bit != SHARED)
            }
        };
    }
    tests
}

/// The bit of a name test.
fn bit(tests: &mut Vec<(ItemTest, u32)>, test: &ItemTest) -> u32 {
    if let Some((_, bit)) = tests.iter().find(|(t, _)| t == test) {
        return *bit;
    }
    let bit = FIRST.checked_shl(tests.len() as u32).unwrap_or(SHARED);
    let bit = if bit == 0 { SHARED } else { bit.min(SHARED) };
    tests.push((test.clone(), bit));
    bit
}

/// The bits of the bodies of envelopes whose headers are tested. The missing ones are added to the tests.
pub(super) fn bodies(tests: &mut Vec<(ItemTest, u32)>) -> u32 {
    let mut bits = 0;
    for namespace in SOAP {
        let named = |local: &str| ItemTest::Name(namespace.into(), local.into());
        if tests.iter().any(|(test, _)| *test == named("Header")) {
            let body = bit(tests, &named("Body"));
            // Names that share its bit would be tested again and again.
            bits |= if body == SHARED { 0 } else { body };
        }
    }
    bits
}

impl StreamPlan {
    /// The class of elements with this name.
    pub(super) fn class(&self, ns: &str, local: &str) -> u32 {
        let mut class = ELEMENT;
        for (test, bit) in &self.tests {
            let passes = match test {
                ItemTest::Name(uri, name) => xml::is_same(name, local) && xml::is_same(uri, ns),
                ItemTest::Namespace(uri) => xml::is_same(uri, ns),
                _ => false,
            };
            if passes {
                class |= bit;
            }
        }
        class
    }
}
