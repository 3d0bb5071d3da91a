//! Databases: JDBC URLs to native drivers, pools of connections, statements with typed parameters.
//!
//! Whoever wants to ask a database has a [`Source`] (what a configuration says of it), from which [`Pools::get`] makes the one [`Pool`] of these
//! settings. [`Pool::get`] lends a connection: a [`Lease`] runs [`Statement`]s with [`Parameter`]s and hands out rows of [`Value`]s. A lease that
//! is dropped in the middle of something closes its connection; any other goes back.
//!
//! Values and parameters are those of JDBC: what `setObject` takes by the name of a type, and what `getObject().toString()` would say. No text
//! of a message ever becomes part of a statement.

mod driver;
mod error;
mod parameter;
mod pool;
mod source;
mod statement;
mod url;
mod value;

pub use driver::{Outcome, Sink};
pub use error::{Error, Reason};
pub use parameter::{Kind, Parameter};
pub use pool::{Lease, Pool, Pools, State, Status};
pub use source::{Isolation, Options, Source, Unusable};
pub use statement::{Fill, Named, Statement};
pub use url::{Dialect, Target};
pub use value::{Columns, Row, Value};
