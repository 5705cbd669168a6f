//! The report as one self-contained HTML page: no script, no font, no other file.

use super::document::{Block, CellMark, Line, Plot, RowKind, Table, TableCell, Tone, put};
use super::plot::GREYS;

/// The page.
#[must_use]
pub(super) fn page(title: &str, blocks: &[Block]) -> String {
    let mut page = String::new();
    let [text, axis, mesh] = GREYS;
    // The greys of the plots follow the page's colours.
    let greys = format!(
        "figure svg [fill=\"{text}\"]{{fill:var(--soft)}}\
         figure svg [stroke=\"{text}\"]{{stroke:var(--soft)}}\
         figure svg [stroke=\"{axis}\"]{{stroke:var(--line)}}\
         figure svg [stroke=\"{mesh}\"]{{stroke:var(--mesh)}}"
    );
    put(
        &mut page,
        format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>\n{}{greys}\n</style>\n</head>\n<body>\n",
            escape(title),
            include_str!("style.css"),
        ),
    );
    contents(&mut page, blocks);
    page.push_str("<main>\n");
    for block in blocks {
        show(&mut page, block);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// Text, escaped for HTML.
#[must_use]
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn contents(page: &mut String, blocks: &[Block]) {
    page.push_str(
        "<nav aria-label=\"Contents\">\n<details open><summary>Contents</summary>\n<ul>\n",
    );
    for block in blocks {
        if let Block::Heading { level: 2, text, id } = block {
            put(
                page,
                format_args!("<li><a href=\"#{id}\">{}</a></li>\n", escape(text)),
            );
        }
    }
    page.push_str("</ul>\n</details>\n</nav>\n");
}

fn show(page: &mut String, block: &Block) {
    match block {
        Block::Heading { level, text, id } => {
            put(
                page,
                format_args!("<h{level} id=\"{id}\">{}</h{level}>\n", escape(text)),
            );
        }
        Block::Text(text) => put(page, format_args!("<p>{}</p>\n", escape(text))),
        Block::Finding(text) => {
            put(
                page,
                format_args!("<p class=\"finding\">{}</p>\n", escape(text)),
            );
        }
        Block::Note(text) => put(
            page,
            format_args!("<p class=\"note\">{}</p>\n", escape(text)),
        ),
        Block::List(lines) => {
            page.push_str("<ul class=\"lines\">\n");
            for line in lines {
                item(page, line);
            }
            page.push_str("</ul>\n");
        }
        Block::Table(table) => show_table(page, table),
        Block::Plot(plot) => show_plot(page, plot),
        Block::Folded { summary, blocks } => {
            put(
                page,
                format_args!("<details><summary>{}</summary>\n", escape(summary)),
            );
            for block in blocks {
                show(page, block);
            }
            page.push_str("</details>\n");
        }
    }
}

fn item(page: &mut String, line: &Line) {
    put(
        page,
        format_args!("<li><strong>{}</strong>", escape(&line.lead)),
    );
    for (index, (tone, phrase)) in line.phrases.iter().enumerate() {
        let class = match tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Plain => "plain",
        };
        let before = if index == 0 { " " } else { "; " };
        let phrase = escape(phrase);
        put(
            page,
            format_args!("{before}<span class=\"{class}\">{phrase}</span>"),
        );
    }
    page.push_str("</li>\n");
}

fn show_plot(page: &mut String, plot: &Plot) {
    let alt = escape(&plot.alt);
    // The drawing never shrinks below its own size: on a small screen, it scrolls.
    let svg = plot.svg.replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{alt}\" "),
        1,
    );
    put(
        page,
        format_args!(
            "<figure><div class=\"scroll\">{svg}</div><figcaption>{alt}</figcaption></figure>\n"
        ),
    );
}

fn show_table(page: &mut String, table: &Table) {
    let class = if table.prose { " class=\"prose\"" } else { "" };
    put(page, format_args!("<div class=\"scroll\"><table{class}>\n"));
    put(
        page,
        format_args!("<caption>{}</caption>\n<thead><tr>", escape(&table.caption)),
    );
    for head in &table.head {
        put(
            page,
            format_args!("<th scope=\"col\">{}</th>", escape(head)),
        );
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        page.push_str(match row.kind {
            RowKind::Ours => "<tr>",
            RowKind::Client => "<tr class=\"client\">",
            RowKind::Published => "<tr class=\"published\">",
        });
        let (heading, note) = &row.heading;
        let note = mark_of(*note);
        put(
            page,
            format_args!("<th scope=\"row\">{}{note}</th>", escape(heading)),
        );
        for cell in &row.cells {
            show_cell(page, cell);
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    if !table.notes.is_empty() {
        page.push_str("<ol class=\"notes\">\n");
        for note in &table.notes {
            put(page, format_args!("<li>{}</li>\n", escape(note)));
        }
        page.push_str("</ol>\n");
    }
}

fn mark_of(note: Option<usize>) -> String {
    note.map_or(String::new(), |note| format!("<sup>{note}</sup>"))
}

fn show_cell(page: &mut String, cell: &TableCell) {
    let class = match cell.mark {
        CellMark::None => "",
        CellMark::Best => " class=\"best\"",
        CellMark::Wrong => " class=\"wrong\"",
        CellMark::Absent => " class=\"absent\"",
    };
    put(
        page,
        format_args!("<td{class}>{}{}", escape(&cell.text), mark_of(cell.note)),
    );
    if !cell.detail.is_empty() {
        put(
            page,
            format_args!(" <small>{}</small>", escape(&cell.detail)),
        );
    }
    page.push_str("</td>");
}
