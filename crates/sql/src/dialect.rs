//! From text to statements: what a client writes becomes a [`Command`](statement::Command).
//!
//! [`parse`] is the entry point. It reads Marigram's own statements from the tokens ([`ddl`],
//! [`session_syntax`], [`copy_syntax`], [`other_statements`]) and passes everything else to sqlparser with our
//! [`grammar`], after rewriting the text ([`rewriting`], [`from_first`], [`sample`], [`shorthand`],
//! [`foreign_names`]) and before rewriting the syntax tree ([`ast_walk`] and its visitors:
//! [`named`], [`named_windows`], [`aliased_calls`], [`asof_syntax`], [`at_time_zone`],
//! [`latest_on`], [`exact_numbers`], [`array_literals`], [`inserted_lists`], [`casts`], [`declared_parameters`],
//! [`rows`], [`series`], [`column_names`]). Deep statements are refused or balanced ([`nesting`],
//! [`balance`], [`recursions`]).
//!
//! This module knows neither databases nor the state of a session nor plans.

pub mod access_statement;
pub mod access_syntax;
pub mod aliased_calls;
pub mod array_literals;
pub mod array_subqueries;
pub mod asof_syntax;
pub mod ast_walk;
pub mod at_time_zone;
pub mod balance;
pub mod casts;
pub mod catalog_statements;
pub mod client_statements;
pub mod column_names;
pub mod copy_syntax;
pub mod ddl;
pub mod declared_parameters;
pub mod exact_numbers;
pub mod foreign_names;
pub mod from_first;
pub mod grammar;
pub mod identifiers;
pub mod inserted_lists;
pub mod latest_on;
pub mod named;
pub mod named_windows;
pub mod nesting;
pub mod other_statements;
pub mod parse;
pub mod postgres_calls;
pub mod postgres_forms;
#[cfg(test)]
pub mod random_texts;
pub mod recursions;
pub mod rewriting;
pub mod rows;
pub mod sample;
pub mod series;
pub mod session_syntax;
pub mod settings;
pub mod shorthand;
pub mod standard_forms;
pub mod statement;
pub mod system_columns;
pub mod trim_from;
pub mod types;
pub mod wildcard_replacements;
pub mod write_detection;
