//! The types of reference tables' columns by their names in PostgreSQL, and by those of types of series.

use crate::dialect::types::is_wide_float;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};
use marigram_reference::ReferenceType;

/// The digits of a NUMERIC without a precision, in all and behind the point, as everywhere in Marigram.
const NUMERIC: (u8, i8) = (38, 10);
/// The most digits of a NUMERIC.
const DIGITS_MAX: u64 = 38;
/// The most characters of a VARCHAR or CHAR, PostgreSQL's limit.
const LENGTH_MAX: u64 = 10_485_760;

/// A type as a column declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeclaredType {
    /// The type.
    pub kind: ReferenceType,
    /// Whether it is SERIAL or one of its kin, so that the table numbers its rows.
    pub is_serial: bool,
}

/// The type of a column.
///
/// # Errors
/// 0A000 if reference tables do not have it, 22023 if its length or precision is too large.
pub(super) fn declared_type(column: &str, written: &DataType) -> SqlResult<DeclaredType> {
    let kind = match written {
        DataType::Bool | DataType::Boolean => ReferenceType::Bool,
        DataType::SmallInt(_) | DataType::Int2(_) | DataType::Int16 | DataType::TinyInt(_) => {
            ReferenceType::Int2
        }
        DataType::Int(_)
        | DataType::Integer(_)
        | DataType::Int4(_)
        | DataType::Int32
        | DataType::MediumInt(_) => ReferenceType::Int4,
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 => ReferenceType::Int8,
        DataType::Float(_) if is_wide_float(written) => ReferenceType::Float8,
        DataType::Real | DataType::Float(_) | DataType::Float4 | DataType::Float32 => {
            ReferenceType::Float4
        }
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float64 => {
            ReferenceType::Float8
        }
        DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
            numeric(column, *digits)?
        }
        DataType::Text | DataType::String(_) => ReferenceType::Text,
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Nvarchar(length) => match length {
            None | Some(CharacterLength::Max) => ReferenceType::Text,
            Some(CharacterLength::IntegerLength { length, .. }) => {
                ReferenceType::Varchar(characters(column, *length)?)
            }
        },
        DataType::Char(length) | DataType::Character(length) => match length {
            None => ReferenceType::Char(1),
            Some(CharacterLength::Max) => return Err(refused(column, written)),
            Some(CharacterLength::IntegerLength { length, .. }) => {
                ReferenceType::Char(characters(column, *length)?)
            }
        },
        DataType::Bytea | DataType::Bytes(_) | DataType::Blob(_) => ReferenceType::Bytea,
        DataType::Date => ReferenceType::Date,
        DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            ReferenceType::Time
        }
        DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            ReferenceType::TimestampTz
        }
        DataType::Timestamp(..) | DataType::Datetime(_) => ReferenceType::Timestamp,
        DataType::Interval { fields: None, .. } => ReferenceType::Interval,
        DataType::Uuid => ReferenceType::Uuid,
        DataType::JSON => ReferenceType::Json,
        DataType::JSONB => ReferenceType::Jsonb,
        DataType::Custom(name, _) => {
            return named(name).ok_or_else(|| refused(column, written));
        }
        _ => return Err(refused(column, written)),
    };
    Ok(DeclaredType {
        kind,
        is_serial: false,
    })
}

/// Whether a type is SERIAL or one of its kin.
pub(super) fn is_serial(written: &DataType) -> bool {
    matches!(written, DataType::Custom(name, _) if named(name).is_some_and(|found| found.is_serial))
}

/// The types whose names sqlparser does not know.
fn named(name: &ObjectName) -> Option<DeclaredType> {
    let name = name.0.last()?.as_ident()?.value.to_lowercase();
    let (kind, is_serial) = match name.as_str() {
        "smallserial" | "serial2" => (ReferenceType::Int2, true),
        "serial" | "serial4" => (ReferenceType::Int4, true),
        "bigserial" | "serial8" => (ReferenceType::Int8, true),
        "timestamp_ns" => (ReferenceType::Timestamp, false),
        _ => return None,
    };
    Some(DeclaredType { kind, is_serial })
}

fn numeric(column: &str, digits: ExactNumberInfo) -> SqlResult<ReferenceType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => {
            let (precision, scale) = NUMERIC;
            return Ok(ReferenceType::Numeric { precision, scale });
        }
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let is_scale = |scale: &i8| *scale >= 0 && u64::from(scale.unsigned_abs()) <= precision;
    let scale = i8::try_from(scale).ok().filter(is_scale);
    let in_range = (1..=DIGITS_MAX).contains(&precision);
    match (u8::try_from(precision), scale) {
        (Ok(precision), Some(scale)) if in_range => Ok(ReferenceType::Numeric { precision, scale }),
        _ => {
            let message = format!(
                "column '{column}': NUMERIC has 1 to {DIGITS_MAX} digits, of which 0 to all stand behind \
                 the point"
            );
            Err(SqlError::named("22023", column, message))
        }
    }
}

fn characters(column: &str, length: u64) -> SqlResult<u32> {
    let in_range = (1..=LENGTH_MAX).contains(&length);
    u32::try_from(length)
        .ok()
        .filter(|_| in_range)
        .ok_or_else(|| {
            let message = format!("column '{column}': a length is 1 to {LENGTH_MAX} characters");
            SqlError::named("22023", column, message)
        })
}

fn refused(column: &str, written: &DataType) -> SqlError {
    let message = match written {
        DataType::Array(_) => {
            format!("column '{column}': arrays are not supported; JSONB holds a list")
        }
        _ => format!(
            "column '{column}': reference tables have no type {written}; they have BOOLEAN, SMALLINT, INT, \
             BIGINT, REAL, DOUBLE PRECISION, NUMERIC, TEXT, VARCHAR(n), CHAR(n), BYTEA, DATE, TIME, \
             TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSON and JSONB"
        ),
    };
    SqlError::named("0A000", column, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::grammar::MarigramDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn read(text: &str) -> SqlResult<DeclaredType> {
        let mut parser = Parser::new(&MarigramDialect).try_with_sql(text)?;
        declared_type("c", &parser.parse_data_type()?)
    }

    #[test]
    fn types_have_their_names_in_postgresql() {
        for (text, expected) in [
            ("bool", "boolean"),
            ("smallint", "smallint"),
            ("int2", "smallint"),
            ("int", "integer"),
            ("integer", "integer"),
            ("int4", "integer"),
            ("bigint", "bigint"),
            ("int8", "bigint"),
            ("real", "real"),
            ("float4", "real"),
            ("float(24)", "real"),
            ("float", "double precision"),
            ("float8", "double precision"),
            ("double precision", "double precision"),
            ("double", "double precision"),
            ("numeric", "numeric(38,10)"),
            ("decimal(5)", "numeric(5,0)"),
            ("numeric(10, 2)", "numeric(10,2)"),
            ("numeric(38, 38)", "numeric(38,38)"),
            ("text", "text"),
            ("string", "text"),
            ("varchar", "text"),
            ("character varying", "text"),
            ("character varying(20)", "character varying(20)"),
            ("varchar(3)", "character varying(3)"),
            ("char", "character(1)"),
            ("character(8)", "character(8)"),
            ("bytea", "bytea"),
            ("date", "date"),
            ("time", "time without time zone"),
            ("time(3) without time zone", "time without time zone"),
            ("timestamp(6)", "timestamp without time zone"),
            ("timestamptz", "timestamp with time zone"),
            ("timestamp with time zone", "timestamp with time zone"),
            ("interval", "interval"),
            ("uuid", "uuid"),
            ("json", "json"),
            ("jsonb", "jsonb"),
        ] {
            let found = read(text).unwrap();
            assert_eq!(found.kind.to_string(), expected, "{text}");
            assert!(!found.is_serial, "{text}");
        }
    }

    #[test]
    fn serial_types_number_rows() {
        for (text, expected) in [
            ("smallserial", ReferenceType::Int2),
            ("SERIAL", ReferenceType::Int4),
            ("serial4", ReferenceType::Int4),
            ("bigserial", ReferenceType::Int8),
        ] {
            let found = read(text).unwrap();
            assert_eq!((found.kind, found.is_serial), (expected, true), "{text}");
        }
    }

    #[test]
    fn other_types_are_refused_with_those_that_there_are() {
        for (text, sqlstate, words) in [
            ("int[]", "0A000", "JSONB holds a list"),
            ("text[][]", "0A000", "JSONB holds a list"),
            ("citext", "0A000", "they have BOOLEAN"),
            ("point", "0A000", "no type"),
            ("time with time zone", "0A000", "no type"),
            ("bigint unsigned", "0A000", "no type"),
            ("numeric(39)", "22023", "1 to 38 digits"),
            ("numeric(0)", "22023", "1 to 38 digits"),
            ("numeric(4, 5)", "22023", "1 to 38 digits"),
            ("numeric(4, -1)", "22023", "1 to 38 digits"),
            ("varchar(0)", "22023", "characters"),
            ("char(99999999)", "22023", "characters"),
        ] {
            let error = read(text).expect_err(text).into_service(text);
            assert_eq!(error.sqlstate(), sqlstate, "{text}: {error}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }
}
