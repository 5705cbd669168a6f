//! Plans that add reference tables to the tables of PostgreSQL's catalog.

use super::reference_rows::{
    ATTRIBUTES, DescribedRow, PARENT, TABLE, attribute_rows, table_of, vector_mark,
};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlanBuilder, cast, lit, when};
use marigram_reference::ReferenceTable;
use std::sync::Arc;

/// The names of the joined tables.
const CLASSES: &str = "pg_class";
const PARENTS: &str = "parents";
const DESCRIBED: &str = "described";
const ATTRIBUTE: &str = "pg_attribute";

fn column(table: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(table), name))
}

fn scan(name: &str, table: &Arc<dyn TableProvider>) -> Result<LogicalPlanBuilder> {
    LogicalPlanBuilder::scan(name, provider_as_source(Arc::clone(table)), None)
}

/// The value of a column that Marigram cannot fill.
pub(super) fn absent(kind: &DataType) -> Result<ScalarValue> {
    match kind {
        DataType::Boolean => Ok(ScalarValue::Boolean(Some(false))),
        number if number.is_integer() => ScalarValue::new_zero(number),
        other => ScalarValue::try_new_null(other),
    }
}

/// A value as the column that a field describes. Vectors have its type and its mark already: a cast would lose
/// the mark.
pub(super) fn as_field(value: Expr, kind: DataType, field: &Field) -> Expr {
    let mark = vector_mark(field.name());
    if !mark.is_empty() {
        let marked = Field::new(field.name(), kind, true).with_metadata(mark);
        return value.alias_with_metadata(field.name(), Some(FieldMetadata::from(&marked)));
    }
    let metadata = FieldMetadata::from(field);
    cast(value, kind).alias_with_metadata(field.name(), Some(metadata))
}

/// Rows joined with the classes of their tables.
fn described(
    classes: &Arc<dyn TableProvider>,
    columns: &[(String, DataType)],
    rows: &[DescribedRow],
) -> Result<LogicalPlanBuilder> {
    let rows = scan(DESCRIBED, &table_of(columns, rows, absent)?)?;
    scan(CLASSES, classes)?.join_on(
        rows.build()?,
        JoinType::Inner,
        [column(CLASSES, "relname").eq(column(DESCRIBED, TABLE))],
    )
}

/// Rows about reference tables, in the form of a table of the catalog with the columns of `schema`,
/// whose types `kind` gives. `classes`: the library's `pg_class`.
pub(super) fn rows_plan(
    classes: &Arc<dyn TableProvider>,
    schema: &SchemaRef,
    kind: impl Fn(&Field) -> DataType,
    rows: &[DescribedRow],
) -> Result<LogicalPlanBuilder> {
    let columns = schema.fields().iter();
    let columns: Vec<(String, DataType)> = columns
        .map(|field| (field.name().clone(), kind(field)))
        .collect();
    let joined = described(classes, &columns, rows)?.join_on(
        scan(PARENTS, classes)?.build()?,
        JoinType::Left,
        [column(DESCRIBED, PARENT).eq(column(PARENTS, "relname"))],
    )?;
    let values = schema.fields().iter().map(|field| {
        let value = match field.name().as_str() {
            "indrelid" | "conrelid" | "adrelid" => column(CLASSES, "oid"),
            "relnamespace" | "connamespace" => column(CLASSES, "relnamespace"),
            "relowner" => column(CLASSES, "relowner"),
            "confrelid" => coalesce(vec![column(PARENTS, "oid"), lit(0_i32)]),
            own => column(DESCRIBED, own),
        };
        as_field(value, kind(field), field)
    });
    joined.project(values.collect::<Vec<_>>())
}

/// `pg_attribute`, in which the columns of reference tables have what the library does not know of
/// them: lengths, defaults and identities.
pub(super) fn attributes(
    table: Arc<dyn TableProvider>,
    classes: &Arc<dyn TableProvider>,
    all: &[Arc<ReferenceTable>],
) -> Result<LogicalPlanBuilder> {
    /// The table that knows more, and its column of the tables' OIDs.
    const KNOWN: &str = "known";
    const OWNER: &str = "known_owner";
    let schema = table.schema();
    let kind_of = |name: &str| -> Result<(String, DataType)> {
        let field = schema.field_with_name(name)?;
        Ok((name.to_owned(), field.data_type().clone()))
    };
    let names = ATTRIBUTES.into_iter().chain(["attname"]);
    let columns = names.clone().map(kind_of).collect::<Result<Vec<_>>>()?;
    let known = names.map(|name| column(DESCRIBED, name).alias(name));
    let owner = column(CLASSES, "oid").alias(OWNER);
    let known = described(classes, &columns, &attribute_rows(all))?
        .project(known.chain([owner]).collect::<Vec<_>>())?
        .alias(KNOWN)?
        .build()?;
    let joined = scan(ATTRIBUTE, &table)?.join_on(
        known,
        JoinType::Left,
        [
            column(ATTRIBUTE, "attrelid").eq(column(KNOWN, OWNER)),
            column(ATTRIBUTE, "attname").eq(column(KNOWN, "attname")),
        ],
    )?;
    let values = schema.fields().iter().map(|field| {
        let own = column(ATTRIBUTE, field.name());
        if !ATTRIBUTES.contains(&field.name().as_str()) {
            return own;
        }
        let value = coalesce(vec![column(KNOWN, field.name()), own]);
        as_field(value, field.data_type().clone(), field)
    });
    joined.project(values.collect::<Vec<_>>())
}

/// What a column of `pg_class` has for reference tables, where it is not `own`.
pub(super) fn class_value(name: &str, own: Expr, all: &[Arc<ReferenceTable>]) -> Result<Expr> {
    let relname = || column(CLASSES, "relname");
    let is_any = |names: Vec<&str>| {
        let is_table = column(CLASSES, "relkind").eq(lit("r"));
        is_table.and(relname().in_list(names.into_iter().map(lit).collect(), false))
    };
    match name {
        "relhasindex" => {
            let with = all
                .iter()
                .filter(|table| !table.keys.is_empty() || !table.indexes.is_empty());
            let names: Vec<&str> = with.map(|table| table.name.as_str()).collect();
            Ok(if names.is_empty() {
                own
            } else {
                is_any(names).or(own)
            })
        }
        // PostgreSQL checks foreign keys by triggers, and clients look for them only where it says so.
        "relhastriggers" => {
            let keys = || all.iter().flat_map(|table| &table.foreign_keys);
            let is_parent = |table: &ReferenceTable| keys().any(|key| key.parent == table.id);
            let with = all
                .iter()
                .filter(|table| !table.foreign_keys.is_empty() || is_parent(table));
            let names: Vec<&str> = with.map(|table| table.name.as_str()).collect();
            Ok(if names.is_empty() {
                own
            } else {
                is_any(names).or(own)
            })
        }
        "relchecks" => {
            let mut with = all.iter().filter(|table| !table.checks.is_empty());
            let is_named = |table: &ReferenceTable| relname().eq(lit(table.name.as_str()));
            let count =
                |table: &ReferenceTable| lit(i16::try_from(table.checks.len()).unwrap_or(i16::MAX));
            let Some(first) = with.next() else {
                return Ok(own);
            };
            let mut cases = when(is_named(first), count(first));
            for table in with {
                cases = cases.when(is_named(table), count(table));
            }
            cases.otherwise(own)
        }
        _ => Ok(own),
    }
}
