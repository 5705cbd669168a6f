//! Which file is the log, and how much of it is valid.

use std::fmt;

/// Bits of the length; the bits above are the file's number.
const BYTES_BITS: u32 = 48;

/// What a shard's manifest records about the series log: the number of its file (modulo 2^16), and
/// how many bytes of it are valid. It is a single number, so that both change in one edit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition(pub u64);

impl LogPosition {
    /// Bytes of the file that are valid.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0 & ((1 << BYTES_BITS) - 1)
    }

    /// Name of the file in the shard's directory: `SERIES`, then `SERIES-1` and so on.
    #[must_use]
    pub fn file_name(self) -> String {
        match self.0 >> BYTES_BITS {
            0 => "SERIES".to_owned(),
            number => format!("SERIES-{number}"),
        }
    }

    /// Whether a file of this name is, or was, a log of series.
    #[must_use]
    pub fn is_file_name(name: &str) -> bool {
        name == "SERIES"
            || name
                .strip_prefix("SERIES-")
                .is_some_and(|number| number.parse::<u16>().is_ok())
    }

    /// The position after `bytes` more.
    pub(super) fn after(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }

    /// The beginning of the next file.
    pub(super) fn next_file(self) -> Self {
        Self((((self.0 >> BYTES_BITS) + 1) & u64::from(u16::MAX)) << BYTES_BITS)
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.bytes(), self.file_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_one_another() {
        let mut position = LogPosition(0).after(20);
        assert_eq!(
            (position.file_name().as_str(), position.bytes()),
            ("SERIES", 20)
        );
        position = position.next_file().after(7);
        assert_eq!(
            (position.file_name().as_str(), position.bytes()),
            ("SERIES-1", 7)
        );
        let last = LogPosition(u64::MAX << BYTES_BITS);
        assert_eq!(last.file_name(), "SERIES-65535");
        assert_eq!(last.next_file(), LogPosition(0));
        for (name, is) in [
            ("SERIES", true),
            ("SERIES-12", true),
            ("SERIES-x", false),
            ("MANIFEST", false),
        ] {
            assert_eq!(LogPosition::is_file_name(name), is, "{name}");
        }
    }
}
