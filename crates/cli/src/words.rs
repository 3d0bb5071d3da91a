//! Numbers in sentences.

/// `1 error`, `2 errors`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
