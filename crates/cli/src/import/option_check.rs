//! Options that say nothing for the format of a file: they are refused, not ignored.

use super::{ImportFormat, ReadOptions};
use anyhow::{Result, bail};

/// Refuses the options that a file of this format does not use; `is_export` says whether the file names
/// its tables and roles itself, as exports do.
pub(crate) fn check(form: ImportFormat, options: &ReadOptions, is_export: bool) -> Result<()> {
    use ImportFormat::{Csv, Jsonl, Lines, Parquet, Tsfile};
    let texts: &[ImportFormat] = &[Csv, Jsonl];
    let cells: &[ImportFormat] = &[Csv];
    let given: [(&str, bool, &[ImportFormat]); 16] = [
        ("--delimiter", options.delimiter.is_some(), cells),
        ("--decimal", options.decimal.is_some(), cells),
        ("--encoding", options.encoding.is_some(), cells),
        ("--header", options.header, cells),
        ("--no-header", options.no_header, cells),
        ("--skip", options.skip.is_some(), cells),
        ("--null", !options.null.is_empty(), texts),
        ("--tz", options.tz.is_some(), texts),
        ("--time-format", options.time_format.is_some(), texts),
        ("--date-column", options.date_column.is_some(), texts),
        ("--date-order", options.date_order.is_some(), texts),
        ("--repeated-hour", options.repeated_hour.is_some(), texts),
        (
            "--time-column",
            options.time_column.is_some(),
            &[Csv, Jsonl, Parquet],
        ),
        ("--tags", !options.tags.is_empty(), &[Csv, Jsonl, Parquet]),
        ("--no-tags", options.no_tags, &[Csv, Jsonl, Parquet]),
        (
            "--table",
            options.table.is_some() && !is_export,
            &[Csv, Jsonl, Parquet, Tsfile],
        ),
    ];
    // An export is read as it was written. Its encoding can change afterwards.
    let told = given
        .iter()
        .map(|(option, is_given, _)| (*option, *is_given));
    let types = ("--types", !options.types.is_empty());
    let ignored = told
        .chain([types])
        .find(|(option, is_given)| *is_given && !["--encoding", "--table"].contains(option));
    if form == Csv
        && is_export
        && let Some((option, _)) = ignored
    {
        bail!(
            "{option}: the layout of this export says how to read it; without the layout (FILE.layout.json, or \
             the comment in the first line) it is read as any other CSV"
        );
    }
    let refused = given
        .iter()
        .find(|(_, is_given, forms)| *is_given && !forms.contains(&form));
    let Some((option, _, forms)) = refused else {
        return Ok(());
    };
    let reason = match (form, *option) {
        (Lines, "--table") => "each line of line protocol names its table",
        (Lines, "--tags" | "--no-tags") => "each line of line protocol says which are its tags",
        (Lines, "--time-column") => "each line of line protocol ends with its time",
        (Tsfile, "--tags" | "--no-tags") => "a TsFile says which columns are tags",
        (Tsfile, "--time-column") => "a TsFile says which column is the time",
        (Parquet, "--tz") => {
            "times without a zone in a Parquet file are UTC; give the column a zone in the file"
        }
        _ => "",
    };
    let named = forms.iter().map(|form| name(*form)).collect::<Vec<_>>();
    let (last, others) = named.split_last().unwrap_or((&"", &[]));
    let for_forms = if others.is_empty() {
        (*last).to_owned()
    } else {
        format!("{} and {last}", others.join(", "))
    };
    if reason.is_empty() {
        bail!(
            "{option} is for {for_forms}, and this file is {}",
            name(form)
        );
    }
    bail!("{option} is for {for_forms}: {reason}");
}

/// The name of a format, for people.
pub(crate) fn name(form: ImportFormat) -> &'static str {
    match form {
        ImportFormat::Csv => "CSV",
        ImportFormat::Jsonl => "JSON lines",
        ImportFormat::Lines => "line protocol",
        ImportFormat::Parquet => "Parquet",
        ImportFormat::Tsfile => "TsFile",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_other_formats_are_refused_by_name() {
        let zone = ReadOptions {
            tz: Some("Europe/Berlin".to_owned()),
            ..ReadOptions::default()
        };
        assert!(check(ImportFormat::Csv, &zone, false).is_ok());
        assert!(check(ImportFormat::Jsonl, &zone, false).is_ok());
        for form in [
            ImportFormat::Lines,
            ImportFormat::Parquet,
            ImportFormat::Tsfile,
        ] {
            let error = check(form, &zone, false).unwrap_err().to_string();
            assert!(
                error.starts_with("--tz is for CSV and JSON lines"),
                "{error}"
            );
        }
        let error = check(ImportFormat::Csv, &zone, true).unwrap_err();
        assert!(
            error.to_string().contains("the layout of this export"),
            "{error}"
        );
        let table = ReadOptions {
            table: Some("t".to_owned()),
            ..ReadOptions::default()
        };
        assert!(check(ImportFormat::Lines, &table, true).is_ok());
        assert!(check(ImportFormat::Csv, &table, true).is_ok());
        let error = check(ImportFormat::Lines, &table, false).unwrap_err();
        assert!(error.to_string().contains("names its table"), "{error}");
    }
}
