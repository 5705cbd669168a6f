//! InfluxQL, the language of InfluxDB 1.8: text to a syntax tree, checked as InfluxDB checks it. No
//! I/O, no clock, no schema; who plans and runs a statement stands above this crate.
//!
//! # From a request to a plan
//! 1. [`Params::bind`] takes the request's `params`.
//! 2. [`parse_query_with`] reads the text, or says why not: [`ParseError::to_wire`] is the body that
//!    clients of InfluxDB compare.
//! 3. [`names::complete_names`] writes databases and retention policies into it, and
//!    [`privileges::required_privileges`] says what the user must be allowed to do with them.
//! 4. [`validate::check_statement`] and [`validate::analyze`] check it; of a SELECT the latter takes
//!    the time out of WHERE ([`time_range`]) and the interval out of GROUP BY, computes constants, and
//!    says which kinds of functions it uses.
//! 5. [`columns::expand_wildcards`] puts stored fields and tags where wildcards stand, once the
//!    planner knows them, and [`columns::column_names`] names the columns of the answer.
//!
//! Statements print (`Display`) as InfluxDB prints them, which SHOW QUERIES, SHOW CONTINUOUS QUERIES
//! and errors show. Regular expressions are Go's; [`go_regex`] writes them for Rust's `regex`.
//!
//! # What holds
//! - Places and words of errors are InfluxDB 1.8's. `tests/statements/` are statements with their
//!   answers; `testing/influxql/compare.py` asks a running InfluxDB for them again.
//! - Nothing panics, whatever the text. What nests (parentheses, calls, subqueries) may do so
//!   [`NESTING_MAX`] deep; chains of operators may be as long as the text, since nothing recurses
//!   along them.
//! - A password is never printed, in `Debug` neither; [`redact_passwords`] takes it out of texts that
//!   are logged as they came.
//!
//! # On purpose otherwise than InfluxDB
//! - The depth of nesting has a limit.
//! - `SHOW TAG KEYS` takes WITH KEY, which InfluxDB's documentation has and only its later versions
//!   read.
//! - Where InfluxDB fails with a panic (`1h / 0.5`, `a =~ /x/ * 2`, `GROUP BY time(0s, 1s)`), the
//!   value is 0, the statement is refused, and there is no interval.
//! - A time beyond what 64 bits of nanoseconds hold stops there in comparisons, and does not wrap.
//! - A text ends at its first NUL.

pub mod ast;
mod civil;
pub mod columns;
mod duration;
mod error;
mod fold;
pub mod go_regex;
pub mod names;
mod number;
mod params;
mod parser;
pub mod privileges;
mod quote;
mod reader;
mod redact;
mod scanner;
mod select_error;
pub mod time_range;
mod token;
pub mod validate;
mod zone;

pub use duration::{DurationError, GoDuration, InfluxDuration, parse_duration};
pub use error::{ErrorPosition, PARSE_ERROR_PREFIX, ParseError, ParseErrorKind};
pub use params::{ParamError, ParamJson, Params};
pub use parser::{NESTING_MAX, ParseOptions, parse_expr, parse_query, parse_query_with};
pub use quote::{QuotedIdent, QuotedString, ident_needs_quotes};
pub use redact::redact_passwords;
pub use select_error::{Arity, SelectError};
pub use token::Keyword;
pub use zone::{TimeZones, UtcOnly};
