//! Maps Arrow types to PostgreSQL types.
//!
//! The metadata of catalogue columns marks those that are an `oid` or one of its aliases
//! (`pg.oid_alias`), or a `"char"` (`pg.char`); these marks come from the crate `arrow-pg`. Arrays may be an
//! `int2vector` or an `oidvector` (`pg.vector`), and texts a `uuid`, `json` or `jsonb` ([`PG_TYPE_KEY`]); these
//! marks are our own.

use crate::postgres::error::PgError;
use crate::postgres::messages::RowDescriptionColumn;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use marigram_service::PG_TYPE_KEY;

/// A PostgreSQL type; its number is its OID (`pg_type.dat` in PostgreSQL's source).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum PgType {
    Bool = 16,
    Bytea = 17,
    Char = 18,
    Name = 19,
    Int8 = 20,
    Int2 = 21,
    Int4 = 23,
    Regproc = 24,
    Text = 25,
    Oid = 26,
    Json = 114,
    Float4 = 700,
    Float8 = 701,
    Unknown = 705,
    Bpchar = 1042,
    Varchar = 1043,
    Date = 1082,
    Time = 1083,
    Timestamp = 1114,
    Timestamptz = 1184,
    Interval = 1186,
    Numeric = 1700,
    Regprocedure = 2202,
    Regoper = 2203,
    Regoperator = 2204,
    Regclass = 2205,
    Regtype = 2206,
    Uuid = 2950,
    Regconfig = 3734,
    Regdictionary = 3769,
    Jsonb = 3802,
    Regnamespace = 4089,
    Regrole = 4096,
    Regcollation = 4191,
}

impl PgType {
    /// Types that a client may name for a parameter.
    const PARAMETERS: [Self; 23] = [
        Self::Bool,
        Self::Bytea,
        Self::Char,
        Self::Name,
        Self::Int8,
        Self::Int2,
        Self::Int4,
        Self::Text,
        Self::Oid,
        Self::Json,
        Self::Float4,
        Self::Float8,
        Self::Unknown,
        Self::Bpchar,
        Self::Varchar,
        Self::Date,
        Self::Time,
        Self::Timestamp,
        Self::Timestamptz,
        Self::Interval,
        Self::Numeric,
        Self::Uuid,
        Self::Jsonb,
    ];

    /// Its OID.
    pub(super) fn oid(self) -> u32 {
        self as u32
    }

    /// The type with this OID, if a parameter may have it.
    pub(super) fn from_oid(oid: u32) -> Option<Self> {
        Self::PARAMETERS.into_iter().find(|kind| kind.oid() == oid)
    }

    /// Array types: the element type and the OID.
    const ARRAYS: [(Self, u32); 25] = [
        (Self::Bool, 1000),
        (Self::Bytea, 1001),
        (Self::Char, 1002),
        (Self::Name, 1003),
        (Self::Int2, 1005),
        (Self::Int4, 1007),
        (Self::Regproc, 1008),
        (Self::Text, 1009),
        (Self::Bpchar, 1014),
        (Self::Varchar, 1015),
        (Self::Int8, 1016),
        (Self::Float4, 1021),
        (Self::Float8, 1022),
        (Self::Oid, 1028),
        (Self::Timestamp, 1115),
        (Self::Date, 1182),
        (Self::Time, 1183),
        (Self::Timestamptz, 1185),
        (Self::Interval, 1187),
        (Self::Numeric, 1231),
        (Self::Regclass, 2210),
        (Self::Regtype, 2211),
        (Self::Uuid, 2951),
        (Self::Json, 199),
        (Self::Jsonb, 3807),
    ];

    /// OID of the array type with elements of this type.
    fn array_oid(self) -> u32 {
        let found = Self::ARRAYS.iter().find(|(element, _)| *element == self);
        found.map_or(1009, |(_, oid)| *oid)
    }

    /// The element type of the array type with this OID.
    pub(super) fn element_of(oid: u32) -> Option<Self> {
        let found = Self::ARRAYS.iter().find(|(_, array)| *array == oid);
        found.map(|(element, _)| *element)
    }

    /// Bytes of a value; -1 if they vary.
    fn size(self) -> i16 {
        match self {
            Self::Bool | Self::Char => 1,
            Self::Int2 => 2,
            Self::Int8 | Self::Float8 | Self::Timestamp | Self::Timestamptz | Self::Time => 8,
            Self::Interval | Self::Uuid => 16,
            Self::Name => 64,
            Self::Text
            | Self::Varchar
            | Self::Bpchar
            | Self::Bytea
            | Self::Numeric
            | Self::Json
            | Self::Jsonb => -1,
            _ => 4,
        }
    }
}

/// The PostgreSQL type of values of this Arrow type. Types without an equivalent are sent as text.
pub(super) fn pg_type(kind: &DataType) -> PgType {
    match kind {
        DataType::Boolean => PgType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => PgType::Int2,
        DataType::Int32 | DataType::UInt16 => PgType::Int4,
        DataType::Int64 | DataType::UInt32 => PgType::Int8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => PgType::Numeric,
        DataType::Float16 | DataType::Float32 => PgType::Float4,
        DataType::Float64 => PgType::Float8,
        DataType::Timestamp(_, None) => PgType::Timestamp,
        DataType::Timestamp(_, Some(_)) => PgType::Timestamptz,
        DataType::Date32 | DataType::Date64 => PgType::Date,
        DataType::Time32(_) | DataType::Time64(_) => PgType::Time,
        DataType::Interval(_) | DataType::Duration(_) => PgType::Interval,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => PgType::Bytea,
        DataType::Dictionary(_, values) => pg_type(values),
        _ => PgType::Text,
    }
}

/// The elements of a list that is an array to PostgreSQL, which a list of lists or of rows is not.
pub(super) fn element(kind: &DataType) -> Option<&Field> {
    match kind {
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _)
            if !inner.data_type().is_nested() =>
        {
            Some(inner)
        }
        _ => None,
    }
}

/// OID of the PostgreSQL type of this Arrow type.
pub(super) fn type_oid(kind: &DataType) -> u32 {
    match element(kind) {
        Some(inner) => pg_type(inner.data_type()).array_oid(),
        None => pg_type(kind).oid(),
    }
}

/// The type that the metadata of a field names.
fn alias(field: &Field) -> Option<PgType> {
    match field.metadata().get("pg.oid_alias").map(String::as_str) {
        Some("oid") => Some(PgType::Oid),
        Some("regproc") => Some(PgType::Regproc),
        Some("regprocedure") => Some(PgType::Regprocedure),
        Some("regoper") => Some(PgType::Regoper),
        Some("regoperator") => Some(PgType::Regoperator),
        Some("regclass") => Some(PgType::Regclass),
        Some("regtype") => Some(PgType::Regtype),
        Some("regnamespace") => Some(PgType::Regnamespace),
        Some("regrole") => Some(PgType::Regrole),
        Some("regconfig") => Some(PgType::Regconfig),
        Some("regdictionary") => Some(PgType::Regdictionary),
        Some("regcollation") => Some(PgType::Regcollation),
        _ if field.metadata().contains_key("pg.char") => Some(PgType::Char),
        _ => text_type(field),
    }
}

/// The type that is a text for Marigram, and another one for PostgreSQL.
fn text_type(field: &Field) -> Option<PgType> {
    match field.metadata().get(PG_TYPE_KEY)?.as_str() {
        "uuid" => Some(PgType::Uuid),
        "json" => Some(PgType::Json),
        "jsonb" => Some(PgType::Jsonb),
        _ => None,
    }
}

/// The OID of `int2vector`, and that of `oidvector`.
const VECTORS: [u32; 2] = [22, 30];

/// Whether a column has the type of a vector.
pub(super) fn is_vector(oid: u32) -> bool {
    VECTORS.contains(&oid)
}

/// The OID of a column of arrays that are vectors.
fn vector_oid(field: &Field) -> Option<u32> {
    let [small, oid] = VECTORS;
    match field.metadata().get("pg.vector")?.as_str() {
        "int2vector" => Some(small),
        "oidvector" => Some(oid),
        _ => None,
    }
}

/// OID and size of a column's type.
pub(super) fn column_type(field: &Field) -> (u32, i16) {
    if let Some(inner) = element(field.data_type()) {
        if let Some(oid) = vector_oid(field) {
            return (oid, -1);
        }
        let kind = alias(inner).or_else(|| alias(field));
        let kind = kind.unwrap_or_else(|| pg_type(inner.data_type()));
        return (kind.array_oid(), -1);
    }
    let kind = alias(field).unwrap_or_else(|| pg_type(field.data_type()));
    (kind.oid(), kind.size())
}

/// The columns of an answer, in text or in binary as `formats` says (see
/// [`Bind`](crate::postgres::messages::BindMessage)).
pub(super) fn columns(schema: &Schema, formats: &[i16]) -> Vec<RowDescriptionColumn> {
    let fields = schema.fields().iter().enumerate();
    fields
        .map(|(at, field)| {
            let (oid, size) = column_type(field);
            RowDescriptionColumn {
                name: field.name().clone(),
                oid,
                size,
                binary: is_binary(formats, at),
            }
        })
        .collect()
}

/// Whether value `at` is in binary under a list of formats: an empty list means text, and a single
/// format applies to all.
pub(super) fn is_binary(formats: &[i16], at: usize) -> bool {
    match formats {
        [] => false,
        [all] => *all == 1,
        each => each.get(at) == Some(&1),
    }
}

/// The Arrow type of a parameter with this OID, if the statement does not determine it. A numeric
/// has none: its text is exact, and a double would not be.
pub(super) fn arrow_type(oid: u32) -> Option<DataType> {
    if let Some(element) = PgType::element_of(oid) {
        let inner = arrow_type(element.oid()).unwrap_or(DataType::Utf8);
        return Some(DataType::new_list(inner, true));
    }
    let kind = PgType::from_oid(oid)?;
    Some(match kind {
        PgType::Bool => DataType::Boolean,
        PgType::Int2 => DataType::Int16,
        PgType::Int4 | PgType::Oid => DataType::Int32,
        PgType::Int8 => DataType::Int64,
        PgType::Float4 => DataType::Float32,
        PgType::Float8 => DataType::Float64,
        PgType::Bytea => DataType::Binary,
        PgType::Date => DataType::Date32,
        PgType::Timestamp | PgType::Timestamptz => DataType::Timestamp(TimeUnit::Nanosecond, None),
        _ => return None,
    })
}

/// The OID of a type by its SQL name in lower case; array types end in `[]`.
///
/// # Errors
/// If there is no such type.
pub(super) fn oid_of_name(name: &str) -> Result<u32, PgError> {
    let trimmed = name.trim();
    let (base, is_array) = match trimmed.strip_suffix("[]") {
        Some(base) => (base.trim_end(), true),
        None => (trimmed, false),
    };
    // A length or a precision does not affect a parameter.
    let base = match (base.find('('), base.rfind(')')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", base[..open].trim_end(), &base[close + 1..])
        }
        _ => base.to_owned(),
    };
    let kind = match base.strip_prefix("pg_catalog.").unwrap_or(&base) {
        "bool" | "boolean" => PgType::Bool,
        "bytea" | "bytes" => PgType::Bytea,
        "int2" | "smallint" => PgType::Int2,
        "int4" | "int" | "integer" => PgType::Int4,
        "int8" | "bigint" => PgType::Int8,
        "text" | "string" => PgType::Text,
        "varchar" | "character varying" => PgType::Varchar,
        "bpchar" | "char" | "character" => PgType::Bpchar,
        "name" => PgType::Name,
        "oid" => PgType::Oid,
        "json" => PgType::Json,
        "float4" | "real" => PgType::Float4,
        "float8" | "float" | "double" | "double precision" => PgType::Float8,
        "numeric" | "decimal" => PgType::Numeric,
        "date" => PgType::Date,
        "time" | "time without time zone" => PgType::Time,
        "timestamp" | "timestamp without time zone" => PgType::Timestamp,
        "timestamptz" | "timestamp with time zone" => PgType::Timestamptz,
        "interval" => PgType::Interval,
        "uuid" => PgType::Uuid,
        "jsonb" => PgType::Jsonb,
        "unknown" => return Ok(0),
        _ => {
            let message = format!("type \"{trimmed}\" does not exist");
            return Err(PgError::new("42704", message));
        }
    };
    Ok(if is_array {
        kind.array_oid()
    } else {
        kind.oid()
    })
}
