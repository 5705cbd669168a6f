//! Decides how a column of numbers is a time, and refuses what would be an implausible one.
//!
//! A number says nothing of its unit or of the day from which it counts. A reading is plausible if all
//! its times lie between 1990 and ten years from now. One plausible reading is taken, and the plan shows a
//! number with its time; several, or none, stop the import.

use anyhow::{Result, bail};
use jiff::{Span, Timestamp, civil};
use marigram_tabular::time::{
    FileZone, Precision, TimeCount, TimeEvidence, TimeFormat, TimeReader,
};

/// Years from now that times may lie in the future.
const FUTURE_YEARS: i64 = 10;

/// The times that are plausible without being asked for, ns since the epoch.
pub fn plausible() -> (i64, i64) {
    let from = civil::date(1990, 1, 1).to_zoned(jiff::tz::TimeZone::UTC);
    let from = from.map_or(0, |from| from.timestamp().as_nanosecond());
    let now = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let to = now.checked_add(Span::new().years(FUTURE_YEARS));
    let to = to.map_or(i128::from(i64::MAX), |to| to.timestamp().as_nanosecond());
    let ns = |ns| i64::try_from(ns).unwrap_or(i64::MAX);
    (ns(from), ns(to))
}

/// A way to read a number, and the option that selects it.
struct NumberReading {
    form: TimeFormat,
    option: String,
}

/// The units of numbers since 1970, and their options.
const UNITS: [(Precision, &str); 4] = [
    (Precision::S, "s"),
    (Precision::Ms, "ms"),
    (Precision::Us, "us"),
    (Precision::Ns, "ns"),
];

/// The format of the numbers in column `name`.
///
/// # Errors
/// If no reading is plausible, or several are; the message names the readings and their options.
pub fn form(name: &str, evidence: &TimeEvidence) -> Result<TimeFormat> {
    let cell = evidence.first_number();
    let (from, to) = plausible();
    let numbers = [evidence.number_min_text(), evidence.number_max_text()];
    let is_plausible = |form: &TimeFormat| {
        let reader = reader(form.clone());
        let mut times = numbers.iter().map(|number| reader.read(number));
        times.all(|time| time.is_ok_and(|ns| (from..=to).contains(&ns)))
    };
    let units = UNITS.map(|(unit, option)| NumberReading {
        form: TimeFormat::Number(unit),
        option: format!("--precision {option}"),
    });
    let counts = TimeCount::ALL.map(|count| NumberReading {
        form: TimeFormat::Counted(count),
        option: format!("--time-format {}", count.option()),
    });
    let days = NumberReading {
        form: TimeFormat::SpreadsheetDays,
        option: "--time-format excel".to_owned(),
    };
    let all = units.into_iter().chain(counts).chain([days]);
    let mut fitting: Vec<NumberReading> = all.filter(|one| is_plausible(&one.form)).collect();
    // The first and the last number suffice for counts, but not for dates in digits.
    fitting.extend(evidence.digit_patterns().map(|pattern| NumberReading {
        form: TimeFormat::Pattern(pattern.pattern.to_owned()),
        option: format!("--time-format '{}'", pattern.pattern),
    }));
    if let [
        NumberReading {
            form: form @ TimeFormat::Number(_),
            ..
        },
    ] = fitting.as_slice()
    {
        return Ok(form.clone());
    }
    if fitting.is_empty() {
        let guess = TimeFormat::Number(Precision::guess(evidence.number_max()));
        let time = sample(&guess, evidence.number_max_text());
        let as_guess = match (&guess, time) {
            (TimeFormat::Number(unit), Some(time)) => {
                format!(
                    "('{}' in {unit} since 1970 is {time})",
                    evidence.number_max_text()
                )
            }
            _ => format!("('{cell}')"),
        };
        bail!(
            "the numbers in column '{name}' {as_guess} are recent times in no unit, or in several \
             units; give --precision s, ms, us or ns, --time-format ticks (.NET), filetime (Windows), \
             labview (seconds since 1904), excel, or a pattern such as '%d%m%Y%H', or another \
             --time-column"
        );
    }
    let is_days = matches!(fitting.as_slice(), [one] if one.form == TimeFormat::SpreadsheetDays);
    let guess = Precision::guess(evidence.number_max());
    let guessed = TimeFormat::Number(guess);
    if !is_days && fitting.iter().all(|one| one.form != guessed) {
        // What the number would be at first sight, although it is implausible.
        let option = UNITS.iter().find(|(unit, _)| *unit == guess);
        let option = option.map_or("", |(_, option)| option);
        let reading = NumberReading {
            form: guessed,
            option: format!("--precision {option}"),
        };
        fitting.insert(0, reading);
    }
    let readings: Vec<String> = fitting
        .iter()
        .filter_map(|one| Some(format!("{} ({})", sample(&one.form, cell)?, one.option)))
        .collect();
    if is_days {
        bail!(
            "the numbers in column '{name}' ('{cell}') look like the days that spreadsheets count \
             from 1899-12-30: {}; give --time-format excel if they are, or else --precision s, ms, \
             us or ns",
            readings.join("")
        );
    }
    bail!(
        "the numbers in column '{name}' do not say how they are times: '{cell}' would be {}; give the \
         option that is right",
        readings.join(", or ")
    )
}

fn reader(form: TimeFormat) -> TimeReader {
    TimeReader {
        form,
        zone: FileZone::with_repeated_hour(None),
    }
}

/// The time of a number, for people.
pub fn sample(form: &TimeFormat, number: &str) -> Option<String> {
    let ns = reader(form.clone()).read(number).ok()?;
    let time = Timestamp::from_nanosecond(i128::from(ns)).ok()?;
    Some(time.to_string())
}

/// Looks for times of line protocol that are implausible in nanoseconds, and recent in another unit.
pub struct LineTimes {
    plausible: (i64, i64),
    /// The first line with such a time, the time, and its unit.
    found: Option<(u64, i64, Precision, &'static str)>,
    count: u64,
}

impl LineTimes {
    /// Has seen no time yet.
    pub fn new() -> Self {
        Self {
            plausible: plausible(),
            found: None,
            count: 0,
        }
    }

    /// Looks at the times of a batch, and their lines.
    pub fn add(&mut self, times: &[i64], lines: &[u64]) {
        let (from, to) = self.plausible;
        for (at, time) in times.iter().enumerate() {
            if (from..=to).contains(time) {
                continue;
            }
            let unit = UNITS[..3].iter().find(|(unit, _)| {
                let ns = time.checked_mul(unit.ns());
                ns.is_some_and(|ns| (from..=to).contains(&ns))
            });
            let Some((unit, option)) = unit else { continue };
            self.count += 1;
            let line = lines.get(at).copied().unwrap_or(0);
            if self.found.is_none_or(|(first, ..)| line < first) {
                self.found = Some((line, *time, *unit, *option));
            }
        }
    }

    /// Refuses the file if it has such a time.
    pub fn check(&self) -> Result<()> {
        let Some((line, time, unit, option)) = self.found else {
            return Ok(());
        };
        let shown = |unit: Precision| {
            sample(&TimeFormat::Number(unit), &time.to_string()).unwrap_or_default()
        };
        bail!(
            "line {line}: the time {time} is {} in nanoseconds, the unit if none is given, and {} in \
             {unit}{}; give --precision {option}, or --precision ns if nanoseconds are right; nothing \
             was written",
            shown(Precision::Ns),
            shown(unit),
            match self.count {
                1 => String::new(),
                count => format!(" ({} are like it)", crate::terminal::counted(count, "time")),
            }
        )
    }
}
