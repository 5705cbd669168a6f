//! Texts in PostgreSQL's formats: times, the patterns of `to_char`, and those of `SIMILAR TO`. This
//! crate does not know databases and does no I/O.
//!
//! The rules come from PostgreSQL 15's documentation (appendix B, sections 8.5, 9.7.2 and 9.8); the
//! expected results in `tests/` come from PostgreSQL 15.

mod abbreviations;
mod error;
mod fields;
mod integers;
mod similar;
mod times;
mod to_char;
mod zones;

pub use error::TimeTextError;
pub use integers::{IntegerTimeError, integer_time};
pub use similar::{SimilarError, similar_to_regex};
pub use times::{ReferenceClock, TimeText, zone_of};
pub use to_char::{TimePattern, time_to_char};
pub use zones::{TimeUnit, ZoneClock, named_zone, session_zone, zone_of_seconds};
