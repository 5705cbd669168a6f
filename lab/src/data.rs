//! Tables and rows in the form that every driver receives: columns of plain values.

use std::sync::Arc;

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;

/// Type of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// Text.
    Text,
    /// An integer; databases whose tags are text store its decimal form.
    Integer,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FieldKind {
    /// A boolean.
    Bool,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Text.
    Text,
}

/// A tag column.
#[derive(Clone, Debug)]
pub struct Tag {
    /// Name of the column.
    pub name: String,
    /// Its type.
    pub kind: TagKind,
}

impl Tag {
    /// The tag `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: TagKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// A field column.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name of the column.
    pub name: String,
    /// Its type.
    pub kind: FieldKind,
}

impl Field {
    /// The field `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// A table: its schema, and the tag values of every series that a study writes into it.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name; letters, digits and `_` only.
    pub name: String,
    /// Tag columns.
    pub tags: Vec<Tag>,
    /// Which of `tags` names a series on its own.
    pub key: usize,
    /// Field columns.
    pub fields: Vec<Field>,
    /// Tag values by series, in the order of `tags`; `None` if the device has no such tag.
    pub series: Arc<Vec<Vec<Option<String>>>>,
}

impl Table {
    /// A table of these columns, whose series are named by tag number `key` alone.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        tags: &[(&str, TagKind)],
        key: usize,
        fields: &[(&str, FieldKind)],
        series: Vec<Vec<Option<String>>>,
    ) -> Self {
        Self {
            name: name.into(),
            tags: tags
                .iter()
                .map(|(name, kind)| Tag::new(*name, *kind))
                .collect(),
            key,
            fields: fields
                .iter()
                .map(|(name, kind)| Field::new(*name, *kind))
                .collect(),
            series: Arc::new(series),
        }
    }

    /// The same table under `name` with `suffix` at its end.
    #[must_use]
    pub fn suffixed(&self, suffix: &str) -> Self {
        Self {
            name: format!("{}{suffix}", self.name),
            ..self.clone()
        }
    }
}

/// Values of one field, one for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Booleans.
    Bool(Vec<bool>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

impl Values {
    /// No values yet, of type `kind`.
    #[must_use]
    pub fn new(kind: FieldKind) -> Self {
        match kind {
            FieldKind::Bool => Self::Bool(Vec::new()),
            FieldKind::I32 => Self::I32(Vec::new()),
            FieldKind::I64 => Self::I64(Vec::new()),
            FieldKind::F32 => Self::F32(Vec::new()),
            FieldKind::F64 => Self::F64(Vec::new()),
            FieldKind::Text => Self::Text(Vec::new()),
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in `row`, true as 1; `None` for text.
    #[must_use]
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Self::Bool(values) => Some(f64::from(u8::from(values[row]))),
            Self::I32(values) => Some(f64::from(values[row])),
            Self::I64(values) => Some(values[row] as f64),
            Self::F32(values) => Some(f64::from(values[row])),
            Self::F64(values) => Some(values[row]),
            Self::Text(_) => None,
        }
    }
}

/// A field's values, and which of them are null.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// One value for each row; undefined if the row is null.
    pub values: Values,
    /// Whether each row has a value; `None` if all rows have one.
    pub present: Option<Vec<bool>>,
}

impl Column {
    /// A column without nulls.
    #[must_use]
    pub fn full(values: Values) -> Self {
        Self {
            values,
            present: None,
        }
    }

    /// Whether `row` has a value.
    #[must_use]
    pub fn is_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present[row])
    }
}

/// A batch of rows of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Index of the table among its source's tables.
    pub table: usize,
    /// Series of each row: an index into [`Table::series`].
    pub series: Vec<u32>,
    /// Time of each row, nanoseconds since the Unix epoch.
    pub times: Vec<i64>,
    /// One column for each field, in the order of [`Table::fields`].
    pub columns: Vec<Column>,
}

impl Rows {
    /// An empty batch for `table`, which is number `index` of its source.
    #[must_use]
    pub fn new(index: usize, table: &Table) -> Self {
        let column = |field: &Field| Column {
            values: Values::new(field.kind),
            present: None,
        };
        Self {
            table: index,
            series: Vec::new(),
            times: Vec::new(),
            columns: table.fields.iter().map(column).collect(),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Number of points: values that are not null.
    #[must_use]
    pub fn points(&self) -> u64 {
        let present = |column: &Column| match &column.present {
            None => column.values.len() as u64,
            Some(present) => present.iter().filter(|present| **present).count() as u64,
        };
        self.columns.iter().map(present).sum()
    }
}

/// Rows in the order in which one client sends them.
pub type Stream<'a> = Box<dyn Iterator<Item = Rows> + Send + 'a>;

/// Reproducible data: the same source generates the same rows on every machine, for any number of
/// clients.
pub trait Source: Send + Sync {
    /// The tables.
    fn tables(&self) -> &[Table];

    /// Number of rows that all clients send together, including repeated rows.
    fn rows(&self) -> u64;

    /// Whether a (series, time) may be sent more than once. All rows of one series and time have
    /// the same values, so their order does not matter.
    fn repeats(&self) -> bool {
        false
    }

    /// First time and the end (exclusive) of the times, nanoseconds.
    fn span_ns(&self) -> (i64, i64);

    /// The rows of client `client` of `clients`, in batches of `batch_rows` rows (the last batch of
    /// each table may be smaller). A series belongs to one client, so its rows have one order.
    /// Batches are in the order of time, with all devices of the client together.
    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_>;
}
