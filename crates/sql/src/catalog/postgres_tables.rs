//! Tables and columns of PostgreSQL's catalogs that `datafusion-pg-catalog` lacks, or has with other
//! types. Most of them are empty: they describe what Marigram does not have.

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;
use std::sync::Arc;

/// Columns that the library lacks, or has as texts although they are arrays. They are empty.
pub(super) fn missing_columns(table: &str) -> Vec<(&'static str, DataType)> {
    let texts = || DataType::new_list(DataType::Utf8, true);
    let arrays = |names: &[&'static str]| names.iter().map(|name| (*name, texts())).collect();
    match table {
        "pg_class" => arrays(&["relacl", "reloptions"]),
        "pg_attribute" => arrays(&["attacl", "attoptions", "attfdwoptions"]),
        "pg_namespace" => arrays(&["nspacl"]),
        "pg_database" => vec![("datacl", texts()), ("datcollversion", DataType::Utf8)],
        "pg_collation" => vec![("colliculocale", DataType::Utf8)],
        "pg_settings" => vec![("boot_val", DataType::Utf8)],
        "pg_tables" => vec![("hasindexes", DataType::Boolean)],
        "pg_db_role_setting" => arrays(&["setconfig"]),
        "pg_default_acl" => arrays(&["defaclacl"]),
        "pg_event_trigger" => arrays(&["evttags"]),
        "pg_foreign_data_wrapper" => arrays(&["fdwacl", "fdwoptions"]),
        "pg_foreign_server" => arrays(&["srvacl", "srvoptions"]),
        "pg_foreign_table" => arrays(&["ftoptions"]),
        "pg_language" => arrays(&["lanacl"]),
        "pg_largeobject_metadata" => arrays(&["lomacl"]),
        "pg_proc" => arrays(&["proacl", "proconfig"]),
        "pg_statistic_ext" => arrays(&["stxkind"]),
        "pg_subscription" => arrays(&["subpublications"]),
        "pg_tablespace" => arrays(&["spcacl", "spcoptions"]),
        "pg_type" => arrays(&["typacl"]),
        _ => Vec::new(),
    }
}

/// What an empty table's columns are: texts, except where the name ends in one of these signs.
///
/// `name#` is an integer, `name?` a boolean, `name[]` an array of texts, `name@` a time.
fn field(written: &str) -> Field {
    let kinds: [(&str, DataType); 4] = [
        ("#", DataType::Int32),
        ("?", DataType::Boolean),
        ("[]", DataType::new_list(DataType::Utf8, true)),
        ("@", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ];
    for (sign, kind) in kinds {
        if let Some(name) = written.strip_suffix(sign) {
            return Field::new(name, kind, true);
        }
    }
    Field::new(written, DataType::Utf8, true)
}

/// Tables of `pg_catalog`, and their columns.
const PG_CATALOG: &[(&str, &str)] = &[
    (
        "pg_available_extensions",
        "name default_version installed_version comment",
    ),
    (
        "pg_indexes",
        "schemaname tablename indexname tablespace indexdef",
    ),
    (
        "pg_locks",
        "locktype database# relation# page# tuple# virtualxid transactionid# classid# objid# objsubid# \
         virtualtransaction pid# mode granted? fastpath? waitstart@",
    ),
    ("pg_parameter_acl", "oid# parname paracl[]"),
    (
        "pg_policies",
        "schemaname tablename policyname permissive roles[] cmd qual with_check",
    ),
    (
        "pg_prepared_statements",
        "name statement prepare_time@ parameter_types[] from_sql? generic_plans# custom_plans#",
    ),
    (
        "pg_publication_tables",
        "pubname schemaname tablename attnames[] rowfilter",
    ),
    ("pg_rules", "schemaname tablename rulename definition"),
    (
        "pg_sequences",
        "schemaname sequencename sequenceowner data_type start_value# min_value# max_value# \
         increment_by# cycle? cache_size# last_value#",
    ),
    (
        "pg_stat_activity",
        "datid# datname pid# leader_pid# usesysid# usename application_name client_addr \
         client_hostname client_port# backend_start@ xact_start@ query_start@ state_change@ \
         wait_event_type wait_event state backend_xid# backend_xmin# query_id# query backend_type",
    ),
    (
        "pg_stat_database",
        "datid# datname numbackends# xact_commit# xact_rollback# blks_read# blks_hit# tup_returned# \
         tup_fetched# tup_inserted# tup_updated# tup_deleted# conflicts# temp_files# temp_bytes# \
         deadlocks# stats_reset@",
    ),
    (
        "pg_stats",
        "schemaname tablename attname inherited? null_frac avg_width# n_distinct most_common_vals \
         histogram_bounds correlation",
    ),
    (
        "pg_ts_config_map",
        "mapcfg# maptokentype# mapseqno# mapdict#",
    ),
    (
        "pg_user_mappings",
        "umid# srvid# srvname umuser# usename umoptions[]",
    ),
];

/// Views of `information_schema`, and their columns.
const INFORMATION_SCHEMA: &[(&str, &str)] = &[
    ("applicable_roles", "grantee role_name is_grantable"),
    (
        "check_constraints",
        "constraint_catalog constraint_schema constraint_name check_clause",
    ),
    (
        "column_privileges",
        "grantor grantee table_catalog table_schema table_name column_name privilege_type \
         is_grantable",
    ),
    (
        "constraint_column_usage",
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema \
         constraint_name",
    ),
    (
        "domains",
        "domain_catalog domain_schema domain_name data_type udt_catalog udt_schema udt_name",
    ),
    (
        "element_types",
        "object_catalog object_schema object_name object_type collection_type_identifier data_type \
         udt_catalog udt_schema udt_name dtd_identifier",
    ),
    ("enabled_roles", "role_name"),
    (
        "foreign_tables",
        "foreign_table_catalog foreign_table_schema foreign_table_name foreign_server_catalog \
         foreign_server_name",
    ),
    (
        "referential_constraints",
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog \
         unique_constraint_schema unique_constraint_name match_option update_rule delete_rule",
    ),
    (
        "role_table_grants",
        "grantor grantee table_catalog table_schema table_name privilege_type is_grantable \
         with_hierarchy",
    ),
    (
        "sequences",
        "sequence_catalog sequence_schema sequence_name data_type numeric_precision# \
         numeric_precision_radix# numeric_scale# start_value minimum_value maximum_value increment \
         cycle_option",
    ),
    (
        "table_privileges",
        "grantor grantee table_catalog table_schema table_name privilege_type is_grantable \
         with_hierarchy",
    ),
    (
        "triggers",
        "trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog \
         event_object_schema event_object_table action_order# action_condition action_statement \
         action_orientation action_timing created@",
    ),
    (
        "user_defined_types",
        "user_defined_type_catalog user_defined_type_schema user_defined_type_name \
         user_defined_type_category data_type",
    ),
];

/// Whether this module has a table of `pg_catalog`.
pub(super) fn has_table(name: &str) -> bool {
    PG_CATALOG.iter().any(|(known, _)| *known == name)
}

/// The names of the tables of `pg_catalog`.
pub(super) fn table_names() -> impl Iterator<Item = String> {
    PG_CATALOG.iter().map(|(name, _)| (*name).to_owned())
}

/// Whether this module has a view of `information_schema`.
pub(super) fn has_view(name: &str) -> bool {
    INFORMATION_SCHEMA.iter().any(|(known, _)| *known == name)
}

/// The names of the views of `information_schema`.
pub(super) fn view_names() -> impl Iterator<Item = String> {
    INFORMATION_SCHEMA
        .iter()
        .map(|(name, _)| (*name).to_owned())
}

fn empty(columns: &str) -> Result<Arc<dyn TableProvider>> {
    let fields: Vec<Field> = columns.split_whitespace().map(field).collect();
    Ok(Arc::new(MemTable::try_new(
        Arc::new(Schema::new(fields)),
        vec![vec![]],
    )?))
}

/// An empty table of `pg_catalog`; `None` if this module has none of that name.
pub(super) fn table(name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let found = PG_CATALOG.iter().find(|(known, _)| *known == name);
    found.map(|(_, columns)| empty(columns)).transpose()
}

/// An empty view of `information_schema`; `None` if this module has none of that name.
pub(super) fn view(name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let found = INFORMATION_SCHEMA.iter().find(|(known, _)| *known == name);
    found.map(|(_, columns)| empty(columns)).transpose()
}

/// A view of `information_schema` with rows; `None` if this module has none of that name.
pub(super) fn view_of(
    name: &str,
    rows: &[Vec<(&str, String)>],
) -> Result<Option<Arc<dyn TableProvider>>> {
    let found = INFORMATION_SCHEMA.iter().find(|(known, _)| *known == name);
    found.map(|(_, columns)| texts(columns, rows)).transpose()
}

/// A table with rows of texts; the columns that are not given are null.
pub(super) fn texts(columns: &str, rows: &[Vec<(&str, String)>]) -> Result<Arc<dyn TableProvider>> {
    let fields: Vec<Field> = columns.split_whitespace().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = schema.fields().iter().map(|field| -> Result<ArrayRef> {
        let values: Vec<Option<&str>> = rows
            .iter()
            .map(|row| {
                let found = row.iter().find(|(name, _)| name == field.name());
                found.map(|(_, value)| value.as_str())
            })
            .collect();
        if values.iter().all(Option::is_none) {
            return Ok(new_null_array(field.data_type(), rows.len()));
        }
        let texts: ArrayRef = Arc::new(StringArray::from(values));
        Ok(cast(&texts, field.data_type())?)
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_that_their_signs_say() {
        let table = table("pg_parameter_acl").unwrap().unwrap();
        let kinds: Vec<_> = table
            .schema()
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("oid".to_owned(), DataType::Int32),
                ("parname".to_owned(), DataType::Utf8),
                (
                    "paracl".to_owned(),
                    DataType::new_list(DataType::Utf8, true)
                ),
            ]
        );
        assert!(super::table("pg_class").unwrap().is_none());
    }
}
