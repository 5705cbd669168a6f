//! Rules of ours about plans: what PostgreSQL means and DataFusion does not ([`zones`],
//! [`time_texts`], [`subqueries`], [`tag_patterns`], [`parameter_types`]), what DataFusion's own rules
//! break ([`repair`]), and the size of a plan ([`growth`]).

pub mod growth;
pub mod parameter_types;
pub mod repair;
pub mod subqueries;
pub mod tag_patterns;
pub mod time_texts;
pub mod zones;
