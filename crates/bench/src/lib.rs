//! What Busbar is measured and shown with: the messages of the ESB performance rounds, the scenarios with their checks,
//! and the backend that answers them.
//!
//! * [`messages`] makes order messages and their variants, deterministic and of an exact size.
//! * [`scenarios`] is the catalogue of the example round (`examples/round`): what is sent and what must come back.
//! * [`check`] compares an answer with what must come back, and says what differs.
//! * [`systems`] starts what is measured: Busbar, nginx, HAProxy, whatever has a script.
//! * [`measure`] measures one scenario on one system, [`rounds`] has the methods of the published rounds, [`studies`] the others, [`results`] is what comes out,
//!   [`published`] what the rounds published, [`report`] shows both.
//! * [`budgets`] is what work may cost, [`profile`] where the processor time of a flow goes, [`project`] a project of many artifacts, [`generator`] measures the load generator itself.
//! * [`statistics`] has means, confidence intervals, slopes and the paired t-test.
//! * [`backend`] is the logic of the embedded backend; the HTTP in front of it is wired by `busbar backend`.

pub mod backend;
pub mod budgets;
pub mod check;
pub mod generator;
pub mod measure;
pub mod messages;
pub mod profile;
pub mod project;
pub mod published;
pub mod report;
pub mod results;
pub mod rounds;
pub mod scenarios;
pub mod secured;
pub mod statistics;
pub mod steps;
pub mod studies;
pub mod systems;
