//! The types of columns: their names, and the lengths that an answer tells.

use std::fmt;

/// Longest text or bytes of a column, in its unit (bytes, or characters of NCHAR).
const LENGTH_MAX: u32 = 65_517;

/// The length that an answer tells for JSON.
const JSON_BYTES: u32 = 4095;

/// A type of TDengine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaosType {
    /// Of `NULL` alone.
    Null,
    /// Truth value.
    Bool,
    /// 8-bit integer.
    TinyInt,
    /// 16-bit integer.
    SmallInt,
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    BigInt,
    /// 8-bit integer without sign.
    UTinyInt,
    /// 16-bit integer without sign.
    USmallInt,
    /// 32-bit integer without sign.
    UInt,
    /// 64-bit integer without sign.
    UBigInt,
    /// 32-bit float.
    Float,
    /// 64-bit float.
    Double,
    /// A time in the precision of the database.
    Timestamp,
    /// Text of at most so many bytes; `BINARY` is the same type.
    VarChar(u32),
    /// Text of at most so many characters.
    NChar(u32),
    /// A JSON object, of a tag.
    Json,
    /// At most so many bytes.
    VarBinary(u32),
    /// A geometry, of at most so many bytes.
    Geometry(u32),
}

impl TaosType {
    /// The type that a word names, with its length where the type has one.
    #[must_use]
    pub fn from_word(word: &str, is_unsigned: bool, length: Option<u32>) -> Option<Self> {
        let lower = word.to_ascii_lowercase();
        let plain = match (lower.as_str(), is_unsigned) {
            ("bool", false) => Self::Bool,
            ("tinyint", false) => Self::TinyInt,
            ("smallint", false) => Self::SmallInt,
            ("int" | "integer", false) => Self::Int,
            ("bigint", false) => Self::BigInt,
            ("tinyint", true) => Self::UTinyInt,
            ("smallint", true) => Self::USmallInt,
            ("int" | "integer", true) => Self::UInt,
            ("bigint", true) => Self::UBigInt,
            ("float", false) => Self::Float,
            ("double", false) => Self::Double,
            ("timestamp", false) => Self::Timestamp,
            ("json", false) => Self::Json,
            ("varchar" | "binary", false) => return Self::sized(length?, Self::VarChar),
            ("nchar", false) => return Self::sized(length?, Self::NChar),
            ("varbinary", false) => return Self::sized(length?, Self::VarBinary),
            ("geometry", false) => return Self::sized(length?, Self::Geometry),
            _ => return None,
        };
        // INT(11) is no type.
        length.is_none().then_some(plain)
    }

    fn sized(length: u32, make: fn(u32) -> Self) -> Option<Self> {
        (1..=LENGTH_MAX).contains(&length).then(|| make(length))
    }

    /// The type that its own text names: `INT UNSIGNED`, `VARCHAR(64)`.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        if text == "NULL" {
            return Some(Self::Null);
        }
        if let Some((word, rest)) = text.split_once('(') {
            let length = rest.strip_suffix(')')?.parse().ok()?;
            return Self::from_word(word, false, Some(length));
        }
        match text.strip_suffix(" UNSIGNED") {
            Some(word) => Self::from_word(word, true, None),
            None => Self::from_word(text, false, None),
        }
    }

    /// The name, without a length.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Bool => "BOOL",
            Self::TinyInt => "TINYINT",
            Self::SmallInt => "SMALLINT",
            Self::Int => "INT",
            Self::BigInt => "BIGINT",
            Self::UTinyInt => "TINYINT UNSIGNED",
            Self::USmallInt => "SMALLINT UNSIGNED",
            Self::UInt => "INT UNSIGNED",
            Self::UBigInt => "BIGINT UNSIGNED",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Timestamp => "TIMESTAMP",
            Self::VarChar(_) => "VARCHAR",
            Self::NChar(_) => "NCHAR",
            Self::Json => "JSON",
            Self::VarBinary(_) => "VARBINARY",
            Self::Geometry(_) => "GEOMETRY",
        }
    }

    /// The length that an answer tells.
    #[must_use]
    pub fn length(self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Bool | Self::TinyInt | Self::UTinyInt => 1,
            Self::SmallInt | Self::USmallInt => 2,
            Self::Int | Self::UInt | Self::Float => 4,
            Self::BigInt | Self::UBigInt | Self::Double | Self::Timestamp => 8,
            Self::Json => JSON_BYTES,
            Self::VarChar(length)
            | Self::NChar(length)
            | Self::VarBinary(length)
            | Self::Geometry(length) => length,
        }
    }

    /// Whether it is an integer.
    #[must_use]
    pub fn is_integer(self) -> bool {
        self.integer_range().is_some()
    }

    /// Whether it is an integer or a float.
    #[must_use]
    pub fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Self::Float | Self::Double)
    }

    /// Whether it is text.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::VarChar(_) | Self::NChar(_) | Self::Json)
    }

    /// The smallest and the greatest value of an integer.
    #[must_use]
    pub fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::TinyInt => (i8::MIN.into(), i8::MAX.into()),
            Self::SmallInt => (i16::MIN.into(), i16::MAX.into()),
            Self::Int => (i32::MIN.into(), i32::MAX.into()),
            Self::BigInt => (i64::MIN.into(), i64::MAX.into()),
            Self::UTinyInt => (0, u8::MAX.into()),
            Self::USmallInt => (0, u16::MAX.into()),
            Self::UInt => (0, u32::MAX.into()),
            Self::UBigInt => (0, u64::MAX.into()),
            _ => return None,
        })
    }
}

impl fmt::Display for TaosType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VarChar(length)
            | Self::NChar(length)
            | Self::VarBinary(length)
            | Self::Geometry(length) => write!(out, "{}({length})", self.name()),
            _ => out.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_and_read_as_themselves() {
        let all = [
            TaosType::Null,
            TaosType::Bool,
            TaosType::TinyInt,
            TaosType::UBigInt,
            TaosType::Double,
            TaosType::Timestamp,
            TaosType::VarChar(64),
            TaosType::NChar(10),
            TaosType::Json,
            TaosType::Geometry(100),
        ];
        for kind in all {
            assert_eq!(TaosType::from_text(&kind.to_string()), Some(kind), "{kind}");
        }
        let binary = TaosType::from_word("BINARY", false, Some(16));
        assert_eq!(binary, Some(TaosType::VarChar(16)));
        assert_eq!(TaosType::from_word("varchar", false, None), None);
        assert_eq!(TaosType::from_word("varchar", false, Some(0)), None);
        assert_eq!(TaosType::from_word("int", false, Some(4)), None);
        assert_eq!(TaosType::from_word("float", true, None), None);
        assert_eq!(TaosType::NChar(20).length(), 20);
        assert_eq!(TaosType::UTinyInt.integer_range(), Some((0, 255)));
    }
}
