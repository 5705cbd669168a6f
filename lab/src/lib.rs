//! The laboratory: data that anyone can make again, and ways to hand it to a database.
//!
//! For now: standard set S and what the first benchmark needs (`marigram-bench`).

pub mod set_s;
