//! Users, roles and tokens of this database: who they are, what each may do, and their changes.
//!
//! The catalog is in memory as a whole, and on disk as records of the engine's catalog. A change is
//! first durable and then visible.

mod checked_passwords;
mod control;
mod refusals;

pub use control::AccessControl;
pub use refusals::{check_administrator, check_database};
pub(crate) use refusals::{check_sight, refused};
