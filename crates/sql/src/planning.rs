//! Marigram's planning rules: PostgreSQL's semantics that DataFusion lacks ([`zones`],
//! [`time_texts`], [`unknown_literals`], [`subqueries`], [`tag_patterns`], [`parameter_types`],
//! [`using_joins`], [`counted_sets`]),
//! repairs of what DataFusion's own rules break ([`repair`], [`logical_repair`],
//! [`empty_subqueries`], [`sort_keys`], [`any_pattern`]), and limits on the size of a plan ([`growth`]).

pub mod answer_types;
pub mod any_pattern;
pub mod counted_sets;
pub mod empty_subqueries;
pub mod growth;
pub mod logical_repair;
pub mod parameter_types;
pub mod repair;
pub mod sort_keys;
pub mod subqueries;
pub mod tag_patterns;
pub mod time_texts;
pub mod unknown_literals;
pub mod using_joins;
pub mod zones;
