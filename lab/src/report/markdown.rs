//! The report as GitHub's Markdown with plots in files, so that it can be stored with the sources.

use super::document::{Block, CellMark, Line, RowKind, Table, TableCell, put};

/// The document; its plots are in `svg`, a folder next to it.
#[must_use]
pub(super) fn document(blocks: &[Block], svg: &str) -> String {
    let mut text = String::new();
    for block in blocks {
        show(&mut text, block, svg);
    }
    text
}

/// Text, escaped for Markdown.
#[must_use]
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '|' | '~' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            // A line break would end a table or a heading.
            '\n' | '\r' => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn show(text: &mut String, block: &Block, svg: &str) {
    match block {
        Block::Heading {
            level,
            text: heading,
            ..
        } => {
            let marks = "#".repeat(usize::from(*level));
            put(text, format_args!("{marks} {}\n\n", escape(heading)));
        }
        Block::Text(paragraph) => put(text, format_args!("{}\n\n", escape(paragraph))),
        Block::Finding(finding) => put(text, format_args!("**{}**\n\n", escape(finding))),
        Block::Note(note) => put(text, format_args!("> **Note:** {}\n\n", escape(note))),
        Block::List(lines) => {
            for line in lines {
                item(text, line);
            }
            text.push('\n');
        }
        Block::Table(table) => show_table(text, table),
        Block::Plot(plot) => {
            let alt = escape(&plot.alt);
            put(text, format_args!("![{alt}]({svg}/{}.svg)\n\n", plot.name));
        }
        Block::Folded { summary, blocks } => {
            let summary = super::html::escape(summary);
            put(
                text,
                format_args!("<details><summary>{summary}</summary>\n\n"),
            );
            for block in blocks {
                show(text, block, svg);
            }
            text.push_str("</details>\n\n");
        }
    }
}

fn item(text: &mut String, line: &Line) {
    let phrases: Vec<String> = line
        .phrases
        .iter()
        .map(|(_, phrase)| escape(phrase))
        .collect();
    let item = format!("- **{}** {}", escape(&line.lead), phrases.join("; "));
    put(text, format_args!("{}\n", item.trim_end()));
}

fn show_table(text: &mut String, table: &Table) {
    put(text, format_args!("{}\n\n", escape(&table.caption)));
    let heads: Vec<String> = table.head.iter().map(|head| escape(head)).collect();
    put(text, format_args!("| {} |\n|---|", heads.join(" | ")));
    let column = if table.prose { "---|" } else { "---:|" };
    text.push_str(&column.repeat(table.head.len().saturating_sub(1)));
    text.push('\n');
    for row in &table.rows {
        let heading = format!("{}{}", escape(&row.heading.0), note(row.heading.1));
        let heading = match row.kind {
            RowKind::Ours => heading,
            RowKind::Client | RowKind::Published => format!("*{heading}*"),
        };
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        put(
            text,
            format_args!("| {heading} | {} |\n", cells.join(" | ")),
        );
    }
    text.push('\n');
    for (index, note) in table.notes.iter().enumerate() {
        put(text, format_args!("{}. {}\n", index + 1, escape(note)));
    }
    if !table.notes.is_empty() {
        text.push('\n');
    }
}

fn note(note: Option<usize>) -> String {
    note.map_or(String::new(), |note| format!("<sup>{note}</sup>"))
}

fn cell(cell: &TableCell) -> String {
    let figure = match cell.mark {
        CellMark::Best | CellMark::Wrong => format!("**{}**", escape(&cell.text)),
        CellMark::None | CellMark::Absent => escape(&cell.text),
    };
    let shown = format!("{figure}{} {}", note(cell.note), escape(&cell.detail));
    shown.trim_end().to_owned()
}
