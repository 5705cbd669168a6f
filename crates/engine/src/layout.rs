//! The layout of a table's rows in new segments, derived from its settings, those of its fields,
//! and whether the rows are cold.

use marigram_codec::EncodingChoice;
use marigram_model::{ColumnCodec, TableSchema};
use marigram_segment::{SegmentColumn, TableLayout};

/// The layout of `columns` of a table; `cold` for rows that are rewritten after they have become
/// cold.
pub(crate) fn layout_of(
    schema: &TableSchema,
    columns: &[SegmentColumn],
    cold: bool,
) -> TableLayout {
    let options = &schema.options;
    let choice = |column: &SegmentColumn| {
        let field = schema.field_by_id(column.id);
        // A field that another version of the schema added has no codec of its own yet.
        let own = field.map_or_else(ColumnCodec::default, |field| field.codec);
        options.choice_of(column.kind, own, cold)
    };
    TableLayout {
        page_bytes: options.page_bytes,
        time: EncodingChoice {
            goal: options.goal(cold),
            ..EncodingChoice::default()
        },
        columns: columns.iter().map(choice).collect(),
    }
}
