//! InfluxQL, the language of InfluxDB 1.8: parses text into a syntax tree and checks it as InfluxDB
//! does. This crate has no I/O, no clock and no schema; planning and execution are above it.
//!
//! # From a request to a plan
//! 1. [`Params::bind`] takes the request's `params`.
//! 2. [`parse_query_with`] parses the text or says why it cannot: [`ParseError::to_wire`] is the body
//!    that clients of InfluxDB compare.
//! 3. [`names::complete_names`] writes databases and retention policies into the statement, and
//!    [`privileges::required_privileges`] lists the privileges that the user needs for them.
//! 4. [`validate::check_statement`] and [`validate::analyze`] check it. For a SELECT, the latter also
//!    separates the times from WHERE ([`time_range`]) and the interval from GROUP BY, computes
//!    constants, and determines which kinds of functions it uses.
//! 5. [`columns::expand_wildcards`] replaces wildcards with stored fields and tags, when the planner
//!    knows them, and [`columns::column_names`] names the columns of the answer.
//!
//! Statements print (`Display`) in InfluxDB's form, which SHOW QUERIES, SHOW CONTINUOUS QUERIES and
//! errors show. Regular expressions are Go's; [`go_regex`] translates them for Rust's `regex`.
//!
//! # Invariants
//! - The positions and words of errors are InfluxDB 1.8's. `tests/statements/` contains statements
//!   with their answers; `testing/influxql/compare.py` compares them with a running InfluxDB.
//! - Nothing panics, whatever the text. Parentheses, calls and subqueries may nest [`NESTING_MAX`]
//!   deep; chains of operators may be as long as the text, since no code recurses along them.
//! - A password is never printed, not even by `Debug`; [`redact_passwords`] removes it from texts
//!   that are logged in their original form.
//!
//! # Deliberate differences from InfluxDB
//! - The depth of nesting has a limit.
//! - `SHOW TAG KEYS` accepts WITH KEY, which InfluxDB's documentation describes and only its later
//!   versions support.
//! - Where InfluxDB panics, this crate does not: the value of `1h / 0.5` is 0, `a =~ /x/ * 2` is
//!   refused, and `GROUP BY time(0s, 1s)` has no interval.
//! - In comparisons, a time beyond 64 bits of nanoseconds becomes the nearest time within them; it does
//!   not wrap.
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
