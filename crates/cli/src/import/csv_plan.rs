//! The plan of a CSV file: its dialect, roles, types and times, decided over the whole file.

use super::time_columns::{TimeColumns, TimeSearch};
use super::time_search;
use super::{ReadOptions, ReadPlanOptions};
use anyhow::{Context, Result, anyhow, bail};
use marigram_model::{FieldType, quoted};
use marigram_tabular::cell::DecimalMark;
use marigram_tabular::dialect::{self, DialectOptions, TextDialect};
use marigram_tabular::encoding::{self, Utf8};
use marigram_tabular::layout::{COMMENT, ColumnLayout};
use marigram_tabular::names;
use marigram_tabular::profile::{ColumnProfile, decimal_of};
use marigram_tabular::record::{RecordCell, TextRecord, TextRecords};
use marigram_tabular::tags::{self, SampleRow, TagCandidate};
use marigram_tabular::time::{TimeEvidence, TimeFormat, TimePart, TimeReader};
use std::collections::HashSet;
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes from which the dialect is detected.
const SAMPLE_BYTES: u64 = 256 << 10;

/// Rows from which tags are inferred: all rows of some times.
const SAMPLE_ROWS: usize = 50_000;

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvRole {
    /// The time, or a part of it.
    Time,
    /// A tag.
    Tag,
    /// A field.
    Field(FieldType),
    /// None: the column has neither a name nor values.
    Dropped,
}

/// A column of the file.
#[derive(Clone, Debug)]
pub struct CsvColumn {
    /// Its name in the file.
    pub file_name: String,
    /// Its name in the table.
    pub name: String,
    /// Its role.
    pub role: CsvRole,
    /// How its fractions are written.
    pub decimal: DecimalMark,
}

/// How a file is read.
#[derive(Clone, Debug)]
pub struct CsvPlan {
    /// How it is written.
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
    /// What the user should know before the import.
    pub notes: Vec<String>,
    /// The first row.
    pub sample: Vec<String>,
    /// Whether tags were inferred.
    pub inferred_tags: bool,
}

/// Opens the file at its beginning.
pub type OpenFile<'a> = &'a dyn Fn() -> Result<Box<dyn Read>>;

impl CsvPlan {
    /// Names of the tags in the table.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self
            .columns
            .iter()
            .filter(|column| column.role == CsvRole::Tag);
        tags.map(|column| column.name.as_str())
    }

    /// The records below the header.
    pub fn records(&self, reader: Box<dyn Read>) -> Result<TextRecords<Utf8<Box<dyn Read>>>> {
        let text = Utf8::new(reader, self.encoding);
        Ok(TextRecords::new(
            text,
            self.dialect.delimiter,
            self.dialect.data_after,
        )?)
    }

    /// The time of a record.
    pub fn time_of(&self, record: &TextRecord) -> Result<i64, String> {
        let names = |at: usize| self.columns[at].file_name.clone();
        self.time_columns
            .time_of(record, &self.time, &names, &self.time_name)
    }

    /// Whether a record is the header again, and no row.
    pub fn is_no_row(&self, record: &TextRecord) -> bool {
        !self.exact && self.dialect.is_header_again(record)
    }

    /// Whether a record has as many columns as the file; missing cells at the end are allowed.
    pub fn fits(&self, record: &TextRecord) -> bool {
        has_width(record, self.columns.len())
    }
}

fn has_width(record: &TextRecord, width: usize) -> bool {
    record.len() >= width && (width..record.len()).all(|at| record.cell(at).is_missing())
}

/// Plans how to read a file. `tabbed` says that its name ends in `.tsv`.
pub fn plan(open: OpenFile<'_>, reading: &ReadPlanOptions, tabbed: bool) -> Result<CsvPlan> {
    let options = &reading.options;
    let encoding = encoding_of(open, reading)?;
    let sample = first_lines(open, encoding)?;
    let comment = sample
        .strip_prefix(COMMENT)
        .and_then(|rest| rest.lines().next());
    let layout = match comment {
        Some(line) => Some(ColumnLayout::parse(line)?),
        None => reading.layout.clone(),
    };
    let exact = layout.is_some();
    let dialect = if exact {
        exact_dialect(&sample, u64::from(comment.is_some()), tabbed)?
    } else {
        let told = dialect_options(options, tabbed);
        dialect::sniff(&sample, &told)?
    };
    let Some(dialect) = dialect.filter(|dialect| !dialect.names.is_empty()) else {
        bail!("it holds no rows");
    };
    let width = dialect.names.len();
    let mut plan = CsvPlan {
        columns: Vec::new(),
        encoding,
        decimal: DecimalMark::Point,
        time: TimeReader::default(),
        time_columns: TimeColumns::default(),
        time_name: String::new(),
        exact,
        without_zone: false,
        notes: Vec::new(),
        sample: Vec::new(),
        inferred_tags: false,
        dialect,
    };
    let known = reading.known.as_ref().or(layout.as_ref());
    if exact && let Some(layout) = &layout {
        exact_columns(&mut plan, reading, layout)?;
        return Ok(plan);
    }
    let profiles = profiles(open, &mut plan, width, &options.null)?;
    plan.decimal = decimal_mark(options.decimal, &plan, &profiles)?;
    let columns = known.map(known_names).unwrap_or_default();
    let table_names = names::matched(&plan.dialect.names, &columns)?;
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
        let note = mixed_zones(&found.reader, &profiles[*at].times);
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
    refuse_beyond_header(&plan.dialect, &profiles)?;
    let told_tags = told_tags(options, known, &plan.dialect.names, &table_names)?;
    for (at, profile) in profiles.iter().enumerate() {
        let (file_name, name) = (plan.dialect.names[at].clone(), table_names[at].clone());
        let role = if plan.time_columns.contains(at) {
            CsvRole::Time
        } else if told_tags.contains(&at) {
            CsvRole::Tag
        } else if file_name == format!("column{}", at + 1) && profile.is_empty() {
            CsvRole::Dropped
        } else {
            let mark = plan.decimal;
            let kind = kind_of(reading, known, &file_name, &name, profile, mark, &refused)?;
            CsvRole::Field(kind)
        };
        let decimal = profile.decimal(plan.decimal);
        plan.columns.push(CsvColumn {
            file_name,
            name,
            role,
            decimal,
        });
    }
    let knows_tags = known.is_some_and(|known| !known.tags.is_empty());
    if options.tags.is_empty() && !options.no_tags && !knows_tags {
        infer_tags(open, &mut plan, &profiles, known.is_some())?;
    }
    for (at, profile) in profiles.iter().enumerate() {
        note_column(&mut plan, reading, at, profile)?;
    }
    Ok(plan)
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
    let is_number = matches!(reader.form, TimeFormat::Number(_));
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
        (None, _) => "time".to_owned(),
    }
}

/// The note for times of which only some name a zone.
fn mixed_zones(time: &TimeReader, evidence: &TimeEvidence) -> Option<String> {
    let (offsets, names) = evidence.zones();
    let (named, all) = (offsets + names, evidence.cells());
    if matches!(time.form, TimeFormat::Number(_)) || named == 0 || named >= all {
        return None;
    }
    let others = match time.zone.name() {
        Some(zone) => format!("zone {zone}"),
        None => "UTC (--tz Europe/Berlin for another)".to_owned(),
    };
    Some(format!(
        "{named} of {all} times name a time zone; the others are read as {others}"
    ))
}

/// The encoding that the options name, or else the one that the file's bytes tell.
fn encoding_of(
    open: OpenFile<'_>,
    reading: &ReadPlanOptions,
) -> Result<&'static encoding_rs::Encoding> {
    match &reading.options.encoding {
        Some(name) => encoding::named(name)
            .with_context(|| format!("'{name}' is no encoding; give utf-8, latin1, utf-16le, …")),
        // An export is UTF-8, whatever its texts look like.
        None if reading.layout.is_some() => Ok(encoding_rs::UTF_8),
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
        anyhow!(
            "column '{}': numbers such as '1,234' are 1234 or 1.234, and no row says which; \
             give --decimal . or --decimal ,",
            plan.dialect.names[at]
        )
    })
}

/// Refuses rows that have more cells than the header, as decimal commas without quotes make them:
/// the values would come under other names than their own.
fn refuse_beyond_header(dialect: &TextDialect, profiles: &[ColumnProfile]) -> Result<()> {
    let named = dialect.names.len() - dialect.beyond_header;
    if profiles[named..].iter().all(ColumnProfile::is_empty) {
        return Ok(());
    }
    bail!(
        "the header names {named} columns, but rows have {} cells. If they have decimal commas, \
         the file needs another delimiter or quotes; if the header is short, skip it with --skip \
         and --no-header",
        dialect.names.len()
    )
}

/// The columns that a table or layout has.
fn known_names(known: &ColumnLayout) -> Vec<String> {
    let tags = known.tags.iter().map(|(name, _)| name);
    let fields = known.fields.iter().map(|(name, _)| name);
    std::iter::once(&known.time)
        .chain(tags)
        .chain(fields)
        .cloned()
        .collect()
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

/// The first lines, and whether they are all.
fn first_lines(open: OpenFile<'_>, encoding: &'static encoding_rs::Encoding) -> Result<String> {
    let mut bytes = Vec::new();
    let mut reader = Utf8::new(open()?, encoding).take(SAMPLE_BYTES);
    reader.read_to_end(&mut bytes).context("cannot be read")?;
    let is_whole = (bytes.len() as u64) < SAMPLE_BYTES;
    if !is_whole && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
        bytes.truncate(end + 1);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
        beyond_header: 0,
    }))
}

/// Roles and types from the layout of an export, or from the table if it already exists.
fn exact_columns(
    plan: &mut CsvPlan,
    reading: &ReadPlanOptions,
    layout: &ColumnLayout,
) -> Result<()> {
    let known = reading.known.as_ref();
    let columns = known.map(known_names).unwrap_or_default();
    let table_names = names::matched(&plan.dialect.names, &columns)?;
    let types = layout.field_types()?;
    let names = plan.dialect.names.clone();
    for (at, (file_name, name)) in names.into_iter().zip(table_names).enumerate() {
        let is_tag = layout.tags.iter().any(|(tag, _)| *tag == file_name)
            || reading.options.tags.contains(&file_name);
        let role = if file_name == layout.time {
            plan.time_name = known.map_or(file_name.clone(), |known| known.time.clone());
            plan.time_columns = TimeColumns::single(at);
            CsvRole::Time
        } else if is_tag {
            CsvRole::Tag
        } else {
            let kind = types.iter().find(|(field, _)| *field == file_name);
            CsvRole::Field(kind.map_or(FieldType::String, |(_, kind)| *kind))
        };
        let decimal = DecimalMark::Point;
        plan.columns.push(CsvColumn {
            file_name,
            name,
            role,
            decimal,
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

fn profiles(
    open: OpenFile<'_>,
    plan: &mut CsvPlan,
    width: usize,
    nulls: &[String],
) -> Result<Vec<ColumnProfile>> {
    let mut profiles = vec![ColumnProfile::default(); width];
    let mut records = plan.records(open()?)?;
    let mut record = TextRecord::default();
    let mut is_empty = true;
    let mut again = Vec::new();
    while records.read(&mut record)? {
        if !plan.exact && plan.dialect.is_header_again(&record) {
            again.push(record.line);
            continue;
        }
        is_empty = false;
        if !has_width(&record, width) || record.is_open {
            continue;
        }
        if plan.sample.is_empty() {
            plan.sample = record
                .cells()
                .take(width)
                .map(|c| c.text.to_owned())
                .collect();
        }
        for (at, profile) in profiles.iter_mut().enumerate() {
            profile.add(record.cell(at), record.line, nulls);
        }
    }
    if is_empty {
        bail!("it holds no rows below its header");
    }
    plan.notes.extend(skipped_lines(plan, &again));
    Ok(profiles)
}

/// Notes about lines below the header that hold no rows: descriptions of columns, and headers again.
fn skipped_lines(plan: &CsvPlan, again: &[u64]) -> Vec<String> {
    let described = plan.dialect.described.iter().map(|(line, cells)| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("'{cell}'")).collect();
        format!(
            "line {line} describes the columns and is skipped: {}",
            cells.join(", ")
        )
    });
    let mut notes: Vec<String> = described.collect();
    if let Some(first) = again.first() {
        notes.push(format!(
            "the header comes again in {}, the first in line {first}; such lines are skipped",
            crate::terminal::counted(again.len() as u64, "line")
        ));
    }
    notes
}

/// Indexes of the tags that the options name or that the table has.
fn told_tags(
    options: &ReadOptions,
    known: Option<&ColumnLayout>,
    names: &[String],
    table_names: &[String],
) -> Result<HashSet<usize>> {
    let mut places = HashSet::new();
    for tag in &options.tags {
        let exact = names.iter().position(|name| name == tag);
        let alike = || names.iter().position(|name| name.eq_ignore_ascii_case(tag));
        let Some(at) = exact.or_else(alike) else {
            bail!(
                "there is no column '{tag}' for a tag; the file has: {}",
                names.join(", ")
            );
        };
        let is_field =
            |known: &ColumnLayout| known.fields.iter().any(|(n, _)| *n == table_names[at]);
        if known.is_some_and(is_field) {
            bail!("column '{tag}' is a field of the table, not a tag");
        }
        places.insert(at);
    }
    for (tag, _) in known.into_iter().flat_map(|known| &known.tags) {
        places.extend(table_names.iter().position(|name| name == tag));
    }
    Ok(places)
}

fn kind_of(
    reading: &ReadPlanOptions,
    known: Option<&ColumnLayout>,
    file_name: &str,
    name: &str,
    profile: &ColumnProfile,
    decimal: DecimalMark,
    refused: &HashSet<u64>,
) -> Result<FieldType> {
    let told = reading
        .types
        .iter()
        .find(|(told, _)| told == file_name || told == name);
    if let Some((_, kind)) = told {
        return Ok(*kind);
    }
    if let Some(known) = known
        && let Some((_, kind)) = known
            .field_types()?
            .into_iter()
            .find(|(field, _)| field == name)
    {
        return Ok(kind);
    }
    Ok(profile.kind_without(decimal, refused))
}

/// Infers tags from the rows of some times; takes all rows of a time, or none.
fn infer_tags(
    open: OpenFile<'_>,
    plan: &mut CsvPlan,
    profiles: &[ColumnProfile],
    table_is_there: bool,
) -> Result<()> {
    let mut places = Vec::new();
    let mut candidates = Vec::new();
    for (at, (column, profile)) in plan.columns.iter().zip(profiles).enumerate() {
        let is_text = column.role == CsvRole::Field(FieldType::String);
        if matches!(column.role, CsvRole::Field(_)) && (is_text || profile.is_integer()) {
            places.push(at);
            candidates.push(TagCandidate {
                name: column.file_name.clone(),
                is_text,
                distinct: profile.distinct(),
            });
        }
    }
    if candidates.is_empty() || table_is_there {
        return Ok(());
    }
    let mut rows: Vec<SampleRow> = Vec::new();
    let mut mask = 0;
    let mut records = plan.records(open()?)?;
    let mut record = TextRecord::default();
    while records.read(&mut record)? {
        if !plan.fits(&record) || record.is_open || plan.is_no_row(&record) {
            continue;
        }
        let Ok(time) = plan.time_of(&record) else {
            continue;
        };
        if xxh3_64(&time.to_le_bytes()) & mask != 0 {
            continue;
        }
        let cell = |at: &usize| xxh3_64(record.cell(*at).text.trim().as_bytes());
        rows.push((time, places.iter().map(cell).collect()));
        while rows.len() > SAMPLE_ROWS {
            mask = mask * 2 + 1;
            let before = rows.len();
            rows.retain(|(time, _)| xxh3_64(&time.to_le_bytes()) & mask == 0);
            // A single time has very many rows; they suffice as a sample.
            if rows.len() == before {
                rows.truncate(SAMPLE_ROWS / 2);
            }
        }
    }
    for at in tags::infer(&candidates, &rows) {
        plan.columns[places[at]].role = CsvRole::Tag;
        plan.inferred_tags = true;
    }
    Ok(())
}

/// Notes what the user should know about a column: that it is new, or text because of a few cells.
fn note_column(
    plan: &mut CsvPlan,
    reading: &ReadPlanOptions,
    at: usize,
    profile: &ColumnProfile,
) -> Result<()> {
    let column = &plan.columns[at];
    let name = column.name.clone();
    let is_data = matches!(column.role, CsvRole::Tag | CsvRole::Field(_));
    let decimal = column.decimal;
    if let Some(known) = &reading.known
        && is_data
        && !known_names(known).contains(&name)
    {
        if reading.options.strict {
            bail!(
                "column '{name}' is not in table '{}', which has: {}; --strict allows no new one",
                reading.table,
                known_names(known).join(", ")
            );
        }
        plan.notes.push(format!(
            "column '{name}' is new in table '{}'",
            reading.table
        ));
    }
    if let Some(known) = &reading.known
        && let CsvRole::Field(told) = plan.columns[at].role
        && let Some((_, kind)) = known
            .field_types()?
            .iter()
            .find(|(field, _)| *field == name)
        && *kind != told
    {
        bail!(
            "--types {name}={told}: column '{name}' of table '{}' is {kind}; leave the option out, or \
             give the column another type first: ALTER TABLE {} ALTER COLUMN {} TYPE {told}",
            reading.table,
            quoted(&reading.table),
            quoted(&name)
        );
    }
    let is_text = plan.columns[at].role == CsvRole::Field(FieldType::String);
    if is_text && let Some(few) = profile.few_exceptions(decimal) {
        let named: Vec<String> = few
            .named
            .iter()
            .map(|(line, cell)| format!("line {line} '{cell}'"))
            .collect();
        let rest = few.count - few.named.len() as u64;
        let more = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        let markers: HashSet<&str> = few.named.iter().map(|(_, cell)| cell.as_str()).collect();
        let mut markers: Vec<&str> = markers.into_iter().collect();
        markers.sort_unstable();
        plan.notes.push(format!(
            "column '{name}' is STRING because of {} of {} cells that are not numbers: {}{more}; \
             --null '{}' reads them as no value, --types {name}=double refuses their rows",
            few.count,
            few.count + few.numbers,
            named.join(", "),
            markers.join(",")
        ));
    }
    Ok(())
}

/// The text of a cell that goes into a text column; `None` for no value.
pub fn text_of<'a>(cell: RecordCell<'a>, exact: bool, nulls: &[String]) -> Option<&'a str> {
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
