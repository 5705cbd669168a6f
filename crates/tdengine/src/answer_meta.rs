//! What the columns of an answer tell about themselves on the way from the planner to a listener.

use crate::types::TaosType;

/// The key in a field's metadata of the text of its type.
pub const TYPE_KEY: &str = "tdengine.type";

/// The key in a schema's metadata of the precision of its times: `ms`, `us` or `ns`.
pub const PRECISION_KEY: &str = "tdengine.precision";

/// The text of a type.
#[must_use]
pub fn type_meta(kind: TaosType) -> String {
    kind.to_string()
}

/// The type of such a text.
#[must_use]
pub fn type_of_meta(text: &str) -> Option<TaosType> {
    TaosType::from_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_travel_as_text() {
        let kinds = [
            TaosType::Null,
            TaosType::Bool,
            TaosType::UTinyInt,
            TaosType::UBigInt,
            TaosType::Float,
            TaosType::Timestamp,
            TaosType::VarChar(16),
            TaosType::NChar(8),
            TaosType::Json,
            TaosType::VarBinary(7),
        ];
        for kind in kinds {
            assert_eq!(type_of_meta(&type_meta(kind)), Some(kind), "{kind:?}");
        }
        assert_eq!(type_of_meta("INT(11)"), None);
    }
}
