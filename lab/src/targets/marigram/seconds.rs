//! Lengths of time as Arrow prints them: `PT90S`, `P1DT2H`, `1 days 2 hours 3.5 secs`.

use crate::targets::arrow::MONTH_DAYS;

/// The length in seconds; `None` for a text that is none. A month is 30 days, a year 12 months.
pub fn seconds(text: &str) -> Option<f64> {
    let mut sum = 0.0;
    // After `T`, `M` is a minute.
    let mut clock = false;
    let (sign, mut rest) = match text.strip_prefix("-P").map(|rest| (-1.0, rest)) {
        Some(negative) => negative,
        None => (1.0, text.strip_prefix('P').unwrap_or(text)),
    };
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('T') {
            (clock, rest) = (true, after);
        }
        if rest.is_empty() {
            return Some(sign * sum);
        }
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
        let number = &rest[..rest.find(|c| !is_number(c))?];
        rest = rest[number.len()..].trim_start();
        let unit = &rest[..rest
            .find(|c: char| !c.is_ascii_alphabetic() || c == 'T')
            .unwrap_or(rest.len())];
        rest = &rest[unit.len()..];
        let unit_s = match unit {
            "Y" | "years" => 12.0 * MONTH_DAYS * 86_400.0,
            "M" if !clock => MONTH_DAYS * 86_400.0,
            "mons" => MONTH_DAYS * 86_400.0,
            "D" | "days" => 86_400.0,
            "H" | "hours" => 3_600.0,
            "M" | "mins" => 60.0,
            "S" | "secs" => 1.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * unit_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let cases = [
            ("P0D", 0.0),
            ("PT90S", 90.0),
            ("-PT1.5S", -1.5),
            ("P1DT2H3M", 86_400.0 + 7_200.0 + 180.0),
            ("1 hours", 3_600.0),
            ("1 mons -2 days", 28.0 * 86_400.0),
            ("4 hours 5 mins 6.500000000 secs", 14_400.0 + 300.0 + 6.5),
        ];
        for (text, expected) in cases {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["x", "5", "5 parsecs", "P5", "1 é"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
