//! Checks a schema from a client before Arrow reads it, which would panic on some.
//!
//! Only flat columns are taken: those that a table or a parameter can have.

use super::arrow_message_error::ArrowMessageError;
use arrow_ipc::{Field, Precision, Schema, TimeUnit, Type};

/// Columns of a schema.
const COLUMNS_MAX: usize = 10_000;

/// Checks that Arrow can read a schema, and that its columns are flat.
pub(super) fn check_schema(schema: Schema<'_>) -> Result<(), ArrowMessageError> {
    let Some(fields) = schema.fields() else {
        return Err(ArrowMessageError::Malformed("the schema has no columns"));
    };
    if fields.len() > COLUMNS_MAX {
        return Err(ArrowMessageError::TooLarge {
            what: "columns",
            limit: COLUMNS_MAX,
        });
    }
    if schema.endianness() != arrow_ipc::Endianness::Little {
        return Err(ArrowMessageError::Malformed("the values are big-endian"));
    }
    fields.iter().try_for_each(check_field)
}

fn check_field(field: Field<'_>) -> Result<(), ArrowMessageError> {
    let unsupported = |name: &str| ArrowMessageError::Type {
        column: name.to_owned(),
        kind: field.type_type().variant_name().unwrap_or("unknown"),
    };
    let Some(name) = field.name() else {
        return Err(ArrowMessageError::Malformed("a column has no name"));
    };
    if field
        .children()
        .is_some_and(|children| !children.is_empty())
    {
        return Err(unsupported(name));
    }
    let is_width = |width: i32| matches!(width, 8 | 16 | 32 | 64);
    if let Some(dictionary) = field.dictionary() {
        let is_read = dictionary
            .indexType()
            .is_some_and(|index| is_width(index.bitWidth()));
        if !is_read {
            return Err(ArrowMessageError::Malformed(
                "the index of a dictionary has no width",
            ));
        }
    }
    let is_read = match field.type_type() {
        // A parameter that is NULL, of a client that knows no type for it.
        Type::Null => field.dictionary().is_none(),
        Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8 => true,
        Type::Int => field
            .type_as_int()
            .is_some_and(|int| is_width(int.bitWidth())),
        Type::FloatingPoint => field.type_as_floating_point().is_some_and(|float| {
            matches!(
                float.precision(),
                Precision::HALF | Precision::SINGLE | Precision::DOUBLE
            )
        }),
        Type::Date => field.type_as_date().is_some_and(|date| {
            matches!(
                date.unit(),
                arrow_ipc::DateUnit::DAY | arrow_ipc::DateUnit::MILLISECOND
            )
        }),
        Type::Timestamp => field.type_as_timestamp().is_some_and(|time| {
            matches!(
                time.unit(),
                TimeUnit::SECOND
                    | TimeUnit::MILLISECOND
                    | TimeUnit::MICROSECOND
                    | TimeUnit::NANOSECOND
            )
        }),
        _ => false,
    };
    if is_read {
        Ok(())
    } else {
        Err(unsupported(name))
    }
}
