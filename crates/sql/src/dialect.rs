//! From text to statements: what a client writes becomes a [`Command`](statement::Command).
//!
//! [`parse`] is the entry point. It reads Marigram's own statements from the tokens ([`ddl`], [`reference`],
//! [`session_syntax`], [`copy_syntax`], [`other_statements`]) and passes everything else to sqlparser with our
//! [`grammar`], after rewriting the text ([`rewriting`], [`from_first`], [`sample`], [`shorthand`],
//! [`foreign_names`], [`inserted_columns`]) and before rewriting the syntax tree ([`ast_walk`] and its visitors:
//! [`named`], [`named_windows`], [`aliased_calls`], [`asof_syntax`], [`at_time_zone`],
//! [`latest_on`], [`exact_numbers`], [`literal_scales`], [`array_literals`], [`array_fills`], [`inserted_lists`], [`casts`], [`declared_parameters`], [`deleted_alias`],
//! [`index_definitions`], [`rows`], [`nested_exists`], [`series`], [`set_returning`], [`json_rows`], [`grouping_forms`], [`json_calls`], [`json_casts`],
//! [`table_queries`], [`column_names`]). [`timescale`] has what TimescaleDB adds to SQL. Deep statements are refused or balanced ([`nesting`],
//! [`balance`], [`recursions`]).
//!
//! This module knows neither databases nor the state of a session nor plans.

pub(crate) mod access_statement;
pub(crate) mod access_syntax;
pub(crate) mod aliased_calls;
mod array_fills;
pub(crate) mod array_literals;
pub(crate) mod array_subqueries;
pub(crate) mod asof_syntax;
pub(crate) mod ast_walk;
pub(crate) mod at_time_zone;
pub(crate) mod balance;
pub(crate) mod casts;
pub(crate) mod catalog_statements;
pub(crate) mod client_statements;
pub(crate) mod column_names;
pub(crate) mod copy_syntax;
pub(crate) mod ddl;
pub(crate) mod declared_parameters;
mod deleted_alias;
pub(crate) mod exact_numbers;
pub(crate) mod foreign_names;
pub(crate) mod from_first;
pub(crate) mod grammar;
pub(crate) mod grouping_forms;
pub(crate) mod hypertable_functions;
pub(crate) mod hypertable_settings;
pub(crate) mod identifiers;
pub(crate) mod index_definitions;
pub(crate) mod inserted_columns;
pub(crate) mod inserted_lists;
pub(crate) mod json_calls;
mod json_casts;
mod json_rows;
pub(crate) mod latest_on;
mod literal_scales;
pub(crate) mod named;
pub(crate) mod named_windows;
mod nested_exists;
pub(crate) mod nesting;
pub(crate) mod other_statements;
pub(crate) mod parse;
pub(crate) mod postgres_calls;
pub(crate) mod postgres_forms;
#[cfg(test)]
pub(crate) mod random_texts;
pub(crate) mod recursions;
pub(crate) mod reference;
pub(crate) mod rewriting;
pub(crate) mod rows;
pub(crate) mod sample;
pub(crate) mod series;
pub(crate) mod session_syntax;
pub(crate) mod set_returning;
pub(crate) mod settings;
pub(crate) mod shorthand;
pub(crate) mod standard_forms;
pub(crate) mod statement;
pub(crate) mod system_columns;
pub(crate) mod table_queries;
pub(crate) mod timescale;
pub(crate) mod transactions;
pub(crate) mod trim_from;
pub(crate) mod types;
pub(crate) mod wildcard_replacements;
pub(crate) mod write_detection;
