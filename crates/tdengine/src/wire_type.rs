//! The numbers of types, as binary messages have them.

use crate::types::TaosType;

/// The number of a type in answers and blocks.
#[must_use]
pub fn type_code(kind: TaosType) -> u8 {
    match kind {
        TaosType::Null => 0,
        TaosType::Bool => 1,
        TaosType::TinyInt => 2,
        TaosType::SmallInt => 3,
        TaosType::Int => 4,
        TaosType::BigInt => 5,
        TaosType::Float => 6,
        TaosType::Double => 7,
        TaosType::VarChar(_) => 8,
        TaosType::Timestamp => 9,
        TaosType::NChar(_) => 10,
        TaosType::UTinyInt => 11,
        TaosType::USmallInt => 12,
        TaosType::UInt => 13,
        TaosType::UBigInt => 14,
        TaosType::Json => 15,
        TaosType::VarBinary(_) => 16,
        TaosType::Geometry(_) => 20,
    }
}

/// How the values of a column are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireLayout {
    /// A byte, 0 or 1.
    Bool,
    /// An integer of so many bytes, little-endian.
    Integer {
        /// Bytes.
        bytes: usize,
        /// Whether it has a sign.
        is_signed: bool,
    },
    /// A 32-bit float.
    Float,
    /// A 64-bit float.
    Double,
    /// A time: 64 bits of ticks.
    Ticks,
    /// Text in UTF-8.
    Text,
    /// Text of 32-bit characters in blocks, and of UTF-8 in bound columns.
    WideText,
    /// Bytes.
    Bytes,
}

impl WireLayout {
    /// The layout of the type with a number; `None` for types that are not supported.
    #[must_use]
    pub fn of_code(code: u32) -> Option<Self> {
        let integer = |bytes, is_signed| Self::Integer { bytes, is_signed };
        Some(match code {
            1 => Self::Bool,
            2 => integer(1, true),
            3 => integer(2, true),
            4 => integer(4, true),
            5 => integer(8, true),
            6 => Self::Float,
            7 => Self::Double,
            8 | 15 => Self::Text,
            9 => Self::Ticks,
            10 => Self::WideText,
            11 => integer(1, false),
            12 => integer(2, false),
            13 => integer(4, false),
            14 => integer(8, false),
            16 | 20 => Self::Bytes,
            _ => return None,
        })
    }

    /// The layout of a type; that of NULL alone is a truth value.
    #[must_use]
    pub fn of_type(kind: TaosType) -> Self {
        Self::of_code(type_code(kind).into()).unwrap_or(Self::Bool)
    }

    /// Bytes of each value; `None` where values have lengths of their own.
    #[must_use]
    pub fn value_bytes(self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Integer { bytes, .. } => Some(bytes),
            Self::Float => Some(4),
            Self::Double | Self::Ticks => Some(8),
            Self::Text | Self::WideText | Self::Bytes => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_layouts_have_the_length_that_answers_tell() {
        let kinds = [
            TaosType::Bool,
            TaosType::TinyInt,
            TaosType::SmallInt,
            TaosType::Int,
            TaosType::BigInt,
            TaosType::UTinyInt,
            TaosType::USmallInt,
            TaosType::UInt,
            TaosType::UBigInt,
            TaosType::Float,
            TaosType::Double,
            TaosType::Timestamp,
        ];
        for kind in kinds {
            let bytes = WireLayout::of_type(kind).value_bytes().unwrap();
            assert_eq!(u32::try_from(bytes), Ok(kind.length()), "{kind:?}");
        }
        assert_eq!(WireLayout::of_type(TaosType::NChar(3)).value_bytes(), None);
        // DECIMAL and BLOB.
        assert_eq!(WireLayout::of_code(17), None);
        assert_eq!(WireLayout::of_code(18), None);
        assert_eq!(WireLayout::of_code(u32::MAX), None);
    }
}
