//! Databases and tables as DataFusion's catalogs.
//!
//! A database is a catalog, and its tables stand in the catalog's schema `public`, as in
//! PostgreSQL. In place of a schema another database may be named, so that `database.table` works
//! from every session; and `marigram_series` holds, for each table, its series. Nothing is copied:
//! each question goes to the engine.

pub mod plain_views;
pub mod plan_dependencies;

use crate::catalog::plain_views::ViewPlans;
use crate::dialect::parse::SERIES_SCHEMA;
use crate::error::SqlError;
use crate::rollup::RollupDefinitions;
use crate::tables::series::SeriesList;
use crate::tables::table::SeriesTable;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlanBuilder, TableType, col, lit};
use datafusion_pg_catalog::pg_catalog::catalog_info::CatalogInfo;
use marigram_engine::{Engine, EngineError};
use marigram_model::TableSchema;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// The schema of a database's tables.
pub const PUBLIC: &str = "public";
/// The schema of PostgreSQL's catalog.
pub const PG_CATALOG: &str = "pg_catalog";

/// Tables over files, which `CREATE EXTERNAL TABLE` makes; kept until the service ends.
pub type ExternalTables = Arc<RwLock<HashMap<(String, String), Arc<dyn TableProvider>>>>;

fn external(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::Engine(error)))
}

/// The databases, seen from one of them.
#[derive(Clone, Debug)]
pub struct DatabaseCatalogs {
    /// The engine.
    pub engine: Engine,
    /// The session's database: the one that `information_schema` tells of.
    pub current: String,
    /// Tables over files.
    pub files: ExternalTables,
    /// Rollups, which are views.
    pub rollup_definitions: RollupDefinitions,
    /// Plain views.
    pub views: ViewPlans,
    /// PostgreSQL's catalog of the session's database.
    pub pg_catalog: Option<Arc<dyn SchemaProvider>>,
}

impl DatabaseCatalogs {
    fn exists(&self, name: &str) -> bool {
        self.engine.tables(name).is_ok()
    }

    fn database(&self, name: &str) -> Option<Arc<DatabaseCatalog>> {
        self.exists(name).then(|| {
            Arc::new(DatabaseCatalog {
                all: self.clone(),
                name: name.to_owned(),
            })
        })
    }
}

impl CatalogProviderList for DatabaseCatalogs {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.current.clone()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        Some(self.database(name)?)
    }
}

/// A database as a catalog.
#[derive(Debug)]
struct DatabaseCatalog {
    all: DatabaseCatalogs,
    name: String,
}

impl CatalogProvider for DatabaseCatalog {
    fn schema_names(&self) -> Vec<String> {
        vec![PUBLIC.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let schema = |database: &str, kind| {
            let (all, database) = (self.all.clone(), database.to_owned());
            Some(Arc::new(CatalogSchema {
                all,
                database,
                kind,
            }) as Arc<dyn SchemaProvider>)
        };
        match name {
            PUBLIC => schema(&self.name, CatalogSchemaKind::Rows),
            SERIES_SCHEMA => schema(&self.name, CatalogSchemaKind::Series),
            PG_CATALOG => self.all.pg_catalog.clone(),
            other if self.all.exists(other) => schema(other, CatalogSchemaKind::Rows),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum CatalogSchemaKind {
    Rows,
    Series,
}

/// The tables of a database, or their series.
#[derive(Debug)]
struct CatalogSchema {
    all: DatabaseCatalogs,
    database: String,
    kind: CatalogSchemaKind,
}

impl CatalogSchema {
    fn key(&self, name: &str) -> (String, String) {
        (self.database.clone(), name.to_owned())
    }
}

#[async_trait]
impl SchemaProvider for CatalogSchema {
    fn table_names(&self) -> Vec<String> {
        let tables = self.all.engine.tables(&self.database).unwrap_or_default();
        let mut names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        let files = self.all.files.read();
        names.extend(
            files
                .keys()
                .filter(|key| key.0 == self.database)
                .map(|key| key.1.clone()),
        );
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.all.files.read().get(&self.key(name)) {
            return Ok(Some(Arc::clone(table)));
        }
        let engine = self.all.engine.clone();
        match self.all.engine.table(&self.database, name) {
            Ok(schema) => Ok(Some(match self.kind {
                CatalogSchemaKind::Rows if schema.rollup.is_some() => {
                    self.all.rollup_definitions.view(&engine, schema)?
                }
                CatalogSchemaKind::Rows if schema.view.is_some() => {
                    self.all.views.provider(&schema)?
                }
                CatalogSchemaKind::Series if schema.view.is_some() => return Ok(None),
                CatalogSchemaKind::Rows => Arc::new(SeriesTable::new(engine, schema)),
                CatalogSchemaKind::Series => Arc::new(SeriesList::new(engine, schema)),
            })),
            Err(EngineError::NotFound { .. }) => Ok(None),
            Err(error) => Err(external(error)),
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.all.files.write().insert(self.key(&name), table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.all.files.write().remove(&self.key(name)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.files.read().contains_key(&self.key(name))
            || self.all.engine.table(&self.database, name).is_ok()
    }
}

/// PostgreSQL's catalog, without the database `postgres` that it always lists.
#[derive(Debug)]
pub struct PgCatalog {
    /// The catalog.
    pub inner: Arc<dyn SchemaProvider>,
    /// The engine, which knows the databases.
    pub engine: Engine,
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = self.inner.table(name).await?;
        if let (Some(table), Some(arrays)) = (&table, arrays_of(name)) {
            let schema = with_arrays(&table.schema(), arrays);
            return Ok(Some(Arc::new(EmptyTable::new(schema))));
        }
        let (Some(table), "pg_database") = (&table, name) else {
            return Ok(table);
        };
        let names = self.engine.databases().into_iter().map(lit).collect();
        let plan = LogicalPlanBuilder::scan(name, provider_as_source(Arc::clone(table)), None)?
            .filter(col("datname").in_list(names, false))?
            .build()?;
        Ok(Some(Arc::new(ViewTable::new(plan, None))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }
}

/// Columns that hold arrays, and of what, in the tables of indexes and constraints: the library has
/// texts in their place, and rows of PostgreSQL's own catalog. Here nothing has either.
fn arrays_of(table: &str) -> Option<&'static [(&'static str, DataType)]> {
    match table {
        "pg_constraint" => Some(&[
            ("conkey", DataType::Int16),
            ("confkey", DataType::Int16),
            ("conpfeqop", DataType::Int32),
            ("conppeqop", DataType::Int32),
            ("conffeqop", DataType::Int32),
            ("confdelsetcols", DataType::Int16),
            ("conexclop", DataType::Int32),
        ]),
        "pg_index" => Some(&[
            ("indkey", DataType::Int16),
            ("indcollation", DataType::Int32),
            ("indclass", DataType::Int32),
            ("indoption", DataType::Int16),
        ]),
        _ => None,
    }
}

fn with_arrays(schema: &SchemaRef, arrays: &[(&str, DataType)]) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let found = arrays.iter().find(|(name, _)| name == field.name());
        match found {
            Some((name, of)) => Arc::new(Field::new(
                *name,
                DataType::new_list(of.clone(), true),
                true,
            )),
            None => Arc::clone(field),
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What PostgreSQL's catalog tells of: every database, and the tables of the current one.
#[async_trait]
impl CatalogInfo for DatabaseCatalogs {
    async fn catalog_names(&self) -> Result<Vec<String>> {
        Ok(self.engine.databases())
    }

    async fn schema_names(&self, catalog: &str) -> Result<Option<Vec<String>>> {
        let schemas = [PUBLIC, PG_CATALOG, "information_schema"].map(str::to_owned);
        Ok((catalog == self.current).then(|| schemas.into()))
    }

    async fn table_names(&self, catalog: &str, schema: &str) -> Result<Option<Vec<String>>> {
        if catalog != self.current || schema != PUBLIC {
            return Ok(None);
        }
        let tables = self.engine.tables(catalog).map_err(external)?;
        Ok(Some(
            tables.iter().map(|table| table.name.clone()).collect(),
        ))
    }

    async fn table_schema(&self, catalog: &str, _: &str, table: &str) -> Result<Option<SchemaRef>> {
        let found: Option<Arc<TableSchema>> = self.engine.table(catalog, table).ok();
        found
            .map(|schema| match (&schema.rollup, &schema.view) {
                (Some(_), _) => Ok(self.rollup_definitions.view(&self.engine, schema)?.schema()),
                (None, Some(_)) => Ok(self.views.provider(&schema)?.schema()),
                (None, None) => Ok(crate::dialect::types::arrow_schema(&schema)),
            })
            .transpose()
    }

    async fn table_type(&self, catalog: &str, _: &str, table: &str) -> Result<Option<TableType>> {
        let found = self.engine.table(catalog, table);
        let is_view = found.is_ok_and(|schema| schema.rollup.is_some() || schema.view.is_some());
        Ok(Some(if is_view {
            TableType::View
        } else {
            TableType::Base
        }))
    }
}
