//! The report as a list of blocks, which are written as HTML and as Markdown with the same
//! contents.

use std::fmt::{self, Write};

/// The tone of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Marigram is ahead.
    Good,
    /// Marigram is behind, or something went wrong.
    Bad,
    /// Neither.
    Plain,
}

/// A part of the report.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// A heading.
    Heading {
        /// 1 is the report's title.
        level: u8,
        /// Its text.
        text: String,
        /// Anchor, unique; letters, digits and `-`.
        id: String,
    },
    /// A paragraph.
    Text(String),
    /// A computed sentence about the figures next to it.
    Finding(String),
    /// A warning that the reader must see.
    Note(String),
    /// A list.
    List(Vec<Line>),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
    /// Details for some readers, hidden until opened.
    Folded {
        /// What it is.
        summary: String,
        /// What is hidden.
        blocks: Vec<Block>,
    },
}

/// A line of a list.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its subject, emphasized.
    pub lead: String,
    /// Its statements, separated by semicolons.
    pub phrases: Vec<(Tone, String)>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// Name of its CSV file, without ending; unique.
    pub name: String,
    /// What its figures are.
    pub caption: String,
    /// Whether its cells are words, which may wrap, instead of figures.
    pub prose: bool,
    /// Headings of the columns; the first belongs to the row headings.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<TableRow>,
    /// Footnotes; [`TableCell::note`] counts them from 1.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct TableRow {
    /// What it is about.
    pub kind: RowKind,
    /// Heading; its note, as in [`TableCell::note`].
    pub heading: (String, Option<usize>),
    /// Cells, one per column after the first.
    pub cells: Vec<TableCell>,
}

/// What a row of a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A target of this run.
    Ours,
    /// The client's own cost, which is not ranked.
    Client,
    /// Published figures, from other hardware.
    Published,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TableCell {
    /// The figure, or a word in its place.
    pub text: String,
    /// Follows it, less prominent: the interval, the second figure.
    pub detail: String,
    /// Its emphasis.
    pub mark: CellMark,
    /// Footnote, from 1.
    pub note: Option<usize>,
}

/// The emphasis of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CellMark {
    /// None.
    #[default]
    None,
    /// The best, or not distinguishable from the best.
    Best,
    /// No figure, because something is wrong.
    Wrong,
    /// No figure, for a reason.
    Absent,
}

/// A plot.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// Name of its file, without ending; unique.
    pub name: String,
    /// What it shows, in words.
    pub alt: String,
    /// The drawing.
    pub svg: String,
}

impl TableCell {
    /// A cell with only `text`.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl Table {
    /// The number of footnote `note`; adds it unless the table has it.
    pub(super) fn note(&mut self, note: String) -> usize {
        if let Some(index) = self.notes.iter().position(|own| *own == note) {
            return index + 1;
        }
        self.notes.push(note);
        self.notes.len()
    }

    /// Adds a row of one target.
    pub(super) fn push(&mut self, heading: impl Into<String>, cells: Vec<TableCell>) {
        self.rows.push(TableRow {
            kind: RowKind::Ours,
            heading: (heading.into(), None),
            cells,
        });
    }
}

impl Block {
    /// A heading with an anchor made from `id`.
    pub(super) fn heading(level: u8, text: impl Into<String>, id: &str) -> Self {
        Self::Heading {
            level,
            text: text.into(),
            id: slug(id),
        }
    }
}

/// Adds `more` to `text`.
pub(super) fn put(text: &mut String, more: fmt::Arguments) {
    text.write_fmt(more)
        .expect("writing to a string cannot fail");
}

/// `text` as an anchor or the name of a file: lower-case letters, digits and single hyphens.
#[must_use]
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_safe_as_names_of_files() {
        assert_eq!(slug("Rows / s <b> über ../x"), "rows-s-b-ber-x");
        assert_eq!(slug("…"), "");
    }

    #[test]
    fn equal_notes_share_a_number() {
        let mut table = Table::default();
        assert_eq!(table.note("a".to_owned()), 1);
        assert_eq!(table.note("b".to_owned()), 2);
        assert_eq!(table.note("a".to_owned()), 1);
    }
}
