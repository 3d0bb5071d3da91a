//! One file per mediator
