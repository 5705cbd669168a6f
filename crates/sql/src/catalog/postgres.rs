//! PostgreSQL's catalog: the tables of `datafusion-pg-catalog`, extended by what clients ask for
//! and the library lacks.
//!
//! Every table has a primary key here: its tags and its time, since rows with the same key replace
//! each other. So object-relational mappers can tell rows apart. Tables of series have no other
//! indexes or constraints. Reference tables have those that they were created with.

use super::postgres_tables::{self, missing_columns};
use super::reference_plans::{self, absent, as_field, class_value};
use super::reference_rows::{self, DescribedRow, vector_mark};
use super::reference_text::{self, BTREE_OID};
use crate::access::AccessControl;
use crate::dialect::timescale::EXTENSIONS;
use crate::tables::reference::reads::seen_tables;
use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, Int16Builder, Int32Builder, ListBuilder, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions::expr_fn::concat;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlanBuilder, cast, col, lit};
use datafusion_pg_catalog::pg_catalog::context::{PgCatalogContextProvider, Role};
use marigram_access::{AccessCatalog, AccessRights, DatabasePrivileges};
use marigram_engine::Engine;
use marigram_model::{TableColumn, TableSchema, quoted};
use marigram_reference::{ReferenceStore, ReferenceTable};
use std::sync::Arc;

/// The OID of a primary key's index is the OID of its table plus this number.
const INDEX_OID: i32 = 1_000_000_000;
/// The OID of a primary key is the OID of its table plus this number.
const KEY_OID: i32 = 1_500_000_000;

/// The end of a primary key's name, after the name of its table.
const KEY_ENDING: &str = "_pkey";

/// The name of a table's primary key and its index.
fn key_name(table: &str) -> String {
    format!("{table}{KEY_ENDING}")
}

/// Users and roles as PostgreSQL shows them: to administrators all, to others none.
#[derive(Clone, Debug)]
pub(crate) struct CatalogRoles {
    /// The users.
    pub access: Arc<AccessControl>,
    /// What the session's client may do.
    pub rights: Arc<AccessRights>,
}

#[async_trait]
impl PgCatalogContextProvider for CatalogRoles {
    async fn roles(&self) -> Vec<String> {
        if !self.rights.is_administrator {
            return Vec::new();
        }
        let names = |catalog: &AccessCatalog| {
            let names = catalog.users().map(|(name, _)| name.to_owned());
            names.collect()
        };
        self.access.read(names)
    }

    /// Never `None`: the library takes every name of `roles` for a role, and one may have gone.
    async fn role(&self, name: &str) -> Option<Role> {
        let user = self.access.read(|catalog| catalog.user(name).cloned());
        let user = user.unwrap_or_default();
        Some(Role {
            name: name.to_owned(),
            is_superuser: user.is_administrator,
            can_login: user.can_log_in,
            can_create_db: user.is_administrator,
            can_create_role: user.is_administrator,
            can_create_user: user.is_administrator,
            can_replication: false,
            grants: Vec::new(),
            inherited_roles: user.roles.into_iter().collect(),
        })
    }
}

/// PostgreSQL's catalog, without the database `postgres` that the library always lists.
#[derive(Debug)]
pub(crate) struct PgCatalog {
    /// The catalog.
    pub inner: Arc<dyn SchemaProvider>,
    /// The engine, which knows the databases.
    pub engine: Engine,
    /// Tables without times.
    pub reference: ReferenceStore,
    /// What the session's client may do.
    pub rights: Arc<AccessRights>,
    /// The session's database.
    pub database: String,
}

impl PgCatalog {
    /// The tables that have a primary key.
    fn keyed_tables(&self) -> Vec<Arc<TableSchema>> {
        // A database that was dropped has none.
        let mut tables = self.engine.tables(&self.database).unwrap_or_default();
        tables.retain(|table| table.view.is_none() && table.rollup.is_none());
        tables
    }

    /// The reference tables of the session's database.
    fn reference_tables(&self) -> Vec<Arc<ReferenceTable>> {
        if self.rights.see(&self.database) {
            seen_tables(&self.reference, &self.database)
        } else {
            Vec::new()
        }
    }

    /// A plan, and rows about reference tables after its own. `schema`: that of the library's table.
    async fn with_rows(
        &self,
        plan: LogicalPlanBuilder,
        (name, schema): (&str, &SchemaRef),
        rows: &[DescribedRow],
    ) -> Result<LogicalPlanBuilder> {
        if rows.is_empty() {
            return Ok(plan);
        }
        let Some(classes) = self.inner.table("pg_class").await? else {
            return Ok(plan);
        };
        let rows =
            reference_plans::rows_plan(&classes, schema, |field| kind_of(name, field), rows)?;
        plan.union(rows.build()?)
    }

    /// `pg_attrdef`: the defaults of reference tables.
    async fn defaults(&self, table: Arc<dyn TableProvider>) -> Result<LogicalPlanBuilder> {
        let rows = reference_rows::default_rows(&self.reference_tables());
        let schema = table.schema();
        let own = LogicalPlanBuilder::scan("pg_attrdef", provider_as_source(table), None)?;
        self.with_rows(own, ("pg_attrdef", &schema), &rows).await
    }

    /// `pg_attribute`: the library's rows; it knows little of the columns of reference tables.
    async fn attributes(&self, table: Arc<dyn TableProvider>) -> Result<LogicalPlanBuilder> {
        let all = self.reference_tables();
        match self.inner.table("pg_class").await? {
            Some(classes) if !all.is_empty() => reference_plans::attributes(table, &classes, &all),
            _ => LogicalPlanBuilder::scan("pg_attribute", provider_as_source(table), None),
        }
    }

    /// `pg_indexes`: the indexes of the primary keys, and those of reference tables.
    fn indexes(&self) -> Result<Arc<dyn TableProvider>> {
        let tables = self.keyed_tables();
        let rows = tables.iter().map(|table| {
            let tags = table.tags.iter().map(|tag| tag.name.as_str());
            let columns = tags.chain([table.time_name.as_str()]).map(quoted);
            let index = key_name(&table.name);
            let definition = format!(
                "CREATE UNIQUE INDEX {} ON public.{} USING btree ({})",
                quoted(&index),
                quoted(&table.name),
                columns.collect::<Vec<_>>().join(", ")
            );
            vec![
                ("schemaname", "public".to_owned()),
                ("tablename", table.name.clone()),
                ("indexname", index),
                ("indexdef", definition),
            ]
        });
        let mut rows: Vec<_> = rows.collect();
        for table in self.reference_tables() {
            rows.extend(reference_text::indexes(&table).into_iter().map(|index| {
                vec![
                    ("schemaname", "public".to_owned()),
                    ("tablename", table.name.clone()),
                    ("indexname", index.name.to_owned()),
                    ("indexdef", index.definition(&table)),
                ]
            }));
        }
        let columns = "schemaname tablename indexname tablespace indexdef";
        postgres_tables::texts(columns, &rows)
    }

    /// `pg_class`: the library's rows, and those of indexes.
    async fn classes(&self, table: &Arc<dyn TableProvider>) -> Result<LogicalPlanBuilder> {
        let all = self.reference_tables();
        let own = self.own_classes(table, &all)?;
        let rows = reference_rows::classes(&all);
        self.with_rows(own, ("pg_class", &table.schema()), &rows)
            .await
    }

    /// The library's rows of `pg_class`, and those of the primary keys' indexes of series tables.
    fn own_classes(
        &self,
        table: &Arc<dyn TableProvider>,
        all: &[Arc<ReferenceTable>],
    ) -> Result<LogicalPlanBuilder> {
        let scan =
            || LogicalPlanBuilder::scan("pg_class", provider_as_source(Arc::clone(table)), None);
        let schema = table.schema();
        let keyed = self.keyed_tables();
        let names: Vec<Expr> = keyed.iter().map(|table| lit(table.name.as_str())).collect();
        let is_keyed = || {
            let is_table = col("pg_class.relkind").eq(lit("r"));
            is_table.and(col("pg_class.relname").in_list(names.clone(), false))
        };
        if names.is_empty() && all.is_empty() {
            return scan();
        }
        let same = |field: &Field| col(format!("pg_class.{}", field.name()));
        let tables = schema.fields().iter().map(|field| -> Result<Expr> {
            let name = field.name().as_str();
            let own = match name {
                "relhasindex" if !names.is_empty() => is_keyed().or(same(field)),
                "relhasindex" | "relhastriggers" | "relchecks" => same(field),
                _ => return Ok(same(field)),
            };
            Ok(class_value(name, own, all)?.alias(name))
        });
        let tables = scan()?.project(tables.collect::<Result<Vec<_>>>()?)?;
        if names.is_empty() {
            return Ok(tables);
        }
        let indexes = schema.fields().iter().map(|field| -> Result<Expr> {
            let kind = field.data_type().clone();
            let value = match field.name().as_str() {
                "oid" => same(field) + lit(INDEX_OID),
                "relname" => concat(vec![same(field), lit(KEY_ENDING)]),
                "relkind" => lit("i"),
                "relam" => lit(BTREE_OID),
                "relnamespace" | "relowner" | "relpersistence" | "relreplident" => same(field),
                _ => lit(absent(&kind)?),
            };
            Ok(as_field(value, kind, field))
        });
        let indexes = scan()?
            .filter(is_keyed())?
            .project(indexes.collect::<Result<Vec<_>>>()?)?
            .build()?;
        tables.union(indexes)
    }

    /// `pg_views`: the views and their queries, as they were written. A query may hold values: who may not
    /// read rows does not see it.
    fn views(&self) -> Result<Arc<dyn TableProvider>> {
        let may_read = self.rights.allow(&self.database, DatabasePrivileges::READ);
        // A database that was dropped has none.
        let tables = self.engine.tables(&self.database).unwrap_or_default();
        let rows = tables.iter().filter_map(|table| {
            let view = table.view.as_ref()?;
            let mut row = vec![
                ("schemaname", "public".to_owned()),
                ("viewname", table.name.clone()),
            ];
            if may_read {
                row.push(("definition", view.query.clone()));
            }
            Some(row)
        });
        let columns = "schemaname viewname viewowner definition";
        postgres_tables::texts(columns, &rows.collect::<Vec<_>>())
    }
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.inner.table_names();
        names.extend(postgres_tables::table_names());
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if name == "pg_indexes" {
            return self.indexes().map(Some);
        }
        if let Some(table) = postgres_tables::table(name)? {
            return Ok(Some(table));
        }
        if matches!(name, "pg_user" | "pg_shadow") {
            return self.users().await;
        }
        if name == "pg_views" {
            return self.views().map(Some);
        }
        let Some(table) = self.inner.table(name).await? else {
            return Ok(None);
        };
        if name == "pg_extension" {
            return extensions(&table.schema()).map(Some);
        }
        let missing = missing_columns(name);
        let is_changed = matches!(
            name,
            "pg_database" | "pg_index" | "pg_constraint" | "pg_attrdef"
        );
        if missing.is_empty() && !is_changed {
            return Ok(Some(table));
        }
        let plan = match name {
            "pg_database" => {
                let names = self.engine.databases().into_iter();
                let names = names
                    .filter(|name| self.rights.see(name))
                    .map(lit)
                    .collect();
                LogicalPlanBuilder::scan(name, provider_as_source(table), None)?
                    .filter(col("datname").in_list(names, false))?
            }
            "pg_class" => self.classes(&table).await?,
            "pg_attrdef" => self.defaults(table).await?,
            "pg_attribute" => self.attributes(table).await?,
            "pg_index" | "pg_constraint" => {
                let schema = table.schema();
                let own = self.of_keys(name, &schema).await?;
                let all = self.reference_tables();
                let rows = match name {
                    "pg_index" => reference_rows::index_rows(&all),
                    _ => reference_rows::constraint_rows(&all),
                };
                self.with_rows(own, (name, &schema), &rows).await?
            }
            _ => LogicalPlanBuilder::scan(name, provider_as_source(table), None)?,
        };
        let mut columns = Vec::new();
        for (relation, field) in plan.schema().iter() {
            if !missing.iter().any(|(missing, _)| missing == field.name()) {
                columns.push(Expr::Column((relation, field).into()));
            }
        }
        for (missing, kind) in missing {
            columns.push(lit(ScalarValue::try_new_null(&kind)?).alias(missing));
        }
        let plan = plan.project(columns)?.build()?;
        Ok(Some(Arc::new(ViewTable::new(plan, None))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
            || postgres_tables::has_table(name)
            || matches!(name, "pg_user" | "pg_shadow")
    }
}

/// Columns of arrays, and the types of their elements, in the tables of indexes and constraints:
/// the library has texts instead.
fn arrays_of(table: &str) -> &'static [(&'static str, DataType)] {
    match table {
        "pg_constraint" => &[
            ("conkey", DataType::Int16),
            ("confkey", DataType::Int16),
            ("conpfeqop", DataType::Int32),
            ("conppeqop", DataType::Int32),
            ("conffeqop", DataType::Int32),
            ("confdelsetcols", DataType::Int16),
            ("conexclop", DataType::Int32),
        ],
        _ => &[
            ("indkey", DataType::Int16),
            ("indcollation", DataType::Int32),
            ("indclass", DataType::Int32),
            ("indoption", DataType::Int16),
        ],
    }
}

/// The type of a column of a table of indexes or constraints.
fn kind_of(table: &str, field: &Field) -> DataType {
    let is_of_keys = matches!(table, "pg_index" | "pg_constraint");
    let mut arrays = arrays_of(table).iter();
    match arrays.find(|(array, _)| is_of_keys && array == field.name()) {
        Some((_, element)) => DataType::new_list(element.clone(), true),
        None => field.data_type().clone(),
    }
}

/// Whether a column is an `int2vector` or an `oidvector`.
fn is_vector(field: &Field) -> bool {
    !vector_mark(field.name()).is_empty()
}

impl PgCatalog {
    /// `pg_user` and `pg_shadow`: the roles, under other names.
    async fn users(&self) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(roles) = self.inner.table("pg_roles").await? else {
            return Ok(None);
        };
        let text = |value: Option<&str>| lit(ScalarValue::Utf8(value.map(str::to_owned)));
        let plan = LogicalPlanBuilder::scan("pg_roles", provider_as_source(roles), None)?
            .filter(col("rolcanlogin"))?
            .project(vec![
                col("rolname").alias("usename"),
                col("oid").alias("usesysid"),
                col("rolcreatedb").alias("usecreatedb"),
                col("rolsuper").alias("usesuper"),
                lit(false).alias("userepl"),
                lit(false).alias("usebypassrls"),
                text(Some("********")).alias("passwd"),
                text(None).alias("valuntil"),
                text(None).alias("useconfig"),
            ])?
            .build()?;
        Ok(Some(Arc::new(ViewTable::new(plan, None))))
    }

    /// The primary keys of the database's tables, as rows of `pg_index` or `pg_constraint`.
    async fn of_keys(&self, name: &str, schema: &SchemaRef) -> Result<LogicalPlanBuilder> {
        let Some(classes) = self.inner.table("pg_class").await? else {
            return LogicalPlanBuilder::scan(name, provider_as_source(self.keys()?), None);
        };
        let classes = LogicalPlanBuilder::scan("pg_class", provider_as_source(classes), None)?;
        let keys = LogicalPlanBuilder::scan("keys", provider_as_source(self.keys()?), None)?;
        let joined = classes.join_on(
            keys.build()?,
            JoinType::Inner,
            [col("pg_class.relname").eq(col("keys.name"))],
        )?;
        let columns = schema.fields().iter().map(|field| {
            let kind = kind_of(name, field);
            Ok(match of_primary_key(field.name()) {
                Some(value) if is_vector(field) => as_field(value, kind, field),
                Some(value) => cast(value, kind).alias(field.name()),
                None => lit(absent(&kind)?).alias(field.name()),
            })
        });
        joined.project(columns.collect::<Result<Vec<_>>>()?)
    }

    /// The tables, and the numbers of their key columns: the tags and the time.
    fn keys(&self) -> Result<Arc<dyn TableProvider>> {
        let tables = self.keyed_tables();
        let mut names = Vec::new();
        let mut columns = ListBuilder::new(Int16Builder::new());
        let mut zeros = ListBuilder::new(Int16Builder::new());
        let mut oids = ListBuilder::new(Int32Builder::new());
        let mut counts = Int16Builder::new();
        for table in &tables {
            names.push(table.name.clone());
            let is_key = |column: &TableColumn| !matches!(column, TableColumn::Field(_));
            let keys = (1..).zip(table.columns());
            let keys = keys.filter(|(_, column)| is_key(column));
            // The tags come first, then the time.
            let (times, tags): (Vec<_>, Vec<_>) =
                keys.partition(|(_, column)| *column == TableColumn::Time);
            for (number, _) in tags.into_iter().chain(times) {
                columns.values().append_value(number);
                zeros.values().append_value(0);
                oids.values().append_value(0);
            }
            columns.append(true);
            zeros.append(true);
            oids.append(true);
            counts.append_value(i16::try_from(table.tags.len() + 1).unwrap_or(i16::MAX));
        }
        let columns: ArrayRef = Arc::new(columns.finish());
        // Vectors have the names of the columns of pg_index that they become.
        let arrays: [(&str, ArrayRef); 6] = [
            ("name", Arc::new(StringArray::from(names))),
            ("columns", Arc::clone(&columns)),
            ("indkey", columns),
            ("indoption", Arc::new(zeros.finish())),
            ("indclass", Arc::new(oids.finish())),
            ("count", Arc::new(counts.finish())),
        ];
        let fields = arrays.iter().map(|(name, array)| {
            let field = Field::new(*name, array.data_type().clone(), true);
            field.with_metadata(vector_mark(name))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
    }
}

/// `pg_extension`: what every database has.
fn extensions(schema: &SchemaRef) -> Result<Arc<dyn TableProvider>> {
    /// The first number that PostgreSQL gives to what is created after its own objects.
    const FIRST_OID: i32 = 16_384;
    let known = [("plpgsql", "1.0")].into_iter().chain(EXTENSIONS);
    let known: Vec<(i32, (&str, &str))> = (FIRST_OID..).zip(known).collect();
    let columns = schema.fields().iter().map(|field| {
        let values = known.iter().map(|(oid, (name, version))| {
            let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
            let value = match field.name().as_str() {
                "oid" => ScalarValue::Int32(Some(*oid)),
                "extname" => text(name),
                "extversion" => text(version),
                "extowner" | "extnamespace" => ScalarValue::Int32(Some(0)),
                "extrelocatable" => ScalarValue::Boolean(Some(false)),
                _ => return ScalarValue::try_new_null(field.data_type()),
            };
            value.cast_to(field.data_type())
        });
        ScalarValue::iter_to_array(values.collect::<Result<Vec<_>>>()?)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let batch = RecordBatch::try_new(Arc::clone(schema), columns)?;
    Ok(Arc::new(MemTable::try_new(
        Arc::clone(schema),
        vec![vec![batch]],
    )?))
}

/// The value of a primary key in a column of `pg_index` or `pg_constraint`.
fn of_primary_key(column: &str) -> Option<Expr> {
    let table = || col("pg_class.oid");
    Some(match column {
        "indexrelid" | "conindid" => table() + lit(INDEX_OID),
        "indrelid" | "conrelid" => table(),
        "oid" => table() + lit(KEY_OID),
        "conname" => concat(vec![col("pg_class.relname"), lit(KEY_ENDING)]),
        "connamespace" => col("pg_class.relnamespace"),
        "contype" => lit("p"),
        "indkey" => col("keys.indkey"),
        "conkey" => col("keys.columns"),
        "indnatts" | "indnkeyatts" => col("keys.count"),
        "indoption" => col("keys.indoption"),
        "indcollation" | "indclass" => col("keys.indclass"),
        "indisunique" | "indisprimary" | "indimmediate" | "indisvalid" | "indisready"
        | "indislive" | "convalidated" | "conislocal" => lit(true),
        _ => return None,
    })
}
