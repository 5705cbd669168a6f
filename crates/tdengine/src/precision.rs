//! The precision of a database's times.

const MS_NS: i64 = 1_000_000;
const US_NS: i64 = 1_000;

/// What an integer counts where it stands for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaosPrecision {
    /// Milliseconds.
    #[default]
    Milli,
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl TaosPrecision {
    /// The precision that an option names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Milli, Self::Micro, Self::Nano]
            .into_iter()
            .find(|precision| precision.name().eq_ignore_ascii_case(name))
    }

    /// Its name as an option.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Milli => "ms",
            Self::Micro => "us",
            Self::Nano => "ns",
        }
    }

    /// Nanoseconds of one tick.
    #[must_use]
    pub fn tick_ns(self) -> i64 {
        match self {
            Self::Milli => MS_NS,
            Self::Micro => US_NS,
            Self::Nano => 1,
        }
    }

    /// Digits of a second's fraction.
    #[must_use]
    pub fn digits(self) -> usize {
        match self {
            Self::Milli => 3,
            Self::Micro => 6,
            Self::Nano => 9,
        }
    }

    /// The time of a number of ticks, ns; `None` beyond 64 bits.
    #[must_use]
    pub fn to_ns(self, ticks: i64) -> Option<i64> {
        ticks.checked_mul(self.tick_ns())
    }

    /// The ticks of a time, rounded down.
    #[must_use]
    pub fn ticks(self, time_ns: i64) -> i64 {
        time_ns.div_euclid(self.tick_ns())
    }

    /// A time without what the precision does not have.
    #[must_use]
    pub fn truncate_ns(self, time_ns: i64) -> i64 {
        time_ns - time_ns.rem_euclid(self.tick_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_down() {
        let ms = TaosPrecision::from_name("MS").unwrap();
        assert_eq!(ms.ticks(-1), -1);
        assert_eq!(ms.truncate_ns(-1), -1_000_000);
        assert_eq!(ms.to_ns(5), Some(5_000_000));
        assert_eq!(ms.to_ns(i64::MAX), None);
        assert_eq!(TaosPrecision::from_name("s"), None);
    }
}
