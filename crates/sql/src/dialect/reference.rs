//! Statements that define reference tables: small relational tables, which SQLite keeps.
//!
//! A `CREATE TABLE` makes a table of series or a reference table; [`tables`] decides which, by what only one of
//! them has. The names in `ALTER TABLE` and `CREATE INDEX` do not tell, so these statements are read by both
//! grammars, and whoever executes them looks the table up. sqlparser reads the grammar of reference tables,
//! which is PostgreSQL's; [`columns`], [`constraints`] and [`types`] turn its syntax tree into definitions.
//! [`changes`] has what INSERT, UPDATE and DELETE may have of reference tables alone.

mod alterations;
pub(crate) mod changes;
mod columns;
mod conditions;
mod constraints;
mod definitions;
pub(crate) mod identities;
mod indexes;
mod mixed_kinds;
mod tables;
mod tokens;
mod types;

pub(crate) use alterations::alter_table;
pub(crate) use indexes::{create_index, drop_index, missing_index};
pub(crate) use tables::{create_table, create_temporary_table};
pub(crate) use tokens::overriding_marked;
