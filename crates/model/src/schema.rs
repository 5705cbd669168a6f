//! Schemas: the columns of a table and its settings.

use crate::ids::{ColumnId, TableColumn, TableId};
use crate::options::{ColumnCodec, TableOptions};
use crate::rollup::Rollup;
use crate::types::{FieldType, TagType};
use crate::view::View;
use std::sync::Arc;

/// Limits on names and values from outside.
#[derive(Clone, Copy, Debug)]
pub struct Limits;

impl Limits {
    /// Longest name of a database, table or column, bytes.
    pub const NAME_BYTES_MAX: usize = 255;
    /// Longest value of a tag, bytes.
    pub const TAG_BYTES_MAX: usize = 16 * 1024;
    /// Longest value of a string or bytes field, bytes.
    pub const VALUE_BYTES_MAX: usize = 1 << 20;
    /// Most tags of a table.
    pub const TAGS_MAX: usize = 256;
    /// Most fields of a table.
    pub const FIELDS_MAX: usize = 16 * 1024;
    /// Most retention policies of a database.
    pub const RETENTION_POLICIES_MAX: usize = 1_000;
    /// Narrowest partition, ns (one minute).
    pub const PARTITION_NS_MIN: i64 = 60_000_000_000;
    /// Smallest page of a table, bytes.
    pub const PAGE_BYTES_MIN: u32 = 1 << 10;
    /// Largest page of a table, bytes.
    pub const PAGE_BYTES_MAX: u32 = 256 << 10;

    /// Checks whether a name is valid for a database, table or column.
    ///
    /// # Errors
    /// If it is empty, too long or contains a control character.
    pub fn check_name(kind: &'static str, name: &str) -> Result<(), SchemaError> {
        if name.is_empty() {
            return Err(SchemaError::EmptyName { kind });
        }
        if name.len() > Self::NAME_BYTES_MAX {
            let start = name.chars().take(24).collect();
            return Err(SchemaError::LongName {
                kind,
                start,
                len: name.len(),
            });
        }
        if name.chars().any(char::is_control) {
            return Err(SchemaError::ControlInName {
                kind,
                name: name.escape_debug().to_string(),
            });
        }
        Ok(())
    }
}

/// What is wrong with a name, a schema or a change to one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Retention policies that contradict one another.
    #[error("these cannot be the retention policies of a database: {reason}")]
    RetentionPolicies {
        /// The contradiction.
        reason: String,
    },
    /// An empty name.
    #[error("a {kind} needs a name: this one is empty")]
    EmptyName {
        /// The kind of object.
        kind: &'static str,
    },
    /// A name longer than [`Limits::NAME_BYTES_MAX`].
    #[error("the {kind} name '{start}…' has {len} bytes; at most {max} are allowed", max = Limits::NAME_BYTES_MAX)]
    LongName {
        /// The kind of object.
        kind: &'static str,
        /// How it begins.
        start: String,
        /// Its length, bytes.
        len: usize,
    },
    /// A name with a control character.
    #[error("the {kind} name '{name}' contains a control character")]
    ControlInName {
        /// The kind of object.
        kind: &'static str,
        /// The name, escaped.
        name: String,
    },
    /// Two columns with the same name.
    #[error("column '{name}' occurs twice in table '{table}'")]
    DuplicateColumn {
        /// The table.
        table: String,
        /// The column.
        name: String,
    },
    /// More columns than allowed.
    #[error("table '{table}' would have {count} {kind}s; at most {max} are allowed")]
    TooMany {
        /// The table.
        table: String,
        /// "tag" or "field".
        kind: &'static str,
        /// How many there would be.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// An encoding that does not suit the column's type.
    #[error("column '{name}': {reason}")]
    BadCodec {
        /// The column.
        name: String,
        /// What is wrong, and what would be valid.
        reason: String,
    },
    /// An order of columns that does not name each column once.
    #[error("table '{table}': the order of its columns does not name each of them once")]
    BadOrder {
        /// The table.
        table: String,
    },
    /// A setting out of its range.
    #[error("table '{table}': {reason}")]
    BadOption {
        /// The table.
        table: String,
        /// What is wrong.
        reason: String,
    },
}

/// A column that identifies a device. Its index in [`TableSchema::tags`] is its ordinal, which
/// never changes: new tags are always added at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagColumn {
    /// Name, unique among the table's columns.
    pub name: String,
    /// Type.
    pub kind: TagType,
}

/// A column that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldColumn {
    /// Number that segments and the WAL use in place of the name.
    pub id: ColumnId,
    /// Name, unique among the table's columns.
    pub name: String,
    /// Type.
    pub kind: FieldType,
    /// How its values are stored.
    pub codec: ColumnCodec,
}

/// A table: `name ( time, tags…, fields… )`. Immutable: a change creates a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// The table's number.
    pub id: TableId,
    /// Database.
    pub database: String,
    /// Name, unique in its database.
    pub name: String,
    /// Name of the time column; `time` unless the table was created with another.
    pub time_name: String,
    /// Tags in the order of their ordinals.
    pub tags: Vec<TagColumn>,
    /// Fields in the order of the table: that of their ids, except that a field whose type was changed
    /// has a new id in its old place.
    pub fields: Vec<FieldColumn>,
    /// Settings.
    pub options: TableOptions,
    /// Its source, if it is a rollup: nothing else writes to it.
    pub rollup: Option<Arc<Rollup>>,
    /// Its query, if it is a plain view: it cannot be written to, and has neither tags nor fields.
    pub view: Option<Arc<View>>,
    /// Highest id of a dropped field, or of one that is being given another type; 0 if there is none.
    pub dropped_max: u32,
    /// The order in which the columns were declared; empty for a table whose order is time, tags,
    /// fields, because no statement declared it. New columns come last.
    pub declared: Vec<TableColumn>,
}

impl TableSchema {
    /// The id for the next field of the table.
    #[must_use]
    pub fn next_column(&self) -> ColumnId {
        ColumnId(self.field_max() + 1)
    }

    /// Highest id that any field ever had, including dropped fields; 0 if there was none.
    #[must_use]
    pub fn field_max(&self) -> u32 {
        let ids = self.fields.iter().map(|field| field.id.0);
        ids.max().unwrap_or(0).max(self.dropped_max)
    }

    /// Whether the field with this id was dropped: its remaining data in segments and logs is
    /// ignored.
    #[must_use]
    pub fn is_dropped(&self, id: ColumnId) -> bool {
        id.0 <= self.dropped_max && id != ColumnId::TIME && self.field_by_id(id).is_none()
    }

    /// The tag of this name with its ordinal.
    #[must_use]
    pub fn tag(&self, name: &str) -> Option<(u16, &TagColumn)> {
        let ordinal = self.tags.iter().position(|tag| tag.name == name)?;
        Some((u16::try_from(ordinal).ok()?, &self.tags[ordinal]))
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FieldColumn> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field with this id.
    #[must_use]
    pub fn field_by_id(&self, id: ColumnId) -> Option<&FieldColumn> {
        match self.fields.binary_search_by_key(&id, |field| field.id) {
            Ok(at) => Some(&self.fields[at]),
            // The ids may not ascend.
            Err(_) => self.fields.iter().find(|field| field.id == id),
        }
    }

    /// Every column: time, tags, fields.
    pub fn columns_by_role(&self) -> impl Iterator<Item = TableColumn> {
        let tags = (0..=u16::MAX).take(self.tags.len());
        std::iter::once(TableColumn::Time)
            .chain(tags.map(TableColumn::Tag))
            .chain(self.fields.iter().map(|field| TableColumn::Field(field.id)))
    }

    /// The columns as `SELECT *` shows them: in the order in which they were declared.
    pub fn columns(&self) -> impl Iterator<Item = TableColumn> {
        let by_role = self.declared.is_empty().then(|| self.columns_by_role());
        self.declared
            .iter()
            .copied()
            .chain(by_role.into_iter().flatten())
    }

    /// The column at a place of [`columns`](Self::columns).
    #[must_use]
    pub fn column_at(&self, place: usize) -> Option<TableColumn> {
        if !self.declared.is_empty() {
            return self.declared.get(place).copied();
        }
        let first_field = 1 + self.tags.len();
        match place {
            0 => Some(TableColumn::Time),
            tag if tag < first_field => u16::try_from(tag - 1).ok().map(TableColumn::Tag),
            field => {
                let field = self.fields.get(field - first_field)?;
                Some(TableColumn::Field(field.id))
            }
        }
    }

    /// The name of a column; `None` if there is none.
    #[must_use]
    pub fn name_of(&self, column: TableColumn) -> Option<&str> {
        match column {
            TableColumn::Time => Some(&self.time_name),
            TableColumn::Tag(ordinal) => {
                let tag = self.tags.get(usize::from(ordinal))?;
                Some(&tag.name)
            }
            TableColumn::Field(id) => Some(&self.field_by_id(id)?.name),
        }
    }

    /// Every column's name, in the order of [`columns`](Self::columns).
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns().filter_map(|column| self.name_of(column))
    }

    /// Whether a column has this name.
    #[must_use]
    pub fn has_column(&self, name: &str) -> bool {
        self.time_name == name || self.tag(name).is_some() || self.field(name).is_some()
    }

    /// Whether the declared order, if there is one, names each column once.
    fn declares_each_once(&self) -> bool {
        let count = 1 + self.tags.len() + self.fields.len();
        if self.declared.is_empty() {
            return true;
        }
        let named: std::collections::HashSet<_> = self.declared.iter().collect();
        let is_there = |column: &TableColumn| self.name_of(*column).is_some();
        self.declared.len() == count && named.len() == count && self.declared.iter().all(is_there)
    }

    /// Checks that names, counts and settings are within their limits.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), SchemaError> {
        Limits::check_name("table", &self.name)?;
        let mut seen = std::collections::HashSet::new();
        let names = self
            .columns_by_role()
            .filter_map(|column| self.name_of(column));
        for name in names {
            Limits::check_name("column", name)?;
            if !seen.insert(name) {
                let (table, name) = (self.name.clone(), name.to_owned());
                return Err(SchemaError::DuplicateColumn { table, name });
            }
        }
        let counts = [
            ("tag", self.tags.len(), Limits::TAGS_MAX),
            ("field", self.fields.len(), Limits::FIELDS_MAX),
        ];
        for (kind, count, max) in counts {
            if count > max {
                return Err(SchemaError::TooMany {
                    table: self.name.clone(),
                    kind,
                    count,
                    max,
                });
            }
        }
        if !self.declares_each_once() {
            let table = self.name.clone();
            return Err(SchemaError::BadOrder { table });
        }
        let bad = |reason: &str| SchemaError::BadOption {
            table: self.name.clone(),
            reason: reason.to_owned(),
        };
        if self.options.partition_ns < Limits::PARTITION_NS_MIN {
            return Err(bad("a partition is at least one minute wide"));
        }
        if self.options.ttl_ns.is_some_and(|ttl_ns| ttl_ns <= 0) {
            return Err(bad("ttl is a positive time, or none"));
        }
        if !(Limits::PAGE_BYTES_MIN..=Limits::PAGE_BYTES_MAX).contains(&self.options.page_bytes) {
            return Err(bad("page_size is a size from 1KiB to 256KiB"));
        }
        if let Some(rollup) = &self.rollup {
            let in_range = rollup.cell_ns > 0 && rollup.refresh_ns > 0 && rollup.lag_ns >= 0;
            if !in_range || rollup.source == self.id {
                return Err(bad(
                    "a rollup needs another table as its source, and valid widths and intervals",
                ));
            }
        }
        if self.view.is_some()
            && (self.rollup.is_some() || !self.tags.is_empty() || !self.fields.is_empty())
        {
            return Err(bad("a view must have a query, and no rows of its own"));
        }
        for field in &self.fields {
            if let Some(reason) = field.codec.objection(field.kind) {
                let name = field.name.clone();
                return Err(SchemaError::BadCodec { name, reason });
            }
        }
        Ok(())
    }
}
