//! Marigram's planning rules: PostgreSQL's semantics that DataFusion lacks ([`zones`],
//! [`time_texts`], [`moments`], [`unknown_literals`], [`subqueries`], [`tag_patterns`], [`parameter_types`],
//! [`using_joins`], [`row_functions`], [`counted_sets`], [`json_operators`]),
//! repairs of what DataFusion's own rules break ([`repair`], [`logical_repair`],
//! [`empty_subqueries`], [`sort_keys`], [`any_pattern`], [`called_tables`]), what is refused because they do not know it
//! ([`outer_references`]), and limits on the size of a plan ([`growth`]).

pub(crate) mod answer_types;
pub(crate) mod any_pattern;
pub(crate) mod called_tables;
pub(crate) mod counted_sets;
pub(crate) mod empty_subqueries;
pub(crate) mod growth;
pub(crate) mod json_operators;
pub(crate) mod list_conditions;
pub(crate) mod logical_repair;
pub(crate) mod moments;
pub(crate) mod outer_references;
pub(crate) mod parameter_types;
pub(crate) mod repair;
pub(crate) mod row_functions;
pub(crate) mod sort_keys;
pub(crate) mod subqueries;
pub(crate) mod tag_patterns;
pub(crate) mod time_texts;
pub(crate) mod unknown_literals;
pub(crate) mod using_joins;
pub(crate) mod zones;
