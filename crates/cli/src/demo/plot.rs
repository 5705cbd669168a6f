//! A line in the terminal: time to the right, values up.

use arrow::array::AsArray;
use arrow::array::{Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use textplots::{Chart, Plot, Shape};

/// Plots the second column of rows over the first, which is a time; `None` where there is nothing
/// to plot.
pub fn render(rows: &[RecordBatch]) -> Option<String> {
    let mut points = Vec::new();
    for batch in rows {
        let times = cast(batch.column(0), &DataType::Int64).ok()?;
        let values = cast(batch.column(1), &DataType::Float64).ok()?;
        let (times, values) = (
            times.as_primitive::<Int64Type>(),
            values.as_primitive::<Float64Type>(),
        );
        for row in (0..batch.num_rows()).filter(|row| values.is_valid(*row)) {
            points.push((times.value(row), values.value(row)));
        }
    }
    let (first, last) = (points.first()?.0, points.last()?.0);
    let hour = |ns: i64| (ns - first) as f64 / 3.6e12;
    let line: Vec<(f32, f32)> = points
        .iter()
        .map(|(time, value)| (hour(*time) as f32, *value as f32))
        .collect();
    let hours = hour(last) as f32;
    if hours <= 0.0 {
        return None;
    }
    let mut chart = Chart::new(140, 40, 0.0, hours);
    let shape = Shape::Lines(&line);
    let chart = chart.lineplot(&shape);
    chart.axis();
    chart.figures();
    let text: Vec<String> = chart
        .to_string()
        .lines()
        .map(|line| format!("  {}", line.trim_end()))
        .collect();
    Some(format!(
        "{}\n  hours since {}",
        text.join("\n"),
        crate::terminal::time(first)
    ))
}
