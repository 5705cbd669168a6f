//! Makes a report of what [`crate::run`] stored: one HTML page, Markdown with plots, and CSV.
//!
//! From below to above: `statistics`, `number` and `names` (leaves), `document` (blocks of
//! text, tables, plots), `load` (reads the folder), `crosscheck` (answers compared between
//! targets), `series` (figures arranged by view), `sentences`, `standing` and `rules` (sentences),
//! `table`, `plot` and `picture`, `latencies`, `resources`, `problems`, `head`,
//! `section`, and `html`, `markdown`, `csv`, which write. Everything between reading and
//! writing is a pure function of what was read.

mod crosscheck;
mod csv;
mod document;
mod head;
mod html;
mod latencies;
mod load;
mod markdown;
mod names;
mod number;
mod picture;
mod plot;
mod problems;
mod resources;
mod rules;
mod section;
mod sentences;
mod series;
mod standing;
mod statistics;
mod table;
#[cfg(test)]
mod tests;

use crate::study::Study;
use anyhow::{Context, Result};
use document::{Block, Plot, Table};
use load::{Lab, StudyRuns};
use series::ArrangedView;
use std::fs;
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Clone, Debug)]
pub struct WrittenReport {
    /// The page.
    pub html: PathBuf,
    /// The Markdown document; its plots are in `svg` next to it.
    pub markdown: PathBuf,
    /// Folder of the CSV files.
    pub csv: PathBuf,
    /// Where Marigram stands, as sentences: the count of comparisons, one line per view, one line
    /// per rule.
    pub sentences: Vec<String>,
}

/// Reads the runs in `folder`, and writes `folder/report`: `index.html`, `report.md`, `svg/`,
/// `csv/`. Replaces an older report. Fails if `folder` holds no finished run, or if a file cannot
/// be read or written.
pub fn write(folder: &Path) -> Result<WrittenReport> {
    write_of(folder, &crate::studies::all())
}

fn write_of(folder: &Path, known: &[Study]) -> Result<WrittenReport> {
    let mut lab = load::load(folder, known)?;
    crosscheck::check(&mut lab);
    let views = |study| -> Vec<ArrangedView> { arranged(&lab, study) };
    let views: Vec<Vec<ArrangedView>> = lab.studies.iter().map(views).collect();

    let report = folder.join("report");
    let csv = empty(&report.join("csv"))?;
    let svg = empty(&report.join("svg"))?;

    let (standing, mut sentences) = standing(&lab, &views);
    for study in &lab.studies {
        let rules = rules::sentences(&lab.configuration, study).into_iter();
        sentences.extend(rules.map(|said| format!("{}: {said}", study.title)));
    }
    let mut blocks = head::opening(&lab);
    blocks.extend(standing);
    blocks.extend(problems::blocks(&lab));
    blocks.push(head::reading());
    blocks.extend(head::setting(&lab));
    for (study, views) in lab.studies.iter().zip(&views) {
        blocks.extend(section::blocks(&lab, study, views)?);
        for (index, view) in views.iter().enumerate() {
            let name = section::view_name(study, index);
            csv::view(&csv.join(format!("{name}.csv")), view)?;
        }
    }
    csv::results(&csv.join("results.csv"), &lab)?;
    let (tables, plots) = parts(&blocks);
    for table in tables.iter().filter(|table| !of_view(&lab, table)) {
        csv::table(&csv.join(format!("{}.csv", table.name)), table)?;
    }
    for plot in plots {
        let path = svg.join(format!("{}.svg", plot.name));
        store(&path, &plot::standalone(&plot.svg))?;
    }
    let html = report.join("index.html");
    store(&html, &html::page(head::TITLE, &blocks))?;
    let markdown = report.join("report.md");
    store(&markdown, &markdown::document(&blocks, "svg"))?;
    Ok(WrittenReport {
        html,
        markdown,
        csv,
        sentences,
    })
}

fn arranged<'a>(lab: &Lab, study: &'a StudyRuns) -> Vec<ArrangedView<'a>> {
    let views = study.plan.views.iter();
    views
        .map(|view| series::arrange(&lab.configuration, study, view))
        .collect()
}

/// Where Marigram stands: as blocks, and as sentences.
fn standing(lab: &Lab, views: &[Vec<ArrangedView>]) -> (Vec<Block>, Vec<String>) {
    let mut count = standing::Count::default();
    let mut lists = Vec::new();
    let mut sentences = Vec::new();
    for (study, views) in lab.studies.iter().zip(views) {
        let mut lines = Vec::new();
        for (line, own) in views.iter().filter_map(standing::line) {
            count.add(own);
            let phrases: Vec<&str> = line.phrases.iter().map(|(_, text)| text.as_str()).collect();
            let said = format!("{}: {} {}.", study.title, line.lead, phrases.join("; "));
            sentences.push(said);
            lines.push(line);
        }
        if !lines.is_empty() {
            lists.push(Block::heading(
                3,
                &study.title,
                &format!("stands-{}", study.name),
            ));
            lists.push(Block::List(lines));
        }
    }
    sentences.insert(0, head::tally(count));
    let mut blocks = vec![
        Block::heading(2, "Where Marigram stands", "where-marigram-stands"),
        Block::Finding(sentences[0].clone()),
    ];
    blocks.extend(lists);
    blocks.push(Block::heading(3, "Wrong, failed, not possible", "problems"));
    (blocks, sentences)
}

/// All tables and plots of `blocks`.
fn parts(blocks: &[Block]) -> (Vec<&Table>, Vec<&Plot>) {
    let mut tables = Vec::new();
    let mut plots = Vec::new();
    for block in blocks {
        match block {
            Block::Table(table) => tables.push(table),
            Block::Plot(plot) => plots.push(plot),
            Block::Folded { blocks, .. } => {
                let (own_tables, own_plots) = parts(blocks);
                tables.extend(own_tables);
                plots.extend(own_plots);
            }
            _ => {}
        }
    }
    (tables, plots)
}

/// Whether `table` shows a view; the CSV of a view has all its panels in one file.
fn of_view(lab: &Lab, table: &Table) -> bool {
    lab.studies.iter().any(|study| {
        let views = 0..study.plan.views.len();
        views
            .into_iter()
            .any(|index| table.name.starts_with(&section::view_name(study, index)))
    })
}

/// The folder `path`, without the files of an older report.
fn empty(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("remove {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("create {}", path.display()))?;
    Ok(path.to_owned())
}

fn store(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
