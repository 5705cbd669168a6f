//! Databases and tables: creating, changing, dropping.

use super::TaosName;
use crate::types::TaosType;
use crate::value::TaosValue;

/// An option of a database: its name in lower case, and its values as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaosDatabaseOption {
    /// The name.
    pub name: String,
    /// The values; texts without their quotes.
    pub values: Vec<String>,
}

/// A column or tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaosColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: TaosType,
}

/// CREATE TABLE or STABLE with columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaosCreateTable {
    /// The name.
    pub name: TaosName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The columns, the time first.
    pub columns: Vec<TaosColumn>,
    /// The tags; empty for a table without sub-tables.
    pub tags: Vec<TaosColumn>,
}

/// A sub-table to create.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosSubTable {
    /// The name.
    pub name: TaosName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The super table.
    pub stable: TaosName,
    /// The tags that have values; `None` for all, in order.
    pub tag_names: Option<Vec<String>>,
    /// Their values.
    pub tags: Vec<TaosValue<'static>>,
}

/// Something to drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaosDrop {
    /// The name.
    pub name: TaosName,
    /// IF EXISTS.
    pub if_exists: bool,
}

/// ALTER TABLE or STABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosAlterTable {
    /// The name.
    pub name: TaosName,
    /// What changes.
    pub change: TaosTableChange,
}

/// A change of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosTableChange {
    /// ADD COLUMN
    AddColumn(TaosColumn),
    /// DROP COLUMN
    DropColumn(String),
    /// MODIFY COLUMN: a longer text.
    ModifyColumn(TaosColumn),
    /// RENAME COLUMN
    RenameColumn(String, String),
    /// ADD TAG
    AddTag(TaosColumn),
    /// DROP TAG
    DropTag(String),
    /// MODIFY TAG: a longer text.
    ModifyTag(TaosColumn),
    /// RENAME TAG
    RenameTag(String, String),
    /// SET TAG, of a sub-table.
    SetTags(Vec<(String, TaosValue<'static>)>),
    /// An option (TTL, COMMENT), which is ignored.
    Options,
}
