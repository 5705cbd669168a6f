//! Finds the columns that make up the time of each row.
//!
//! The values decide what a column can be, and its name how likely it is. A column that clearly belongs
//! to the time (a zone, AM or PM, an hour beside a date) is used; where that is not clear, the plan fails
//! and names the column, because a time without its zone is wrong and looks right.

use super::number_times;
use super::time_columns::{TimeColumns, TimeSearch};
use super::time_extras::{self, ExtraSearch};
use super::time_guess;
use anyhow::{Result, bail};
use marigram_tabular::names::{self, TimeNameStrength};
use marigram_tabular::time::{
    FileZone, TimeCount, TimeEvidence, TimeFormat, TimePart, TimeReader, check_pattern,
};
use std::cmp::Reverse;

/// What was found out about the time of a file.
pub(crate) struct FoundTime {
    /// Its columns.
    pub columns: TimeColumns,
    /// How it is read.
    pub reader: TimeReader,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Finds the time of a file.
///
/// # Errors
/// If no column is a time, or it is not clear which columns are.
pub(crate) fn find(search: &TimeSearch<'_>) -> Result<FoundTime> {
    let mut notes = Vec::new();
    let told = search.named_columns()?;
    let columns = match &told {
        Some(told) => {
            let columns = search.assigned(told)?;
            notes.extend(time_extras::left_out(&search.extras(&columns)));
            columns
        }
        None => {
            let base = search.detected(&mut notes)?;
            time_extras::complete(&search.extras(&base), &mut notes)?
        }
    };
    let reader = search.reader(&columns, &mut notes)?;
    Ok(FoundTime {
        columns,
        reader,
        notes,
    })
}

impl<'a> TimeSearch<'a> {
    fn names(&self) -> &'a [String] {
        &self.dialect.names
    }

    fn times(&self, at: usize) -> &TimeEvidence {
        &self.profiles[at].times
    }

    fn extras<'s>(&'s self, base: &'s TimeColumns) -> ExtraSearch<'s> {
        ExtraSearch { search: self, base }
    }

    fn position(&self, name: &str) -> Option<usize> {
        let names = self.names();
        let exact = names.iter().position(|found| found == name);
        exact.or_else(|| {
            let mut alike = names.iter();
            alike.position(|found| found.eq_ignore_ascii_case(name))
        })
    }

    fn column(&self, name: &str, what: &str) -> Result<usize> {
        match self.position(name) {
            Some(at) => Ok(at),
            None => bail!(
                "there is no {what} column '{name}'; the file has: {}",
                self.names().join(", ")
            ),
        }
    }

    /// The columns that the options name, in their order.
    fn named_columns(&self) -> Result<Option<Vec<usize>>> {
        let options = self.options;
        let mut told = Vec::new();
        if let Some(date) = &options.date_column {
            told.push(self.column(date, "date")?);
        }
        match &options.time_column {
            // A name may hold commas.
            Some(name) if self.position(name).is_some() => told.push(self.column(name, "time")?),
            Some(names) => {
                for name in names.split(',') {
                    told.push(self.column(name.trim(), "time")?);
                }
            }
            None => {
                let clock = self.profiles.iter().position(|p| p.times.is_clock());
                if let (Some(clock), false) = (clock, told.is_empty()) {
                    told.push(clock);
                }
            }
        }
        let mut seen = Vec::new();
        told.retain(|at| {
            let is_new = !seen.contains(at);
            seen.push(*at);
            is_new
        });
        Ok((!told.is_empty()).then_some(told))
    }

    /// What each of the columns is that the user named.
    fn assigned(&self, told: &[usize]) -> Result<TimeColumns> {
        if let [at] = told {
            return Ok(TimeColumns::single(*at));
        }
        if self.options.time_format.is_some() {
            return Ok(TimeColumns {
                parts: told.iter().map(|at| (TimePart::Date, *at)).collect(),
                joined: true,
                ..TimeColumns::default()
            });
        }
        let mut columns = TimeColumns::default();
        for at in told {
            let part = self.part_of(*at, &columns);
            let Some(part) = part else {
                bail!(
                    "column '{}' ('{}') is no part of a time that can be read beside the others; \
                     give --time-format for all of them together, or leave it out",
                    self.names()[*at],
                    self.times(*at).first()
                );
            };
            if part == TimePart::Zone {
                columns.offset_unit = self.times(*at).offset_unit();
            }
            columns.parts.push((part, *at));
        }
        columns.parts.sort_unstable();
        Ok(columns)
    }

    /// What a named column is, beside those that are known already.
    fn part_of(&self, at: usize, columns: &TimeColumns) -> Option<TimePart> {
        use TimePart::{
            Clock, Date, Day, Half, Hour, Millisecond, Minute, Month, Second, Year, Zone,
        };
        let (name, times) = (&self.names()[at], self.times(at));
        let has = |part: TimePart| columns.place(part).is_some();
        if times.is_date() && !has(Date) && !has(Year) {
            return Some(Date);
        }
        if times.is_clock() && !has(Clock) {
            return Some(Clock);
        }
        for part in [Half, Zone] {
            if times.is_part(part) && !has(part) {
                return Some(part);
            }
        }
        let numbers = [Year, Month, Day, Hour, Minute, Second, Millisecond];
        let mut named = numbers.into_iter();
        let named = named.find(|part| part.is_named(name) && times.is_part(*part) && !has(*part));
        if named.is_some() {
            return named;
        }
        if Zone.is_named(name) && times.offset_unit().is_some() && !has(Zone) {
            return Some(Zone);
        }
        if times.is_digit_clock() && !has(Clock) && !has(Hour) {
            return Some(Clock);
        }
        // Without a name that tells, the order does: hour, minute, second.
        let mut rest = [Hour, Minute, Second].into_iter();
        rest.find(|part| !has(*part) && !has(Clock) && times.is_part(*part))
    }

    /// The columns of date and time of day, by their values and names.
    fn detected(&self, notes: &mut Vec<String>) -> Result<TimeColumns> {
        let Some(at) = self.best(notes) else {
            if let Some(columns) = time_extras::numbered_date(self) {
                return Ok(columns);
            }
            bail!(
                "which column is the time? Give --time-column; the file has: {}{}",
                self.names().join(", "),
                time_guess::nearest(self)
            );
        };
        let times = self.times(at);
        if times.is_clock() {
            let date = self.beside(at, &TimeEvidence::is_date_only);
            let date = date.or_else(|| self.beside(at, &TimeEvidence::is_midnight_only));
            if let Some(date) = date {
                return Ok(TimeColumns {
                    parts: vec![(TimePart::Date, date), (TimePart::Clock, at)],
                    ..TimeColumns::default()
                });
            }
            if let Some(mut columns) = time_extras::numbered_date(self) {
                columns.parts.push((TimePart::Clock, at));
                return Ok(columns);
            }
            bail!(
                "column '{}' holds times of day without a date; give --time-column or \
                 --date-column; the file has: {}",
                self.names()[at],
                self.names().join(", ")
            );
        }
        let mut columns = TimeColumns::single(at);
        if let Some(clock) = self.clock_beside(at)? {
            columns.parts.push((TimePart::Clock, clock));
        }
        Ok(columns)
    }

    /// The time of day for the dates of column `at`.
    fn clock_beside(&self, at: usize) -> Result<Option<usize>> {
        let is_midnight = !self.times(at).is_date_only() && self.times(at).is_midnight_only();
        if !self.times(at).is_date_only() && !is_midnight {
            return Ok(None);
        }
        let clocks = (0..self.profiles.len()).filter(|other| self.times(*other).is_clock());
        let clocks: Vec<usize> = clocks.collect();
        let is_named = |clock: &usize| {
            names::time_name_strength(&self.names()[*clock]).0 >= TimeNameStrength::Word
        };
        let named: Vec<usize> = clocks.iter().copied().filter(is_named).collect();
        match (named.as_slice(), clocks.as_slice()) {
            ([clock], _) => Ok(Some(*clock)),
            // Date and time of day stand in pairs.
            (named, _) if named.len() > 1 && named.contains(&(at + 1)) => Ok(Some(at + 1)),
            ([], [clock]) if !is_midnight && clock.abs_diff(at) == 1 => {
                let name = &self.names()[*clock];
                if name == &format!("column{}", clock + 1) {
                    return Ok(Some(*clock));
                }
                Err(self.unclear_clocks(at, &clocks))
            }
            ([], []) => Ok(None),
            ([], _) if is_midnight => Ok(None),
            _ => Err(self.unclear_clocks(at, &clocks)),
        }
    }

    fn unclear_clocks(&self, at: usize, clocks: &[usize]) -> anyhow::Error {
        let date = self.names()[at].as_str();
        let list: Vec<String> = clocks
            .iter()
            .map(|clock| format!("'{}'", self.names()[*clock]))
            .collect();
        anyhow::anyhow!(
            "column '{date}' holds dates without a time of day, and it is not clear whether {} belongs to \
             it; give --time-column {} to join them, or --time-column {} for midnight",
            list.join(" or "),
            time_extras::option(&[date, self.names()[clocks[0]].as_str()]),
            time_extras::option(&[date])
        )
    }

    /// The column near `at` that fits.
    fn beside(&self, at: usize, fits: &dyn Fn(&TimeEvidence) -> bool) -> Option<usize> {
        let near = [at.checked_sub(1), Some(at + 1)];
        let mut near = near.into_iter().flatten();
        let near = near.find(|at| *at < self.profiles.len() && fits(self.times(*at)));
        near.or_else(|| {
            let mut all = 0..self.profiles.len();
            all.find(|other| *other != at && fits(self.times(*other)))
        })
    }

    /// How well the values of a column are times: moments, days, times of day, nothing.
    fn value_rank(&self, at: usize) -> u8 {
        let times = self.times(at);
        if times.is_date_only() {
            2
        } else if times.is_date() || times.is_epoch() {
            3
        } else {
            u8::from(times.is_clock())
        }
    }

    /// The column that is the time, or the date or time of day in it.
    fn best(&self, notes: &mut Vec<String>) -> Option<usize> {
        let strength = |at: usize| names::time_name_strength(&self.names()[at]);
        let of_table = self.known.and_then(|known| {
            let mut names = self.table_names.iter();
            names.position(|name| *name == known.time)
        });
        if let Some(at) = of_table.filter(|at| !self.profiles[*at].is_empty()) {
            return Some(at);
        }
        let nameless = self.dialect.header_line.is_none();
        let is_likely = |at: &usize| {
            let (values, names) = (self.value_rank(*at), strength(*at).0);
            let is_written = self.times(*at).is_date();
            values > 0 && (is_written || nameless || names > TimeNameStrength::None)
        };
        let is_utc = |at: usize| {
            let lower = self.names()[at].to_lowercase();
            lower.contains("utc") || lower.contains("gmt")
        };
        let key = |at: &usize| {
            let (names, rank) = strength(*at);
            let values = self.value_rank(*at);
            (names, values, is_utc(*at), Reverse(rank), Reverse(*at))
        };
        let likely: Vec<usize> = (0..self.profiles.len()).filter(is_likely).collect();
        let best = likely.iter().copied().max_by_key(key);
        // A column that is named like a time, but cannot be read, must not be passed over silently.
        let is_misread = |at: &usize| {
            let (names, rank) = strength(*at);
            let is_sure = names == TimeNameStrength::Whole && rank <= names::SURE_NAMES;
            is_sure && self.value_rank(*at) == 0 && !self.profiles[*at].is_empty()
        };
        let best_name = best.map_or(TimeNameStrength::None, |at| strength(at).0);
        if best_name < TimeNameStrength::Whole
            && let Some(at) = (0..self.profiles.len()).find(is_misread)
        {
            return Some(at);
        }
        let best = best?;
        let is_rival = |at: &&usize| {
            let (values, names) = (self.value_rank(**at), strength(**at).0);
            **at != best
                && values == 3
                && (names >= TimeNameStrength::Word || names == strength(best).0)
        };
        let rivals = likely.iter().filter(is_rival);
        let rivals: Vec<&str> = rivals.map(|at| self.names()[*at].as_str()).collect();
        if !rivals.is_empty() {
            notes.push(format!(
                "further columns hold times: {}; --time-column chooses another than '{}'",
                rivals.join(", "),
                self.names()[best]
            ));
        }
        Some(best)
    }

    fn reader(&self, columns: &TimeColumns, notes: &mut Vec<String>) -> Result<TimeReader> {
        let options = self.options;
        let repeated = options.repeated_hour.map(Into::into);
        let mut zone = match &options.tz {
            Some(name) => FileZone::named(name, repeated).map_err(anyhow::Error::msg)?,
            None => FileZone::with_repeated_hour(repeated),
        };
        let form = self.form(columns)?;
        let texts = columns.parts.iter().map(|(_, at)| self.times(*at).zones());
        let has_zone = columns.place(TimePart::Zone).is_some() || texts.max() > Some((0, 0));
        let is_number = form.is_moment();
        let in_name = columns.parts.iter().find_map(|(_, at)| {
            let name = &self.names()[*at];
            names::zone_in_name(name).map(|zone| (name, zone))
        });
        if let Some((name, told)) = in_name.filter(|_| zone.name().is_none() && !has_zone)
            && !is_number
        {
            let is_exact = told.contains(['+', '-', '/'])
                || ["UTC", "GMT"]
                    .iter()
                    .any(|zone| told.eq_ignore_ascii_case(zone));
            match FileZone::named(told, repeated) {
                Ok(named) if is_exact => zone = named,
                _ => notes.push(format!(
                    "the name of column '{name}' mentions the zone {told}, which is not used; give --tz"
                )),
            }
        }
        Ok(TimeReader { form, zone })
    }

    fn form(&self, columns: &TimeColumns) -> Result<TimeFormat> {
        let options = self.options;
        if let Some(format) = &options.time_format {
            return Ok(match format.as_str() {
                "excel" => TimeFormat::SpreadsheetDays,
                format => match TimeCount::named(format) {
                    Some(count) => TimeFormat::Counted(count),
                    None => {
                        if let Err(reason) = check_pattern(format) {
                            bail!("--time-format '{format}': {reason}");
                        }
                        TimeFormat::Pattern(format.to_owned())
                    }
                },
            });
        }
        if let Some(precision) = options.precision {
            return Ok(TimeFormat::Number(precision));
        }
        let order = options.date_order.map(Into::into);
        let Some(at) = columns.place(TimePart::Date) else {
            return Ok(TimeFormat::Written(marigram_tabular::time::DateOrder::Ymd));
        };
        let (name, evidence) = (&self.names()[at], self.times(at));
        let form = evidence.form(name, order)?;
        if matches!(form, TimeFormat::Number(_)) {
            return number_times::form(name, evidence);
        }
        Ok(form)
    }
}
