//! Admin address: health, metrics, artifacts; access log
