//! Databases and tables as DataFusion's catalogs.
//!
//! A database is a catalog, and its tables are in the catalog's schema `public`, as in PostgreSQL.
//! A statement may name another database instead of a schema, so that `database.table` works from
//! every session. The schema `marigram_series` holds the series of each table. Nothing is copied:
//! each request goes to the engine.

mod information_schema;
pub(crate) mod plain_views;
pub(crate) mod plan_dependencies;
pub(crate) mod plan_rights;
mod postgres;
mod postgres_tables;
pub(crate) mod reference_functions;
mod reference_information;
mod reference_plans;
mod reference_rows;
mod reference_text;
pub(crate) mod table_functions;
mod timescaledb;

pub(crate) use postgres::{CatalogRoles, PgCatalog};
pub(crate) use reference_text::create_table as create_reference_table;

use crate::access::check_sight;
use crate::catalog::plain_views::ViewPlans;
use crate::catalog::plan_rights::forbidden;
use crate::dialect::parse::SERIES_SCHEMA;
use crate::error::SqlError;
use crate::rollup::RollupDefinitions;
use crate::tables::reference::ReferenceTableProvider;
use crate::tables::reference::reads::{seen_table, seen_tables};
use crate::tables::series::SeriesList;
use crate::tables::table::SeriesTable;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::TableType;
use datafusion_pg_catalog::pg_catalog::catalog_info::CatalogInfo;
use information_schema::InformationSchema;
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_engine::{Engine, EngineError};
use marigram_model::TableSchema;
use marigram_reference::ReferenceStore;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use timescaledb::TimescaleInformation;

/// The schema of a database's tables.
pub(crate) const PUBLIC: &str = "public";
/// The schema of PostgreSQL's catalog.
pub(crate) const PG_CATALOG: &str = "pg_catalog";
/// The schema that the SQL standard defines for descriptions of tables.
const INFORMATION_SCHEMA: &str = "information_schema";

/// Tables over files, which `CREATE EXTERNAL TABLE` creates; they exist until the service ends.
pub(crate) type ExternalTables = Arc<RwLock<HashMap<(String, String), Arc<dyn TableProvider>>>>;

fn external(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::Engine(error)))
}

/// The databases, seen from one of them.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseCatalogs {
    /// The engine.
    pub engine: Engine,
    /// Tables without times.
    pub reference: ReferenceStore,
    /// The session's database, which `information_schema` describes.
    pub current: String,
    /// What the session's client may do. It does not learn of databases in which it may do nothing.
    pub rights: Arc<AccessRights>,
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
    /// Whether a name may stand for a database: one that the client may not see could exist.
    fn exists(&self, name: &str) -> bool {
        !self.rights.see(name) || self.engine.tables(name).is_ok()
    }

    /// The databases of which the client may know.
    fn visible(&self) -> Vec<String> {
        let mut names = self.engine.databases();
        names.retain(|name| self.rights.see(name));
        names
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

/// A database as a catalog of DataFusion.
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
        let is_hidden = !self.all.rights.see(&self.name);
        match name {
            _ if is_hidden => schema(&self.name, CatalogSchemaKind::Rows),
            PUBLIC => schema(&self.name, CatalogSchemaKind::Rows),
            SERIES_SCHEMA => schema(&self.name, CatalogSchemaKind::Series),
            PG_CATALOG => self.all.pg_catalog.clone(),
            known if timescaledb::SCHEMAS.contains(&known) => {
                Some(Arc::new(TimescaleInformation {
                    engine: self.all.engine.clone(),
                    database: self.name.clone(),
                    rights: Arc::clone(&self.all.rights),
                }))
            }
            INFORMATION_SCHEMA => {
                let inner = InformationSchemaProvider::new(Arc::new(self.all.clone()));
                let tables = self.all.engine.tables(&self.name).unwrap_or_default();
                Some(Arc::new(InformationSchema {
                    inner: Arc::new(inner),
                    database: self.name.clone(),
                    tables,
                    reference: seen_tables(&self.all.reference, &self.name),
                    may_read: self.all.rights.allow(&self.name, DatabasePrivileges::READ),
                }))
            }
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
    /// A reference table, as the current statement sees it.
    fn reference_table(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        if !matches!(self.kind, CatalogSchemaKind::Rows) {
            return None;
        }
        let store = &self.all.reference;
        let table = seen_table(store, &self.database, name)?;
        let provider = ReferenceTableProvider::new(store.clone(), table);
        Some(Arc::new(provider))
    }

    fn key(&self, name: &str) -> (String, String) {
        (self.database.clone(), name.to_owned())
    }
}

#[async_trait]
impl SchemaProvider for CatalogSchema {
    fn table_names(&self) -> Vec<String> {
        if !self.all.rights.see(&self.database) {
            return Vec::new();
        }
        let tables = self.all.engine.tables(&self.database).unwrap_or_default();
        let mut names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        if matches!(self.kind, CatalogSchemaKind::Rows) {
            let reference = seen_tables(&self.all.reference, &self.database);
            names.extend(reference.iter().map(|table| table.name.clone()));
        }
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
        check_sight(&self.all.rights, &self.database).map_err(forbidden)?;
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
            Err(EngineError::NotFound { .. }) => {
                match (self.reference_table(name), &self.all.pg_catalog) {
                    (Some(table), _) => Ok(Some(table)),
                    // PostgreSQL looks there, too.
                    (None, Some(catalog)) if name.starts_with("pg_") => catalog.table(name).await,
                    _ => Ok(None),
                }
            }
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
            || self.reference_table(name).is_some()
    }
}

/// The contents of PostgreSQL's catalog: every database, and the tables of the current one.
#[async_trait]
impl CatalogInfo for DatabaseCatalogs {
    async fn catalog_names(&self) -> Result<Vec<String>> {
        Ok(self.visible())
    }

    async fn schema_names(&self, catalog: &str) -> Result<Option<Vec<String>>> {
        let schemas = [PUBLIC, PG_CATALOG, INFORMATION_SCHEMA].map(str::to_owned);
        Ok((catalog == self.current).then(|| schemas.into()))
    }

    async fn table_names(&self, catalog: &str, schema: &str) -> Result<Option<Vec<String>>> {
        if catalog != self.current || schema != PUBLIC {
            return Ok(None);
        }
        let tables = self.engine.tables(catalog).map_err(external)?;
        let mut names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        let reference = seen_tables(&self.reference, catalog);
        names.extend(reference.iter().map(|table| table.name.clone()));
        Ok(Some(names))
    }

    async fn table_schema(&self, catalog: &str, _: &str, table: &str) -> Result<Option<SchemaRef>> {
        if let Some(table) = seen_table(&self.reference, catalog, table) {
            return Ok(Some(table.arrow_schema()));
        }
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
