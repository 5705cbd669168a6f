//! What the columns of a CSV file are, from its header, a sample, the table and the user.

use super::Reading;
use super::time_text::TimeForm;
use anyhow::{Result, bail};
use marigram::Roles;
use marigram_model::FieldType;

/// Names that a time column has, first choice first.
const TIME_NAMES: [&str; 10] = [
    "time",
    "timestamp",
    "ts",
    "_time",
    "datetime",
    "date_time",
    "date",
    "utc",
    "created_at",
    "t",
];

/// What stands for no value.
const NULLS: [&str; 6] = ["", "null", "NULL", "NA", "N/A", "\\N"];

/// Whether a cell holds no value.
pub fn is_null(cell: &str) -> bool {
    NULLS.contains(&cell)
}

/// What a file's columns are.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Time and tags by name.
    pub roles: Roles,
    /// Place of the time column.
    pub time_at: usize,
    /// How times are read.
    pub time_form: TimeForm,
    /// Each column's type; `None` for time and tags.
    pub kinds: Vec<Option<FieldType>>,
}

/// Decides what the columns `names` are, whose first rows are `sample`.
pub fn plan(reading: &Reading, names: &[String], sample: &[Vec<String>]) -> Result<Plan> {
    let cells = |at: usize| {
        sample
            .iter()
            .filter_map(move |row| row.get(at))
            .map(String::as_str)
            .filter(|c| !is_null(c))
    };
    let time_at = time_column(reading, names, &cells)?;
    let time_form = time_form(reading, &names[time_at], cells(time_at))?;
    let options = &reading.options;
    if let Some(missing) = options.tags.iter().find(|tag| !names.contains(tag)) {
        bail!(
            "there is no column '{missing}' for a tag; the file has: {}",
            names.join(", ")
        );
    }
    let mut tags = options.tags.clone();
    if let Some(schema) = &reading.schema {
        let known = schema
            .tags
            .iter()
            .map(|tag| &tag.name)
            .filter(|tag| names.contains(tag));
        tags.extend(known.filter(|tag| !options.tags.contains(tag)).cloned());
    }
    let kinds = names.iter().enumerate().map(|(at, name)| {
        if at == time_at || tags.contains(name) {
            return None;
        }
        let told = reading
            .types
            .iter()
            .find(|(told, _)| told == name)
            .map(|(_, kind)| *kind);
        let known = reading
            .schema
            .as_ref()
            .and_then(|schema| schema.field(name));
        Some(
            told.or(known.map(|field| field.kind))
                .unwrap_or_else(|| kind_of(cells(at))),
        )
    });
    let kinds = kinds.collect();
    tags.extend(reading.constant_tags.iter().map(|(name, _)| name.clone()));
    Ok(Plan {
        roles: Roles::new(names[time_at].clone(), tags),
        time_at,
        time_form,
        kinds,
    })
}

fn time_column<'a, C: Iterator<Item = &'a str> + Clone>(
    reading: &Reading,
    names: &[String],
    cells: &impl Fn(usize) -> C,
) -> Result<usize> {
    let known = reading.schema.as_ref().map(|schema| &schema.time_name);
    let find = |name: &str| {
        names
            .iter()
            .position(|found| found.eq_ignore_ascii_case(name))
    };
    if let Some(told) = &reading.options.time_column {
        let Some(at) = find(told) else {
            bail!(
                "there is no time column '{told}'; the file has: {}",
                names.join(", ")
            );
        };
        return Ok(at);
    }
    let by_name = known
        .and_then(|name| find(name))
        .or_else(|| TIME_NAMES.iter().find_map(|n| find(n)));
    let by_values = || {
        (0..names.len()).find(|at| {
            matches!(
                TimeForm::of(cells(*at)),
                Some(TimeForm::Iso | TimeForm::Pattern(_))
            )
        })
    };
    let Some(at) = by_name.or_else(by_values) else {
        bail!(
            "which column is the time? Give --time-column; the file has: {}",
            names.join(", ")
        );
    };
    Ok(at)
}

fn time_form<'a>(
    reading: &Reading,
    name: &str,
    cells: impl Iterator<Item = &'a str> + Clone,
) -> Result<TimeForm> {
    if let Some(format) = &reading.options.time_format {
        return Ok(TimeForm::Pattern(format.clone()));
    }
    if let Some(precision) = reading.options.precision {
        return Ok(TimeForm::Number(precision));
    }
    // A few bad times must not hide the form of the many.
    let found = TimeForm::of(cells.clone()).or_else(|| {
        cells
            .clone()
            .take(100)
            .find_map(|cell| TimeForm::of(std::iter::once(cell)))
    });
    match (found, cells.clone().next()) {
        (Some(form), _) => Ok(form),
        (None, None) => Ok(TimeForm::Iso),
        (None, Some(first)) => bail!(
            "the times in column '{name}' cannot be read ('{first}'); give --time-format, such as \
             \"%d.%m.%Y %H:%M:%S\", or another --time-column"
        ),
    }
}

/// The type that holds all of a sample: BOOLEAN, DOUBLE, BIGINT, else STRING. Whole numbers are
/// DOUBLE, as in line protocol (a sensor that showed 3 today may show 3.5 tomorrow), unless one of
/// them is too large to be exact as one.
pub fn kind_of<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> FieldType {
    let all = |fits: fn(&str) -> bool| cells.clone().all(fits);
    if cells.clone().next().is_none() {
        return FieldType::F64;
    }
    if all(|cell| read_bool(cell).is_some()) {
        FieldType::Bool
    } else if all(|cell| read_f64(cell).is_some()) {
        FieldType::F64
    } else if all(|cell| cell.parse::<i64>().is_ok()) {
        FieldType::I64
    } else {
        FieldType::String
    }
}

/// A number, unless it is a whole one that a DOUBLE cannot hold exactly.
pub fn read_f64(cell: &str) -> Option<f64> {
    let number: f64 = cell.parse().ok()?;
    let is_exact =
        number.abs() < DOUBLE_EXACT || cell.contains(['.', 'e', 'E']) || !number.is_finite();
    is_exact.then_some(number)
}

/// 2^53: below it every whole number is a DOUBLE.
const DOUBLE_EXACT: f64 = 9_007_199_254_740_992.0;

/// A truth value as files hold it. 0 and 1 are numbers.
pub fn read_bool(cell: &str) -> Option<bool> {
    match cell {
        "true" | "True" | "TRUE" | "t" | "yes" => Some(true),
        "false" | "False" | "FALSE" | "f" | "no" => Some(false),
        _ => None,
    }
}

/// A type by the name that SQL gives it.
pub fn named_type(name: &str) -> Result<FieldType> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "bool" | "boolean" => FieldType::Bool,
        "int" | "integer" | "int32" | "i32" => FieldType::I32,
        "bigint" | "int64" | "i64" | "long" => FieldType::I64,
        "uint64" | "u64" | "bigint unsigned" | "unsigned" => FieldType::U64,
        "float" | "real" | "float32" | "f32" => FieldType::F32,
        "double" | "float64" | "f64" => FieldType::F64,
        "string" | "text" | "varchar" => FieldType::String,
        "timestamp" => FieldType::Timestamp,
        _ => bail!(
            "'{name}' is not a type; there are boolean, int, bigint, uint64, float, double, \
             string, timestamp"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::ReadOptions;
    use super::*;

    fn reading(options: ReadOptions) -> Reading {
        let table = "t".into();
        Reading {
            table,
            schema: None,
            options,
            constant_tags: Vec::new(),
            types: Vec::new(),
        }
    }

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter()
            .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
            .collect()
    }

    #[test]
    fn types_come_from_the_sample() {
        let kind = |cells: &[&str]| kind_of(cells.iter().copied());
        assert_eq!(kind(&["1", "-2"]), FieldType::F64);
        assert_eq!(kind(&["1", "9007199254740993"]), FieldType::I64);
        assert_eq!(kind(&["1", "2.5"]), FieldType::F64);
        assert_eq!(kind(&["true", "no"]), FieldType::Bool);
        assert_eq!(kind(&["1", "x"]), FieldType::String);
        assert_eq!(kind(&[]), FieldType::F64);
    }

    #[test]
    fn a_plan_finds_time_tags_and_types() {
        let options = ReadOptions {
            tags: vec!["site".into()],
            ..ReadOptions::default()
        };
        let names: Vec<String> = ["site", "when", "level", "ok"].map(String::from).to_vec();
        let sample = rows(&[
            &["a", "2026-01-01 00:00:00", "1", "true"],
            &["b", "2026-01-02", "", "no"],
        ]);
        let plan = plan(&reading(options), &names, &sample).unwrap();
        assert_eq!(plan.time_at, 1);
        assert_eq!(plan.time_form, TimeForm::Iso);
        assert_eq!(plan.roles, Roles::new("when", ["site"]));
        assert_eq!(
            plan.kinds,
            [None, None, Some(FieldType::F64), Some(FieldType::Bool)]
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let names: Vec<String> = ["a", "b"].map(String::from).to_vec();
        let sample = rows(&[&["1", "x"]]);
        let error = plan(&reading(ReadOptions::default()), &names, &sample).unwrap_err();
        assert!(error.to_string().contains("a, b"), "{error}");
        let options = ReadOptions {
            tags: vec!["c".into()],
            time_column: Some("a".into()),
            ..ReadOptions::default()
        };
        let error = plan(&reading(options), &names, &sample).unwrap_err();
        assert!(error.to_string().contains("'c'"), "{error}");
    }
}
