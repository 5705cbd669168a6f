//! Plots lines in the terminal: time on the horizontal axis, values on the vertical one, one chart
//! per series, all with the same axes.

use crate::terminal;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use arrow::util::display::array_value_to_string;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use textplots::{Chart, Plot, Shape};

/// Series to draw; of further ones only the number is reported.
const SERIES_MAX: usize = 12;

/// Width of a chart in dots: a character is two dots wide and four high.
const WIDTH_DOTS: u32 = 140;
const HEIGHT_DOTS: u32 = 40;
/// Height of each chart if there are several.
const HEIGHT_DOTS_EACH: u32 = 20;

/// Times (ns since the epoch) and values of one line.
type PlotPoints = Vec<(i64, f64)>;

/// The role of each column of an answer in a plot.
struct PlotColumns {
    time: usize,
    names: Vec<usize>,
    values: Vec<usize>,
}

impl PlotColumns {
    fn from_rows(rows: &RecordBatch) -> Result<Self, String> {
        let schema = rows.schema();
        let places = |wanted: &dyn Fn(&DataType) -> bool| -> Vec<usize> {
            let fields = schema.fields().iter().enumerate();
            let found = fields.filter(|(_, field)| wanted(field.data_type()));
            found.map(|(place, _)| place).collect()
        };
        let time = places(&|kind| matches!(kind, DataType::Timestamp(..)));
        let Some(time) = time.first().copied() else {
            return Err("no column is a time: a plot needs one, and a column of numbers".into());
        };
        let values = places(&|kind| kind.is_numeric());
        if values.is_empty() {
            return Err("no column is a number: a plot needs one in addition to the time".into());
        }
        let names = places(&|kind| match kind {
            DataType::Dictionary(_, kind) => kind.is_string(),
            kind => kind.is_string(),
        });
        Ok(Self {
            time,
            names,
            values,
        })
    }
}

/// Plots the number columns over the first time column, with one line for each combination of the
/// text columns' values.
///
/// # Errors
/// Why there is nothing to draw.
pub(crate) fn render(rows: &[RecordBatch]) -> Result<String, String> {
    let Some(first) = rows.first() else {
        return Err("there are no rows to draw".into());
    };
    let columns = PlotColumns::from_rows(first)?;
    let mut lines: BTreeMap<String, PlotPoints> = BTreeMap::new();
    for batch in rows {
        gather(batch, &columns, &mut lines).map_err(|error| error.to_string())?;
    }
    for points in lines.values_mut() {
        points.sort_by_key(|(time, _)| *time);
    }
    let times = || lines.values().flatten().map(|(time, _)| *time);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return Err("there are no values to draw".into());
    };
    if first == last {
        return Err("all values have the same time: there is no line to draw".into());
    }
    let values = || lines.values().flatten().map(|(_, value)| *value);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let is_alone = lines.len() == 1;
    let mut text = String::new();
    for (name, points) in lines.iter().take(SERIES_MAX) {
        if !is_alone {
            text.extend(["  ", name, "\n"]);
        }
        text.push_str(&chart(points, (first, last), (low, high), is_alone));
    }
    text.extend(["  hours since ", &terminal::time(first)]);
    if lines.len() > SERIES_MAX {
        let all = terminal::count(lines.len() as u64);
        let _ = write!(text, "\n  the first {SERIES_MAX} of {all} series are drawn");
    }
    Ok(text)
}

/// Adds the points of a batch to their lines.
fn gather(
    batch: &RecordBatch,
    columns: &PlotColumns,
    lines: &mut BTreeMap<String, PlotPoints>,
) -> Result<(), arrow::error::ArrowError> {
    let ns = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let times = cast(&cast(batch.column(columns.time), &ns)?, &DataType::Int64)?;
    let times = times.as_primitive::<Int64Type>();
    let schema = batch.schema();
    for place in &columns.values {
        let values: ArrayRef = cast(batch.column(*place), &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let is_point = times.is_valid(row) && values.is_valid(row);
            if !is_point || !values.value(row).is_finite() {
                continue;
            }
            let mut name = Vec::new();
            for column in &columns.names {
                name.push(array_value_to_string(batch.column(*column), row)?);
            }
            if columns.values.len() > 1 || name.is_empty() {
                name.push(schema.field(*place).name().clone());
            }
            let points = lines.entry(name.join(" · ")).or_default();
            points.push((times.value(row), values.value(row)));
        }
    }
    Ok(())
}

/// One line with its axes, indented.
fn chart(
    points: &[(i64, f64)],
    (first, last): (i64, i64),
    (low, high): (f64, f64),
    is_alone: bool,
) -> String {
    let hour = |ns: i64| (i128::from(ns) - i128::from(first)) as f64 / 3.6e12;
    let line: Vec<(f32, f32)> = points
        .iter()
        .map(|(time, value)| (hour(*time) as f32, *value as f32))
        .collect();
    let hours = hour(last) as f32;
    let shape = Shape::Lines(&line);
    let height = if is_alone {
        HEIGHT_DOTS
    } else {
        HEIGHT_DOTS_EACH
    };
    // A flat line needs a chart of some height.
    let (low, high) = match (low as f32, high as f32) {
        (low, high) if low < high => (low, high),
        (low, _) => (low - 1.0, low + 1.0),
    };
    let mut chart = Chart::new_with_y_range(WIDTH_DOTS, height, 0.0, hours, low, high);
    let chart = chart.lineplot(&shape);
    chart.axis();
    chart.figures();
    let lines = chart.to_string();
    let lines = lines.lines().map(|line| format!("  {}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Array, StringArray, TimestampNanosecondArray};
    use std::sync::Arc;

    fn rows(times: Vec<i64>, sites: Vec<&str>, levels: Vec<Option<f64>>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([
            ("site", Arc::new(StringArray::from(sites)) as ArrayRef, true),
            (
                "time",
                Arc::new(TimestampNanosecondArray::from(times)) as ArrayRef,
                true,
            ),
            (
                "level",
                Arc::new(Float64Array::from(levels)) as ArrayRef,
                true,
            ),
        ])
        .unwrap()
    }

    #[test]
    fn each_tag_has_its_own_line() {
        let hour = 3_600_000_000_000;
        let text = render(&[rows(
            vec![2 * hour, 0, hour, 0],
            vec!["south", "south", "north", "north"],
            vec![Some(3.0), Some(1.0), Some(f64::NAN), Some(2.0)],
        )])
        .unwrap();
        let (north, south) = (text.find("north").unwrap(), text.find("south").unwrap());
        assert!(north < south, "{text}");
        assert!(text.contains("2.0") && text.contains("hours since 1970-01-01 00:00:00"));
        let dots = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
        assert!(text[south..].chars().any(dots), "{text}");
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        assert!(render(&[]).unwrap_err().contains("no rows"));
        let alone =
            RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)])
                .unwrap();
        assert!(render(&[alone]).unwrap_err().contains("is a time"));
        let one = rows(vec![5], vec!["north"], vec![Some(1.0)]);
        assert!(render(&[one]).unwrap_err().contains("same time"));
        let nothing = rows(vec![5], vec!["north"], vec![None]);
        assert!(render(&[nothing]).unwrap_err().contains("no values"));
    }
}
