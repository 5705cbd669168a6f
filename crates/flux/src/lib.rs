//! Flux: text to a syntax tree. No I/O, no plans, and no knowledge of functions.
//!
//! `scanner` turns text into tokens, and `parser` turns the tokens into a tree (`ast`). `literal` reads
//! times and durations.
//!
//! # Invariants
//! - No text makes the parser panic or exhaust the stack: its size, the nesting and the depth of the
//!   tree are bounded, so code that walks the tree may recurse.
//! - Every error has a position: line and column, from 1.

pub mod ast;
mod error;
mod literal;
mod parser;
mod scanner;

pub use error::{FluxError, FluxPosition};
pub use literal::{FluxDuration, parse_time};
pub use parser::{FLUX_TEXT_BYTES_MAX, parse_flux};
