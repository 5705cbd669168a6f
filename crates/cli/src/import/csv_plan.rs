//! The plan of a CSV file: its dialect, roles, types and times, decided over the whole file.

mod columns;
mod notes;
mod times;

use super::column_roles::ImportRole;
use super::json_records::{self, JsonColumns, JsonRecords};
use super::time_columns::{TimeColumns, TimeSearch};
use super::time_search;
use super::{ReadOptions, ReadPlanOptions};
use anyhow::{Context, Result, anyhow, bail};
use marigram_model::FieldType;
use marigram_tabular::cell::{DecimalMark, read_f64};
use marigram_tabular::dialect::{self, DialectOptions, TextDialect};
use marigram_tabular::encoding::{self, Utf8};
use marigram_tabular::headered::{HeaderedRecords, HeadersBelow};
use marigram_tabular::layout::{COMMENT, ColumnLayout};
use marigram_tabular::names;
use marigram_tabular::profile::{ColumnProfile, decimal_of};
use marigram_tabular::record::{RecordCell, TextRecord, TextRecords};
use marigram_tabular::time::{TimePart, TimeReader};
use marigram_tabular::totals::{self, HeldRecords};
use std::collections::HashSet;
use std::io::Read;

/// Bytes from which the dialect is detected.
const SAMPLE_BYTES: u64 = 256 << 10;

/// Lines that it must have, if the file has them, and the bytes up to which they are looked for.
const SAMPLE_LINES: usize = 20;
const SAMPLE_BYTES_MAX: usize = 32 << 20;

/// A column of the file.
#[derive(Clone, Debug)]
pub(crate) struct CsvColumn {
    /// Its name in the file.
    pub file_name: String,
    /// Its name in the table.
    pub name: String,
    /// Its role.
    pub role: ImportRole,
    /// How its fractions are written.
    pub decimal: DecimalMark,
    /// Whether it could be a tag that tells rows of one time apart: it holds no measured values.
    pub can_tell: bool,
}

/// How a file is read.
#[derive(Clone, Debug)]
pub(crate) struct CsvPlan {
    /// How its records are written.
    pub kind: TextKind,
    /// How its cells are written.
    pub dialect: TextDialect,
    /// Its character encoding.
    pub encoding: &'static encoding_rs::Encoding,
    /// Its decimal mark.
    pub decimal: DecimalMark,
    /// Its columns.
    pub columns: Vec<CsvColumn>,
    /// How its times are read.
    pub time: TimeReader,
    /// The columns of its times.
    pub time_columns: TimeColumns,
    /// Name of the table's time column.
    pub time_name: String,
    /// Whether it is an export of Marigram, whose cells are taken literally.
    pub exact: bool,
    /// Whether neither the file nor the user names a time zone.
    pub without_zone: bool,
    /// Headers between its rows.
    pub headers: HeadersBelow,
    /// Lines at its end that hold sums or averages, and the words that say so.
    pub totals: Vec<(u64, String)>,
    /// What the user should know before the import.
    pub notes: Vec<String>,
    /// The first row.
    pub sample: Vec<String>,
    /// Whether tags were inferred.
    pub inferred_tags: bool,
}

/// How the records of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// Cells between delimiters.
    Csv,
    /// Cells between tabs.
    Tabbed,
    /// A JSON object a line.
    Json,
}

/// The records of a file.
pub(crate) enum PlannedRecords {
    /// Of a CSV file.
    Csv(Box<HeaderedRecords<Utf8<Box<dyn Read>>>>),
    /// Of JSON lines.
    Json(JsonRecords<Box<dyn Read>>),
}

impl PlannedRecords {
    /// Reads the next record; returns whether there is one.
    pub(crate) fn read(&mut self, record: &mut TextRecord) -> Result<bool> {
        match self {
            Self::Csv(records) => Ok(records.read(record)?),
            Self::Json(records) => records.read(record),
        }
    }
}

/// Opens the file at its beginning.
pub(crate) type OpenFile<'a> = &'a dyn Fn() -> Result<Box<dyn Read>>;

impl CsvPlan {
    /// A plan of which only the way of writing is known.
    fn undecided(
        kind: TextKind,
        encoding: &'static encoding_rs::Encoding,
        exact: bool,
        dialect: TextDialect,
    ) -> Self {
        Self {
            kind,
            columns: Vec::new(),
            encoding,
            decimal: DecimalMark::Point,
            time: TimeReader::default(),
            time_columns: TimeColumns::default(),
            time_name: String::new(),
            exact,
            without_zone: false,
            headers: HeadersBelow::default(),
            totals: Vec::new(),
            notes: Vec::new(),
            sample: Vec::new(),
            inferred_tags: false,
            dialect,
        }
    }

    /// Names of the tags in the table.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self
            .columns
            .iter()
            .filter(|column| column.role == ImportRole::Tag);
        tags.map(|column| column.name.as_str())
    }

    /// The rows below the header.
    pub(crate) fn records(&self, reader: Box<dyn Read>) -> Result<PlannedRecords> {
        if self.kind == TextKind::Json {
            let records = JsonRecords::new(reader, &self.dialect.names);
            return Ok(PlannedRecords::Json(records));
        }
        let text = Utf8::new(reader, self.encoding);
        let records = HeaderedRecords::new(text, &self.dialect, self.exact)?;
        Ok(PlannedRecords::Csv(Box::new(records)))
    }

    /// Whether the record holds a total of the rows above it.
    pub(crate) fn is_total(&self, record: &TextRecord) -> bool {
        self.totals.iter().any(|(line, _)| *line == record.line)
    }

    /// Whether a record has as many columns as the file; missing cells at the end are allowed.
    pub(crate) fn fits(&self, record: &TextRecord) -> bool {
        let most = self.columns.len();
        has_width(record, most - self.dialect.added_later, most)
    }
}

/// Whether a record has at least `least` cells, and beyond `most` only missing ones.
fn has_width(record: &TextRecord, least: usize, most: usize) -> bool {
    let beyond = (most..record.len()).all(|at| record.cell(at).is_missing());
    record.misfit.is_none() && record.len() >= least && beyond
}

/// Plans how to read a file.
pub(crate) fn plan(
    open: OpenFile<'_>,
    reading: &ReadPlanOptions,
    kind: TextKind,
) -> Result<CsvPlan> {
    let (mut plan, held) = planned(open, reading, kind, kind != TextKind::Json)?;
    if held.iter().any(|record| plan.time_of(record).is_ok()) {
        // The last rows have times of another kind, so they are rows like the others.
        return Ok(planned(open, reading, kind, false)?.0);
    }
    for record in &held {
        if let Some(total) = totals::total_in(record) {
            plan.notes.push(format!(
                "line {} has '{total}' and no time: it is skipped as a total of the rows above",
                record.line
            ));
            plan.totals.push((record.line, total.to_owned()));
        }
    }
    Ok(plan)
}

/// A plan, and the last records, which decide nothing because nothing in them looks like a time; with
/// `holds`, there may be such.
fn planned(
    open: OpenFile<'_>,
    reading: &ReadPlanOptions,
    kind: TextKind,
    holds: bool,
) -> Result<(CsvPlan, Vec<TextRecord>)> {
    let (tabbed, is_json) = (kind == TextKind::Tabbed, kind == TextKind::Json);
    let options = &reading.options;
    let encoding = encoding_of(open, reading, is_json)?;
    let sample = first_lines(open, encoding)?;
    let comment = sample
        .strip_prefix(COMMENT)
        .and_then(|rest| rest.lines().next());
    let layout = match comment {
        Some(line) => Some(ColumnLayout::parse(line)?),
        None => reading.layout.clone(),
    };
    let exact = layout.is_some();
    let columns = if is_json {
        json_records::columns(open()?)?
    } else {
        JsonColumns::default()
    };
    let dialect = if is_json {
        Some(json_dialect(columns.names))
    } else if exact {
        exact_dialect(&sample, u64::from(comment.is_some()), tabbed)?
    } else {
        let told = dialect_options(options, tabbed);
        dialect::sniff(&sample, &told)?
    };
    let Some(dialect) = dialect.filter(|dialect| !dialect.names.is_empty()) else {
        if is_json {
            bail!("none of its lines is a JSON object with a value");
        }
        bail!("it holds no rows");
    };
    let mut plan = CsvPlan::undecided(kind, encoding, exact, dialect);
    let known = reading.known.as_ref().or(layout.as_ref());
    if exact && let Some(layout) = &layout {
        exact_columns(&mut plan, reading, layout)?;
        return Ok((plan, Vec::new()));
    }
    let (profiles, held) = profiles(open, &mut plan, &options.null, holds)?;
    if !is_json {
        plan.decimal = decimal_mark(options.decimal, &plan, &profiles)?;
    }
    let table_columns = known.map(ColumnLayout::column_names).unwrap_or_default();
    let table_names = names::matched(&plan.dialect.names, &table_columns)?;
    let search = TimeSearch {
        options,
        known,
        table_names: &table_names,
        dialect: &plan.dialect,
        sample: &plan.sample,
        profiles: &profiles,
    };
    let found = time_search::find(&search)?;
    let parts = &found.columns.parts;
    plan.without_zone = is_without_zone(&found.reader, parts, &profiles);
    plan.notes.extend(found.notes);
    if let [(_, at)] = parts.as_slice() {
        let note = notes::mixed_zones(&found.reader, &profiles[*at].times);
        plan.notes.extend(note);
    }
    plan.time_name = time_name(known, parts, &plan.dialect.names);
    // Rows without a time are refused, so they do not decide the types of the others.
    let mut refused = HashSet::new();
    for (_, at) in parts {
        refused.extend(profiles[*at].lines_without_time());
    }
    plan.time = found.reader;
    plan.time_columns = found.columns;
    notes::refuse_beyond_header(&plan.dialect, &profiles)?;
    notes::refuse_headers_without_time(&plan)?;
    let seen = columns::SeenColumns {
        known,
        profiles: &profiles,
        table_names: &table_names,
        texts: &columns.texts,
        refused: &refused,
    };
    columns::add(&mut plan, reading, &seen)?;
    let knows_tags = known.is_some_and(|known| !known.tags.is_empty());
    if options.tags.is_empty() && !options.no_tags && !knows_tags {
        columns::infer_tags(open, &mut plan, reading, &seen)?;
    }
    for (at, profile) in profiles.iter().enumerate() {
        notes::note_column(&mut plan, reading, at, (profile, &refused))?;
    }
    Ok((plan, held))
}

/// Whether nothing says in which zone the times are.
fn is_without_zone(
    reader: &TimeReader,
    parts: &[(TimePart, usize)],
    profiles: &[ColumnProfile],
) -> bool {
    let names_zone = parts
        .iter()
        .any(|(part, at)| *part == TimePart::Zone || profiles[*at].times.zones() != (0, 0));
    let is_number = reader.form.is_moment();
    !is_number && !names_zone && reader.zone.name().is_none()
}

/// The name of the time column: the table's, or that of the only column that makes up the times.
fn time_name(
    known: Option<&ColumnLayout>,
    parts: &[(TimePart, usize)],
    names: &[String],
) -> String {
    match (known, parts) {
        (Some(known), _) => known.time.clone(),
        (None, [(_, at)]) => names[*at].clone(),
        (None, _) => free_name(parts, names),
    }
}

/// A name for a time that is made of several columns: `time`, unless another column has it.
fn free_name(parts: &[(TimePart, usize)], names: &[String]) -> String {
    let is_part = |at: usize| parts.iter().any(|(_, part)| *part == at);
    let others = names.iter().enumerate().filter(|(at, _)| !is_part(*at));
    let others: HashSet<String> = others.map(|(_, name)| name.to_lowercase()).collect();
    let numbered = (2..).map(|number| format!("time_{number}"));
    let wanted = ["time", "timestamp"].map(ToOwned::to_owned);
    let mut free = wanted.into_iter().chain(numbered);
    free.find(|name| !others.contains(name)).unwrap_or_default()
}

/// The encoding that the options name, or else the one that the file's bytes tell.
fn encoding_of(
    open: OpenFile<'_>,
    reading: &ReadPlanOptions,
    is_json: bool,
) -> Result<&'static encoding_rs::Encoding> {
    match &reading.options.encoding {
        Some(name) => encoding::named(name)
            .with_context(|| format!("'{name}' is no encoding; give utf-8, latin1, utf-16le, …")),
        // An export is UTF-8, whatever its texts look like, unless another program made it UTF-16.
        None if reading.layout.is_some() => {
            let mut head = Vec::new();
            let mut begin = open()?.take(encoding::EXPORT_HEAD_BYTES);
            begin.read_to_end(&mut head).context("cannot be read")?;
            Ok(encoding::of_export(&head))
        }
        None if is_json => Ok(encoding_rs::UTF_8),
        None => encoding::detect(open()?).context("cannot be read"),
    }
}

/// The decimal mark that is told, or else the one that the cells tell.
fn decimal_mark(
    told: Option<DecimalMark>,
    plan: &CsvPlan,
    profiles: &[ColumnProfile],
) -> Result<DecimalMark> {
    if let Some(told) = told {
        return Ok(told);
    }
    decimal_of(profiles, plan.dialect.delimiter).map_err(|at| {
        let cell = profiles[at].ambiguous_number().unwrap_or_default();
        let read = |mark| read_f64(cell, mark).unwrap_or_default();
        anyhow!(
            "column '{}': numbers such as '{cell}' are {} with a decimal point, or {} with a decimal \
             comma, and no row says which; give --decimal . or --decimal ,",
            plan.dialect.names[at],
            read(DecimalMark::Point),
            read(DecimalMark::Comma)
        )
    })
}

fn dialect_options(options: &ReadOptions, tabbed: bool) -> DialectOptions {
    let header = match (options.header, options.no_header) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    DialectOptions {
        delimiter: options
            .delimiter
            .map(|delimiter| delimiter.0)
            .or(tabbed.then_some(b'\t')),
        header,
        skip: options.skip,
    }
}

/// The first lines. They are more bytes than usual if lines are long, so that a header of thousands of columns
/// is whole.
fn first_lines(open: OpenFile<'_>, encoding: &'static encoding_rs::Encoding) -> Result<String> {
    let mut bytes = Vec::new();
    let mut reader = Utf8::new(open()?, encoding);
    loop {
        let mut part = reader.by_ref().take(SAMPLE_BYTES);
        let read = part.read_to_end(&mut bytes).context("cannot be read")?;
        let is_whole = (read as u64) < SAMPLE_BYTES;
        let lines = memchr::memchr_iter(b'\n', &bytes).count();
        let is_enough = lines >= SAMPLE_LINES || bytes.len() >= SAMPLE_BYTES_MAX;
        if !is_whole && !is_enough {
            continue;
        }
        if !is_whole && let Some(end) = memchr::memrchr(b'\n', &bytes) {
            bytes.truncate(end + 1);
        }
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
}

/// The dialect of JSON lines: their names serve as a header.
fn json_dialect(names: Vec<String>) -> TextDialect {
    TextDialect {
        delimiter: b',',
        data_after: 0,
        header_line: Some(1),
        units: None,
        described: Vec::new(),
        names,
        renamed: Vec::new(),
        beyond_header: 0,
        added_later: 0,
    }
}

/// The dialect of an export, whose header is taken literally.
fn exact_dialect(sample: &str, skip: u64, tabbed: bool) -> Result<Option<TextDialect>> {
    let delimiter = if tabbed { b'\t' } else { b',' };
    let mut records = TextRecords::new(sample.as_bytes(), delimiter, skip)?;
    let mut header = TextRecord::default();
    if !records.read(&mut header)? {
        return Ok(None);
    }
    Ok(Some(TextDialect {
        delimiter,
        data_after: records.line() - 1,
        header_line: Some(header.line),
        units: None,
        described: Vec::new(),
        names: header.cells().map(|cell| cell.text.to_owned()).collect(),
        renamed: Vec::new(),
        beyond_header: 0,
        added_later: 0,
    }))
}

/// Roles and types from the layout of an export, or from the table if it already exists.
fn exact_columns(
    plan: &mut CsvPlan,
    reading: &ReadPlanOptions,
    layout: &ColumnLayout,
) -> Result<()> {
    let known = reading.known.as_ref();
    let columns = known.map(ColumnLayout::column_names).unwrap_or_default();
    let table_names = names::matched(&plan.dialect.names, &columns)?;
    let types = layout.field_types()?;
    let names = plan.dialect.names.clone();
    for (at, (file_name, name)) in names.into_iter().zip(table_names).enumerate() {
        let is_tag = layout.tags.iter().any(|(tag, _)| *tag == file_name)
            || reading.options.tags.contains(&file_name);
        let role = if file_name == layout.time {
            plan.time_name = known.map_or(file_name.clone(), |known| known.time.clone());
            plan.time_columns = TimeColumns::single(at);
            ImportRole::Time
        } else if is_tag {
            ImportRole::Tag
        } else {
            let kind = types.iter().find(|(field, _)| *field == file_name);
            ImportRole::Field(kind.map_or(FieldType::String, |(_, kind)| *kind))
        };
        let decimal = DecimalMark::Point;
        plan.columns.push(CsvColumn {
            file_name,
            name,
            role,
            decimal,
            can_tell: false,
        });
    }
    if plan.time_columns.parts.is_empty() {
        bail!(
            "its layout names the time column '{}', which the file does not have",
            layout.time
        );
    }
    Ok(())
}

/// The columns, and the records that were held back.
fn profiles(
    open: OpenFile<'_>,
    plan: &mut CsvPlan,
    nulls: &[String],
    holds: bool,
) -> Result<(Vec<ColumnProfile>, Vec<TextRecord>)> {
    let width = plan.dialect.names.len();
    let fresh = ColumnProfile::one_of(width);
    let mut profiles = vec![fresh.clone(); width];
    let mut records = plan.records(open()?)?;
    let (mut record, mut held) = (TextRecord::default(), HeldRecords::default());
    let mut is_empty = true;
    let mut sample = Vec::new();
    while records.read(&mut record)? {
        is_empty = false;
        if let PlannedRecords::Csv(records) = &records
            && profiles.len() < records.names().len()
        {
            profiles.resize(records.names().len(), fresh.clone());
        }
        if !has_width(&record, width, profiles.len()) || record.is_open {
            continue;
        }
        let mut take = |record: &TextRecord| {
            if sample.is_empty() {
                let cells = record.cells().take(width);
                sample = cells.map(|cell| cell.text.to_owned()).collect();
            }
            for (at, profile) in profiles.iter_mut().enumerate() {
                profile.add(record.cell(at), record.line, nulls);
            }
        };
        if holds {
            held.add(&record, &mut take);
        } else {
            take(&record);
        }
    }
    plan.sample = sample;
    if is_empty {
        bail!("it holds no rows below its header");
    }
    if let PlannedRecords::Csv(records) = records {
        plan.dialect.names = records.names().to_vec();
        plan.dialect.added_later = plan.dialect.names.len() - width;
        plan.headers = records.headers().clone();
        profiles.resize(plan.dialect.names.len(), fresh);
    }
    plan.notes.extend(notes::skipped_lines(plan));
    plan.notes.extend(notes::damaged_name(plan));
    Ok((profiles, held.into_held()))
}

/// The text of a cell that goes into a text column; `None` for no value.
pub(crate) fn text_of<'a>(cell: RecordCell<'a>, exact: bool, nulls: &[String]) -> Option<&'a str> {
    if cell.is_missing() {
        return None;
    }
    if exact {
        return Some(cell.text);
    }
    let text = if cell.quoted {
        cell.text
    } else {
        cell.text.trim()
    };
    let is_null = nulls.iter().any(|null| null == text.trim()) || (!cell.quoted && text == "\\N");
    (!is_null).then_some(text)
}
