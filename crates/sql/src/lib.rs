//! Databases: JDBC URLs to native drivers, pools of connections, statements with typed parameters.
//!
//! A [`Source`] is made of the settings of a data source; [`Pools::get`] makes the one [`Pool`] of these
//! settings. [`Pool::get`] lends a connection: a [`Lease`] runs [`Statement`]s with [`Parameter`]s and passes rows of [`Value`]s on. A lease that
//! is dropped during a statement or transaction closes its connection; any other returns it.
//!
//! Values and parameters are those of JDBC: what `setObject` takes by the name of a type, and what `getObject().toString()` returns. No text
//! of a message ever becomes part of a statement.

mod driver;
mod error;
mod parameter;
mod pool;
mod source;
mod statement;
mod time_slice;
mod url;
mod value;

pub use driver::{Outcome, Sink};
pub use error::{Error, Reason};
pub use parameter::{Kind, Parameter};
pub use pool::{Lease, Pool, Pools, State, Status};
pub use source::{Isolation, Options, Source, Unusable};
pub use statement::{Fill, Named, Statement};
pub use time_slice::TimeSlice;
pub use url::{Dialect, Target};
pub use value::{Columns, Row, Value};
