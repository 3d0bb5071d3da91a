//! The `busbar` binary.
fn main() {}
