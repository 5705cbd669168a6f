//! A point, and which names, times and values it may have.

use crate::error::PutFault;

/// The field of a metric's table that holds its values.
pub const STORED_FIELD: &str = "value";

/// The time column of a metric's table.
pub const TIME_COLUMN: &str = "time";

/// Times up to here are seconds, later ones milliseconds.
const SECONDS_MAX: i64 = u32::MAX as i64;

/// The last millisecond: stored times are nanoseconds in 64 bits. OpenTSDB takes all of 13 digits.
const MILLISECONDS_MAX: i64 = 9_223_372_036_854;

/// One value of a metric for a set of tags at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct DataPoint {
    /// The metric.
    pub metric: String,
    /// Its time, ms since 1970.
    pub time_ms: i64,
    /// Its value.
    pub value: f64,
    /// Its tags by name: at least one.
    pub tags: Vec<(String, String)>,
}

impl DataPoint {
    /// Memory that the point holds, in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        /// What the allocator adds to a text.
        const TEXT_BYTES: usize = 16;
        let tags = self.tags.iter();
        let tags = tags.map(|(key, value)| {
            size_of::<(String, String)>() + key.len() + value.len() + 2 * TEXT_BYTES
        });
        tags.sum::<usize>() + size_of::<Self>() + self.metric.len() + 2 * TEXT_BYTES
    }
}

/// The milliseconds of a time in seconds or milliseconds; `None` if no point can have it.
pub(crate) fn time_ms(number: i64) -> Option<i64> {
    match number {
        1..=SECONDS_MAX => Some(number * 1000),
        number if number > SECONDS_MAX && number <= MILLISECONDS_MAX => Some(number),
        _ => None,
    }
}

/// Checks a name or a value of a tag: letters, digits, `-`, `_`, `.` and `/`.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), PutFault> {
    if name.is_empty() {
        return Err(PutFault::IllegalArgument(format!(
            "Invalid {what}: empty string"
        )));
    }
    let is_good = |ch: char| ch.is_alphanumeric() || matches!(ch, '-' | '_' | '.' | '/');
    match name.chars().find(|ch| !is_good(*ch)) {
        None => Ok(()),
        Some(bad) => {
            let shown: String = name.chars().take(100).collect();
            Err(PutFault::IllegalArgument(format!(
                "Invalid {what} (\"{shown}\"): illegal character: {bad}"
            )))
        }
    }
}

/// Checks the names of a point.
pub(crate) fn check_names(metric: &str, tags: &[(String, String)]) -> Result<(), PutFault> {
    check_name("metric name", metric)?;
    for (key, value) in tags {
        if check_name("", key).is_err() {
            return check_name(&format!("tag name with value [{value:.100}]"), key);
        }
        if check_name("", value).is_err() {
            return check_name(&format!("tag value with key [{key:.100}]"), value);
        }
        if key == STORED_FIELD || key == TIME_COLUMN {
            return Err(PutFault::IllegalArgument(format!(
                "Invalid tag name (\"{key}\"): it is the name of a column that every metric has"
            )));
        }
    }
    Ok(())
}

/// Reads an integer as OpenTSDB does.
pub(crate) fn parse_long(text: &str) -> Result<i64, PutFault> {
    let invalid = |message: String| Err(PutFault::InvalidValue(message));
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() {
        return invalid("Empty string".to_owned());
    }
    let shown: String = text.chars().take(100).collect();
    if let Some(bad) = digits.chars().find(|ch| !ch.is_ascii_digit()) {
        return invalid(format!("Invalid character '{bad}' in {shown}"));
    }
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => invalid(format!("Overflow in {shown}")),
    }
}

/// Reads a value: an integer, or a float with a point or an exponent.
pub(crate) fn parse_value(text: &str) -> Result<f64, PutFault> {
    if !text.contains(['.', 'e', 'E']) {
        return parse_long(text).map(|number| number as f64);
    }
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.filter(|_| is_number).ok_or_else(|| {
        // As Java says it.
        PutFault::InvalidValue(if text.matches('.').count() > 1 && is_number {
            "multiple points".to_owned()
        } else {
            let shown: String = text.chars().take(100).collect();
            format!("For input string: \"{shown}\"")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_tell_their_unit_by_their_size() {
        assert_eq!(time_ms(1_356_998_400), Some(1_356_998_400_000));
        assert_eq!(time_ms(4_294_967_295), Some(4_294_967_295_000));
        assert_eq!(time_ms(4_294_967_296), Some(4_294_967_296));
        assert_eq!(time_ms(1_356_998_400_250), Some(1_356_998_400_250));
        for wrong in [0, -1, 9_223_372_036_855, i64::MIN] {
            assert_eq!(time_ms(wrong), None);
        }
    }

    #[test]
    fn values_are_integers_or_floats_and_nothing_else() {
        for (text, value) in [
            ("42", 42.0),
            ("-7", -7.0),
            ("+7", 7.0),
            ("1.3E3", 1300.0),
            ("-.5", -0.5),
            ("9223372036854775807", 9_223_372_036_854_775_807_i64 as f64),
        ] {
            assert_eq!(parse_value(text), Ok(value), "{text}");
        }
        let fault = |text: &str| parse_value(text).unwrap_err().to_string();
        assert_eq!(fault("notatime"), "For input string: \"notatime\"");
        assert_eq!(fault("4a"), "Invalid character 'a' in 4a");
        assert_eq!(fault(""), "Empty string");
        assert_eq!(
            fault("9223372036854775808"),
            "Overflow in 9223372036854775808"
        );
        assert_eq!(fault("1.5.5"), "multiple points");
        for wrong in ["NaN", "inf", "Infinity", "1e999", "1.2.3", "0x1.p3", "1e"] {
            assert!(parse_value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_have_letters_digits_and_four_signs() {
        assert_eq!(check_name("metric name", "sys.cpu-0_a/Ä"), Ok(()));
        let fault = |name: &str| check_name("metric name", name).unwrap_err().to_string();
        assert_eq!(
            fault("Abin76+-"),
            "Invalid metric name (\"Abin76+-\"): illegal character: +"
        );
        assert_eq!(fault(""), "Invalid metric name: empty string");
        let tags = |key: &str| [(key.to_owned(), "x".to_owned())];
        // In the words of OpenTSDB 2.4.1.
        for (key, value, expected) in [
            ("", "x", "Invalid tag name with value [x]: empty string"),
            ("a", "", "Invalid tag value with key [a]: empty string"),
            (
                "a b",
                "c",
                "Invalid tag name with value [c] (\"a b\"): illegal character:  ",
            ),
            (
                "a",
                "c%",
                "Invalid tag value with key [a] (\"c%\"): illegal character: %",
            ),
        ] {
            let pair = [(key.to_owned(), value.to_owned())];
            assert_eq!(check_names("m", &pair).unwrap_err().to_string(), expected);
        }
        assert!(check_names("m", &tags("host")).is_ok());
        assert!(check_names("m", &tags("value")).is_err());
        assert!(check_names("m", &tags("time")).is_err());
    }
}
