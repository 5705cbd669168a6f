//! InfluxQL on top of the service: turns a checked syntax tree into rows.
//!
//! `marigram-influxql` parses a request (`front_end`), and each statement runs separately
//! (`statement`). A SELECT is first *prepared* (`prepare`): its sources are found in the catalog
//! (`schema`, `policies`), wildcards are expanded, and names get their types (`typing`). Then it is
//! turned into rows (`select`): its sources become DataFusion plans over our scans, which apply the
//! times and the conditions on tags and fields (`source`); functions become consecutive stages
//! (`stage`, `reducer`), whose points are joined by series and time; columns are computed from them
//! (`expression`, `evaluate`). `output` converts the rows to Arrow. SHOW reads the catalog and the
//! series index (`show`, `listing`). The catalog stores databases and retention policies
//! (`databases`, `catalog_policies`). `running_queries` tracks the statements that run, and
//! `server_state` reports them and the state of the server.
//!
//! # Invariants
//! - Answers equal those of InfluxDB 1.8, including its oddities. `docs/guides/influxql.md` names
//!   them.
//! - Rows stream: only incomplete groups are held, and their memory comes from the pool of all
//!   statements (`budget`).

mod budget;
mod catalog_policies;
mod databases;
mod delete;
mod evaluate;
mod explain;
mod expression;
mod front_end;
mod into;
mod listing;
mod output;
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
mod typing;
mod value;
mod window;

pub use catalog_policies::CatalogPolicies;
pub use front_end::InfluxQl;
pub use output::MEASUREMENT_COLUMN;
pub use policies::{DEFAULT_POLICY, OnePolicy, Policies};
