//! When something that runs by itself is due.
//!
//! A [`Cron`] expression gives the times of a calendar, in a time zone. A [`Schedule`] follows a [`Trigger`] while time passes,
//! and deals with what time does: clocks that are set, machines that slept, work that takes longer than its interval.
//! Nothing here waits or reads a clock: who asks says what time it is.

mod cron;
mod days;
mod parse;
mod schedule;

pub use cron::Cron;
pub use parse::CronError;
pub use schedule::{LONGEST_WAIT, Moment, Schedule, Trigger, Turn, put_back, until};
