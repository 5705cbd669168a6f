//! Terminal output: colours if the user wants them, readable numbers, and progress bars.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use marigram_model::FieldValue;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Like `println!`, but ends the program quietly if the reader has gone away (`marigram … | head`).
macro_rules! outln {
    ($($argument:tt)*) => {
        $crate::terminal::write_out(format_args!("{}\n", format_args!($($argument)*)))
    };
}

/// Like `print!`, but ends the program quietly if the reader has gone away.
macro_rules! out {
    ($($argument:tt)*) => { $crate::terminal::write_out(format_args!($($argument)*)) };
}

/// Like `eprintln!`, but goes on if nobody reads stderr any more (`marigram … 2>&1 | head`).
macro_rules! erroutln {
    ($($argument:tt)*) => {
        $crate::terminal::write_err(format_args!("{}\n", format_args!($($argument)*)))
    };
}

/// Like `eprint!`, but goes on if nobody reads stderr any more.
macro_rules! errout {
    ($($argument:tt)*) => { $crate::terminal::write_err(format_args!($($argument)*)) };
}

/// Writes to stderr; see [`erroutln`]. What is said beside the answer is not worth stopping the work.
pub(crate) fn write_err(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Writes to stdout; see [`outln`].
pub(crate) fn write_out(text: fmt::Arguments<'_>) {
    if let Err(error) = io::stdout().write_fmt(text) {
        let code = i32::from(error.kind() != io::ErrorKind::BrokenPipe);
        std::process::exit(code);
    }
}

/// An error and its causes in one line; leaves out a cause that the text before it already
/// contains.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// How to highlight text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextStyle {
    /// Headings and important text.
    Bold,
    /// Text that may be skipped.
    Dim,
    /// SQL and commands.
    Code,
    /// Errors.
    Bad,
}

/// Whether to colour a stream that is, or is not, a terminal: see <https://no-color.org>.
fn wants_colour(is_terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !set("NO_COLOR") && !dumb
}

fn paint(style: TextStyle, text: &str, colour: bool) -> String {
    let code = match style {
        TextStyle::Bold => "1",
        TextStyle::Dim => "2",
        TextStyle::Code => "36",
        TextStyle::Bad => "1;31",
    };
    if colour {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// `text` in a style, for stdout.
pub(crate) fn styled(style: TextStyle, text: &str) -> String {
    paint(style, text, wants_colour(io::stdout().is_terminal()))
}

/// The label of an error message, for stderr.
pub(crate) fn error_label() -> String {
    paint(TextStyle::Bad, "error:", colours_errors())
}

/// Whether stderr is coloured.
pub(crate) fn colours_errors() -> bool {
    wants_colour(io::stderr().is_terminal())
}

/// Whether an error means that the reader of our output has gone away (`marigram … | head`).
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
            || cause.to_string().contains("Broken pipe")
    })
}

/// A number with thousands separators: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 row`, `5,000 rows`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = match noun {
        "series" => "series".to_owned(),
        _ if number == 1 => noun.to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", count(number))
}

/// A number of bytes: `17 B`, `4.2 MB`.
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 999.5 {
            let digits = usize::from(unit != "B" && value < 99.95);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// A duration: `0.4 ms`, `12 ms`, `3.1 s`, `2 min 5 s`.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.01 {
        return format!("{:.1} ms", seconds * 1e3);
    }
    if seconds < 1.0 {
        return format!("{:.0} ms", seconds * 1e3);
    }
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60)
}

/// Rows per second, as text.
pub(crate) fn rate(rows: u64, time: Duration) -> String {
    let rate = rows as f64 / time.as_secs_f64().max(1e-6);
    format!("{} rows/s", count(rate.round() as u64))
}

/// A duration in ns as `2:55:00`, with days before it and a fraction after it if it has any.
pub(crate) fn clock(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let seconds = ns / 1_000_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let days = if days > 0 {
        format!("{} ", counted(days, "day"))
    } else {
        String::new()
    };
    let fraction = match ns % 1_000_000_000 {
        0 => String::new(),
        fraction => format!(".{fraction:09}").trim_end_matches('0').to_owned(),
    };
    format!(
        "{sign}{days}{hours}:{minutes:02}:{:02}{fraction}",
        seconds % 60
    )
}

/// A time (ns since the epoch, UTC) without needless digits.
pub(crate) fn time(ns: i64) -> String {
    let time = chrono::DateTime::from_timestamp_nanos(ns);
    time.format("%Y-%m-%d %H:%M:%S%.f").to_string()
}

/// The value of a field: texts in quotes, bytes by their number.
pub(crate) fn field_value(value: &FieldValue) -> String {
    match value {
        FieldValue::Bool(v) => v.to_string(),
        FieldValue::I32(v) => v.to_string(),
        FieldValue::I64(v) => v.to_string(),
        FieldValue::U64(v) => v.to_string(),
        FieldValue::F32(v) => v.to_string(),
        FieldValue::F64(v) => v.to_string(),
        FieldValue::String(v) => format!("{v:?}"),
        FieldValue::Bytes(v) => counted(v.len() as u64, "byte"),
        FieldValue::Timestamp(v) => time(*v),
    }
}

/// A progress bar over `total` bytes on stderr; draws nothing if stderr is not a terminal.
pub(crate) fn progress(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    let style =
        ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3}%  {msg}  {eta} left");
    bar.set_style(
        style
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> "),
    );
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("disk full")
            .context("cannot write: disk full")
            .context("f");
        assert_eq!(chain(&error), "f: cannot write: disk full");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(2, "series"), "2 series");
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(4_200_000), "4.2 MB");
        assert_eq!(bytes(999_950_000), "1.0 GB");
        assert_eq!(span(Duration::from_micros(400)), "0.4 ms");
        assert_eq!(span(Duration::from_secs(125)), "2 min 5 s");
        assert_eq!(clock(10_500_000_000_000), "2:55:00");
        assert_eq!(clock(-90_000_500_000_000), "-1 day 1:00:00.5");
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(1_500_000_000), "1970-01-01 00:00:01.500");
    }
}
