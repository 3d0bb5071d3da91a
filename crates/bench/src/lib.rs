//! Message generator, scenarios, peers and report
