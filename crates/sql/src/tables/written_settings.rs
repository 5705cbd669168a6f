//! The settings of a table as a statement writes them.

use crate::dialect::settings::format_size;
use marigram_functions::duration::format_ns;
use marigram_model::{ColdCodec, SeriesIdentity, TableOptions, TableSchema};

/// How long a table keeps its rows.
pub(crate) fn ttl(table: &TableSchema) -> String {
    table
        .options
        .ttl_ns
        .map_or_else(|| "none".to_owned(), format_ns)
}

/// Settings as users write them: the two that every table has, and those that differ from the
/// default.
pub(crate) fn settings(schema: &TableSchema) -> Vec<String> {
    let TableOptions {
        partition_ns,
        ttl_ns: _,
        page_bytes,
        encoding,
        compressor,
        cold_codec,
        identity,
        zoned: _,
    } = schema.options;
    let mut settings = vec![
        format!("ttl = '{}'", ttl(schema)),
        format!("partition = '{}'", format_ns(partition_ns)),
    ];
    if page_bytes != TableOptions::PAGE_BYTES {
        settings.push(format!("page_size = '{}'", format_size(page_bytes)));
    }
    if let Some(encoding) = encoding {
        settings.push(format!("encoding = '{}'", encoding.name()));
    }
    if let Some(compressor) = compressor {
        settings.push(format!("compression = '{}'", compressor.name()));
    }
    if cold_codec != ColdCodec::default() {
        settings.push(format!("cold_codec = '{}'", cold_codec.name()));
    }
    if identity != SeriesIdentity::default() {
        settings.push(format!("series_identity = '{}'", identity.name()));
    }
    settings
}
