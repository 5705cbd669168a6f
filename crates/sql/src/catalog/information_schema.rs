//! `information_schema` with PostgreSQL's type names.
//!
//! DataFusion's schema has Arrow's names, counts columns from 0, and lacks `udt_name`.

use super::postgres_tables;
use super::reference_information::{COLUMNS, DescribedDatabase};
use crate::error::in_sql;
use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast as cast_array;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{
    ColumnarValue, Expr, JoinType, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, cast, col, lit,
};
use marigram_model::TableSchema;
use marigram_reference::ReferenceTable;
use std::sync::{Arc, LazyLock};

/// See the module documentation.
#[derive(Debug)]
pub(super) struct InformationSchema {
    /// DataFusion's schema.
    pub inner: Arc<dyn SchemaProvider>,
    /// The database that it describes.
    pub database: String,
    /// The tables of the database.
    pub tables: Vec<Arc<TableSchema>>,
    /// The tables without times of the database.
    pub reference: Vec<Arc<ReferenceTable>>,
    /// Whether the client may read rows of the database.
    pub may_read: bool,
}

impl InformationSchema {
    /// The tables with a primary key: all that are not views.
    fn with_keys(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.tables
            .iter()
            .filter(|table| table.view.is_none() && table.rollup.is_none())
    }

    /// What every row about a table's primary key begins with.
    fn of_key(&self, table: &TableSchema) -> Vec<(&'static str, String)> {
        vec![
            ("constraint_catalog", self.database.clone()),
            ("constraint_schema", "public".to_owned()),
            ("constraint_name", format!("{}_pkey", table.name)),
            ("table_catalog", self.database.clone()),
            ("table_schema", "public".to_owned()),
            ("table_name", table.name.clone()),
        ]
    }

    /// The reference tables.
    fn described(&self) -> DescribedDatabase<'_> {
        DescribedDatabase {
            database: &self.database,
            tables: &self.reference,
        }
    }

    /// A view about the constraints of reference tables; `None` if it is another one.
    fn of_reference(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let rows = match name {
            "referential_constraints" => self.described().referential_constraints(),
            "constraint_column_usage" => self.described().constraint_column_usage(),
            "check_constraints" => self.described().check_constraints(),
            _ => return Ok(None),
        };
        postgres_tables::view_of(name, &rows)
    }

    /// `table_constraints`: the primary keys, and the constraints of reference tables.
    fn table_constraints(&self) -> Result<Arc<dyn TableProvider>> {
        let rows = self.with_keys().map(|table| {
            let mut row = self.of_key(table);
            row.extend([
                ("constraint_type", "PRIMARY KEY".to_owned()),
                ("is_deferrable", "NO".to_owned()),
                ("initially_deferred", "NO".to_owned()),
                ("enforced", "YES".to_owned()),
            ]);
            row
        });
        let mut rows: Vec<_> = rows.collect();
        rows.extend(self.described().table_constraints());
        let columns = "constraint_catalog constraint_schema constraint_name table_catalog \
                       table_schema table_name constraint_type is_deferrable initially_deferred \
                       enforced nulls_distinct";
        postgres_tables::texts(columns, &rows)
    }

    /// `columns`, with the names of types that PostgreSQL has, and what is known of the columns of
    /// reference tables.
    fn columns(&self, table: &Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
        let known = postgres_tables::texts(COLUMNS, &self.described().columns())?;
        let known = LogicalPlanBuilder::scan("known", provider_as_source(known), None)?;
        let plan =
            LogicalPlanBuilder::scan("columns", provider_as_source(Arc::clone(table)), None)?
                .join_on(
                    known.build()?,
                    JoinType::Left,
                    [
                        col("columns.table_name").eq(col("known.known_table")),
                        col("columns.column_name").eq(col("known.known_column")),
                    ],
                )?;
        let or = |name: &str, own: Expr| coalesce(vec![col(format!("known.known_{name}")), own]);
        let mut columns: Vec<Expr> = Vec::new();
        for field in table.schema().fields() {
            let column = col(field.name());
            let name = field.name().as_str();
            let value = match name {
                "data_type" => or(name, TYPE_NAME.call(vec![column, lit(false)])),
                "is_nullable" => or(name, column),
                "ordinal_position" => cast(column, DataType::Int32) + lit(1_i32),
                "column_default"
                | "character_maximum_length"
                | "numeric_precision"
                | "numeric_precision_radix"
                | "numeric_scale" => {
                    let known = cast(
                        col(format!("known.known_{name}")),
                        field.data_type().clone(),
                    );
                    coalesce(vec![known, column])
                }
                _ => column,
            };
            columns.push(value.alias(name));
        }
        let short = TYPE_NAME.call(vec![col("data_type"), lit(true)]);
        columns.extend([
            col("table_catalog").alias("udt_catalog"),
            lit("pg_catalog").alias("udt_schema"),
            or("udt_name", short).alias("udt_name"),
            or("is_identity", lit("NO")).alias("is_identity"),
            col("known.known_identity_generation").alias("identity_generation"),
            lit("NEVER").alias("is_generated"),
            lit(ScalarValue::Utf8(None)).alias("collation_name"),
            lit(ScalarValue::Utf8(None)).alias("domain_name"),
        ]);
        let plan = plan.project(columns)?.build()?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }

    /// `key_column_usage`: the tags and the time of each table, and the keys of reference tables.
    fn key_column_usage(&self) -> Result<Arc<dyn TableProvider>> {
        let mut rows = Vec::new();
        for table in self.with_keys() {
            let tags = table.tags.iter().map(|tag| &tag.name);
            let columns = tags.chain([&table.time_name]);
            for (position, column) in (1..).zip(columns) {
                let mut row = self.of_key(table);
                row.push(("column_name", column.clone()));
                row.push(("ordinal_position", i32::to_string(&position)));
                rows.push(row);
            }
        }
        rows.extend(self.described().key_column_usage());
        let columns = "constraint_catalog constraint_schema constraint_name table_catalog \
                       table_schema table_name column_name ordinal_position# \
                       position_in_unique_constraint#";
        postgres_tables::texts(columns, &rows)
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.inner.table_names();
        names.extend(postgres_tables::view_names());
        names.extend(["table_constraints", "key_column_usage"].map(str::to_owned));
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name {
            "table_constraints" => return self.table_constraints().map(Some),
            "key_column_usage" => return self.key_column_usage().map(Some),
            _ => {}
        }
        if let Some(table) = self.of_reference(name)? {
            return Ok(Some(table));
        }
        if let Some(table) = postgres_tables::view(name)? {
            return Ok(Some(table));
        }
        let table = self.inner.table(name).await?;
        if let (Some(table), "views", false) = (&table, name, self.may_read) {
            return without_definitions(table).map(Some);
        }
        let (Some(table), "columns") = (&table, name) else {
            return Ok(table);
        };
        self.columns(table).map(Some)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
            || postgres_tables::has_view(name)
            || matches!(name, "table_constraints" | "key_column_usage")
    }
}

/// `views` for who may not read rows: a query may hold values.
fn without_definitions(views: &Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let schema = views.schema();
    let columns = schema.fields().iter().map(|field| {
        let value = match field.name().as_str() {
            "definition" => lit(ScalarValue::Utf8(None)),
            name => col(name),
        };
        value.alias(field.name())
    });
    let plan = LogicalPlanBuilder::scan("views", provider_as_source(Arc::clone(views)), None)?
        .project(columns)?
        .build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

static TYPE_NAME: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(TypeName {
        signature: Signature::any(2, Volatility::Immutable),
    }))
});

/// PostgreSQL's name of an Arrow type; with a second argument, the name used in `pg_type`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeName {
    signature: Signature,
}

impl ScalarUDFImpl for TypeName {
    fn name(&self) -> &'static str {
        "type_name"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_short = matches!(
            args.args.get(1),
            Some(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
        );
        let names = args.args[0].to_array(args.number_rows)?;
        let names = cast_array(&names, &DataType::Utf8)?;
        let names = names.as_string::<i32>().iter();
        let told: StringArray = names
            .map(|name| name.map(|name| postgres_type(name, is_short)))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(told)))
    }
}

/// PostgreSQL's name for the type that corresponds to an Arrow type.
fn postgres_type(arrow: &str, is_short: bool) -> String {
    let long = match in_sql(arrow).as_str() {
        "bytes" => "bytea".to_owned(),
        "timestamp" => "timestamp without time zone".to_owned(),
        // The wire protocol sends unsigned numbers as the next larger type.
        "bigint unsigned" => "numeric".to_owned(),
        exact if exact.starts_with("numeric(") => "numeric".to_owned(),
        list if list.ends_with("[]") => "ARRAY".to_owned(),
        other => other.to_owned(),
    };
    if !is_short {
        return long;
    }
    match long.as_str() {
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "double precision" => "float8",
        "real" => "float4",
        "bigint" => "int8",
        "integer" => "int4",
        "smallint" => "int2",
        "boolean" => "bool",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::postgres_type;

    #[test]
    fn types_have_postgresqls_names() {
        for (arrow, long, short) in [
            ("Float64", "double precision", "float8"),
            ("Timestamp(ns)", "timestamp without time zone", "timestamp"),
            (
                "Timestamp(ns, \"UTC\")",
                "timestamp with time zone",
                "timestamptz",
            ),
            ("Dictionary(Int32, Utf8)", "text", "text"),
            ("Binary", "bytea", "bytea"),
            ("Int64", "bigint", "int8"),
            ("UInt64", "numeric", "numeric"),
        ] {
            assert_eq!(postgres_type(arrow, false), long, "{arrow}");
            assert_eq!(postgres_type(arrow, true), short, "{arrow}");
        }
    }
}
