//! The tree dialect of Apache IoTDB's SQL on top of the service: turns a syntax tree into rows.
//!
//! `marigram-iotdb` parses a statement (`front_end`), and says how trees are kept in tables (`mapping`
//! there). `trees` finds the databases, and `series` the timeseries that patterns match. `define`, `insert`
//! and `delete` change what is stored. `show` lists it (`listing`).
//!
//! A query (`select`) first finds its timeseries and replaces wildcards by them (`expand`). Its rows then
//! pass through DataFusion's plans: the rows of devices (`device_rows`), aggregates of them (`aggregate`),
//! rows of several devices with the same time as one (`combine`), expressions over those (`compile`).
//! `answer_rows` fills gaps, counts rows, and gives the columns IoTDB's names and types. `last` finds the
//! newest points.
//!
//! Invariants: rows stream, and what is held comes from the pool of all statements. A statement reads only
//! databases in which its client may read.

mod aggregate;
mod answer_rows;
mod combine;
mod compile;
mod define;
mod delete;
mod device_rows;
mod expand;
mod fill;
mod front_end;
mod insert;
mod last;
mod listing;
mod select;
mod series;
mod show;
mod statement;
mod time_bounds;
mod trees;

pub use front_end::IotDbStatements;
