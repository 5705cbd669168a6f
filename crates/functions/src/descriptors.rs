//! Descriptors of aggregate functions: for each aggregate, its general accumulator, the series-aware
//! fold that computes it faster, and what a rollup stores of it.
//!
//! Planners ask [`aggregate_descriptor`] instead of knowing names. To add an aggregate, write it in a
//! file of its own and add a line to [`registered`]. An aggregate that has no fold runs through its
//! accumulator, and one that no rollup method fits is stored whole.

use super::{
    aggregate, first_udaf, histogram, last_udaf, lttb, max_udaf, mean, min_udaf, mode, over_time,
    spread, top_n,
};
use super::{avg_udaf, sum_udaf};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::AggregateUDF;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// What is known of an aggregate function.
#[derive(Clone, Debug)]
pub struct AggregateDescriptor {
    /// The function: its name, other names and types, and its accumulator.
    pub function: Arc<AggregateUDF>,
    /// How the series-aware operator computes it.
    pub fold: FoldMethod,
    /// What a rollup stores of it.
    pub rollup: RollupMethod,
}

/// How the series-aware operator computes an aggregate. All methods but the accumulator read decoded
/// values in loops of their own, and take pages by their statistics where these suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldMethod {
    /// By the function's accumulator, which reads rows.
    Accumulator,
    /// By the number of values.
    Count,
    /// By the fold of numbers, which can give several results at once.
    Numbers(NumericResult),
    /// By the first two moments of numbers.
    Variance {
        /// Whether it is of a sample: divided by one less.
        sample: bool,
        /// Whether it is the square root.
        root: bool,
    },
    /// By the value at one end of the group's times, which are the second argument.
    TimeEdge(TimeEdge),
}

/// A result of the fold of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumericResult {
    /// Sum.
    Sum,
    /// Mean.
    Mean,
    /// The high part of a sum, as rollups store it.
    SumHigh,
    /// The low part of a sum.
    SumLow,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

/// An end of a group's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeEdge {
    /// The first time.
    First,
    /// The last time.
    Last,
}

/// What a rollup stores of an aggregate, so that the stored parts of several buckets or series can be
/// combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollupMethod {
    /// The result itself, which serves only its own buckets and tags.
    Whole,
    /// The number of values.
    Count,
    /// The sum and the number of values.
    Sum,
    /// The minimum and the number of values.
    Min,
    /// The maximum and the number of values.
    Max,
    /// The sum, in two parts if it is of whole numbers, and the number of values.
    Mean,
    /// The minimum, the maximum and the number of values.
    Spread,
    /// The value at one end of the times, its time, and the number of values.
    TimeEdge(TimeEdge),
}

impl AggregateDescriptor {
    /// An aggregate that runs through its accumulator and that rollups store whole.
    fn general(function: AggregateUDF) -> Self {
        Self::new(
            Arc::new(function),
            FoldMethod::Accumulator,
            RollupMethod::Whole,
        )
    }

    fn new(function: Arc<AggregateUDF>, fold: FoldMethod, rollup: RollupMethod) -> Self {
        Self {
            function,
            fold,
            rollup,
        }
    }
}

/// The aggregates that a session knows beyond DataFusion's, and those of DataFusion that have a fold or
/// a rollup method.
pub(crate) fn registered() -> &'static [AggregateDescriptor] {
    use {AggregateDescriptor as D, FoldMethod as F, NumericResult as N, RollupMethod as R};
    static REGISTERED: LazyLock<Vec<D>> = LazyLock::new(|| {
        let variance = |sample, root| F::Variance { sample, root };
        let mut all = vec![
            D::new(count_udaf(), F::Count, R::Count),
            D::new(sum_udaf(), F::Numbers(N::Sum), R::Sum),
            D::new(avg_udaf(), F::Numbers(N::Mean), R::Mean),
            D::new(min_udaf(), F::Numbers(N::Min), R::Min),
            D::new(max_udaf(), F::Numbers(N::Max), R::Max),
            D::new(var_samp_udaf(), variance(true, false), R::Whole),
            D::new(var_pop_udaf(), variance(false, false), R::Whole),
            D::new(stddev_udaf(), variance(true, true), R::Whole),
            D::new(stddev_pop_udaf(), variance(false, true), R::Whole),
            D::new(
                first_udaf(),
                F::TimeEdge(TimeEdge::First),
                R::TimeEdge(TimeEdge::First),
            ),
            D::new(
                last_udaf(),
                F::TimeEdge(TimeEdge::Last),
                R::TimeEdge(TimeEdge::Last),
            ),
            D::new(
                Arc::new(aggregate::aggregate(spread::SpreadFunction::Spread)),
                F::Accumulator,
                R::Spread,
            ),
            D::general(aggregate::aggregate(spread::SpreadFunction::Elapsed)),
            D::general(aggregate::aggregate(mode::Mode)),
            D::general(aggregate::aggregate(top_n::TopNFunction::Top)),
            D::general(aggregate::aggregate(top_n::TopNFunction::Bottom)),
            D::general(aggregate::aggregate(histogram::Histogram)),
            D::general(aggregate::aggregate(lttb::Lttb)),
        ];
        all.extend(over_time::ALL.map(|function| D::general(aggregate::aggregate(function))));
        all
    });
    &REGISTERED
}

/// The aggregates that only the plans of rollups call.
fn internal() -> [AggregateDescriptor; 2] {
    [
        (mean::sum_high_udaf(), NumericResult::SumHigh),
        (mean::sum_low_udaf(), NumericResult::SumLow),
    ]
    .map(|(function, result)| {
        AggregateDescriptor::new(function, FoldMethod::Numbers(result), RollupMethod::Whole)
    })
}

/// The descriptor of the aggregate with this name, which is the function's own and in lower case; `None`
/// for an aggregate of DataFusion that has neither a fold nor a rollup method.
pub fn aggregate_descriptor(name: &str) -> Option<&'static AggregateDescriptor> {
    static BY_NAME: LazyLock<HashMap<String, AggregateDescriptor>> = LazyLock::new(|| {
        let all = registered().iter().cloned().chain(internal());
        all.map(|descriptor| (descriptor.function.name().to_owned(), descriptor))
            .collect()
    });
    BY_NAME.get(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aggregate_is_found_by_its_own_name() {
        for descriptor in registered().iter().chain(&internal()) {
            let name = descriptor.function.name();
            let found = aggregate_descriptor(name).unwrap();
            assert_eq!(found.fold, descriptor.fold, "{name}");
            assert_eq!(found.rollup, descriptor.rollup, "{name}");
        }
        assert!(aggregate_descriptor("array_agg").is_none());
    }
}
