//! Reference tables: small relational tables (which truck, whose driver, which limits) beside the tables of
//! series. SQLite keeps them, in one file of the data directory.
//!
//! This crate maps tables to SQLite and rows to Arrow. It knows no SQL of the database's own dialect: who uses
//! it evaluates expressions (defaults, checks, conditions) and hands over values.
//!
//! Invariant: a transaction's changes, those of tables included, become visible and durable together, or not
//! at all.

mod alter;
mod catalog;
mod condition;
mod constraint;
mod context;
mod convert;
mod create;
mod definition;
mod error;
mod filter;
mod foreign;
mod identity;
mod input;
mod insert;
mod json;
mod json_text;
mod keys;
mod modify;
mod pool;
mod rows;
mod scan;
mod schema;
mod scratch;
mod session;
mod store;
mod text;
mod transaction;
mod value;
mod verify;

pub use definition::{
    CheckConstraint, ForeignKey, ForeignKeyAction, IdentityKind, NewColumn, NewConstraint,
    NewReferenceTable, ReferenceAlteration, ReferenceColumn, ReferenceTable, ReferenceType,
    SecondaryIndex, UniqueKey,
};
pub use error::{ReferenceError, Result};
pub use filter::{ColumnFilter, FilterOp};
pub use insert::{Inserted, OnConflict};
pub use pool::ReferenceOptions;
pub use scan::{ReferenceScanRequest, ScanPage};
pub use store::ReferenceStore;
pub use transaction::ReferenceTransaction;
