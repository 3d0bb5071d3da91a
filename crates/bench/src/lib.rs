//! What Busbar is measured and shown with: the messages of the ESB performance rounds, the scenarios with their checks,
//! and the backend that answers them.
//!
//! * [`messages`] makes order messages and their variants, deterministic and of an exact size.
//! * [`scenarios`] is the catalogue of the example round (`examples/round`): what is sent and what must come back.
//! * [`check`] compares an answer with what must come back, and says what differs.
//! * [`backend`] is the logic of the embedded backend; the HTTP in front of it is wired by `busbar backend`.

pub mod backend;
pub mod check;
pub mod messages;
pub mod scenarios;
