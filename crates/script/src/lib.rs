//! JavaScript for the script mediator: an embedded engine with limits, and the `mc` object.
