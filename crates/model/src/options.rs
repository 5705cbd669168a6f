//! Settings of tables and columns: how long rows are kept, and how segments store them.
//!
//! Invariant: a setting affects how new pages are written, but never how old ones are read.

use crate::ids::ColumnId;
use crate::time::DAY_NS;
use crate::types::FieldType;
use marigram_codec::{Compressor, Encoding, EncodingChoice, EncodingGoal};

/// How a field's values are stored; `None` leaves the choice to the table, and then to the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ColumnCodec {
    /// Encoding; must suit the field's type.
    pub encoding: Option<Encoding>,
    /// Compressor.
    pub compressor: Option<Compressor>,
}

impl ColumnCodec {
    /// Why a field of this type cannot have the codec, if so.
    #[must_use]
    pub fn objection(self, kind: FieldType) -> Option<String> {
        let encoding = self.encoding?;
        let suits = |encoding: &Encoding| encoding.suits(kind.value_type());
        if suits(&encoding) {
            return None;
        }
        let fit: Vec<&str> = Encoding::ALL
            .into_iter()
            .filter(suits)
            .map(Encoding::name)
            .collect();
        Some(format!(
            "encoding {} does not suit {kind}; these do: AUTO, {}",
            encoding.name(),
            fit.join(", ")
        ))
    }
}

/// How compaction re-encodes data that has become cold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColdCodec {
    /// As hot data.
    #[default]
    Same,
    /// As small as possible, unless the field's or the table's own codec says otherwise.
    Auto,
}

impl ColdCodec {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Same, Self::Auto];

    /// Name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Auto => "auto",
        }
    }
}

/// The key by which the index finds a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SeriesIdentity {
    /// Its tags themselves.
    #[default]
    Plain,
    /// Their SHA-256 digest.
    Sha256,
}

impl SeriesIdentity {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Sha256];

    /// Name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sha256 => "sha256",
        }
    }
}

/// A table's settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableOptions {
    /// Width of a partition, ns.
    pub partition_ns: i64,
    /// How long rows are kept, ns; `None` keeps them for ever.
    pub ttl_ns: Option<i64>,
    /// Page size, in bytes of 8-byte values. A page of any column has at most this number of bytes
    /// / 8 rows, because pages of all columns share their boundaries.
    pub page_bytes: u32,
    /// Encoding of the fields that it suits and that have none of their own; `None` chooses by
    /// content.
    pub encoding: Option<Encoding>,
    /// Compressor of the fields that have none of their own; `None` chooses by content.
    pub compressor: Option<Compressor>,
    /// How cold data is stored.
    pub cold_codec: ColdCodec,
    /// The key by which series are found; fixed when the table is created.
    pub identity: SeriesIdentity,
    /// Time columns that were declared `TIMESTAMPTZ`, ascending; [`ColumnId::TIME`] stands for the
    /// time column. They are stored like all times: as ns since 1970 in UTC.
    pub zoned: Vec<ColumnId>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            partition_ns: DAY_NS,
            ttl_ns: None,
            page_bytes: Self::PAGE_BYTES,
            encoding: None,
            compressor: None,
            cold_codec: ColdCodec::default(),
            identity: SeriesIdentity::default(),
            zoned: Vec::new(),
        }
    }
}

impl TableOptions {
    /// Default page size, bytes.
    pub const PAGE_BYTES: u32 = 64 << 10;

    /// How the values of a field are stored: with the field's own codec, or otherwise with the
    /// table's if it suits the type.
    #[must_use]
    pub fn codec_of(&self, kind: FieldType, own: ColumnCodec) -> ColumnCodec {
        let default = self
            .encoding
            .filter(|encoding| encoding.suits(kind.value_type()));
        ColumnCodec {
            encoding: own.encoding.or(default),
            compressor: own.compressor.or(self.compressor),
        }
    }

    /// The goal when encodings are chosen by content.
    #[must_use]
    pub fn goal(&self, cold: bool) -> EncodingGoal {
        if cold && self.cold_codec == ColdCodec::Auto {
            EncodingGoal::Small
        } else {
            EncodingGoal::Fast
        }
    }

    /// The choice for a field's pages; `cold` for data that is rewritten after it has become cold.
    #[must_use]
    pub fn choice_of(&self, kind: FieldType, own: ColumnCodec, cold: bool) -> EncodingChoice {
        let codec = self.codec_of(kind, own);
        EncodingChoice {
            encoding: codec.encoding,
            compressor: codec.compressor,
            goal: self.goal(cold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_encoding_goes_for_the_fields_that_it_suits() {
        let options = TableOptions {
            encoding: Some(Encoding::Delta),
            compressor: Some(Compressor::Zstd),
            cold_codec: ColdCodec::Auto,
            ..TableOptions::default()
        };
        let codec = |kind, own| options.codec_of(kind, own);
        let none = ColumnCodec::default();
        assert_eq!(codec(FieldType::I64, none).encoding, Some(Encoding::Delta));
        assert_eq!(codec(FieldType::F64, none).encoding, None);
        assert_eq!(
            codec(FieldType::F64, none).compressor,
            Some(Compressor::Zstd)
        );
        let own = ColumnCodec {
            encoding: Some(Encoding::Plain),
            compressor: Some(Compressor::Lz4),
        };
        assert_eq!(codec(FieldType::I64, own), own);
        assert_eq!(options.goal(false), EncodingGoal::Fast);
        assert_eq!(options.goal(true), EncodingGoal::Small);
        assert_eq!(TableOptions::default().goal(true), EncodingGoal::Fast);
    }

    #[test]
    fn an_encoding_that_does_not_suit_names_those_that_do() {
        let alp = ColumnCodec {
            encoding: Some(Encoding::Alp),
            compressor: None,
        };
        assert_eq!(alp.objection(FieldType::F32), None);
        let reason = alp.objection(FieldType::I32).unwrap();
        assert!(
            reason.starts_with("encoding ALP does not suit INT; these do: AUTO, PLAIN"),
            "{reason}"
        );
    }
}
