//! XML: bytes to events to compact tree to bytes; names, namespaces, canonical form, limits
