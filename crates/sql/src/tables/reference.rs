//! Reference tables as table providers of DataFusion.
//!
//! `block` keeps the transaction of a session, `reads` says what one statement sees, `filters` says which
//! conditions the store evaluates, `pages` reads rows.

pub(crate) mod block;
mod filters;
mod pages;
pub(crate) mod reads;

use crate::error::SqlError;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::StreamingTableExec;
use filters::column_filter;
use marigram_reference::{ReferenceScanRequest, ReferenceStore, ReferenceTable, ReferenceType};
use marigram_service::{PG_TYPE_KEY, run_blocking};
use pages::ReferencePages;
use reads::StatementReads;
use std::collections::HashMap;
use std::sync::Arc;

/// The name of the column that identifies a row to UPDATE and DELETE; no SQL can name it.
pub(crate) const ROW_ID: &str = "\u{1}rowid";

/// The columns of a table; those that are texts here and another type in PostgreSQL bear its name.
pub(crate) fn marked_schema(table: &ReferenceTable) -> SchemaRef {
    let fields = table.arrow_schema();
    let fields = fields.fields().iter().zip(&table.columns);
    let fields = fields.map(|(field, column)| match column.kind {
        ReferenceType::Uuid | ReferenceType::Json | ReferenceType::Jsonb => {
            let mark = (PG_TYPE_KEY.to_owned(), column.kind.to_string());
            let field = field.as_ref().clone();
            Arc::new(field.with_metadata(HashMap::from([mark])))
        }
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
}

/// A reference table.
#[derive(Debug)]
pub(crate) struct ReferenceTableProvider {
    table: Arc<ReferenceTable>,
    arrow: SchemaRef,
    store: ReferenceStore,
    has_row_id: bool,
}

impl ReferenceTableProvider {
    /// A table of a store.
    pub(crate) fn new(store: ReferenceStore, table: Arc<ReferenceTable>) -> Self {
        // A row that is inserted may lack values until the store numbers it, or refuses it.
        let fields = marked_schema(&table);
        let fields = fields.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let arrow = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self {
            table,
            arrow,
            store,
            has_row_id: false,
        }
    }

    /// The same table with the column [`ROW_ID`] after its own.
    pub(crate) fn with_row_id(&self) -> Self {
        let row_id = Arc::new(Field::new(ROW_ID, DataType::Int64, false));
        let fields = self.arrow.fields().iter().cloned().chain([row_id]);
        Self {
            table: Arc::clone(&self.table),
            arrow: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            store: self.store.clone(),
            has_row_id: true,
        }
    }

    /// The table as the statement was planned for it.
    pub(crate) fn table(&self) -> &Arc<ReferenceTable> {
        &self.table
    }
}

#[async_trait]
impl TableProvider for ReferenceTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let answers = filters.iter().map(|filter| {
            if column_filter(filter, &self.table).is_some() {
                TableProviderFilterPushDown::Exact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        });
        Ok(answers.collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let transaction = match StatementReads::of_task() {
            Some(reads) => match reads.known_transaction() {
                Some(known) => known,
                // It may wait for a connection.
                None => run_blocking(move || reads.transaction_to_read())
                    .await
                    .map_err(|error| external(error.into()))?
                    .map_err(external)?,
            },
            // Another language, or the refresh of a view.
            None => Arc::new(self.store.read().map_err(|error| external(error.into()))?),
        };
        let current = transaction.table(&self.table.database, &self.table.name);
        if current.is_none_or(|current| *current != *self.table) {
            return Err(external(changed(&self.table.name)));
        }
        let all: Vec<usize> = (0..self.arrow.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let width = self.table.columns.len();
        let columns = wanted.iter().copied().filter(|at| *at < width).collect();
        // The store gives the row id last.
        let position = wanted.iter().position(|at| *at >= width);
        let last = wanted.len().saturating_sub(1);
        if position.is_some_and(|position| position != last) {
            return Err(DataFusionError::Internal(
                "the row id is read last".to_owned(),
            ));
        }
        let filters = filters
            .iter()
            .filter_map(|filter| column_filter(filter, &self.table))
            .collect();
        let request = ReferenceScanRequest {
            columns,
            with_row_id: self.has_row_id && position.is_some(),
            filters,
            after: i64::MIN,
            rows_max: 0,
        };
        let schema = Arc::new(self.arrow.project(wanted)?);
        let pages = ReferencePages::new(
            transaction,
            Arc::clone(&self.table),
            Arc::clone(&schema),
            request,
            limit,
        );
        let partition = Arc::new(pages);
        Ok(Arc::new(StreamingTableExec::try_new(
            schema,
            vec![partition],
            None,
            None,
            false,
            limit,
        )?))
    }
}

/// The error for a plan that was made for another state of a table.
pub(crate) fn changed(name: &str) -> SqlError {
    let message = format!("table '{name}' was changed in the meantime; send the statement again");
    SqlError::named("0A000", name, message)
}

pub(crate) fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
