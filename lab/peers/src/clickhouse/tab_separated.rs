//! `TabSeparated`: answers as text, a line for each row; `\N` is null, a backslash escapes.

use anyhow::{Context, Result, ensure};
use marigram_lab::question::{Answer, Cell};
use marigram_lab_drivers::cells::{self, CellKind};
use std::borrow::Cow;

/// The rows of `bytes`, whose columns are `kinds`. Fails on anything else: a server that fails halfway
/// sends its error message instead of a row.
pub(super) fn decode(bytes: &[u8], kinds: &[CellKind]) -> Result<Answer> {
    let text = std::str::from_utf8(bytes).context("an answer in UTF-8")?;
    let row = |line: &str| {
        let columns = line.split('\t').count();
        ensure!(columns == kinds.len(), "{columns} columns in {line:?}");
        let cells = line.split('\t').zip(kinds);
        cells.map(|(text, kind)| cell(text, *kind)).collect()
    };
    let rows = text.lines().map(row).collect::<Result<_>>()?;
    Ok(Answer { rows })
}

fn cell(text: &str, kind: CellKind) -> Result<Cell> {
    if text == "\\N" {
        return Ok(Cell::Null);
    }
    cells::parse(&unescaped(text), kind)
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let unescaped = match character {
            '\\' => characters.next().map(|escaped| match escaped {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                other => other,
            }),
            other => Some(other),
        };
        out.extend(unescaped);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_kind() {
        let text =
            b"a\\tb\\'\\\\\t2024-01-01T00:00:00.000000001Z\t1.5\n\\N\t1970-01-01 00:00:00\ttrue\n";
        let kinds = [CellKind::Text, CellKind::Time, CellKind::Number];
        let answer = decode(text, &kinds).expect("rows");
        let time = 1_704_067_200_000_000_001;
        assert_eq!(
            answer.rows,
            [
                vec![
                    Cell::Text("a\tb'\\".to_owned()),
                    Cell::Time(time),
                    Cell::Number(1.5)
                ],
                vec![Cell::Null, Cell::Time(0), Cell::Number(1.0)],
            ]
        );
    }

    #[test]
    fn an_error_in_the_place_of_rows_is_an_error() {
        let text = b"1\nCode: 241. DB::Exception: Memory limit exceeded\n";
        let error = decode(text, &[CellKind::Number]).expect_err("no number");
        assert!(format!("{error:#}").contains("Memory limit"), "{error:#}");
    }
}
