//! A column as `CREATE TABLE` and `ALTER TABLE` define it, before its table is known.

use crate::dialect::statement::{CodecChange, ColumnKind};
use crate::dialect::types::{field_type, is_zoned, tag_type};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::DataType;
use marigram_model::{ColumnCodec, FieldType};

/// A column definition as it was written.
pub(crate) struct ColumnDefinition {
    pub name: String,
    pub data_type: DataType,
    pub role: Option<ColumnRole>,
    pub codec: CodecChange,
    /// The key that the column alone is declared to be.
    pub key: Option<&'static str>,
    /// Whether it is declared NOT NULL.
    pub is_required: bool,
}

/// What a column is declared to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnRole {
    Time,
    Tag,
    Field,
}

impl ColumnDefinition {
    /// What the column holds, by its role and its type.
    ///
    /// # Errors
    /// If the type or the codec does not suit the role.
    pub(crate) fn kind(&self) -> SqlResult<ColumnKind> {
        let name = &self.name;
        let kind = match self.role {
            Some(ColumnRole::Time) if is_zoned(&self.data_type) => ColumnKind::ZonedTime,
            Some(ColumnRole::Time) => ColumnKind::Time,
            Some(ColumnRole::Tag) => ColumnKind::Tag(tag_type(name, &self.data_type)?),
            Some(ColumnRole::Field) | None => {
                let kind = field_type(name, &self.data_type)?;
                let codec = self.codec.apply(ColumnCodec::default());
                suited(name, kind, codec)?;
                return Ok(if is_zoned(&self.data_type) {
                    ColumnKind::ZonedField(codec)
                } else {
                    ColumnKind::Field(kind, codec)
                });
            }
        };
        if self.codec != CodecChange::default() {
            let message = format!("column '{name}' is not a field: only fields have an encoding");
            return Err(SqlError::named("42P16", name, message));
        }
        Ok(kind)
    }
}

/// Refuses a codec that is not suitable for a field.
///
/// # Errors
/// Lists the suitable codecs.
pub(crate) fn suited(name: &str, kind: FieldType, codec: ColumnCodec) -> SqlResult<()> {
    match codec.objection(kind) {
        None => Ok(()),
        Some(reason) => {
            let message = format!("column '{name}': {reason}");
            Err(SqlError::named("22023", name, message))
        }
    }
}
