//! Operators that work with series and times, and the rules that put them into DataFusion's plans.
//!
//! From bottom to top: [`predicate`] (what a condition says about series and times), [`rows`]
//! (sorted rows as record batches), [`scan`] (the rows of a table), [`reduce`] (aggregates computed
//! from statistics and decoded pages), [`gapfill`], [`asof`] and [`lateral`] joins, and the
//! [`planner`] that creates the operators of their nodes. [`grouping_sets`], [`spilling_joins`],
//! [`outer_join_sides`], [`yielding`] and [`interruptible_rule`] keep DataFusion's own operators and rules within bounds.
//! `plan_methods` has the methods that all operators share.
//!
//! This crate knows neither the text of statements nor sessions.

pub mod asof;
pub mod gapfill;
pub mod grouping_sets;
pub mod interruptible_rule;
pub mod lateral;
pub mod outer_join_sides;
mod plan_methods;
pub mod planner;
pub mod predicate;
pub mod reduce;
pub mod rows;
pub mod scan;
mod small_batches;
pub mod spilling_joins;
pub mod yielding;
