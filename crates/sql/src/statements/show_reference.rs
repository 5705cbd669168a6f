//! The results of `SHOW` for reference tables.

use crate::catalog::create_reference_table;
use crate::dialect::statement::{ShowStatement, TableReferenceName};
use crate::error::{SqlError, SqlResult};
use crate::tables::batches::{text, texts};
use arrow::array::new_null_array;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use marigram_reference::{ReferenceStore, ReferenceTable};
use marigram_service::Session;
use std::sync::Arc;

/// Answers a `SHOW` that names a reference table; `None` if it names none.
///
/// # Errors
/// None that can occur.
pub(crate) fn show(
    store: &ReferenceStore,
    session: &Session,
    what: &ShowStatement,
) -> SqlResult<Option<RecordBatch>> {
    let find = |target: &TableReferenceName| {
        let database = target.database.as_ref().unwrap_or(&session.database);
        store.table(database, &target.table)
    };
    match what {
        ShowStatement::Columns(target) => {
            let found = find(target);
            found.map(|table| columns(&table)).transpose()
        }
        ShowStatement::CreateTable(target) => {
            let Some(table) = find(target) else {
                return Ok(None);
            };
            let all = store.tables(&table.database);
            let statement = create_reference_table(&table, &all);
            let shown = texts(vec![
                ("table_name", vec![table.name.clone()]),
                ("statement", vec![statement]),
            ]);
            shown.map(Some)
        }
        _ => Ok(None),
    }
}

/// The columns, in the form of those of series tables. What identifies a row has the role `key`.
fn columns(table: &Arc<ReferenceTable>) -> SqlResult<RecordBatch> {
    let keys = table.primary_key().map(|key| key.columns.as_slice());
    let is_key = |id: u32| keys.is_some_and(|keys| keys.contains(&id));
    let role = |id: u32| if is_key(id) { "key" } else { "column" };
    let all = &table.columns;
    let fields = [
        Field::new("column_name", DataType::Utf8, false),
        Field::new("data_type", DataType::Utf8, false),
        Field::new("role", DataType::Utf8, false),
        Field::new("encoding", DataType::Utf8, true),
        Field::new("compression", DataType::Utf8, true),
    ];
    let arrays = vec![
        text(all.iter().map(|column| column.name.clone())),
        text(
            all.iter()
                .map(|column| column.kind.to_string().to_uppercase()),
        ),
        text(all.iter().map(|column| role(column.id).to_owned())),
        new_null_array(&DataType::Utf8, all.len()),
        new_null_array(&DataType::Utf8, all.len()),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), arrays)
        .map_err(|error| SqlError::DataFusion(error.into()))
}
