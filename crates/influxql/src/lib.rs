//! InfluxQL, the language of InfluxDB 1.8.

pub mod ast;
mod civil;
mod duration;
mod error;
mod fold;
pub mod go_regex;
mod number;
mod params;
mod parser;
mod quote;
mod reader;
mod scanner;
mod select_error;
pub mod time_range;
mod token;
pub mod validate;
mod zone;

pub use duration::{DurationError, GoDuration, InfluxDuration, parse_duration};
pub use error::{ErrorPosition, PARSE_ERROR_PREFIX, ParseError, ParseErrorKind};
pub use params::{ParamJson, Params};
pub use parser::{
    NESTING_MAX, ParseOptions, parse_expr, parse_query, parse_query_with,
};
pub use quote::{QuotedIdent, QuotedString, ident_needs_quotes};
pub use select_error::{Arity, SelectError};
pub use token::Keyword;
pub use zone::{TimeZones, UtcOnly};
