//! How trees are kept in tables.
//!
//! - A database `root.sg` of IoTDB is a database of that name, in the form of [`TreePath`]'s text.
//! - Its devices are the series of one table, [`DEVICES_TABLE`]. The tag [`DEVICE_TAG`] holds the whole path,
//!   and the time is in nanoseconds. A device belongs to the database with the longest path above it, or
//!   equal to it ([`databases_above`]). If there is none, a write creates [`default_database`].
//! - A measurement is a field with its name, and has the type that the first device gave it. If a device
//!   has another type, or the name alone would mean something else, the field is called `name::TYPE`
//!   ([`field_name`], [`field_names`], [`measurement_of_field`]). `DATE` always has such a name: a field of
//!   32-bit integers without it is `INT32`. Who reads a measurement looks at all of its fields.
//! - `STRING` and `TEXT` are fields of texts. A timeseries is `STRING` if it was created so.
//! - Timeseries that were created explicitly have a row in [`TIMESERIES_TABLE`]. Those that only have values
//!   do not, so devices that only write cost nothing there.

use crate::path::TreePath;
use crate::value::IotDbType;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The table of a database whose series are the devices.
pub const DEVICES_TABLE: &str = "devices";

/// The table of a database with the timeseries that were created explicitly: one row each, at time 0.
pub const TIMESERIES_TABLE: &str = "timeseries";

/// The tag that holds the path of a device, in both tables.
pub const DEVICE_TAG: &str = "device";

/// The tag of [`TIMESERIES_TABLE`] that holds the name of a measurement.
pub const MEASUREMENT_TAG: &str = "measurement";

/// The time of rows in both tables.
pub const TIME_COLUMN: &str = "time";

/// Key of an answer's field metadata with the name of the column's IoTDB type. The values are: `Boolean`
/// for BOOLEAN, `Int32` for INT32 and DATE (`yyyymmdd`), `Int64` for INT64 and TIMESTAMP (ms), `Float32` for
/// FLOAT, `Float64` for DOUBLE, `Utf8` for TEXT and STRING, `Binary` for BLOB.
pub const TYPE_KEY: &str = "iotdb.type";

/// Key of an answer's schema metadata that is `true` if the answer has no column of times. Otherwise the
/// first column is [`TIME_ANSWER`].
pub const IGNORES_TIME_KEY: &str = "iotdb.ignores_time";

/// The first column of answers that have times: `Int64`, milliseconds since 1970, never null.
pub const TIME_ANSWER: &str = "Time";

/// What stands between a measurement and its type in the name of a field.
const TYPE_SEPARATOR: &str = "::";

/// Nanoseconds of a millisecond.
const MS_NS: i64 = 1_000_000;

/// The databases to which a device may belong, the nearest one first.
pub fn databases_above(device: &TreePath) -> impl Iterator<Item = TreePath> {
    let counts = (2..=device.nodes().len()).rev();
    counts.map(|count| device.prefix(count))
}

/// The database that is created for a device that belongs to none; `None` if the device is the root, or
/// not below it.
pub fn default_database(device: &TreePath) -> Option<TreePath> {
    let is_below = device.is_absolute() && device.nodes().len() >= 2;
    is_below.then(|| device.prefix(2))
}

/// The name of the database of a path.
pub fn database_name(path: &TreePath) -> String {
    path.to_string()
}

/// The path of a database with this name, if it is one of IoTDB's.
pub fn database_path(name: &str) -> Option<TreePath> {
    let path = TreePath::parse(name).ok()?;
    (path.is_absolute() && path.nodes().len() >= 2 && path.to_string() == name).then_some(path)
}

/// The name of the field for values of a measurement in a type. `plain` is the type of the field that is
/// called as the measurement, or `None` if there is no such field yet.
pub fn field_name(measurement: &str, kind: IotDbType, plain: Option<IotDbType>) -> String {
    let stored = kind.stored();
    let is_plain = stored != IotDbType::Date
        && may_be_plain(measurement)
        && plain.is_none_or(|plain| plain == stored);
    if is_plain {
        return measurement.to_owned();
    }
    typed_name(measurement, stored)
}

/// The names that fields of a measurement may have.
pub fn field_names(measurement: &str) -> impl Iterator<Item = String> {
    let plain = may_be_plain(measurement).then(|| measurement.to_owned());
    let kinds = IotDbType::ALL.into_iter();
    let kinds = kinds.filter(|kind| kind.stored() == *kind);
    plain
        .into_iter()
        .chain(kinds.map(|kind| typed_name(measurement, kind)))
}

/// The measurement of a field, and its type if the name says it.
pub fn measurement_of_field(field: &str) -> (&str, Option<IotDbType>) {
    if let Some((measurement, kind)) = field.rsplit_once(TYPE_SEPARATOR)
        && !measurement.is_empty()
        && let Some(known) = IotDbType::from_name(kind)
        && known.name() == kind
    {
        return (measurement, Some(known));
    }
    (field, None)
}

fn typed_name(measurement: &str, kind: IotDbType) -> String {
    format!("{measurement}{TYPE_SEPARATOR}{kind}")
}

/// Whether a field can be called as a measurement without meaning something else.
fn may_be_plain(measurement: &str) -> bool {
    measurement != DEVICE_TAG
        && measurement != TIME_COLUMN
        && measurement_of_field(measurement).1.is_none()
}

impl IotDbType {
    /// The type as which fields keep its values: `TEXT` for `STRING`, otherwise itself.
    #[must_use]
    pub fn stored(self) -> Self {
        match self {
            Self::String => Self::Text,
            kind => kind,
        }
    }
}

/// A time in nanoseconds, if it has one.
pub fn ms_to_ns(time_ms: i64) -> Option<i64> {
    time_ms.checked_mul(MS_NS)
}

/// A time in milliseconds.
pub fn ns_to_ms(time_ns: i64) -> i64 {
    time_ns.div_euclid(MS_NS)
}

/// The begin of a day in UTC, ms; `None` if `yyyymmdd` is no day.
pub fn day_to_ms(day: i32) -> Option<i64> {
    let (year, month, day) = (day / 10_000, day / 100 % 100, day % 100);
    let (year, month) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?);
    let date = Date::new(year, month, i8::try_from(day).ok()?).ok()?;
    let begin = date.to_zoned(TimeZone::UTC).ok()?;
    Some(begin.timestamp().as_millisecond())
}

/// The day of a text such as `2024-02-29`, as the number `yyyymmdd`.
pub fn day_of_text(text: &str) -> Option<i32> {
    let date: Date = text.trim().parse().ok()?;
    day_number(date)
}

/// The day in a time zone in which a time is, as the number `yyyymmdd`.
pub fn ms_to_day(time_ms: i64, zone: &TimeZone) -> Option<i32> {
    let time = Timestamp::from_millisecond(time_ms).ok()?;
    day_number(zone.to_datetime(time).date())
}

fn day_number(date: Date) -> Option<i32> {
    let (year, month, day) = (i32::from(date.year()), date.month(), date.day());
    (year > 0).then(|| year * 10_000 + i32::from(month) * 100 + i32::from(day))
}

/// A number as Java writes it: at least one digit behind the point, and an exponent outside of 0.001 to
/// 10,000,000.
pub fn java_double(value: f64) -> String {
    java_text(value, format!("{value:e}"))
}

/// The same for a 32-bit float.
pub fn java_float(value: f32) -> String {
    java_text(f64::from(value), format!("{value:e}"))
}

fn java_text(value: f64, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        return format!("{digits}{point}E{exponent}");
    }
    let plain = plain_digits(&scientific);
    let point = if plain.contains('.') { "" } else { ".0" };
    format!("{plain}{point}")
}

/// A number in the form `d.ddde±n` without its exponent.
fn plain_digits(scientific: &str) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits: String = digits.chars().filter(|char| *char != '.').collect();
    let whole = exponent + 1;
    if whole <= 0 {
        let zeros = "0".repeat(whole.unsigned_abs() as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = whole as usize;
    if digits.len() <= whole {
        let zeros = "0".repeat(whole - digits.len());
        return format!("{sign}{digits}{zeros}");
    }
    let (before, after) = digits.split_at(whole);
    format!("{sign}{before}.{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_databases() {
        let device = TreePath::parse("root.a.b.c").expect("a path");
        let all: Vec<String> = databases_above(&device).map(|it| it.to_string()).collect();
        assert_eq!(all, ["root.a.b.c", "root.a.b", "root.a"]);
        let default = default_database(&device).map(|it| it.to_string());
        assert_eq!(default.as_deref(), Some("root.a"));
        for text in ["root", "a.b"] {
            assert_eq!(
                default_database(&TreePath::parse(text).expect("a path")),
                None
            );
        }
    }

    #[test]
    fn databases_have_names() {
        let path = database_path("root.sg.`a b`").expect("a path");
        assert_eq!(path.nodes(), ["root", "sg", "a b"]);
        assert_eq!(database_name(&path), "root.sg.`a b`");
        for name in ["main", "root", "root.*", "root.`sg`", "root..a"] {
            assert_eq!(database_path(name), None, "{name}");
        }
    }

    #[test]
    fn measurements_have_fields() {
        use IotDbType::{Date, Double, Int32, String, Text};
        for (measurement, kind, plain, name) in [
            ("s", Int32, None, "s"),
            ("s", Int32, Some(Int32), "s"),
            ("s", Int32, Some(Double), "s::INT32"),
            ("s", String, Some(Text), "s"),
            ("s", String, Some(Double), "s::TEXT"),
            ("s", Date, None, "s::DATE"),
            ("device", Double, None, "device::DOUBLE"),
            ("time", Int32, None, "time::INT32"),
            ("a::DATE", Int32, None, "a::DATE::INT32"),
        ] {
            assert_eq!(field_name(measurement, kind, plain), name);
            assert_eq!(measurement_of_field(name).0, measurement);
            assert!(
                field_names(measurement).any(|known| known == name),
                "{name}"
            );
        }
        assert_eq!(measurement_of_field("s::DATE"), ("s", Some(Date)));
        assert_eq!(measurement_of_field("s::date"), ("s::date", None));
        assert_eq!(measurement_of_field("::DATE"), ("::DATE", None));
    }

    #[test]
    fn days_are_times() {
        assert_eq!(day_to_ms(19_700_102), Some(86_400_000));
        assert_eq!(day_to_ms(20_240_229), Some(1_709_164_800_000));
        assert_eq!([20_230_229, 0, -1, i32::MAX].map(day_to_ms), [None; 4]);
        assert_eq!(day_of_text("2024-02-29"), Some(20_240_229));
        assert_eq!(["2023-02-29", "x", ""].map(day_of_text), [None; 3]);
        assert_eq!(
            ms_to_day(1_709_164_799_999, &TimeZone::UTC),
            Some(20_240_228)
        );
    }

    #[test]
    fn numbers_are_javas() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-12.5, "-12.5"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-1.25e300, "-1.25E300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(java_double(value), text);
        }
        assert_eq!(
            (java_float(0.1), java_float(3.4e38)),
            ("0.1".to_owned(), "3.4E38".to_owned())
        );
    }
}
