//! SQL functions, and the rules that make operators treat values as PostgreSQL does.
//!
//! Functions: Marigram's own (`time_bucket`, aggregates of time series, and marker functions that
//! the plans of operators replace) and those of PostgreSQL that clients call; [`register`] adds
//! them to a session. Functions that produce large values are [`bounded`]. Operators:
//! [`arithmetic`] of whole numbers, [`interval_arithmetic`], [`operator_chains`], the [`comparison`] of intervals, the
//! order of [`floats`] and of intervals ([`interval_order`]). Both use [`zoned`] times, [`duration`]s
//! as people write them, and the [`interrupt`] that stops long loops.
//!
//! This crate knows neither tables nor sessions nor the engine.

mod adapted;
mod aggregate;
mod arguments;
pub mod arithmetic;
mod array_comparisons;
mod avg;
mod bit_xor;
mod bounded;
mod bucket;
mod byte_texts;
mod calls;
mod catalog_texts;
mod clock_texts;
mod collected;
pub mod comparison;
mod date_part;
mod date_trunc;
mod decimal_scales;
mod degrees;
mod descriptors;
pub mod duration;
mod epoch_times;
mod first_last;
mod float_casts;
pub mod floats;
mod histogram;
pub mod interrupt;
pub mod interval_arithmetic;
mod interval_extremes;
mod interval_functions;
mod interval_keys;
pub mod interval_order;
mod interval_sums;
mod interval_text;
mod json;
mod keys;
mod letter_case;
mod lttb;
pub mod marker_functions;
mod mean;
mod min_max;
mod mode;
mod named_cast;
mod null_counts;
mod number_forms;
mod numbers;
pub mod numeric_division;
pub mod operator_chains;
mod over_time;
mod overlaps;
mod pairs;
mod pg_type;
mod plan_expressions;
mod postgres;
mod postgres_values;
mod quoted_identifiers;
mod refusal;
mod regexps;
mod repeated_key;
mod series;
mod sleep;
mod sliding;
mod spread;
mod steps;
mod sum;
mod text_forms;
mod time_bucket;
mod time_zones;
mod to_number;
mod top_n;
mod two_step;
mod type_names;
mod uuid_texts;
pub mod value_casts;
mod value_texts;
pub mod zone_functions;
pub mod zoned;

pub use adapted::SignedCounts;
pub use arguments::TIME;
pub use array_comparisons::{ARRAY_COMPARISONS, compared_with_array};
pub use bounded::{BoundConstants, BoundFunctions, bounded};
pub use bucket::TimeBuckets;
pub use calls::buckets_of;
pub use decimal_scales::TRIM_SCALE;
pub use descriptors::{
    AggregateDescriptor, FoldMethod, NumericResult, RollupMethod, TimeEdge, aggregate_descriptor,
};
pub use interval_text::{format_postgres_interval, parse_postgres_interval};
pub use json::{
    JSON_FIELD, JSON_LISTS, JSON_OBJECT_LISTS, JSON_PARTS, JSON_READERS, TEXT_OBJECTS, json_edit,
    json_operation,
};
pub use mean::{
    exact_mean, mean_of_parts_udf, parts_out_of_range, sum_high_udaf, sum_low_udaf, sum_parts,
};
pub use named_cast::NAMED_CAST;
pub use plan_expressions::{replace_in_expressions, with_values_of_columns};
pub use postgres::{ConstantFunction, POSTGRES_VERSION};
pub use postgres_values::ARRAY_OR_EMPTY;
pub use refusal::{Refusal, refused, refused_at};
pub use regexps::REGEXP_MATCH_LIST;
pub use repeated_key::REPEATED_KEY;
pub use text_forms::{SIMILAR_TO_REGEX, TIME_FROM_PATTERN};
pub use time_bucket::buckets as time_buckets;
pub use time_zones::find_zone;
pub use two_step::{ACCESSORS, SummaryPlace, accessor_function};
pub use type_names::in_sql;
pub use uuid_texts::UUID_READER;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

/// Registers the functions with a session.
///
/// # Errors
/// If the registry refuses a function.
pub fn register(state: &mut SessionState) -> datafusion::common::Result<()> {
    state.register_udf(Arc::new(ScalarUDF::from(time_bucket::TimeBucket::new())))?;
    state.register_udf(Arc::new(ScalarUDF::from(named_cast::NamedCast::new())))?;
    for descriptor in descriptors::registered() {
        state.register_udaf(Arc::clone(&descriptor.function))?;
    }
    state.register_udaf(Arc::new(bit_xor::bit_xor()))?;
    adapted::adapt_functions(state)?;
    for udaf in collected::collecting_aggregates() {
        state.register_udaf(Arc::new(udaf))?;
    }
    for udaf in two_step::aggregates() {
        state.register_udaf(Arc::new(udaf))?;
    }
    for udf in two_step::accessor_functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udwf in steps::functions() {
        state.register_udwf(Arc::new(udwf))?;
    }
    for udf in marker_functions::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    // This is an alias of DataFusion's to_char, which would replace ours under it.
    state.deregister_udf("date_format")?;
    for udf in text_forms::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in regexps::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in number_forms::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in byte_texts::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in letter_case::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    state.register_udf(Arc::new(uuid_texts::uuid_reader()))?;
    for udf in json::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in catalog_texts::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in array_comparisons::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in postgres_values::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in degrees::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in null_counts::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in decimal_scales::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    state.register_udf(Arc::new(quoted_identifiers::function()))?;
    state.register_udf(Arc::new(repeated_key::function()))?;
    state.register_udf(Arc::new(date_part::function()))?;
    state.register_udf(Arc::new(date_trunc::function()))?;
    state.register_udf(Arc::new(overlaps::function()))?;
    state.register_udf(Arc::new(series::function()))?;
    state.register_udf(Arc::new(to_number::function()))?;
    state.register_udf(Arc::new(sleep::function()))?;
    let to_timestamp = epoch_times::EpochToTimestamp::default();
    state.register_udf(Arc::new(ScalarUDF::from(to_timestamp)))?;
    for udf in interval_functions::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in postgres::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    Ok(())
}

/// `first(value, time)`
pub fn first_udaf() -> Arc<AggregateUDF> {
    static FIRST: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(first_last::FirstLast::first())));
    Arc::clone(&FIRST)
}

/// `last(value, time)`
pub fn last_udaf() -> Arc<AggregateUDF> {
    static LAST: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(first_last::FirstLast::last())));
    Arc::clone(&LAST)
}

/// `sum(value)`
pub fn sum_udaf() -> Arc<AggregateUDF> {
    static SUM: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(sum::CheckedSum::default())));
    Arc::clone(&SUM)
}

/// `avg(value)`
pub fn avg_udaf() -> Arc<AggregateUDF> {
    static AVG: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(avg::ExactAvg::default())));
    Arc::clone(&AVG)
}

/// `min(value)`
pub fn min_udaf() -> Arc<AggregateUDF> {
    static MIN: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(min_max::min())));
    Arc::clone(&MIN)
}

/// `max(value)`
pub fn max_udaf() -> Arc<AggregateUDF> {
    static MAX: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(min_max::max())));
    Arc::clone(&MAX)
}

/// Whether an aggregate has this name, in lower case: a query that selects it without GROUP BY has one
/// row.
pub fn is_aggregate_name(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let mut all = all_default_aggregate_functions();
        let ours = descriptors::registered().iter();
        all.extend(ours.map(|descriptor| Arc::clone(&descriptor.function)));
        all.extend(two_step::aggregates().into_iter().map(Arc::new));
        let names = |udaf: Arc<AggregateUDF>| {
            let aliases = udaf.aliases().to_vec();
            aliases.into_iter().chain([udaf.name().to_owned()])
        };
        all.into_iter().flat_map(names).collect()
    });
    NAMES.contains(name)
}

#[cfg(test)]
mod tests;
