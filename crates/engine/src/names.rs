//! Names that were probably meant.

/// The name most like `wanted`, if one is like it at all: in capitals or not, or by a few letters.
pub(crate) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let lower = wanted.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let (distance, name) = names
        .into_iter()
        .filter(|name| name.len().abs_diff(wanted.len()) <= 3)
        .map(|name| (distance(name), name))
        .min()?;
    (distance <= 1 + wanted.chars().count() / 4).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        let names = ["trucks", "pumps", "weather"];
        assert_eq!(nearest("truck", names), Some("trucks".to_owned()));
        assert_eq!(nearest("WEATHER", names), Some("weather".to_owned()));
        assert_eq!(nearest("orders", names), None);
    }
}
