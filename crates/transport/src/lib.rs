//! HTTP listener and client: pass-through, TLS, pools, limits, timers
