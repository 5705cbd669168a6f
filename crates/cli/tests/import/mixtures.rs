//! Files with two or three of the usual problems at once, made from a seed, with known contents: every
//! stored row is compared with the one that was written.
//!
//! A failure names its seed. `MARIGRAM_MIXTURES=5000` tries that many seeds.

use crate::ImportFixture;
use std::fmt::Write as _;

/// Seeds to try.
const SEEDS: u64 = 60;

/// 2026-04-05T10:00:00Z, in seconds: the rows reach days beyond 12, so that dates are clear.
const BEGIN_S: i64 = 1_775_383_200;

/// A small random number generator (xorshift), so that a seed determines a file.
struct MixtureRandom(u64);

impl MixtureRandom {
    fn from_seed(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    fn is_one_of(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// How the times of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeStyle {
    Iso,
    IsoZoned,
    Blank,
    GermanDots,
    AmPm,
    Seconds,
    Milliseconds,
    TwoColumns,
    TwoGermanColumns,
    MonthName,
}

/// How the bytes of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteStyle {
    Utf8,
    WithMark,
    Latin1,
    Utf16,
}

/// What is special in a file.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a problem that a file has or has not"
)]
struct Mixture {
    time: TimeStyle,
    bytes: ByteStyle,
    delimiter: char,
    has_decimal_commas: bool,
    has_header: bool,
    preamble: usize,
    has_units: bool,
    null: &'static str,
    line_end: &'static str,
    quotes_all: bool,
    ends_open: bool,
}

/// A row as it should be stored.
#[derive(Clone, Debug, PartialEq)]
struct KnownRow {
    time_s: i64,
    device: &'static str,
    value: Option<f64>,
    count: Option<f64>,
    state: Option<&'static str>,
}

impl Mixture {
    /// Up to three problems, and now and then a mixture of all kinds.
    fn from_random(random: &mut MixtureRandom) -> Self {
        let mut mixture = Self {
            time: TimeStyle::Iso,
            bytes: ByteStyle::Utf8,
            delimiter: ',',
            has_decimal_commas: false,
            has_header: true,
            preamble: 0,
            has_units: false,
            null: "",
            line_end: "\n",
            quotes_all: false,
            ends_open: false,
        };
        for _ in 0..=1 + random.below(3) {
            match random.below(10) {
                0 => mixture.bytes = random.pick(&[ByteStyle::WithMark, ByteStyle::Utf16]),
                1 => mixture.bytes = ByteStyle::Latin1,
                2 => mixture.delimiter = random.pick(&[';', '\t', '|']),
                3 => {
                    mixture.has_decimal_commas = true;
                    mixture.delimiter = random.pick(&[';', ',', '\t']);
                }
                4 => mixture.has_header = false,
                5 => mixture.preamble = 1 + random.below(4) as usize,
                6 => mixture.has_units = true,
                7 => mixture.null = random.pick(&["-", "#N/A", "n/a", "NA", "NaN", "null"]),
                8 => mixture.line_end = "\r\n",
                _ => {
                    mixture.time = random.pick(&[
                        TimeStyle::IsoZoned,
                        TimeStyle::Blank,
                        TimeStyle::GermanDots,
                        TimeStyle::AmPm,
                        TimeStyle::Seconds,
                        TimeStyle::Milliseconds,
                        TimeStyle::TwoColumns,
                        TimeStyle::TwoGermanColumns,
                        TimeStyle::MonthName,
                    ]);
                }
            }
        }
        mixture.quotes_all = random.is_one_of(6);
        mixture.ends_open = random.is_one_of(5);
        mixture
    }

    fn names(&self) -> Vec<&'static str> {
        let times: &[&str] = match self.time {
            TimeStyle::TwoColumns => &["Date", "Time"],
            TimeStyle::TwoGermanColumns => &["Datum", "Uhrzeit"],
            TimeStyle::Seconds | TimeStyle::Milliseconds => &["ts"],
            _ => &["time"],
        };
        [times, &["Gerät", "Höhe", "count", "state"]].concat()
    }

    fn units(&self) -> Vec<&'static str> {
        let times = self.names().len() - 4;
        [&vec![""; times][..], &["", "m", "1/s", ""]].concat()
    }

    /// The cells of a time.
    fn time_cells(&self, time_s: i64) -> Vec<String> {
        let time = jiff::Timestamp::from_second(time_s).expect("it is near");
        let shown = |form: &str| time.strftime(form).to_string();
        match self.time {
            TimeStyle::Iso => vec![shown("%Y-%m-%dT%H:%M:%SZ")],
            TimeStyle::IsoZoned => {
                let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
                let local = time.to_zoned(zone);
                vec![local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()]
            }
            TimeStyle::Blank => vec![shown("%Y-%m-%d %H:%M:%S")],
            TimeStyle::GermanDots => vec![shown("%d.%m.%Y %H:%M:%S")],
            TimeStyle::AmPm => vec![shown("%m/%d/%Y %I:%M:%S %p")],
            TimeStyle::Seconds => vec![time_s.to_string()],
            TimeStyle::Milliseconds => vec![(time_s * 1000).to_string()],
            TimeStyle::TwoColumns => vec![shown("%Y-%m-%d"), shown("%H:%M:%S")],
            TimeStyle::TwoGermanColumns => vec![shown("%d.%m.%Y"), shown("%H:%M")],
            TimeStyle::MonthName => vec![shown("%d-%b-%Y %H:%M:%S")],
        }
    }

    fn number(&self, number: Option<f64>, digits: usize) -> String {
        let Some(number) = number else {
            return self.null.to_owned();
        };
        let text = format!("{number:.digits$}");
        if self.has_decimal_commas {
            text.replace('.', ",")
        } else {
            text
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let cells = cells.iter().map(|cell| {
            if self.quotes_all || cell.contains([self.delimiter, '"']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.clone()
            }
        });
        let cells: Vec<String> = cells.collect();
        cells.join(&self.delimiter.to_string())
    }

    /// The file.
    fn text(&self, rows: &[KnownRow]) -> Vec<u8> {
        let mut lines = Vec::new();
        let preamble = ["Logger 7", "Größe: normal", "exported by hand", ""];
        lines.extend(
            preamble
                .iter()
                .take(self.preamble)
                .map(|line| (*line).to_owned()),
        );
        let owned = |cells: Vec<&str>| cells.into_iter().map(str::to_owned).collect::<Vec<_>>();
        if self.has_header {
            lines.push(self.line(&owned(self.names())));
            if self.has_units {
                lines.push(self.line(&owned(self.units())));
            }
        }
        for row in rows {
            let mut cells = self.time_cells(row.time_s);
            cells.push(row.device.to_owned());
            cells.push(self.number(row.value, 2));
            cells.push(self.number(row.count, 0));
            cells.push(row.state.unwrap_or_default().to_owned());
            lines.push(self.line(&cells));
        }
        let mut text = lines.join(self.line_end);
        if !self.ends_open {
            text.push_str(self.line_end);
        }
        match self.bytes {
            ByteStyle::Utf8 => text.into_bytes(),
            ByteStyle::WithMark => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            ByteStyle::Latin1 => text.chars().map(|char| char as u8).collect(),
            ByteStyle::Utf16 => {
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                units.flat_map(u16::to_le_bytes).collect()
            }
        }
    }
}

/// Rows of two devices at the same times, over some weeks.
fn rows(random: &mut MixtureRandom) -> Vec<KnownRow> {
    let mut rows = Vec::new();
    let step_s = random.pick(&[60, 3600, 86_400]);
    let count = 20 + random.below(30) as i64;
    for at in 0..count {
        // Every file has days beyond 12.
        let time_s = BEGIN_S + at * step_s + if at > 10 { 20 * 86_400 } else { 0 };
        for device in ["Ofen", "Kühler"] {
            rows.push(KnownRow {
                time_s,
                device,
                value: (!random.is_one_of(8))
                    .then(|| (random.below(400_000) as f64 - 100_000.0) / 100.0),
                count: (!random.is_one_of(8)).then(|| random.below(5000) as f64),
                state: (!random.is_one_of(8)).then(|| random.pick(&["ok", "zu hoch", "off; low"])),
            });
        }
    }
    // Nothing is stored of a row without a value.
    rows.retain(|row| row.value.is_some() || row.count.is_some() || row.state.is_some());
    rows
}

/// The stored rows.
fn stored(place: &ImportFixture, time: &str) -> Vec<(i64, String, [String; 3])> {
    let answer = place.csv(&format!("SELECT * FROM m ORDER BY \"{time}\", 2 DESC"));
    let mut reader = answer.lines();
    reader.next();
    reader
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let time: jiff::Timestamp = cells[0].parse().expect("a time");
            let cell = |at: usize| cells.get(at).copied().unwrap_or_default().to_owned();
            (time.as_second(), cell(1), [cell(2), cell(3), cell(4)])
        })
        .collect()
}

#[test]
fn mixtures_of_problems_are_read_as_they_were_written() {
    let seeds = std::env::var("MARIGRAM_MIXTURES").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let mut wrong = String::new();
    for seed in 1..=seeds {
        let mut random = MixtureRandom::from_seed(seed);
        let mixture = Mixture::from_random(&mut random);
        let rows = rows(&mut random);
        if let Err(reason) = is_read(&mixture, &rows) {
            let _ = writeln!(wrong, "seed {seed}: {mixture:?}\n{reason}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Imports a file, and compares its rows.
fn is_read(mixture: &Mixture, rows: &[KnownRow]) -> Result<(), String> {
    let place = ImportFixture::new();
    let path = place.path("m.csv");
    let text = mixture.text(rows);
    std::fs::write(&path, &text).expect("it is written");
    let said = place.import(&[&path]);
    if !said.ok {
        let shown: String = String::from_utf8_lossy(&text).chars().take(400).collect();
        return Err(format!("refused: {}{}\n{shown}", said.out, said.err));
    }
    let columns = place.columns("m");
    let time = columns.split(' ').next().unwrap_or_default();
    let found = stored(&place, time);
    if found.len() != rows.len() {
        let (found, rows) = (found.len(), rows.len());
        return Err(format!("{found} rows of {rows}: {columns}\n{}", said.err));
    }
    let number =
        |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:?}"));
    for (found, row) in found.iter().zip(rows) {
        let state = row.state.unwrap_or_default().to_owned();
        let values = [number(row.value), number(row.count), state];
        let expected = (row.time_s, row.device.to_owned(), values);
        if *found != expected {
            return Err(format!(
                "{found:?} is not {expected:?}: {columns}\n{}",
                said.err
            ));
        }
    }
    Ok(())
}
