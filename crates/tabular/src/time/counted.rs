//! Times that are a number of units since a day that is not 1970-01-01.

use super::decimal_ns;
use jiff::civil::{self, DateTime};

/// A way to count time, as a program or operating system does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCount {
    /// .NET: 100 ns since the year 1, in any zone.
    Ticks,
    /// Windows: 100 ns since 1601, UTC.
    FileTime,
    /// `LabVIEW` and old Macs: seconds since 1904, UTC.
    LabView,
}

impl TimeCount {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ticks, Self::FileTime, Self::LabView];

    /// The name by which an option selects it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Ticks => "ticks",
            Self::FileTime => "filetime",
            Self::LabView => "labview",
        }
    }

    /// What it counts.
    pub fn words(self) -> &'static str {
        match self {
            Self::Ticks => ".NET ticks: 100 ns since the year 1",
            Self::FileTime => "Windows file time: 100 ns since 1601",
            Self::LabView => "seconds since 1904",
        }
    }

    /// Whether its times are UTC.
    pub fn is_utc(self) -> bool {
        self != Self::Ticks
    }

    /// The count of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|count| count.option() == name)
    }

    /// The time that `text` counts.
    pub fn read(self, text: &str) -> Option<DateTime> {
        let (unit_ns, begin) = match self {
            Self::Ticks => (100, civil::date(1, 1, 1)),
            Self::FileTime => (100, civil::date(1601, 1, 1)),
            Self::LabView => (1_000_000_000, civil::date(1904, 1, 1)),
        };
        let ns = decimal_ns(text, unit_ns)?;
        let (seconds, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
        let span = jiff::SignedDuration::new(i64::try_from(seconds).ok()?, rest as i32);
        begin
            .to_datetime(civil::Time::midnight())
            .checked_add(span)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_begin_where_their_programs_begin() {
        for (count, text, time) in [
            (
                TimeCount::Ticks,
                "639028224000000000",
                "2026-01-01T00:00:00",
            ),
            (
                TimeCount::FileTime,
                "134116992000000000",
                "2026-01-01T00:00:00",
            ),
            (TimeCount::LabView, "3850070400", "2026-01-01T00:00:00"),
            (
                TimeCount::LabView,
                "3850070400.25",
                "2026-01-01T00:00:00.25",
            ),
        ] {
            assert_eq!(count.read(text).unwrap().to_string(), time, "{text}");
        }
        assert_eq!(TimeCount::Ticks.read("9e40"), None);
        assert_eq!(TimeCount::LabView.read("x"), None);
    }
}
