//! A file together with its import plan.

use super::column_roles::ImportRole;
use super::content::FileContent;
use super::csv_plan::{self, CsvPlan, TextKind};
use super::parquet_plan::{self, ParquetPlan};
use super::series_steps::SeriesSteps;
use super::source::{ImportSource, RereadableInput};
use super::{
    ImportFormat, KnownColumns, ParsedBatch, ReadOptions, ReadPlanOptions, content, csv_rows,
    ending, line_rows, name_of, option_check, parquet_rows, plan_text, tsfile_rows,
};
use crate::client::DataClient;
use crate::table_columns::known_table;
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use marigram_model::FieldType;
use marigram_tabular::layout::{ColumnLayout, ENDING};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file and its plan.
pub(crate) struct PreparedFile {
    /// The file.
    pub input: RereadableInput,
    /// Its format.
    pub form: ImportFormat,
    /// Its name, for messages.
    pub name: String,
    /// Where its rows go.
    pub reading: ReadPlanOptions,
    /// The plan of a CSV file.
    pub csv: Option<CsvPlan>,
    /// The plan of a Parquet file.
    pub parquet: Option<ParquetPlan>,
    /// The existing tables, for line protocol and TsFile.
    pub tables: tsfile_rows::TableSchemas,
    /// What the user should know of its content: that it is another one than its name says.
    pub content_note: Option<String>,
    /// The distances between the rows of a CSV file, once they were measured.
    steps: OnceLock<Arc<SeriesSteps>>,
}

impl PreparedFile {
    /// Decides how to read a file; `client` has its table, if that exists.
    pub(crate) fn new(
        path: &Path,
        options: &ReadOptions,
        client: Option<&mut DataClient>,
    ) -> Result<Self> {
        let FileContent {
            input,
            form,
            note: content_note,
        } = content::open(path, options.format)?;
        let layout = match form {
            ImportFormat::Lines => line_rows::layout(input.source()?, None)?,
            ImportFormat::Csv => match layout_beside(path)? {
                None => line_rows::layout(input.source()?, options.encoding.as_deref())?,
                beside => beside,
            },
            ImportFormat::Tsfile => layout_beside(path)?,
            ImportFormat::Parquet | ImportFormat::Jsonl => None,
        };
        option_check::check(form, options, layout.is_some())?;
        let reading = reading(path, form, options, layout, client)?;
        let csv = match form {
            ImportFormat::Csv | ImportFormat::Jsonl => {
                let open = || -> Result<Box<dyn Read>> { Ok(Box::new(input.source()?)) };
                let kind = match (form, ending(path).0.as_deref()) {
                    (ImportFormat::Jsonl, _) => TextKind::Json,
                    (_, Some("tsv")) => TextKind::Tabbed,
                    _ => TextKind::Csv,
                };
                let plan = csv_plan::plan(&open, &reading, kind)?;
                let columns = plan.columns.iter();
                let kept = columns.filter(|column| column.role != ImportRole::Dropped);
                let names = kept.map(|column| column.name.as_str());
                check_constant_tags(&reading, names, &plan.time_name)?;
                Some(plan)
            }
            _ => None,
        };
        let parquet = match form {
            ImportFormat::Parquet => {
                let plan = parquet_plan::plan(&input, &reading)?;
                let names = plan.columns.iter().map(|column| column.name.as_str());
                check_constant_tags(&reading, names, &plan.time_name)?;
                Some(plan)
            }
            _ => None,
        };
        Ok(Self {
            input,
            form,
            name: name_of(path),
            reading,
            csv,
            parquet,
            tables: tsfile_rows::TableSchemas::new(),
            content_note,
            steps: OnceLock::new(),
        })
    }

    /// The plan as text.
    pub(crate) fn describe(&self) -> String {
        let mut text = match (&self.csv, &self.parquet, self.form) {
            (Some(plan), ..) => plan_text::csv(&self.name, plan, &self.reading),
            (None, Some(plan), _) => plan_text::parquet(&self.name, plan, &self.reading),
            (None, None, form) => {
                let table = match form {
                    ImportFormat::Tsfile => self.reading.options.table.as_deref(),
                    _ => None,
                };
                let form = option_check::name(form);
                plan_text::other(&self.name, form, self.reading.layout.as_ref(), table)
            }
        };
        if let Some(note) = &self.content_note {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  note    {note}");
        }
        text
    }

    /// Reads the file and passes its rows to `send`, until `send` returns false.
    pub(crate) fn read(
        &self,
        source: ImportSource,
        send: &dyn Fn(Result<ParsedBatch>) -> bool,
    ) -> Result<()> {
        match (&self.csv, &self.parquet, self.form) {
            (Some(plan), ..) => {
                let steps = self.series_steps(plan)?;
                csv_rows::read(Box::new(source), &self.reading, (plan, steps), send)
            }
            (None, Some(plan), _) => parquet_rows::read(source, &self.reading, plan, send),
            (None, None, ImportFormat::Tsfile) => {
                tsfile_rows::read(source, &self.reading, &self.tables, send)
            }
            (None, None, _) => line_rows::read(source, &self.reading, send),
        }
    }

    /// The distances between the rows of a CSV file, measured once: the roles of its columns are final when
    /// its rows are read.
    fn series_steps(&self, plan: &CsvPlan) -> Result<Arc<SeriesSteps>> {
        if let Some(steps) = self.steps.get() {
            return Ok(Arc::clone(steps));
        }
        let open = || -> Result<Box<dyn Read>> { Ok(Box::new(self.input.source()?)) };
        let steps = Arc::new(plan.series_steps(&open, &self.reading.options)?);
        Ok(Arc::clone(self.steps.get_or_init(|| steps)))
    }

    /// The layout of a new table, if it is known before the rows are read.
    pub(crate) fn layout(&self) -> Option<&ColumnLayout> {
        self.reading
            .layout
            .as_ref()
            .filter(|_| self.reading.known.is_none())
    }

    /// Whether its times may be in another unit than the one in which they are read: numbers whose unit
    /// nothing tells.
    pub(crate) fn has_unknown_unit(&self) -> bool {
        if self.reading.options.precision.is_some() || self.reading.layout.is_some() {
            return false;
        }
        let plan = self.parquet.as_ref();
        self.form == ImportFormat::Lines || plan.is_some_and(ParquetPlan::has_number_times)
    }

    /// The name of the time column of a new table, if the file tells it.
    pub(crate) fn time_name(&self) -> Option<String> {
        let csv = self.csv.as_ref().map(|plan| &plan.time_name);
        let parquet = self.parquet.as_ref().map(|plan| &plan.time_name);
        csv.or(parquet).cloned()
    }

    /// The order of the columns of a new table, if the file is an export that says so.
    pub(crate) fn order(&self) -> Vec<String> {
        let plan = self.parquet.as_ref();
        plan.map(ParquetPlan::order).unwrap_or_default()
    }

    /// The times that a new table shows with a zone, if the file is an export that says so.
    pub(crate) fn zoned(&self) -> Vec<String> {
        let plan = self.parquet.as_ref();
        plan.map(ParquetPlan::zoned).unwrap_or_default()
    }

    /// Whether the plan does not say the columns of the tables, because only the rows do.
    pub(crate) fn is_unplanned(&self) -> bool {
        self.csv.is_none() && self.parquet.is_none()
    }
}

/// Refuses a tag that is given for all rows, and is a column of the file as well.
fn check_constant_tags<'a>(
    reading: &ReadPlanOptions,
    columns: impl Iterator<Item = &'a str> + Clone,
    time: &str,
) -> Result<()> {
    for (name, _) in &reading.constant_tags {
        if time == name {
            bail!("'{name}' is the time; give the tag another name than --tag {name}=…");
        }
        if columns.clone().any(|column| column == name) {
            bail!(
                "the file has a column '{name}' itself; give the tag another name than --tag {name}=…"
            );
        }
    }
    Ok(())
}

/// Refuses a type for a column that no file has, or that gets none.
pub(crate) fn check_types(files: &[PreparedFile]) -> Result<()> {
    let Some(first) = files.first() else {
        return Ok(());
    };
    for (name, kind) in &first.reading.types {
        let is_alike = |other: &str| other.eq_ignore_ascii_case(name);
        let plans = files.iter().filter_map(|file| file.csv.as_ref());
        let mut columns = plans.clone().flat_map(|plan| &plan.columns);
        let column = columns.find(|column| is_alike(&column.file_name) || is_alike(&column.name));
        match column.map(|column| column.role) {
            Some(ImportRole::Time) => bail!(
                "--types {name}: the column is the time, or a part of it; --time-column chooses another"
            ),
            Some(ImportRole::Tag) if *kind != FieldType::String => {
                bail!("--types {name}: the column is a tag, and tags of a file are STRING")
            }
            Some(_) => {}
            None if plans.clone().next().is_none() => {
                bail!("--types {name}: it is for CSV and JSON lines; other files have types")
            }
            None => {
                let mut names: Vec<&str> = Vec::new();
                for column in plans.flat_map(|plan| &plan.columns) {
                    if !names.contains(&column.file_name.as_str()) {
                        names.push(&column.file_name);
                    }
                }
                bail!(
                    "there is no column '{name}' for a type; the {}: {}",
                    if files.len() == 1 {
                        "file has"
                    } else {
                        "files have"
                    },
                    names.join(", ")
                );
            }
        }
    }
    Ok(())
}

/// Gives the columns of files that go to the same table the same names, roles and types.
pub(crate) fn unify(files: &mut [PreparedFile]) {
    unify_names(files);
    let mut roles: HashMap<(String, String), ImportRole> = HashMap::new();
    let key = |file: &ReadPlanOptions, name: &str| (file.table.clone(), name.to_owned());
    for file in &*files {
        let csv = file.csv.iter().flat_map(|plan| &plan.columns);
        let parquet = file.parquet.iter().flat_map(|plan| &plan.columns);
        // The types of a Parquet file's fields are its own.
        let tags = parquet.filter(|column| column.role == ImportRole::Tag);
        let columns = csv
            .map(|column| (&column.name, column.role))
            .chain(tags.map(|column| (&column.name, column.role)));
        for (name, own) in columns.filter(|(_, role)| *role != ImportRole::Dropped) {
            let role = roles.entry(key(&file.reading, name)).or_insert(own);
            *role = wider(*role, own);
        }
    }
    for file in files {
        let reading = &file.reading;
        for column in file.parquet.iter_mut().flat_map(|plan| &mut plan.columns) {
            if let ImportRole::Field(_) = column.role
                && roles.get(&key(reading, &column.name)) == Some(&ImportRole::Tag)
            {
                column.role = ImportRole::Tag;
            }
        }
        for column in file.csv.iter_mut().flat_map(|plan| &mut plan.columns) {
            if matches!(column.role, ImportRole::Tag | ImportRole::Field(_))
                && let Some(role) = roles.get(&key(reading, &column.name))
            {
                column.role = *role;
            }
        }
    }
}

/// Gives columns of a new table that differ only in case the name that the first file has, unless some
/// file has several of them.
fn unify_names(files: &mut [PreparedFile]) {
    let mut ambiguous: HashSet<(String, String)> = HashSet::new();
    for file in &*files {
        let csv = file.csv.iter().flat_map(|plan| &plan.columns);
        let parquet = file.parquet.iter().flat_map(|plan| &plan.columns);
        let names = csv.map(|column| &column.name);
        let mut own = HashSet::new();
        for name in names.chain(parquet.map(|column| &column.name)) {
            let key = (file.reading.table.clone(), name.to_lowercase());
            if !own.insert(key.clone()) {
                ambiguous.insert(key);
            }
        }
    }
    let mut names: HashMap<(String, String), String> = HashMap::new();
    for file in files {
        if file.reading.known.is_some() {
            continue;
        }
        let table = &file.reading.table;
        let csv = file.csv.iter_mut().flat_map(|plan| &mut plan.columns);
        let parquet = file.parquet.iter_mut().flat_map(|plan| &mut plan.columns);
        let csv = csv.map(|column| (column.role, &mut column.name));
        let parquet = parquet.map(|column| (column.role, &mut column.name));
        // The time has the name that the first file gives it.
        let columns = csv.chain(parquet);
        let columns =
            columns.filter(|(role, _)| !matches!(role, ImportRole::Time | ImportRole::Dropped));
        for (_, name) in columns {
            let key = (table.clone(), name.to_lowercase());
            if !ambiguous.contains(&key) {
                let first = names.entry(key).or_insert_with(|| name.clone());
                name.clone_from(first);
            }
        }
    }
}

fn wider(one: ImportRole, other: ImportRole) -> ImportRole {
    match (one, other) {
        (ImportRole::Field(one), ImportRole::Field(other)) => {
            ImportRole::Field(match (one, other) {
                (one, other) if one == other => one,
                (FieldType::F64, FieldType::I64) | (FieldType::I64, FieldType::F64) => {
                    FieldType::F64
                }
                _ => FieldType::String,
            })
        }
        (ImportRole::Field(_), ImportRole::Tag) => ImportRole::Tag,
        (one, _) => one,
    }
}

/// The layout file that an export wrote next to a file.
fn layout_beside(path: &Path) -> Result<Option<ColumnLayout>> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let beside = layout_path(path);
    match fs::read_to_string(&beside) {
        Err(_) => Ok(None),
        Ok(text) => {
            let layout = ColumnLayout::parse(text.trim_end());
            Ok(Some(
                layout.with_context(|| format!("{}", beside.display()))?,
            ))
        }
    }
}

/// The path of the layout file for `path`.
pub(crate) fn layout_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ENDING);
    name.into()
}

fn reading(
    path: &Path,
    form: ImportFormat,
    options: &ReadOptions,
    layout: Option<ColumnLayout>,
    client: Option<&mut DataClient>,
) -> Result<ReadPlanOptions> {
    let table = match &options.table {
        Some(table) => table.clone(),
        None if form == ImportFormat::Lines => String::new(),
        None if path.as_os_str() == "-" => bail!("which table? Give --table NAME"),
        None => ending(path).1,
    };
    let known: Option<KnownColumns> = match client {
        Some(client) if form != ImportFormat::Lines => known_table(client, &table)?,
        _ => None,
    };
    let pair = |text: &str| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => bail!("'{text}' is not NAME=VALUE"),
    };
    let mut constant_tags = options
        .tag
        .iter()
        .map(|text| pair(text))
        .collect::<Result<Vec<_>>>()?;
    for text in &options.file_tag {
        let (name, pattern) = pair(text)?;
        constant_tags.push((name, file_tag(&name_of(path), &pattern)?));
    }
    for (at, (name, value)) in constant_tags.iter().enumerate() {
        if let Some((_, first)) = constant_tags[..at].iter().find(|(known, _)| known == name) {
            bail!("the tag '{name}' is given twice, as '{first}' and as '{value}'");
        }
    }
    let types = options.types.iter().map(|text| {
        let (name, kind) = pair(text)?;
        Ok((name, named_type(&kind)?))
    });
    Ok(ReadPlanOptions {
        table,
        schema: None,
        known,
        layout,
        options: options.clone(),
        constant_tags,
        types: types.collect::<Result<_>>()?,
        now_ns: now_ns(),
    })
}

fn now_ns() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// The part of a file's name that a pattern matches: its first group, or the whole match.
fn file_tag(name: &str, pattern: &str) -> Result<String> {
    let regex = regex::Regex::new(pattern).with_context(|| format!("--file-tag {pattern}"))?;
    let Some(found) = regex.captures(name) else {
        bail!("--file-tag: '{pattern}' finds nothing in the name '{name}'");
    };
    let group = found.get(1).or_else(|| found.get(0));
    let text = group.map_or("", |group| group.as_str());
    if text.is_empty() {
        bail!("--file-tag: '{pattern}' finds an empty text in the name '{name}'");
    }
    Ok(text.to_owned())
}

/// A type by its SQL name.
fn named_type(name: &str) -> Result<FieldType> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "bool" | "boolean" => FieldType::Bool,
        "int" | "integer" | "int32" | "i32" => FieldType::I32,
        "bigint" | "int64" | "i64" | "long" => FieldType::I64,
        "uint64" | "u64" | "bigint unsigned" | "ubigint" | "unsigned" => FieldType::U64,
        "real" | "float32" | "float4" | "f32" => FieldType::F32,
        "double" | "float" | "double precision" | "float8" | "float64" | "f64" => FieldType::F64,
        "string" | "text" | "varchar" => FieldType::String,
        "bytes" | "bytea" => FieldType::Bytes,
        "timestamp" => FieldType::Timestamp,
        _ => bail!(
            "'{name}' is not a type; there are boolean, int, bigint, uint64, real, double, \
             string, bytes, timestamp"
        ),
    })
}
