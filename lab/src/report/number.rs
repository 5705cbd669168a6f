//! Numbers for people: three significant digits, thin spaces between thousands.

/// A thin space that does not break.
const THIN: char = '\u{202f}';

/// `value` with three significant digits; from 1000 on, an integer with separated thousands.
#[must_use]
pub(super) fn plain(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..15.0).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    if magnitude >= 3.0 {
        return grouped(value);
    }
    // Rounding may add a digit (9.996 → 10.0), which then needs one decimal less.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let decimals = (2.0 - rounded.abs().log10().floor()).max(0.0) as usize;
    if rounded.abs() >= 1000.0 {
        return grouped(rounded);
    }
    format!("{rounded:.decimals$}")
}

/// `value` for the tick of an axis: as short as it can be.
#[must_use]
pub(super) fn tick(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, " G"),
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    // Ticks are 1, 2 or 5 times a power of ten, so digits beyond the sixth are rounding errors.
    let text = format!("{scaled:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "0" && value != 0.0 {
        return format!("{value:.0e}");
    }
    format!("{text}{suffix}")
}

/// `bytes` with a binary unit.
#[must_use]
pub(super) fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value.abs() >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", plain(value), units[unit])
}

/// A ratio: `2.31×`; below 1.1 in percent, `3.2 %`.
#[must_use]
pub(super) fn times(ratio: f64) -> String {
    if ratio < 1.1 {
        format!("{:.1} %", (ratio - 1.0) * 100.0)
    } else if ratio < 10.0 {
        format!("{ratio:.2}×")
    } else {
        format!("{}×", plain(ratio))
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value < 0.0 {
        text.push('−');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_thousands() {
        let cases = [
            (0.0, "0"),
            (0.012_345, "0.0123"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (123.4, "123"),
            (999.7, "1\u{202f}000"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
            (-4321.0, "−4\u{202f}321"),
            (0.000_001, "1.00e-6"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(plain(value), text);
        }
    }

    #[test]
    fn ticks_bytes_and_ratios_are_short() {
        assert_eq!(tick(0.5), "0.5");
        assert_eq!(tick(0.1 + 0.2), "0.3");
        assert_eq!(tick(2000.0), "2000");
        assert_eq!(tick(50_000.0), "50 k");
        assert_eq!(tick(1_500_000.0), "1.5 M");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(times(2.314), "2.31×");
        assert_eq!(times(1.032), "3.2 %");
        assert_eq!(times(41.6), "41.6×");
    }
}
