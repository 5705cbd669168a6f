//! Runs Flux: turns the syntax tree of a script into tables.
//!
//! A script is evaluated first (`evaluate`, `operators`, `library`): its functions of streams read
//! nothing, they describe streams (`value`). Which buckets it reads is known and checked then
//! (`access`, `statement`). Then its results run one after another (`run`): tables are read
//! (`read`, with what `predicate` knows of filters), listed (`listing`), changed one by one or
//! gathered (`apply`, `merge`, `windows`), and leave as batches of Arrow (`output`).
//! `front_end` is what the service knows of all this.
//!
//! # Invariants
//! - A bucket is read only if the client may read it.
//! - An evaluation ends: its depth, its steps and its texts are bounded.
//! - Tables are held as long as a function needs them, and their memory comes from the pool of all
//!   statements.
//! - What is not supported is an error that names the function and its place.

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
