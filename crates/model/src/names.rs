//! Names as SQL takes them, and names that were probably meant.

/// Shortest name that its beginning may identify, in characters.
const PREFIX_MIN: usize = 4;

/// The name that `wanted` was probably meant to be: equal except for case and separators, or a
/// typing error away. `None` rather than a name with only a slight resemblance.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let likely = names
        .into_iter()
        .filter_map(|name| Some((unlikeness(wanted, name)?, name)));
    likely.min().map(|(_, name)| name.to_owned())
}

/// A name as it is suggested: in double quotes if it needs them in SQL, otherwise in single quotes.
#[must_use]
pub fn suggested(name: &str) -> String {
    if is_plain(name) {
        format!("'{name}'")
    } else {
        always_quoted(name)
    }
}

/// A name as SQL takes it: plain where it may be, otherwise in quotes.
#[must_use]
pub fn quoted(name: &str) -> String {
    if is_plain(name) {
        name.to_owned()
    } else {
        always_quoted(name)
    }
}

/// Whether a name means itself without quotes.
fn is_plain(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

/// A name in double quotes, as SQL takes every name.
#[must_use]
pub fn always_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How unlike two names are, from 0; `None` where one is hardly meant by the other.
fn unlikeness(wanted: &str, name: &str) -> Option<usize> {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    if wanted == name {
        return Some(0);
    }
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let (a, b) = (letters(&wanted), letters(&name));
    if !a.is_empty() && a == b {
        return Some(1);
    }
    let once = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.dedup();
        letters
    };
    if once(&wanted) == once(&name) {
        return Some(2);
    }
    let (long, short) = (
        wanted.chars().count().max(name.chars().count()),
        wanted.chars().count().min(name.chars().count()),
    );
    let slips_max = match short {
        // Any two letters are only one error apart.
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    if long - short <= slips_max {
        let slips = strsim::damerau_levenshtein(&wanted, &name);
        let same_start = wanted.chars().next() == name.chars().next();
        // A different first letter only counts as an error if most of a longer name is the same.
        if slips <= slips_max && (same_start || (slips == 1 && short >= PREFIX_MIN)) {
            return Some(1 + 2 * slips);
        }
    }
    if short < PREFIX_MIN {
        None
    } else if name.starts_with(&wanted) {
        Some(10 + long - short)
    } else {
        // The text is longer than the name: less likely than an abbreviated name.
        wanted.starts_with(&name).then(|| 100 + long - short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        let names = [
            "trucks",
            "pumps",
            "weather",
            "Temp",
            "site_id",
            "x",
            "dev",
            "temperature",
        ];
        for (wanted, expected) in [
            ("truck", Some("trucks")),
            ("WEATHER", Some("weather")),
            ("wheather", Some("weather")),
            ("temp", Some("Temp")),
            ("siteid", Some("site_id")),
            ("SiteId", Some("site_id")),
            ("dve", Some("dev")),
            ("tempertaure", Some("temperature")),
            ("temperatur", Some("temperature")),
            ("tempera", Some("temperature")),
            ("orders", None),
            ("y", None),
            ("xy", None),
            ("abc", None),
            ("rev", None),
            ("jumps", Some("pumps")),
            ("bumpy", None),
            ("stem", None),
            ("xx", Some("x")),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, names).as_deref(), expected, "{wanted}");
        }
    }

    #[test]
    fn a_name_is_suggested_as_it_must_be_written() {
        assert_eq!(suggested("temp_1"), "'temp_1'");
        assert_eq!(suggested("Temp"), "\"Temp\"");
        assert_eq!(suggested("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(suggested("größe"), "\"größe\"");
    }
}
