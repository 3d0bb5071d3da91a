//! Data services: services whose answers come from databases. What a query is, is not known here.

use crate::runtime::mediator::Mediator;
use std::any::Any;
use std::sync::Arc;

/// A data service of the plan.
pub trait DataService: Any + Send + Sync {
    /// Its name, which is that of its service.
    fn name(&self) -> &str;

    /// The steps of its service.
    fn steps(self: Arc<Self>) -> Vec<Box<dyn Mediator>>;

    /// Its WSDL 1.1.
    fn wsdl(&self) -> String;

    /// Whether it also serves requests to `/odata/NAME/…`.
    fn has_tables(&self) -> bool {
        false
    }

    /// For those who know the concrete type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
