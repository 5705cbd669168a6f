//! The message of an import that stops because its rows would replace each other.

use super::column_roles::ImportRole;
use super::csv_plan::CsvColumn;
use super::duplicate_check::place;
use super::prepared::PreparedFile;
use crate::terminal;
use anyhow::Result;
use marigram_model::FieldType;
use marigram_tabular::duplicate_keys::DuplicateKeys;
use marigram_tabular::record::TextRecord;
use marigram_tabular::tags::{is_channel, is_identity, tell_apart};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use xxhash_rust::xxh3::xxh3_64;

/// Groups of rows that the message names.
const GROUPS_NAMED: usize = 3;

/// Why the import stops, and how the user can let it continue.
pub(crate) fn reason(found: &DuplicateKeys, files: &[PreparedFile]) -> Result<String> {
    let by_line = files
        .iter()
        .all(|file| file.form == super::ImportFormat::Lines);
    let mut text = format!(
        "{} of {} would replace others of the same time and tags; nothing was written",
        terminal::count(found.repeats),
        terminal::counted(found.keys, if by_line { "value" } else { "row" }),
    );
    for group in found.groups.iter().take(GROUPS_NAMED) {
        let named = group.iter().take(4).map(|at| {
            let (file, line) = place(*at);
            match files.len() {
                1 => format!("line {line}"),
                _ => format!("line {line} of {}", files[file].name),
            }
        });
        let _ = write!(
            text,
            "\n  same time and tags: {}",
            named.collect::<Vec<_>>().join(", ")
        );
    }
    for suggestion in suggestions(found, files)? {
        let _ = write!(text, "\n  {suggestion}");
    }
    text.push_str("\n  --replace stores them anyway; the last values of each time win");
    Ok(text)
}

/// Columns that distinguish the rows, and the options that make them tags.
fn suggestions(found: &DuplicateKeys, files: &[PreparedFile]) -> Result<Vec<String>> {
    let across = found.groups.iter().all(|group| {
        let of: HashSet<usize> = group.iter().map(|at| place(*at).0).collect();
        of.len() == group.len()
    });
    if across && files.len() > 1 {
        return Ok(vec![
            "the files tell them apart: --file-tag NAME=REGEX makes a tag of their names"
                .to_owned(),
        ]);
    }
    let columns = columns(files);
    let rows = rows(found, files, &columns)?;
    let groups: Vec<Vec<Vec<u64>>> = found
        .groups
        .iter()
        .map(|group| {
            group
                .iter()
                .filter_map(|at| rows.get(at).cloned())
                .collect()
        })
        .filter(|rows: &Vec<_>| rows.len() > 1)
        .collect();
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let tellers: Vec<usize> = (0..columns.len()).collect();
    let apart = tell_apart(&groups, &tellers);
    let mut kept: Vec<&str> = Vec::new();
    for plan in files.iter().filter_map(|file| file.csv.as_ref()) {
        kept.extend(
            plan.tags()
                .filter(|tag| !kept.contains(tag))
                .collect::<Vec<_>>(),
        );
    }
    let is_there = files.iter().any(|file| file.reading.known.is_some());
    let options: Vec<String> = apart
        .iter()
        .take(3)
        .map(|places| {
            let names: Vec<&str> = places.iter().map(|at| columns[*at].as_str()).collect();
            let tags: Vec<&str> = kept.iter().copied().chain(names.iter().copied()).collect();
            let verb = if names.len() == 1 {
                "column"
            } else {
                "columns"
            };
            let (tell, named) = (
                if names.len() == 1 { "tells" } else { "tell" },
                names.join(", "),
            );
            if is_there {
                // The roles of an existing table cannot change.
                return format!(
                    "{verb} {named} {tell} them apart, but the table has {} as {}: a new table can \
                     have {} as a tag: --table NAME --tags {}",
                    if names.len() == 1 { "it" } else { "them" },
                    if names.len() == 1 {
                        "a field"
                    } else {
                        "fields"
                    },
                    if names.len() == 1 { "it" } else { "each" },
                    tags.join(",")
                );
            }
            format!(
                "{verb} {named} {tell} them apart: --tags {}",
                tags.join(",")
            )
        })
        .collect();
    if options.is_empty() {
        return Ok(vec![
            "no column that could be a tag tells them apart".to_owned(),
        ]);
    }
    Ok(options)
}

/// Names of the columns that could be tags, the most likely ones first.
fn columns(files: &[PreparedFile]) -> Vec<String> {
    let mut names: Vec<(u8, String)> = Vec::new();
    for plan in files.iter().filter_map(|file| file.csv.as_ref()) {
        let is_field = |column: &&CsvColumn| matches!(column.role, ImportRole::Field(_));
        let is_only = plan.columns.iter().filter(is_field).count() == 1;
        for column in &plan.columns {
            let ImportRole::Field(kind) = column.role else {
                continue;
            };
            // A table without a field stores nothing.
            if !column.can_tell || is_only {
                continue;
            }
            let name = &column.file_name;
            let rank = match (is_identity(name) || is_channel(name), kind) {
                (true, _) => 0,
                (false, FieldType::String) => 1,
                (false, _) => continue,
            };
            if !names.iter().any(|(_, name)| *name == column.file_name) {
                names.push((rank, column.file_name.clone()));
            }
        }
    }
    names.sort_by_key(|(rank, _)| *rank);
    names.into_iter().map(|(_, name)| name).collect()
}

/// For each requested place, a hash of each column's cell.
fn rows(
    found: &DuplicateKeys,
    files: &[PreparedFile],
    columns: &[String],
) -> Result<HashMap<u64, Vec<u64>>> {
    let mut wanted: HashMap<usize, HashMap<u64, u64>> = HashMap::new();
    for at in found.groups.iter().flatten() {
        let (file, line) = place(*at);
        wanted.entry(file).or_default().insert(line, *at);
    }
    let mut rows = HashMap::new();
    for (file, lines) in wanted {
        let Some(plan) = &files[file].csv else {
            continue;
        };
        let places: Vec<Option<usize>> = columns
            .iter()
            .map(|name| {
                plan.columns
                    .iter()
                    .position(|column| column.file_name == *name)
            })
            .collect();
        let mut records = plan.records(Box::new(files[file].input.source()?))?;
        let mut record = TextRecord::default();
        while records.read(&mut record)? {
            if let Some(at) = lines.get(&record.line) {
                let cell = |place: &Option<usize>| {
                    let text = place.map_or("", |place| record.cell(place).text);
                    xxh3_64(text.trim().as_bytes())
                };
                rows.insert(*at, places.iter().map(cell).collect());
            }
        }
    }
    Ok(rows)
}
