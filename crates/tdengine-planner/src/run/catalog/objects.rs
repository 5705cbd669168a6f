//! Records of the catalog: databases, tables and sub-tables, as JSON texts.

use crate::run::catalog::{ROW_FIELD, TBNAME};
use crate::taos_value::{TEXT_LENGTH, Val};
use marigram_model::{FieldType, TableSchema, TagType, TagValue};
use marigram_tdengine::ast::TaosColumn;
use marigram_tdengine::{TaosPrecision, TaosType};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Options of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseRecord {
    /// The options that were set, by their names in lower case.
    pub(crate) options: BTreeMap<String, String>,
}

impl DatabaseRecord {
    /// Reads a record.
    pub(crate) fn read(text: &str) -> Self {
        Self {
            options: serde_json::from_str(text).unwrap_or_default(),
        }
    }

    /// The record as text.
    pub(crate) fn text(&self) -> String {
        json!(self.options).to_string()
    }

    /// The precision of times.
    pub(crate) fn precision(&self) -> TaosPrecision {
        let name = self.options.get("precision");
        name.and_then(|name| TaosPrecision::from_name(name))
            .unwrap_or_default()
    }

    /// An option, or its usual value.
    pub(crate) fn option(&self, name: &str, usual: &str) -> String {
        let value = self.options.get(name);
        value.map_or_else(|| usual.to_owned(), Clone::clone)
    }
}

/// A table of the engine with its declared columns.
#[derive(Clone, Debug)]
pub(crate) struct StableRecord {
    /// The table.
    pub(crate) table: Arc<TableSchema>,
    /// Whether it was created without tags.
    pub(crate) is_normal: bool,
    /// The columns, the time first.
    pub(crate) columns: Vec<TaosColumn>,
    /// The tags that are shown, without the name of the sub-table.
    pub(crate) tags: Vec<TaosColumn>,
    /// Tags that were dropped, and are no longer shown.
    pub(crate) dropped: Vec<String>,
    /// How many sub-tables had a tag set: those whose tags differ from those of their rows.
    pub(crate) retagged: Vec<String>,
    /// When it was created, ns.
    pub(crate) created_ns: i64,
}

/// A sub-table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChildRecord {
    /// Its super table.
    pub(crate) stable: String,
    /// The number of the table of the engine.
    pub(crate) table_id: u32,
    /// The tags of its rows by their ordinals, from the first one after the name.
    pub(crate) series: Vec<Option<TagValue>>,
    /// Its tags as last set, where they differ.
    pub(crate) tags: Option<Vec<Option<TagValue>>>,
    /// When it was created, ns.
    pub(crate) created_ns: i64,
}

/// The type of a tag in the engine.
pub(crate) fn tag_type(kind: TaosType) -> TagType {
    match kind {
        TaosType::Bool => TagType::Bool,
        TaosType::Timestamp => TagType::I64,
        TaosType::UBigInt => TagType::String,
        kind if kind.is_integer() => TagType::I64,
        _ => TagType::String,
    }
}

/// The type of a field in the engine.
pub(crate) fn field_type(kind: TaosType) -> FieldType {
    match kind {
        TaosType::Null | TaosType::Bool => FieldType::Bool,
        TaosType::UBigInt => FieldType::U64,
        TaosType::Float => FieldType::F32,
        TaosType::Double => FieldType::F64,
        TaosType::Timestamp => FieldType::Timestamp,
        TaosType::VarChar(_) | TaosType::NChar(_) | TaosType::Json => FieldType::String,
        TaosType::VarBinary(_) | TaosType::Geometry(_) => FieldType::Bytes,
        _ => FieldType::I64,
    }
}

fn shown_field(kind: FieldType) -> TaosType {
    match kind {
        FieldType::Bool => TaosType::Bool,
        FieldType::I32 => TaosType::Int,
        FieldType::I64 => TaosType::BigInt,
        FieldType::U64 => TaosType::UBigInt,
        FieldType::F32 => TaosType::Float,
        FieldType::F64 => TaosType::Double,
        FieldType::String => TaosType::VarChar(TEXT_LENGTH),
        FieldType::Bytes => TaosType::VarBinary(TEXT_LENGTH),
        FieldType::Timestamp => TaosType::Timestamp,
    }
}

fn shown_tag(kind: TagType) -> TaosType {
    match kind {
        TagType::String => TaosType::VarChar(TEXT_LENGTH),
        TagType::I64 => TaosType::BigInt,
        TagType::Bool => TaosType::Bool,
    }
}

fn pairs(columns: &[TaosColumn]) -> Value {
    let pairs = columns.iter();
    pairs
        .map(|column| json!([column.name, column.kind.to_string()]))
        .collect()
}

fn read_pairs(value: &Value) -> Vec<TaosColumn> {
    let pairs = value.as_array().into_iter().flatten();
    pairs
        .filter_map(|pair| {
            Some(TaosColumn {
                name: pair.get(0)?.as_str()?.to_owned(),
                kind: TaosType::from_text(pair.get(1)?.as_str()?)?,
            })
        })
        .collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts
        .filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect()
}

impl StableRecord {
    /// Reads the record of a table: declared types where they fit the table, and its own types for what
    /// others added.
    pub(crate) fn read(text: Option<&str>, table: Arc<TableSchema>) -> Self {
        let value: Value = text
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let value = if value["id"].as_u64() == Some(u64::from(table.id.0)) {
            value
        } else {
            Value::Null
        };
        let (columns, tags) = (read_pairs(&value["columns"]), read_pairs(&value["tags"]));
        let dropped = texts(&value["dropped"]);
        let mut record = Self {
            is_normal: value["normal"].as_bool().unwrap_or(false),
            columns: vec![TaosColumn {
                name: table.time_name.clone(),
                kind: TaosType::Timestamp,
            }],
            tags: Vec::new(),
            retagged: texts(&value["retagged"]),
            created_ns: value["created"].as_i64().unwrap_or(0),
            dropped,
            table,
        };
        let table = Arc::clone(&record.table);
        for field in table.fields.iter().filter(|field| field.name != ROW_FIELD) {
            let declared = columns.iter().find(|column| column.name == field.name);
            let declared = declared.filter(|column| field_type(column.kind) == field.kind);
            record.columns.push(TaosColumn {
                name: field.name.clone(),
                kind: declared.map_or_else(|| shown_field(field.kind), |column| column.kind),
            });
        }
        for tag in table.tags.iter().filter(|tag| tag.name != TBNAME) {
            if record.dropped.contains(&tag.name) {
                continue;
            }
            let declared = tags.iter().find(|column| column.name == tag.name);
            let declared = declared.filter(|column| tag_type(column.kind) == tag.kind);
            record.tags.push(TaosColumn {
                name: tag.name.clone(),
                kind: declared.map_or_else(|| shown_tag(tag.kind), |column| column.kind),
            });
        }
        record
    }

    /// The record as text.
    pub(crate) fn text(&self) -> String {
        json!({
            "id": self.table.id.0,
            "normal": self.is_normal,
            "columns": pairs(&self.columns),
            "tags": pairs(&self.tags),
            "dropped": self.dropped,
            "retagged": self.retagged,
            "created": self.created_ns,
        })
        .to_string()
    }

    /// Whether rows carry the name of their sub-table.
    pub(crate) fn has_tbname(&self) -> bool {
        self.table.tag(TBNAME).is_some()
    }

    /// The ordinal of a tag in records of sub-tables.
    pub(crate) fn ordinal(&self, name: &str) -> Option<usize> {
        let (ordinal, _) = self.table.tag(name)?;
        usize::from(ordinal).checked_sub(1)
    }
}

impl ChildRecord {
    /// Reads a record; `None` if it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            stable: value["stable"].as_str()?.to_owned(),
            table_id: u32::try_from(value["id"].as_u64()?).ok()?,
            series: tag_values(&value["series"]),
            tags: value["tags"].is_array().then(|| tag_values(&value["tags"])),
            created_ns: value["created"].as_i64().unwrap_or(0),
        })
    }

    /// The record as text.
    pub(crate) fn text(&self) -> String {
        json!({
            "stable": self.stable,
            "id": self.table_id,
            "series": json_values(&self.series),
            "tags": self.tags.as_ref().map(|tags| json_values(tags)),
            "created": self.created_ns,
        })
        .to_string()
    }

    /// A tag as last set, in the type that was declared for it.
    pub(crate) fn tag(&self, ordinal: usize, kind: TaosType) -> Val {
        let values = self.tags.as_ref().unwrap_or(&self.series);
        match values.get(ordinal) {
            Some(Some(value)) => declared_value(value, kind),
            _ => Val::Null,
        }
    }
}

/// A stored tag in its declared type.
pub(crate) fn declared_value(value: &TagValue, kind: TaosType) -> Val {
    match value {
        TagValue::Bool(value) => Val::Bool(*value),
        TagValue::I64(value) if kind == TaosType::Timestamp => Val::Time(*value),
        TagValue::I64(value) => Val::Int(*value),
        TagValue::String(text) => match kind {
            TaosType::UBigInt => text.parse().map_or(Val::Null, Val::UInt),
            TaosType::Float | TaosType::Double => text.parse().map_or(Val::Null, Val::Float),
            TaosType::VarBinary(_) | TaosType::Geometry(_) => Val::Bytes(text.as_bytes().into()),
            _ => Val::of_text(text),
        },
    }
}

fn json_values(values: &[Option<TagValue>]) -> Value {
    let values = values.iter().map(|value| match value {
        None => Value::Null,
        Some(TagValue::String(text)) => json!(text),
        Some(TagValue::I64(number)) => json!(number),
        Some(TagValue::Bool(truth)) => json!(truth),
    });
    values.collect()
}

fn tag_values(value: &Value) -> Vec<Option<TagValue>> {
    let values = value.as_array().into_iter().flatten();
    values
        .map(|value| match value {
            Value::String(text) => Some(TagValue::String(text.clone())),
            Value::Number(number) => number.as_i64().map(TagValue::I64),
            Value::Bool(truth) => Some(TagValue::Bool(*truth)),
            _ => None,
        })
        .collect()
}
