//! Compiles the model into an immutable plan and runs it
pub mod resource;
