//! Text as PostgreSQL reads and writes it: times in all their forms, the patterns of `to_char`, those
//! of `SIMILAR TO`, regular expressions, rows and arrays, and the words and statements of a script. This crate knows no database, and does no I/O.
//!
//! The rules come from PostgreSQL 15's documentation (appendix B, sections 8.5, 9.7.2 and 9.8); the
//! expected results in `tests/` come from PostgreSQL 15.

mod abbreviations;
mod composites;
mod error;
mod fields;
mod floats;
mod from_pattern;
mod integers;
mod interval_to_char;
mod lexer;
mod number_from_pattern;
mod number_pattern;
mod regular_expression;
mod script;
mod similar;
mod times;
mod to_char;
mod zones;

pub use composites::{array_text, row_text};
pub use error::TimeTextError;
pub use floats::{double_text, real_text};
pub use from_pattern::{PatternTime, PatternTimeError, time_from_pattern};
pub use integers::{IntegerTimeError, integer_time};
pub use interval_to_char::{IntervalPatternError, PatternInterval, interval_to_char};
pub use lexer::{StatementLexer, Token};
pub use number_from_pattern::PatternReadError;
pub use number_pattern::{NumberPattern, NumberPatternError, PatternNumber};
pub use regular_expression::{MatchOptions, RegularExpressionError, regular_expression};
pub use script::{ScriptPiece, split_script};
pub use similar::{SimilarError, similar_to_regex};
pub use times::{ReferenceClock, TimeText, zone_of};
pub use to_char::{TimePattern, time_to_char};
pub use zones::{TimeUnit, ZoneClock, named_zone, session_zone, zone_of_seconds};
