//! Reads line protocol in blocks of whole lines.

use super::source::ImportSource;
use super::{ParsedBatch, Precision, ReadPlanOptions};
use crate::line_comments;
use anyhow::{Context, Result, bail};
use arrow::array::StringArray;
use marigram_model::{BatchTag, WriteBatch};
use marigram_protocol::lines;
use marigram_tabular::encoding::{self, Utf8};
use marigram_tabular::layout::{COMMENT, ColumnLayout};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// Approximate size of a block, in bytes.
const BLOCK_BYTES: usize = 2 << 20;

/// Reads a file and passes its rows to `send`, until `send` returns false.
pub(super) fn read(
    mut source: impl Read,
    reading: &ReadPlanOptions,
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let options = &reading.options;
    let layout = reading.layout.as_ref();
    let precision = match options.precision {
        Some(Precision::S) => lines::Precision::Seconds,
        Some(Precision::Ms) => lines::Precision::Milliseconds,
        Some(Precision::Us) => lines::Precision::Microseconds,
        Some(Precision::Ns) | None => lines::Precision::Nanoseconds,
    };
    // A block has fewer lines than bytes, so every refused line is named.
    let limits = lines::LineLimits {
        errors_max: usize::MAX,
        ..lines::LineLimits::default()
    };
    let mut block = Vec::new();
    let mut lines_before = 0;
    loop {
        let read = source
            .by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut block)
            .context("cannot be read further")?;
        let end = if read == 0 {
            Some(block.len())
        } else {
            last_line_end(&block)
        };
        // The line is longer than a block: read more of it.
        let Some(end) = end else { continue };
        if end > 0 {
            let parsed = lines::parse(&block[..end], precision, reading.now_ns, limits);
            let line = |line: u64| lines_before + line;
            let bad = parsed
                .errors
                .into_iter()
                .map(|bad| (line(u64::from(bad.line)), bad.reason));
            let numbers = parsed.lines.iter().map(|lines| {
                lines
                    .iter()
                    .map(|number| line(u64::from(*number)))
                    .collect()
            });
            let mut item = ParsedBatch {
                bad: bad.collect(),
                lines: numbers.collect(),
                batches: parsed.batches,
                empty: 0,
            };
            if let Some(layout) = layout {
                let types = line_comments::ColumnTypes::from_layout(layout)?;
                let beyond = line_comments::read(&block[..end], lines_before);
                item.batches.extend(beyond.batches);
                item.lines.extend(beyond.lines);
                item.bad.extend(beyond.bad);
                for batch in &mut item.batches {
                    types.apply(batch);
                }
            }
            for batch in &mut item.batches {
                if let Err(error) = add_constant_tags(batch, &reading.constant_tags) {
                    send(Err(error));
                    return Ok(());
                }
            }
            if let Some(table) = &options.table {
                for batch in item
                    .batches
                    .iter_mut()
                    .filter(|b| layout.is_some_and(|l| b.table == l.table))
                {
                    batch.table.clone_from(table);
                }
            }
            lines_before += block[..end].iter().filter(|byte| **byte == b'\n').count() as u64;
            if !send(Ok(item)) {
                return Ok(());
            }
        }
        block.drain(..end);
        if read == 0 {
            return Ok(());
        }
    }
}

/// Adds the tags that are the same in all rows.
fn add_constant_tags(batch: &mut WriteBatch, tags: &[(String, String)]) -> Result<()> {
    for (name, value) in tags {
        let is_tag = batch.tags.iter().any(|tag| tag.name == *name);
        if is_tag || batch.fields.iter().any(|field| field.name == *name) {
            bail!(
                "the lines of table '{}' have a column '{name}' themselves; give the tag another name than \
                 --tag {name}=…",
                batch.table
            );
        }
        let values = std::iter::repeat_n(value, batch.slot_count);
        batch.tags.push(BatchTag {
            name: name.clone(),
            values: Arc::new(StringArray::from_iter_values(values)),
        });
    }
    Ok(())
}

/// The layout in the comment with which an export begins, in the encoding that is `told`; by default UTF-8,
/// or UTF-16 if the first bytes say so.
pub(super) fn layout(mut source: ImportSource, told: Option<&str>) -> Result<Option<ColumnLayout>> {
    let encoding = match told.and_then(encoding::named) {
        Some(told) => told,
        None => encoding::of_export(source.fill_buf()?),
    };
    let mut line = Vec::new();
    BufReader::new(Utf8::new(source, encoding))
        .take(LAYOUT_BYTES_MAX)
        .read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    match text.trim_end().strip_prefix(COMMENT) {
        Some(json) => Ok(Some(ColumnLayout::parse(json)?)),
        None => Ok(None),
    }
}

/// Bytes of the longest first line that can be a layout.
const LAYOUT_BYTES_MAX: u64 = 16 << 20;

/// Length of the whole lines at the start of a block. A newline inside a quoted value does not end
/// a line. A quote that is not part of a value could mislead the search, so the search only checks
/// whether the quotes before a newline are paired.
fn last_line_end(block: &[u8]) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    let mut end = None;
    for (at, byte) in block.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'\n' if !quoted => end = Some(at + 1),
            _ => {}
        }
    }
    // An unpaired quote must not hold back the rest of the file.
    end.or_else(|| {
        let too_long = block.len() > 4 * BLOCK_BYTES;
        too_long
            .then(|| {
                block
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map(|at| at + 1)
            })
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn lines_are_numbered_over_all_blocks() {
        let good = "weather,station=north temp=4.5 1\n";
        let half = BLOCK_BYTES / good.len() + 10;
        let mut text = good.repeat(half);
        text.push_str("nonsense\n");
        text.push_str(&good.repeat(half));
        text.push_str(good.trim_end());
        let parsed = RefCell::new(Vec::new());
        let reading = super::super::csv_rows::tests::reading(super::super::ReadOptions::default());
        read(text.as_bytes(), &reading, &|item| {
            parsed.borrow_mut().push(item.unwrap());
            true
        })
        .unwrap();
        let parsed = parsed.into_inner();
        let bad: Vec<u64> = parsed
            .iter()
            .flat_map(|item| item.bad.iter().map(|(line, _)| *line))
            .collect();
        assert_eq!(bad, [half as u64 + 1]);
        let rows: usize = parsed
            .iter()
            .flat_map(|item| &item.batches)
            .map(WriteBatch::len)
            .sum();
        assert_eq!(rows, 2 * half + 1);
        let last = parsed.last().unwrap().lines.last().unwrap().last().unwrap();
        assert_eq!(*last, 2 * half as u64 + 2);
    }

    #[test]
    fn newlines_in_quotes_do_not_cut() {
        assert_eq!(last_line_end(b"a b=1\nc d=\"x\ny"), Some(6));
        assert_eq!(last_line_end(b"a b=\"x\ny\"\nz"), Some(10));
        assert_eq!(last_line_end(b"a b="), None);
    }
}
