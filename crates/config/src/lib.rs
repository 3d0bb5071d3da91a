//! Synapse configuration XML to a typed model, every node with its span
