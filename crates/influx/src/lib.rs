//! InfluxQL on top of the service: turns a checked syntax tree into rows.
//!
//! `marigram-influxql` parses a request (`front_end`), and each statement runs by itself (`statement`,
//! with the state in `statement_run`). A SELECT is first *prepared* (`prepare`): the planner finds its
//! sources in the catalog (`schema`, `policies`), expands wildcards, and gives names their types
//! (`typing`). The SELECT then becomes rows (`select`):
//!
//! 1. Its sources are DataFusion plans over our scans, which take the times and the conditions on tags
//!    and fields (`source`).
//! 2. Its functions are stages in sequence (`stage`, `reducer`), joined by series and time.
//! 3. Its columns are computed from them (`expression`, `evaluate`).
//! 4. `output` turns the rows into Arrow.
//!
//! SHOW reads the catalog and the series index (`show`, `listing`). The catalog holds databases and
//! retention policies (`databases`, `catalog_policies`), and continuous queries are materialized views
//! (`continuous_query`). `running_queries` lists the running statements; `server_state` reports them and
//! the state of the server.
//!
//! # Invariants
//! - Answers equal those of InfluxDB 1.8, including its oddities. `docs/guides/influxql.md` names
//!   them.
//! - Rows stream: only incomplete groups stay in memory, which comes from the pool of all statements
//!   (`budget`).

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
