//! The syntax tree: plain values, as the parser read them.
//!
//! Every node prints as InfluxDB prints it (`Display`): `SHOW QUERIES`, `SHOW CONTINUOUS QUERIES` and
//! errors show these texts. What is printed reads back as the same tree, but for passwords, which
//! are never printed, and floats, of which three decimals are.
//!
//! Chains of operators nest to the left without bound, so nothing here recurses along them.

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
