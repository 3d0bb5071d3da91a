//! The expression language of Micro Integrator 4.4, `${…}`: parsed and compiled at load, evaluated over a host.
