//! Tests that every function is known to be bounded, and that every rule checks for cancellation.

use super::*;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::UnboundedMemoryPool;
use marigram_engine::{EngineOptions, Holder};
use marigram_env::Env;
use marigram_service::Identity;
use std::collections::BTreeSet;
use tokio::runtime::Builder;

/// Scalar functions whose values need no more memory than their arguments, except for a constant.
const BOUNDED: &str = "
    abs acos acosd acosh age all_equal all_greater all_greater_equal all_less all_less_equal
    all_unequal any_equal any_greater any_greater_equal any_less any_less_equal any_unequal
    array_add array_any_value array_avg array_compact array_contains array_dims array_distance
    array_distinct array_element array_empty array_except array_extract array_has array_has_all
    array_has_any array_indexof array_intersect array_length array_lower array_max array_min
    array_ndims array_normalize array_or_empty array_pop_back array_pop_front array_position
    array_positions array_product array_remove array_remove_all array_remove_n array_reverse
    array_scale array_slice array_sort array_subtract array_sum array_upper arrays_overlap
    arrow_field arrow_metadata arrow_typeof ascii asin asind asinh asof_match atan atan2 atan2d atand atanh
    bit_length btrim cardinality cast_to_type cbrt ceil char_length character_length chr
    col_description contains cos cosd cosh cosine_distance cot cotd current_database current_date
    current_schema current_schemas current_setting current_time current_timestamp date_bin
    date_trunc date_trunc_in_zone datetrunc decode degrees digest dot_product element_at empty
    ends_with exp factorial file_row_index fill_value find_in_set flatten floor format_type
    from_unixtime gcd get_field getdatabaseencoding has_any_column_privilege
    has_column_privilege has_database_privilege has_function_privilege has_language_privilege
    has_parameter_privilege has_schema_privilege has_sequence_privilege has_table_privilege
    has_tablespace_privilege has_type_privilege inet_client_addr inet_client_port
    inet_server_addr inet_server_port initcap inner_product input_file_name instr interpolate
    isnan iszero justify_days justify_hours justify_interval lcm left length list_add
    list_any_value list_avg list_compact list_contains list_dims list_distance list_distinct
    list_element list_empty list_except list_extract list_has list_has_all list_has_any
    list_indexof list_intersect list_length list_max list_ndims list_normalize list_pop_back
    list_pop_front list_position list_positions list_product list_remove list_remove_all
    list_remove_n list_reverse list_scale list_slice list_sort list_subtract list_sum ln locf
    log log10 log2 lower ltrim make_date make_interval make_time make_timestamp map_entries
    map_extract map_keys map_values md5 min_scale named_cast named_oid nanvl now num_nonnulls num_nulls obj_description
    octet_length overlaps pg_advisory_unlock_all pg_backend_pid pg_char_to_encoding
    pg_client_encoding pg_collation_is_visible pg_column_size pg_conf_load_time
    pg_conversion_is_visible pg_current_xact_id pg_database_size pg_describe_object
    pg_encoding_to_char pg_function_is_visible pg_get_constraintdef pg_get_expr
    pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result
    pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef pg_get_partition_constraintdef
    pg_get_partkeydef pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef
    pg_get_statisticsobjdef_columns pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role
    pg_indexes_size pg_is_in_recovery pg_is_other_temp_schema pg_my_temp_schema
    pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible pg_partition_ancestors
    pg_postmaster_start_time pg_relation_is_publishable pg_relation_size pg_size_pretty pg_sleep
    pg_stat_get_numscans pg_statistics_obj_is_visible pg_table_is_visible pg_table_size
    pg_tablespace_location pg_tablespace_size pg_total_relation_size pg_ts_config_is_visible
    pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible
    pg_typeof pi position pow power radians rand random read_json read_moment read_uuid regexp_count regexp_instr regexp_like
    regexp_substr repeated_key reverse right round rtrim scale session_user set_config sha224 sha256 sha384 sha512
    shobj_description sign signum similar_to_regex sin sind sinh split_part sqrt starts_with strpos substr
    summary_average summary_average_x summary_average_y summary_sum summary_sum_x summary_sum_y
    summary_num_vals summary_stddev summary_stddev_x summary_stddev_y summary_variance
    summary_variance_x summary_variance_y summary_skewness summary_skewness_x summary_skewness_y
    summary_kurtosis summary_kurtosis_x summary_kurtosis_y summary_slope summary_intercept
    summary_x_intercept summary_corr summary_covariance summary_determination_coeff
    summary_integral summary_first_time summary_last_time summary_first_val summary_last_val
    summary_delta summary_rate summary_time_delta summary_idelta_left summary_idelta_right
    summary_irate_left summary_irate_right summary_num_elements summary_num_changes
    summary_num_resets summary_open summary_high summary_low summary_close summary_open_time
    summary_high_time summary_low_time summary_close_time summary_volume summary_vwap
    summary_approx_percentile summary_approx_percentile_rank summary_mean summary_error
    substr_index substring substring_index tan tand tanh time_bucket time_bucket_gapfill
    time_from_pattern timezone to_date to_hex to_local_time to_number to_regtype to_time to_timestamp
    to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime
    today trim trim_scale trunc try_cast_to_type txid_current txid_current_if_assigned union_extract
    union_tag upper uuid version width_bucket with_metadata
";

/// Aggregates whose state and value need no more memory than a constant or their input, which
/// operators account for.
const AGGREGATES: &str = "
    any_value approx_distinct approx_median approx_percentile_cont
    approx_percentile_cont_with_weight array_agg avg bit_and bit_or bit_xor bool_and bool_or
    bottom_n corr count covar covar_pop covar_samp delta derivative elapsed first first_value
    grouping histogram increase integral last last_value lttb max max_n mean median min min_n
    mode nth_value percentile_cont quantile_cont rate regr_avgx regr_avgy regr_count
    candlestick_agg counter_agg gauge_agg percentile_agg rollup stats_agg tdigest time_weight_agg uddsketch
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy spread stddev stddev_pop
    stddev_samp string_agg sum time_weight time_weighted_avg top_n twa var var_pop
    var_population var_samp var_sample
";

/// Window functions: each computes one value per row, its own or that of another row.
const WINDOWS: &str = "
    count_id cume_dist dense_rank diff difference event_id first_value lag last_value lead mavg
    moving_average moving_avg non_negative_derivative nth_value ntile percent_rank rank
    row_number session_id state_count state_duration state_id statecount stateduration
";

/// Functions with lambdas: each returns one element per element.
const HIGHER_ORDER: &str = "
    array_any_match any_match list_any_match array_first list_first array_filter list_filter array_transform list_transform
";

/// Table functions: they stream, or read a fixed table.
const TABLES: &str = "
    generate_series pg_get_keywords range
";

fn unlisted<'a>(registered: impl Iterator<Item = &'a String>, listed: &str) -> Vec<&'a str> {
    let listed: BTreeSet<&str> = listed.split_whitespace().collect();
    let mut unlisted: Vec<&str> = registered
        .map(String::as_str)
        .filter(|name| !listed.contains(name))
        .collect();
    unlisted.sort_unstable();
    unlisted
}

#[test]
fn every_function_is_bounded() {
    let mut state = SessionPrototype::get().unwrap().state.clone();
    for function in session_functions(&Session::new("d", Identity::owner("u"))) {
        state.register_udf(Arc::new(function)).unwrap();
    }
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let bounded = |name: &&String| {
        let function = &state.scalar_functions()[*name];
        !Arc::ptr_eq(function, &marigram_functions::bounded(function, &pool))
    };
    let names = state.scalar_functions().keys();
    let open: Vec<&String> = names.filter(|name| !bounded(name)).collect();
    let wrong = [
        ("scalar", unlisted(open.into_iter(), BOUNDED)),
        (
            "aggregate",
            unlisted(state.aggregate_functions().keys(), AGGREGATES),
        ),
        ("window", unlisted(state.window_functions().keys(), WINDOWS)),
        (
            "higher order",
            unlisted(state.higher_order_functions().keys(), HIGHER_ORDER),
        ),
        ("table", unlisted(state.table_functions().keys(), TABLES)),
    ];
    for (kind, names) in wrong {
        assert!(
            names.is_empty(),
            "{kind} functions that nobody has looked at: bound them in functions/bounded/growth.rs, \
             or list them here if their values cannot be larger than their arguments: {}",
            names.join(" ")
        );
    }
}

/// Rules keep their order, and none of them is missing.
#[test]
fn every_rule_asks_whether_it_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        background_threads: 0,
        ..EngineOptions::default()
    };
    let engine = Engine::open(Env::real(), &dir.path().join("data"), options);
    let engine = engine.unwrap();
    let access = Arc::new(AccessControl::open(engine.clone()).unwrap());
    let reference = ReferenceStore::in_memory().unwrap();
    let contexts = SessionStates::new((engine, reference), access, SqlOptions::default()).unwrap();
    let state = contexts
        .state(&Session::new("d", Identity::owner("u")))
        .unwrap();
    let analyzer = &state.analyzer().rules;
    let logical = state.optimizer().rules.iter();
    let physical = state.physical_optimizers().iter();
    let all = (analyzer.iter().map(|rule| format!("{rule:?}")))
        .chain(logical.map(|rule| format!("{rule:?}")))
        .chain(physical.map(|rule| format!("{rule:?}")));
    for rule in all {
        assert!(rule.starts_with("InterruptibleRule("), "{rule}");
    }
    let defaults = datafusion::optimizer::Analyzer::new().rules;
    let names: Vec<&str> = analyzer.iter().map(|rule| rule.name()).collect();
    let (first, ours) = names.split_at(defaults.len());
    let expected: Vec<&str> = defaults.iter().map(|rule| rule.name()).collect();
    assert_eq!(first, expected);
    assert_eq!(ours.len(), 11, "{ours:?}");
}

/// Batches without columns need no memory. If an exchange is refused memory, it spills them, and
/// they cannot be read back while the file grows.
#[test]
fn what_needs_no_memory_runs_where_all_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        background_threads: 0,
        ..EngineOptions::default()
    };
    let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
    let memory = Arc::clone(engine.memory());
    let access = Arc::new(AccessControl::open(engine.clone()).unwrap());
    let reference = ReferenceStore::in_memory().unwrap();
    let contexts = SessionStates::new((engine, reference), access, SqlOptions::default()).unwrap();
    memory.grow(Holder::Query, 2 * memory.limit());
    let runtime = Builder::new_multi_thread().build().unwrap();
    for _ in 0..20 {
        let state = contexts
            .state(&Session::new("d", Identity::owner("u")))
            .unwrap();
        let context = SessionContext::new_with_state(state);
        let sql = "SELECT count(*) FROM (SELECT * FROM generate_series(1, 300000) OFFSET 1)";
        let counted = runtime.block_on(async { context.sql(sql).await?.collect().await });
        let counted = counted.unwrap();
        let count = counted[0].column(0).as_primitive::<Int64Type>().value(0);
        assert_eq!(count, 299_999);
    }
    memory.shrink(Holder::Query, 2 * memory.limit());
}

#[test]
fn errors_know_every_window_function() {
    let mut state = SessionStateBuilder::new().build();
    marigram_functions::register(&mut state).unwrap();
    for function in state.window_functions().values() {
        let known = crate::error::calls::WINDOW_FUNCTIONS;
        assert!(known.contains(&function.name()), "{}", function.name());
    }
}
