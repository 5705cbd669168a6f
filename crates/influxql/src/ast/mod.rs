//! The syntax tree: plain values, as the parser reads them.
//!
//! Every node prints in InfluxDB's form (`Display`), which `SHOW QUERIES`,
//! `SHOW CONTINUOUS QUERIES` and errors show. The printed text parses to the same tree, except for
//! passwords, which are never printed, and floats, which are printed with three decimals.
//!
//! Chains of operators nest to the left without a limit, so no code here recurses along them.

mod admin;
mod expr;
mod literal;
mod password;
mod print;
mod select;
mod show;
mod span;
mod statement;

pub use admin::{
    AlterRetentionPolicy, CreateContinuousQuery, CreateDatabase, CreateRetentionPolicy,
    CreateSubscription, Privilege, SubscriptionMode,
};
pub use expr::{Binary, BinaryOp, Call, Cast, Expr, VarRef, Walk, Wildcard};
pub use literal::{Literal, RegexSource, TimeValue};
pub use password::Password;
pub use select::{
    Dimension, Field, Fill, Measurement, MeasurementName, Select, SortField, Source, Target,
};
pub use show::{
    Cardinality, ShowCardinality, ShowFieldKeys, ShowMeasurements, ShowSeries, ShowTagKeys,
    ShowTagValues, TagKeyFilter,
};
pub use span::SourceSpan;
pub use statement::{InfluxQlQuery, Statement};
