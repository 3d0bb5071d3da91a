//! XML Schema and JSON Schema behind one interface: load once, validate, report every violation with its place.
