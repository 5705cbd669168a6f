//! The columns that complete a time: an hour beside a date, AM or PM, milliseconds, a zone.

use super::time_columns::{TimeColumns, TimeSearch};
use anyhow::{Result, bail};
use marigram_tabular::names::{self, TimeNameStrength};
use marigram_tabular::time::{TimeEvidence, TimePart};

/// A search for what completes the time in `base`.
pub(crate) struct ExtraSearch<'a> {
    /// The file.
    pub search: &'a TimeSearch<'a>,
    /// The columns of the date and of the time of day.
    pub base: &'a TimeColumns,
}

/// A column that completes the time, or may do so.
struct ExtraColumn {
    part: TimePart,
    at: usize,
    /// Whether it is certain.
    is_sure: bool,
}

/// The time with what completes it.
///
/// # Errors
/// If it is not clear whether a column is part of the time.
pub(crate) fn complete(extras: &ExtraSearch<'_>, notes: &mut Vec<String>) -> Result<TimeColumns> {
    let mut columns = extras.base.clone();
    if extras.search.options.precision.is_some() {
        return Ok(columns);
    }
    let found = extras.found();
    extras.refuse_unreadable_clock(&found)?;
    extras.refuse_unreadable(&found)?;
    extras.refuse_missing_minute(&found)?;
    for extra in &found {
        let rival = found.iter().find(|other| {
            other.part == extra.part && other.at != extra.at && other.is_sure && extra.is_sure
        });
        if let Some(rival) = rival {
            bail!(
                "columns '{}' and '{}' could both be the {} of the time; give --time-column {}",
                extras.name(extra.at),
                extras.name(rival.at),
                extra.part,
                extras.option(&columns, Some(extra.at))
            );
        }
        if !extra.is_sure {
            bail!(
                "column '{}' may be the {} of the time; give --time-column {} if it is, or --time-column {} \
                 to store it as data",
                extras.name(extra.at),
                extra.part,
                extras.option(&columns, Some(extra.at)),
                extras.option(&columns, None)
            );
        }
        extras.refuse_known(extra)?;
        if extra.part == TimePart::Zone {
            columns.offset_unit = extras.times(extra.at).offset_unit();
        }
        columns.parts.push((extra.part, extra.at));
    }
    columns.parts.sort_unstable();
    if let (Some(unit), Some(at)) = (columns.offset_unit, columns.place(TimePart::Zone)) {
        notes.push(format!(
            "column '{}' is the offset from UTC in {unit}",
            extras.name(at)
        ));
    }
    let added = columns
        .parts
        .iter()
        .filter(|part| !extras.base.parts.contains(part));
    let added: Vec<String> = added
        .map(|(part, at)| format!("'{}' is its {part}", extras.name(*at)))
        .collect();
    if !added.is_empty() {
        notes.push(format!(
            "the time is made of several columns: {}; --time-column {} leaves the others out",
            added.join(", "),
            extras.option(extras.base, None)
        ));
    }
    Ok(columns)
}

/// Notes about columns that the user left out of the time.
pub(crate) fn left_out(extras: &ExtraSearch<'_>) -> Vec<String> {
    let found = extras.found();
    let sure = found.iter().filter(|extra| extra.is_sure);
    sure.map(|extra| extras.note_left_out(extra)).collect()
}

/// A date whose year, month and day are columns.
pub(crate) fn numbered_date(search: &TimeSearch<'_>) -> Option<TimeColumns> {
    let parts = [TimePart::Year, TimePart::Month, TimePart::Day];
    let place = |part: TimePart| {
        let mut names = search.dialect.names.iter().enumerate();
        let found = names
            .find(|(at, name)| part.is_named(name) && search.profiles[*at].times.is_part(part));
        found.map(|(at, _)| (part, at))
    };
    let parts: Option<Vec<_>> = parts.into_iter().map(place).collect();
    Some(TimeColumns {
        parts: parts?,
        ..TimeColumns::default()
    })
}

/// The value of `--time-column` for these columns, in quotation marks if a shell needs them.
pub(crate) fn option(names: &[&str]) -> String {
    let names = names.join(",");
    let is_plain =
        |char: char| char.is_alphanumeric() || matches!(char, ',' | '_' | '.' | '-' | '/');
    if names.chars().all(is_plain) {
        names
    } else {
        format!("'{names}'")
    }
}

impl ExtraSearch<'_> {
    fn name(&self, at: usize) -> &str {
        &self.search.dialect.names[at]
    }

    fn times(&self, at: usize) -> &TimeEvidence {
        &self.search.profiles[at].times
    }

    fn columns(&self) -> impl Iterator<Item = usize> {
        let profiles = self.search.profiles;
        let is_used = |at: &usize| !profiles[*at].is_empty() && !self.base.contains(*at);
        (0..profiles.len()).filter(is_used)
    }

    /// The value of `--time-column` for these columns and one more.
    fn option(&self, columns: &TimeColumns, more: Option<usize>) -> String {
        let all = columns.parts.iter().map(|(_, at)| *at).chain(more);
        let names: Vec<&str> = all.map(|at| self.name(at)).collect();
        option(&names)
    }

    fn note_left_out(&self, extra: &ExtraColumn) -> String {
        format!(
            "column '{}' is not part of the time; --time-column {} makes it its {}",
            self.name(extra.at),
            self.option(self.base, Some(extra.at)),
            extra.part
        )
    }

    /// Whether a column has no name, or stands beside one of the time.
    fn is_near(&self, at: usize) -> bool {
        let is_nameless = self.name(at) == format!("column{}", at + 1);
        let mut parts = self.base.parts.iter();
        is_nameless || parts.any(|(_, base)| base.abs_diff(at) == 1)
    }

    fn found(&self) -> Vec<ExtraColumn> {
        let mut found = self.clocks();
        found.extend(self.milliseconds());
        found.extend(self.halves(&found));
        found.extend(self.zones());
        found
    }

    fn has_clock(&self) -> bool {
        let Some(date) = self.base.place(TimePart::Date) else {
            return self.base.place(TimePart::Clock).is_some();
        };
        let times = self.times(date);
        let is_midnight = times.is_date_only() || times.is_midnight_only();
        self.base.place(TimePart::Clock).is_some() || times.is_epoch() || !is_midnight
    }

    /// Hours, minutes and seconds beside a date, or a time of day without marks.
    fn clocks(&self) -> Vec<ExtraColumn> {
        if self.has_clock() {
            return Vec::new();
        }
        let sure = |part: TimePart, at: usize| ExtraColumn {
            part,
            at,
            is_sure: true,
        };
        let named = |part: TimePart| {
            let is_part =
                |at: &usize| part.is_named(self.name(*at)) && self.times(*at).is_part(part);
            self.columns().find(is_part)
        };
        let Some(hour) = named(TimePart::Hour) else {
            let is_clock = |at: &usize| {
                let strength = names::time_name_strength(self.name(*at)).0;
                let lower = self.name(*at).to_lowercase();
                let is_named = strength >= TimeNameStrength::Word || lower.starts_with("hhmm");
                is_named && self.times(*at).is_digit_clock()
            };
            let clock = self.columns().find(is_clock);
            return clock
                .map(|at| sure(TimePart::Clock, at))
                .into_iter()
                .collect();
        };
        let mut found = vec![ExtraColumn {
            part: TimePart::Hour,
            at: hour,
            // An h may be a height.
            is_sure: self.name(hour).len() > 1,
        }];
        if let Some(minute) = named(TimePart::Minute).filter(|at| !self.is_smallest(*at)) {
            found.push(sure(TimePart::Minute, minute));
            found.extend(named(TimePart::Second).map(|at| sure(TimePart::Second, at)));
        } else if let Some(at) = self.likely_minute(hour) {
            found.push(ExtraColumn {
                part: TimePart::Minute,
                at,
                is_sure: false,
            });
        }
        found
    }

    /// Whether a column is the smallest value: "min" beside "max".
    fn is_smallest(&self, at: usize) -> bool {
        let is = |at: usize, name: &str| self.name(at).eq_ignore_ascii_case(name);
        is(at, "min") && self.columns().any(|at| is(at, "max"))
    }

    /// The column behind that of the hour, if it may hold the minutes: its numbers can be some, and its
    /// name begins like theirs.
    fn likely_minute(&self, hour: usize) -> Option<usize> {
        let at = self.columns().find(|at| *at == hour + 1)?;
        let name = self.name(at).trim().to_lowercase();
        let begins = ["mi", "mn", "m_", "mm"];
        let is_named = name == "m" || begins.iter().any(|begin| name.starts_with(begin));
        let is_likely = is_named && !self.is_smallest(at) && !TimePart::Millisecond.is_named(&name);
        (is_likely && self.times(at).is_part(TimePart::Minute)).then_some(at)
    }

    /// Milliseconds directly behind the time of day.
    fn milliseconds(&self) -> Option<ExtraColumn> {
        let part = TimePart::Millisecond;
        let clock = self
            .base
            .place(TimePart::Clock)
            .or(self.base.place(TimePart::Date))?;
        if !self.has_clock() || self.times(clock).is_epoch() {
            return None;
        }
        let at = self.columns().find(|at| part.is_named(self.name(*at)))?;
        let sample = self.search.sample.get(clock)?;
        let seconds = sample.rsplit(':').next().unwrap_or_default();
        if seconds.contains(['.', ',']) {
            return None;
        }
        let is_part = self.times(at).is_part(part) && at == clock + 1;
        is_part.then_some(ExtraColumn {
            part,
            at,
            is_sure: true,
        })
    }

    /// AM or PM beside a time of day that says neither.
    fn halves(&self, clocks: &[ExtraColumn]) -> Vec<ExtraColumn> {
        let base = self.base.parts.iter().map(|(_, at)| *at);
        let hour = clocks.iter().find(|extra| extra.part == TimePart::Hour);
        let needs = match hour {
            Some(hour) => self.times(hour.at).numbers_at_most(12.0),
            None => self.has_clock() && base.clone().all(|at| self.times(at).needs_half()),
        };
        if !needs || base.clone().any(|at| self.times(at).is_epoch()) {
            return Vec::new();
        }
        let halves = self
            .columns()
            .filter(|at| self.times(*at).is_part(TimePart::Half));
        let halves = halves.map(|at| {
            let near_hour = hour.is_some_and(|hour| hour.at.abs_diff(at) == 1);
            ExtraColumn {
                part: TimePart::Half,
                at,
                is_sure: TimePart::Half.is_named(self.name(at)) || self.is_near(at) || near_hour,
            }
        });
        halves.collect()
    }

    /// Zones beside times that name none.
    fn zones(&self) -> Vec<ExtraColumn> {
        let base = self.base.parts.iter().map(|(_, at)| self.times(*at));
        let (mut has_zone, mut is_number) = (false, false);
        for times in base {
            has_zone |= times.zones().0 + times.zones().1 >= times.cells();
            is_number |= times.is_epoch();
        }
        if has_zone || is_number {
            return Vec::new();
        }
        let zones = self.columns().filter_map(|at| {
            let (name, times) = (self.name(at), self.times(at));
            let is_named = TimePart::Zone.is_named(name);
            let is_zone = times.is_part(TimePart::Zone);
            let is_offset = is_named && times.offset_unit().is_some();
            if !is_zone && !is_offset {
                return None;
            }
            let lower = name.to_lowercase();
            let words = ["zone", "offset", "tz"];
            let is_sure =
                is_named || self.is_near(at) || words.iter().any(|word| lower.contains(word));
            Some(ExtraColumn {
                part: TimePart::Zone,
                at,
                is_sure,
            })
        });
        zones.collect()
    }

    /// Refuses a column that is named like a part of the time, but whose values cannot be read as one.
    fn refuse_unreadable(&self, found: &[ExtraColumn]) -> Result<()> {
        let is_found = |part: TimePart| found.iter().any(|extra| extra.part == part);
        let times = self.base.parts.iter().map(|(_, at)| self.times(*at));
        let (mut is_local, mut needs_half) = (true, self.has_clock());
        for times in times {
            is_local &= !times.is_epoch() && times.zones() == (0, 0);
            needs_half &= !times.is_epoch() && times.needs_half();
        }
        let wants_zone = is_local && self.search.options.tz.is_none();
        for (part, wanted) in [
            (
                TimePart::Hour,
                !self.has_clock() && !is_found(TimePart::Clock),
            ),
            // An hour alone would be the time of all its minutes.
            (TimePart::Minute, is_found(TimePart::Hour)),
            (TimePart::Second, is_found(TimePart::Minute)),
            (TimePart::Half, needs_half),
            (TimePart::Zone, wants_zone),
        ] {
            if !wanted || is_found(part) {
                continue;
            }
            // A letter alone has other meanings.
            let is_named = |at: &usize| {
                let name = self.name(*at);
                part.is_named(name) && name.len() > 1 && !self.is_smallest(*at)
            };
            let Some(at) = self.columns().find(is_named) else {
                continue;
            };
            let tz = match part {
                TimePart::Zone => "--tz, such as --tz Europe/Berlin, or ",
                _ => "",
            };
            bail!(
                "column '{}' is named like the {part} of the time, but '{}' cannot be read as one; give \
                 {tz}--time-column {}, which makes it no part of the time",
                self.name(at),
                self.times(at).first(),
                self.option(&self.with_clock(found, part), None)
            );
        }
        Ok(())
    }

    /// Refuses a second beside an hour without a minute: the column of the minute has an unknown name.
    fn refuse_missing_minute(&self, found: &[ExtraColumn]) -> Result<()> {
        let has = |part: TimePart| found.iter().any(|extra| extra.part == part);
        if !has(TimePart::Hour) || has(TimePart::Minute) {
            return Ok(());
        }
        let part = TimePart::Second;
        let is_second = |at: &usize| {
            let name = self.name(*at);
            name.len() > 1 && part.is_named(name) && self.times(*at).is_part(part)
        };
        let Some(second) = self.columns().find(is_second) else {
            return Ok(());
        };
        let columns = self.option(&self.with_clock(found, TimePart::Minute), None);
        bail!(
            "column '{}' is named like the second of the time, but no column is known as the minute; give \
             --time-column {columns},MINUTE,{0} with the name of the minute, or --time-column {columns} to \
             store it as data",
            self.name(second)
        );
    }

    /// The base with those of the `found` columns that come before `part`, if it is one of the time of day.
    fn with_clock(&self, found: &[ExtraColumn], part: TimePart) -> TimeColumns {
        let mut columns = self.base.clone();
        if matches!(part, TimePart::Minute | TimePart::Second) {
            let before = found.iter().filter(|extra| extra.part < part);
            columns
                .parts
                .extend(before.map(|extra| (extra.part, extra.at)));
        }
        columns
    }

    /// Refuses a date beside a column that is named like its time of day, but cannot be read as one.
    fn refuse_unreadable_clock(&self, found: &[ExtraColumn]) -> Result<()> {
        let is_clock = |extra: &ExtraColumn| matches!(extra.part, TimePart::Clock | TimePart::Hour);
        if self.has_clock() || found.iter().any(is_clock) {
            return Ok(());
        }
        let is_named = |at: &usize| {
            let strength = names::time_name_strength(self.name(*at)).0;
            let times = self.times(*at);
            let is_other = times.is_date() || times.is_epoch() || times.is_clock();
            let is_digits = self.name(*at).to_lowercase().starts_with("hhmm");
            (strength == TimeNameStrength::Whole || is_digits) && !is_other
        };
        let Some(at) = self.columns().find(is_named) else {
            return Ok(());
        };
        bail!(
            "column '{}' is named like a time of day, but '{}' cannot be read as one; give --time-column {} \
             and --time-format, such as '%d.%m.%Y %H.%M', or --time-column {} to store it as data",
            self.name(at),
            self.times(at).first(),
            self.option(self.base, Some(at)),
            self.option(self.base, None)
        )
    }

    /// Refuses a column that the table holds as a tag or field: its rows so far have other times.
    fn refuse_known(&self, extra: &ExtraColumn) -> Result<()> {
        let Some(known) = self.search.known else {
            return Ok(());
        };
        let name = &self.search.table_names[extra.at];
        if !known
            .tags
            .iter()
            .chain(&known.fields)
            .any(|(known, _)| known == name)
        {
            return Ok(());
        }
        bail!(
            "column '{name}' would be the {} of the time, but the table holds it as a value; give \
             --time-column {} to store it as before, or --time-column {} to make it part of the time",
            extra.part,
            self.option(self.base, None),
            self.option(self.base, Some(extra.at))
        )
    }
}
