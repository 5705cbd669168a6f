//! A materialized view as a table of its own: its bucket is the time, its tags are tags, and its
//! other columns are fields, under the names that its query gives them. Query languages that know
//! only tables read views so.

use super::rollup_definition::RollupDefinition;
use crate::dialect::types::arrow_schema;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable};
use marigram_model::{ColumnCodec, ColumnId, FieldColumn, FieldType, TableSchema};

/// The type of a field that shows values of a type of Arrow; `None` if no field does.
fn shown_type(kind: &DataType) -> Option<FieldType> {
    Some(match kind {
        DataType::Boolean => FieldType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => FieldType::I32,
        DataType::Int64 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => FieldType::I64,
        DataType::UInt64 => FieldType::U64,
        DataType::Float16 | DataType::Float32 => FieldType::F32,
        DataType::Float64 | DataType::Decimal128(..) | DataType::Decimal256(..) => FieldType::F64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => FieldType::String,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => FieldType::Timestamp,
        _ => return None,
    })
}

impl RollupDefinition {
    /// The view over a rollup's table as a table, with the tags in the order of the rollup's. Columns
    /// of types that no field has are left out. `None` for a view that does not show its bucket and
    /// each of its tags as they are: it has no time, or several rows of one series and time.
    pub(crate) fn shown_table(&self, table: &TableSchema) -> Option<TableSchema> {
        let schema = DFSchema::try_from(arrow_schema(table)).ok()?;
        let mut time_name = None;
        let mut tags = table.tags.clone();
        let mut is_shown = vec![false; tags.len()];
        let mut fields: Vec<FieldColumn> = Vec::new();
        for column in &self.columns {
            let (_, name) = column.qualified_name();
            if let Expr::Column(of) = column.clone().unalias_nested().data {
                if of.name == table.time_name && time_name.is_none() {
                    time_name = Some(name);
                    continue;
                }
                let tag = table.tag(&of.name).map(|(tag, _)| usize::from(tag));
                if let Some(tag) = tag.filter(|tag| !is_shown[*tag]) {
                    tags[tag].name = name;
                    is_shown[tag] = true;
                    continue;
                }
            }
            let kind = column.get_type(&schema).ok()?;
            if let Some(kind) = shown_type(&kind) {
                fields.push(FieldColumn {
                    id: ColumnId(u32::try_from(fields.len()).ok()? + 1),
                    name,
                    kind,
                    codec: ColumnCodec::default(),
                });
            }
        }
        if is_shown.contains(&false) {
            return None;
        }
        Some(TableSchema {
            time_name: time_name?,
            tags,
            fields,
            declared: Vec::new(),
            ..table.clone()
        })
    }
}
