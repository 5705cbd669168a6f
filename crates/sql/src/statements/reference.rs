//! INSERT, UPDATE and DELETE of reference tables, and the statements that define them.
//!
//! DataFusion plans the query that finds or gives the rows. `planning` puts what it does not know, RETURNING
//! and ON CONFLICT, around its plan as a node of our own (`change_node`). `execution` runs the node: it
//! evaluates all expressions here, and gives values to the store.

pub(crate) mod change_guard;
pub(crate) mod change_node;
pub(crate) mod definitions;
pub(crate) mod execution;
mod inserted;
mod joined_change;
pub(crate) mod planning;
mod row_expressions;
