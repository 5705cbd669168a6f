//! PostgreSQL's functions of regular expressions: `regexp_match`, `regexp_matches` (as an array of
//! matches), `regexp_split_to_array`, `regexp_count`, `regexp_instr`, `regexp_substr`, `regexp_like` and
//! `regexp_replace`.
//!
//! The `matcher` finds matches as PostgreSQL does, the `udf`s read arguments and make answers.

mod matcher;
mod replacement;
mod udf;

pub use udf::REGEXP_MATCH_LIST;
pub(crate) use udf::functions;
