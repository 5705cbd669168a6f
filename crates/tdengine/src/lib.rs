//! TDengine 3: its SQL as a syntax tree, its types, values, errors and answers. This crate has no I/O,
//! no clock and no plans; whoever runs the statements is above it.
//!
//! # From a request to an answer
//! 1. [`parse_statement`] reads the text, or says with TDengine's number and words why it is no statement
//!    ([`TaosError`]).
//! 2. The rows of INSERT stay text; [`InsertedRows`] reads them one after the other, and [`stored_value`]
//!    turns a value into what its column holds.
//! 3. [`RestAnswer`] writes the columns and rows of an answer as JSON, as the adapter for REST does it.
//!    [`TaosdToken`] is the token that a login answers.
//!
//! # Invariants
//! - Nothing panics, whatever the text. Parentheses, calls and queries nest at most [`NESTING_MAX`] deep,
//!   and an expression has at most [`OPERATORS_MAX`] operators of arithmetic, so that no tree is deeper than
//!   the sum. Conditions joined by AND or OR are lists.
//! - A statement takes memory in proportion to its text, and the rows of INSERT take none.

mod answer_meta;
pub mod ast;
mod bound_value;
mod duration;
mod error;
mod error_text;
mod lexer;
mod parser;
mod plain_lines;
mod precision;
mod prepared;
mod raw_block;
mod rest_answer;
mod stmt2_bind;
mod taosd_token;
mod time_text;
mod types;
mod value;
mod wire_type;
mod ws_frame;

pub use answer_meta::{PRECISION_KEY, TYPE_KEY, type_meta, type_of_meta};
pub use bound_value::{BoundColumn, BoundValue, push_quoted_name, push_text_literal};
pub use duration::{TaosDuration, TaosUnit, TimeShift};
pub use error::{TaosCode, TaosError, TaosResult};
pub use error_text::{error_text, split_error_text};
pub use parser::{InsertedRows, NESTING_MAX, OPERATORS_MAX, parse_statement};
pub use plain_lines::plain_lines;
pub use precision::TaosPrecision;
pub use prepared::{
    PreparedInsert, PreparedItem, PreparedPlace, PreparedSql, PreparedUsing, filled_text,
};
pub use raw_block::{RawColumn, raw_block, read_raw_block};
pub use rest_answer::{RestAnswer, RestColumn, error_answer, is_zone, update_answer};
pub use stmt2_bind::{BoundTable, Stmt2Bind};
pub use taosd_token::TaosdToken;
pub use time_text::{parse_time, push_time, shift_time, start_of_day};
pub use types::TaosType;
pub use value::{StoredValue, TaosMoment, TaosValue, TimeSetting, stored_value};
pub use wire_type::{WireLayout, type_code};
pub use ws_frame::{BinaryBody, BinaryRequest, raw_block_head};
