//! Canonical XML.
