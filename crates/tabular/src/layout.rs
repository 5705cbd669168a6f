//! The layout of an exported table: its roles and types, so that an import recreates it unchanged.
//!
//! One line of JSON. It is in a file next to a CSV or TsFile, or in a comment of line protocol.

use marigram_model::{FieldType, TagType};
use serde::{Deserialize, Serialize};

/// Prefix of a comment line in line protocol or CSV, before the JSON.
pub const COMMENT: &str = "#marigram ";

/// Suffix that turns a file's name into the name of its layout.
pub const ENDING: &str = "layout.json";

/// The type of a time that is shown with a zone; its values are those of a TIMESTAMP.
pub const ZONED: &str = "TIMESTAMPTZ";

/// The version that this program writes.
const VERSION: u32 = 1;

/// Time, tags and fields of a table, and the order of its columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnLayout {
    /// Version of the format.
    version: u32,
    /// The table.
    pub table: String,
    /// The time column.
    pub time: String,
    /// Whether the time is a [`ZONED`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_time_zoned: bool,
    /// Nanoseconds of a unit of the file's times, where the format does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_ns: Option<i64>,
    /// Tags and their types.
    pub tags: Vec<(String, String)>,
    /// Fields and their types.
    pub fields: Vec<(String, String)>,
    /// Names of all columns in the order of the table; empty if it is time, tags, fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
}

/// Why a layout is invalid.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The text is not the expected JSON.
    #[error("the layout cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The layout has a later version.
    #[error("the layout has version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// The layout names an unknown type.
    #[error("the layout gives column '{column}' the unknown type '{kind}'")]
    Type {
        /// The column.
        column: String,
        /// The type.
        kind: String,
    },
}

impl ColumnLayout {
    /// The layout of a table with these columns.
    pub fn new(
        table: &str,
        time: &str,
        tags: impl IntoIterator<Item = (String, TagType)>,
        fields: impl IntoIterator<Item = (String, FieldType)>,
    ) -> Self {
        Self {
            version: VERSION,
            table: table.to_owned(),
            time: time.to_owned(),
            is_time_zoned: false,
            unit_ns: None,
            tags: tags
                .into_iter()
                .map(|(name, kind)| (name, kind.to_string()))
                .collect(),
            fields: fields
                .into_iter()
                .map(|(name, kind)| (name, kind.to_string()))
                .collect(),
            order: Vec::new(),
        }
    }

    /// The names of all columns: the time, the tags, the fields.
    #[must_use]
    pub fn column_names(&self) -> Vec<String> {
        let tags = self.tags.iter().map(|(name, _)| name);
        let fields = self.fields.iter().map(|(name, _)| name);
        let names = std::iter::once(&self.time).chain(tags).chain(fields);
        names.cloned().collect()
    }

    /// The same with the columns in this order.
    #[must_use]
    pub fn with_order(mut self, names: Vec<String>) -> Self {
        let tags = self.tags.iter().map(|(name, _)| name);
        let fields = self.fields.iter().map(|(name, _)| name);
        let by_role = std::iter::once(&self.time).chain(tags).chain(fields);
        self.order = if by_role.eq(&names) {
            Vec::new()
        } else {
            names
        };
        self
    }

    /// The same with the type [`ZONED`] for these columns, which must be times.
    #[must_use]
    pub fn with_zones<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        for column in columns {
            self.is_time_zoned |= column == self.time;
            let mut fields = self.fields.iter_mut();
            if let Some((_, kind)) = fields.find(|(name, _)| name == column) {
                ZONED.clone_into(kind);
            }
        }
        self
    }

    /// Whether a column is [`ZONED`].
    #[must_use]
    pub fn is_zoned(&self, column: &str) -> bool {
        let is_field = |(name, kind): &(String, String)| name == column && kind == ZONED;
        (self.is_time_zoned && column == self.time) || self.fields.iter().any(is_field)
    }

    /// Parses a line of JSON.
    ///
    /// # Errors
    /// If it is not a layout, or has a later version.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let layout: Self = serde_json::from_str(text)?;
        if layout.version > VERSION {
            return Err(LayoutError::Version(layout.version));
        }
        layout.tag_types()?;
        layout.field_types()?;
        Ok(layout)
    }

    /// Returns the layout as a line of JSON, without a line break.
    ///
    /// # Errors
    /// Never; JSON can hold every name.
    pub fn to_line(&self) -> Result<String, LayoutError> {
        Ok(serde_json::to_string(self)?)
    }

    /// Tags and their types.
    ///
    /// # Errors
    /// If the type is not one of a tag.
    pub fn tag_types(&self) -> Result<Vec<(String, TagType)>, LayoutError> {
        let types = [TagType::String, TagType::I64, TagType::Bool];
        let find = |name: &str| types.into_iter().find(|kind| kind.to_string() == name);
        typed(&self.tags, find)
    }

    /// Fields and their types.
    ///
    /// # Errors
    /// If the type is not one of a field.
    pub fn field_types(&self) -> Result<Vec<(String, FieldType)>, LayoutError> {
        let find = |name: &str| {
            let mut types = FieldType::ALL.into_iter();
            let stored = types.find(|kind| kind.to_string() == name);
            stored.or((name == ZONED).then_some(FieldType::Timestamp))
        };
        typed(&self.fields, find)
    }
}

fn typed<T>(
    columns: &[(String, String)],
    find: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(String, T)>, LayoutError> {
    let typed = columns.iter().map(|(column, kind)| match find(kind) {
        Some(found) => Ok((column.clone(), found)),
        None => Err(LayoutError::Type {
            column: column.clone(),
            kind: kind.clone(),
        }),
    });
    typed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_comes_back() {
        let fields = FieldType::ALL.map(|kind| (format!("f \"{kind}\""), kind));
        let layout = ColumnLayout::new("t\n", "ts", [("dev".into(), TagType::I64)], fields.clone());
        let line = layout.to_line().unwrap();
        assert!(!line.contains('\n'));
        let back = ColumnLayout::parse(&line).unwrap();
        assert_eq!(back, layout);
        assert_eq!(back.field_types().unwrap(), fields);
    }

    #[test]
    fn the_order_of_columns_stays() {
        let tags = [("dev".to_owned(), TagType::String)];
        let fields = [("v".to_owned(), FieldType::F64)];
        let layout = ColumnLayout::new("t", "ts", tags, fields);
        let order = |names: [&str; 3]| names.map(ToOwned::to_owned).to_vec();
        let plain = layout.clone().with_order(order(["ts", "dev", "v"]));
        assert!(!plain.to_line().unwrap().contains("order"));
        let mixed = layout.with_order(order(["v", "ts", "dev"]));
        let back = ColumnLayout::parse(&mixed.to_line().unwrap()).unwrap();
        assert_eq!(back.order, ["v", "ts", "dev"]);
    }

    #[test]
    fn times_with_a_zone_stay_such() {
        let fields = ["seen", "sent"].map(|name| (name.to_owned(), FieldType::Timestamp));
        let plain = ColumnLayout::new("t", "ts", [], fields.clone());
        assert!(!plain.to_line().unwrap().contains("zoned"));
        let zoned = plain.with_zones(["ts", "sent"]);
        let back = ColumnLayout::parse(&zoned.to_line().unwrap()).unwrap();
        let is_zoned = ["ts", "seen", "sent"].map(|name| back.is_zoned(name));
        assert_eq!(is_zoned, [true, false, true]);
        assert_eq!(back.field_types().unwrap(), fields);
    }

    #[test]
    fn what_is_no_layout_is_an_error() {
        assert!(ColumnLayout::parse("{}").is_err());
        let later = r#"{"version":9,"table":"t","time":"t","tags":[],"fields":[]}"#;
        assert!(matches!(
            ColumnLayout::parse(later),
            Err(LayoutError::Version(9))
        ));
        let odd = r#"{"version":1,"table":"t","time":"t","tags":[],"fields":[["a","ODD"]]}"#;
        assert!(ColumnLayout::parse(odd).is_err());
    }
}
