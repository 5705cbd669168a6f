//! Runs Flux: turns the syntax tree of a script into tables.
//!
//! The interpreter first evaluates a script (`evaluate`, `operators`, `library`). Functions of streams
//! read nothing at this point; they only describe streams (`value`). The interpreter now knows which
//! buckets the script reads, and checks whether the client may read them (`access`, `statement`). It
//! then runs the results one after another (`run`): it reads tables (`read`, with what `predicate`
//! derives from filters), lists them (`listing`), changes them one by one or together (`apply`,
//! `merge`, `windows`), and returns them as Arrow batches (`output`). `front_end` is the interface to
//! the service.
//!
//! # Invariants
//! - The interpreter reads a bucket only if the client may read it.
//! - An evaluation ends: its depth, its steps and its texts are bounded.
//! - A table stays in memory only as long as a function needs it. The memory comes from the pool of all
//!   statements.
//! - A call that is not supported is an error that names the function and its position.

#![expect(
    clippy::mutable_key_type,
    reason = "the order of group keys does not depend on the caches inside a regular expression"
)]

mod access;
mod apply;
mod arrow_columns;
mod evaluate;
mod fault;
mod front_end;
mod library;
mod listing;
mod merge;
mod operators;
mod output;
mod predicate;
mod read;
mod run;
mod statement;
mod value;
mod windows;

pub use front_end::FluxLanguage;
