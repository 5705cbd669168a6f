//! InfluxQL on top of the service: turns a checked syntax tree into rows.
//!
//! A request is parsed by `marigram-influxql` (`front_end`), and each statement runs by itself
//! (`statement`, with what `statement_run` holds). A SELECT is *prepared* (`prepare`): sources are found in the catalog (`schema`,
//! `policies`), wildcards expanded, names given their types (`typing`). Then it becomes rows
//! (`select`): its sources are plans of DataFusion over our scans, which get the times, and the
//! conditions on tags and fields (`source`); functions are stages behind one another (`stage`,
//! `reducer`), brought together by series and time; columns are computed over them (`expression`,
//! `evaluate`). `output` makes Arrow of the rows. SHOW reads the catalog and the series index
//! (`show`, `listing`). Databases and retention policies are the catalog's (`databases`,
//! `catalog_policies`), and continuous queries are materialized views (`continuous_query`); `running_queries` knows the statements that run, and `server_state` tells of
//! them and of the server.
//!
//! # Invariants
//! - Answers equal those of InfluxDB 1.8, including its oddities. `docs/guides/influxql.md` names
//!   them.
//! - Rows stream: only incomplete groups are held, and their memory comes from the pool of all
//!   statements (`budget`).

mod budget;
mod catalog_policies;
mod continuous_query;
mod databases;
mod delete;
mod evaluate;
mod explain;
mod expression;
mod front_end;
mod into;
mod listing;
mod output;
mod plan_select;
mod point;
mod policies;
mod prepare;
mod read_only;
mod reducer;
mod running_queries;
mod schema;
mod select;
mod series;
mod server_state;
mod show;
mod source;
mod stage;
mod statement;
mod statement_run;
mod typing;
mod users;
mod value;
mod window;

pub use budget::Budget;
pub use catalog_policies::CatalogPolicies;
pub use front_end::InfluxQl;
pub use listing::each_series;
pub use output::MEASUREMENT_COLUMN;
pub use plan_select::plan_select;
pub use policies::Policies;
pub use schema::{StoredMeasurement, readable_table};
pub use source::scan_of;
pub use value::InfluxValueType;
