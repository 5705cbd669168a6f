//! `array_agg`, `string_agg` and `percentile_cont` whose memory is known before they take it.
//!
//! DataFusion's versions keep a scalar value of 64 bytes and an allocation for each row and each
//! column of ORDER BY, and copy all of them, unaccounted, when they emit. Here the rows of all
//! groups stay in columns (`rows`), and the size that an aggregation reserves includes the copies
//! that emitting makes: a statement that does not fit ends with 53200 before it takes the memory.
//!
//! DataFusion's `percentile_cont` also rounds the place between two values.
//!
//! Invariant: the order of rows that ORDER BY does not tell apart is that of their arrival.

mod accumulators;
mod function;
mod rows;

pub(crate) use function::collecting_aggregates;
