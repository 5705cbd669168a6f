//! SQL names: quoting them, and reading them from answers.

use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;

/// A name for SQL, quoted if necessary.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The texts of the first column whose name is in `names`; of the first column if there is none.
pub fn texts(batches: &[RecordBatch], names: &[&str]) -> Vec<String> {
    let mut texts = Vec::new();
    for batch in batches {
        let named = names.iter().find_map(|name| batch.column_by_name(name));
        let Some(column) = named.or_else(|| batch.columns().first()) else {
            continue;
        };
        let shown = (0..column.len()).filter_map(|row| array_value_to_string(column, row).ok());
        texts.extend(shown);
    }
    texts
}

/// A name for SQL, always quoted.
pub fn always_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
