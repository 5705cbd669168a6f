//! OpenTSDB's queries on top of the service: turns a checked query into rows.
//!
//! A request is a [`ReadRequest`](marigram_opentsdb::ReadRequest) as text (`front_end`). A part of a
//! query is a DataFusion plan over our scans, which takes its times and filters and orders the rows by
//! the tags that group them, then by the other tags and time (`metric`). The rows stream through the
//! stages of `marigram-opentsdb`: each series is reduced by itself, and the series of a group are merged
//! (`group_in_work`, `series_rows`). `expressions` reads several metrics whole and joins them.
//! `last_points` finds the newest points, `names` lists metrics, tags and series, `annotations` reads the
//! notes that are stored.
//!
//! Invariant: what is in memory at a time is the reduced points of one group, or of an expression's
//! metrics, and comes from the pool of all statements.

mod annotations;
mod expressions;
mod front_end;
mod group_in_work;
mod json_rows;
mod last_points;
mod metric;
mod names;
mod series_rows;
mod statement;

pub use front_end::OpenTsdbQueries;
