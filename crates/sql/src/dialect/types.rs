//! Column types by their names in PostgreSQL, DuckDB and IoTDB, and their Arrow schema.

use crate::error::{SqlError, SqlResult, nearest};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::sql::sqlparser::ast;
use marigram_functions::zoned::zoned_type;
use marigram_model::{ColumnId, FieldType, TableColumn, TableSchema, TagType};
use std::sync::Arc;

/// Key of a field's metadata that says whether a column is the time, a tag or a field.
pub const ROLE_KEY: &str = "marigram.role";

/// Names of types and their meanings. A name with two meanings in two databases has the narrower
/// one: `FLOAT` is 32 bits wide, as in DuckDB and IoTDB.
const NAMES: &[(FieldType, &[&str])] = &[
    (FieldType::Bool, &["BOOLEAN", "BOOL"]),
    (
        FieldType::I32,
        &[
            "INT",
            "INTEGER",
            "INT4",
            "INT32",
            "SMALLINT",
            "INT2",
            "INT16",
            "TINYINT",
            "MEDIUMINT",
            "SIGNED",
            "DATE32",
        ],
    ),
    (
        FieldType::I64,
        &[
            "BIGINT",
            "INT8",
            "INT64",
            "LONG",
            "UINT8",
            "UINT16",
            "UINT32",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "INT UNSIGNED",
            "INTEGER UNSIGNED",
            "INT4 UNSIGNED",
        ],
    ),
    (
        FieldType::U64,
        &[
            "BIGINT UNSIGNED",
            "UBIGINT",
            "UINT64",
            "INT8 UNSIGNED",
            "UNSIGNED",
        ],
    ),
    (FieldType::F32, &["REAL", "FLOAT4", "FLOAT32"]),
    (
        FieldType::F64,
        &[
            "DOUBLE",
            "DOUBLE PRECISION",
            "FLOAT",
            "FLOAT8",
            "FLOAT64",
            "NUMERIC",
            "DECIMAL",
        ],
    ),
    (
        FieldType::String,
        &[
            "STRING",
            "TEXT",
            "VARCHAR",
            "CHARACTER VARYING",
            "CHAR",
            "CHARACTER",
            "NVARCHAR",
            "NCHAR",
            "BPCHAR",
            "JSON",
            "JSONB",
            "UUID",
            "SYMBOL",
        ],
    ),
    (
        FieldType::Bytes,
        &["BYTES", "BYTEA", "BLOB", "BINARY", "VARBINARY"],
    ),
    (
        FieldType::Timestamp,
        &[
            "TIMESTAMP",
            "TIMESTAMP WITHOUT TIME ZONE",
            "TIMESTAMP WITH TIME ZONE",
            "TIMESTAMPTZ",
            "DATETIME",
            "TIMESTAMP_NS",
        ],
    ),
];

/// The type of a field column.
///
/// # Errors
/// If no field can have it.
pub(crate) fn field_type(column: &str, written: &ast::DataType) -> SqlResult<FieldType> {
    let text = written.to_string().to_uppercase();
    if matches!(written, ast::DataType::Float(_)) && !is_wide_float(written) {
        return Ok(FieldType::F32);
    }
    if let Some(digits) = numeric_digits(written)
        && digits.is_none_or(|digits| digits > DOUBLE_DIGITS)
    {
        let message = format!(
            "column '{column}': no field type holds {written} exactly; DOUBLE PRECISION holds \
             {DOUBLE_DIGITS} digits, as NUMERIC({DOUBLE_DIGITS}, …) does, BIGINT whole numbers up to \
             9223372036854775807, and TEXT every number as it is written"
        );
        return Err(SqlError::named("0A000", column, message));
    }
    let base = match (text.find('('), text.rfind(')')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &text[..open], &text[close + 1..])
        }
        _ => text,
    };
    let found = NAMES.iter().find(|(_, names)| names.contains(&base.trim()));
    found.map(|(kind, _)| *kind).ok_or_else(|| {
        let names = NAMES.iter().flat_map(|(_, names)| names.iter().copied());
        // A word of other databases that means days as numbers is no help to who wants dates.
        let names = names.filter(|name| *name != "DATE32");
        if ["DATE", "TIME"].contains(&base.trim()) {
            let message = format!(
                "column '{column}': no field has the type {}; TIMESTAMP holds a date with its time of \
                 day, BIGINT a number of days or seconds, and TEXT anything",
                base.trim()
            );
            return SqlError::named("42704", column, message);
        }
        let hint = nearest(&base, names).map(|near| format!("; did you mean {near}?"));
        let hint = hint.unwrap_or_else(|| ".".to_owned());
        let message = format!(
            "column '{column}': there is no type {written}{hint} Fields are BOOLEAN, \
              INT, BIGINT, BIGINT UNSIGNED, REAL, DOUBLE, STRING, BYTES or TIMESTAMP"
        );
        SqlError::named("42704", column, message)
    })
}

/// Up to this many bits of precision, a FLOAT has four bytes.
const FLOAT4_BITS_MAX: u64 = 24;

/// Whether a type is FLOAT with eight bytes, as it has without a precision.
pub(crate) fn is_wide_float(written: &ast::DataType) -> bool {
    match written {
        ast::DataType::Float(ast::ExactNumberInfo::Precision(bits)) => *bits > FLOAT4_BITS_MAX,
        ast::DataType::Float(_) => true,
        _ => false,
    }
}

/// The number of digits that a double holds exactly.
const DOUBLE_DIGITS: u64 = 15;

/// The precision of a NUMERIC, which may be unlimited; `None` for other types.
#[expect(
    clippy::option_option,
    reason = "another type, any precision, and a given precision are three different things"
)]
fn numeric_digits(written: &ast::DataType) -> Option<Option<u64>> {
    let (ast::DataType::Numeric(digits)
    | ast::DataType::Decimal(digits)
    | ast::DataType::Dec(digits)) = written
    else {
        return None;
    };
    Some(match digits {
        ast::ExactNumberInfo::None => None,
        ast::ExactNumberInfo::Precision(digits)
        | ast::ExactNumberInfo::PrecisionAndScale(digits, _) => Some(*digits),
    })
}

/// The type of a tag column.
///
/// # Errors
/// If no tag can have it.
pub(crate) fn tag_type(column: &str, written: &ast::DataType) -> SqlResult<TagType> {
    match field_type(column, written)? {
        FieldType::String => Ok(TagType::String),
        FieldType::I32 | FieldType::I64 => Ok(TagType::I64),
        FieldType::Bool => Ok(TagType::Bool),
        _ => {
            let message =
                format!("column '{column}': a tag is STRING, BIGINT or BOOLEAN, not {written}");
            Err(SqlError::named("42804", column, message))
        }
    }
}

/// The Arrow type of a tag column in query results: text becomes a dictionary.
pub(crate) fn tag_data_type(kind: TagType) -> DataType {
    match kind {
        TagType::String => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        TagType::I64 => DataType::Int64,
        TagType::Bool => DataType::Boolean,
    }
}

/// The Arrow type of time columns.
pub(crate) fn time_data_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, None)
}

/// The Arrow type of the time column or a field.
fn column_type(schema: &TableSchema, id: ColumnId) -> DataType {
    if schema.options.zoned.contains(&id) {
        return zoned_type();
    }
    let field = schema.field_by_id(id);
    field.map_or_else(time_data_type, |field| field.kind.data_type())
}

/// Whether a type, as written, is a time with a zone.
pub(crate) fn is_zoned(written: &ast::DataType) -> bool {
    use ast::TimezoneInfo::{Tz, WithTimeZone};
    matches!(written, ast::DataType::Timestamp(_, Tz | WithTimeZone))
}

fn with_role(field: Field, role: &str) -> Field {
    field.with_metadata([(ROLE_KEY.to_owned(), role.to_owned())].into())
}

/// A table's schema in Arrow, in the order of its columns.
pub fn arrow_schema(schema: &TableSchema) -> SchemaRef {
    let column = |column| {
        let name = schema.name_of(column)?;
        Some(match column {
            TableColumn::Time => {
                let kind = column_type(schema, ColumnId::TIME);
                with_role(Field::new(name, kind, false), "time")
            }
            TableColumn::Tag(ordinal) => {
                let tag = schema.tags.get(usize::from(ordinal))?;
                with_role(Field::new(name, tag_data_type(tag.kind), true), "tag")
            }
            TableColumn::Field(id) => {
                with_role(Field::new(name, column_type(schema, id), true), "field")
            }
        })
    };
    Arc::new(Schema::new(
        schema.columns().filter_map(column).collect::<Vec<_>>(),
    ))
}

/// A table's tags in Arrow.
pub(crate) fn tag_fields(schema: &TableSchema) -> Vec<Field> {
    let tags = schema.tags.iter();
    tags.map(|tag| with_role(Field::new(&tag.name, tag_data_type(tag.kind), true), "tag"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn read(text: &str) -> SqlResult<FieldType> {
        let dialect = PostgreSqlDialect {};
        let mut parser = Parser::new(&dialect).try_with_sql(text)?;
        field_type("c", &parser.parse_data_type()?)
    }

    #[test]
    fn every_name_is_read_by_the_parser() {
        for (kind, names) in NAMES {
            for name in *names {
                let digits = match *name {
                    "NUMERIC" | "DECIMAL" => "(15, 3)",
                    _ => "",
                };
                assert_eq!(read(&format!("{name}{digits}")).ok(), Some(*kind), "{name}");
            }
        }
    }

    #[test]
    fn lengths_do_not_matter_and_other_types_are_refused() {
        assert_eq!(read("varchar(20)").ok(), Some(FieldType::String));
        assert_eq!(read("timestamp(3)").ok(), Some(FieldType::Timestamp));
        assert_eq!(
            read("timestamp(3) with time zone").ok(),
            Some(FieldType::Timestamp)
        );
        assert_eq!(read("float(53)").ok(), Some(FieldType::F64));
        assert!(read("point").is_err());
        assert!(read("int[]").is_err());
        assert_eq!(read("decimal(15)").ok(), Some(FieldType::F64));
        for inexact in [
            "numeric",
            "decimal",
            "dec",
            "numeric(16)",
            "decimal(38, 10)",
        ] {
            assert!(read(inexact).is_err(), "{inexact}");
        }
    }
}
