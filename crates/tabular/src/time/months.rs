//! Names of months as spreadsheets and loggers write them in several languages.

/// For each month, the beginnings of its names: English, German, French, Spanish, Portuguese, Italian,
/// Dutch, the Scandinavian languages. No beginning belongs to two months.
const MONTHS: [&[&str]; 12] = [
    &["jan", "jän", "janv", "ene", "gen", "gennaio"],
    &["feb", "fév", "fev"],
    &["mar", "mär", "mrz", "maa", "mrt"],
    &["apr", "avr", "abr"],
    &["may", "mai", "maj", "mag", "mei"],
    &["jun", "juin", "giu"],
    &["jul", "juil", "lug"],
    &["aug", "aoû", "aou", "ago"],
    &["sep", "set"],
    &["oct", "okt", "out", "ott"],
    &["nov"],
    &["dec", "dez", "déc", "dic"],
];

/// Letters of the longest name.
const LETTERS_MAX: usize = 10;

/// A month name, short or long, at the start of `text`: the month, and what follows the name.
pub(super) fn month_name(text: &str) -> Option<(i64, &str)> {
    let letters = text.chars().take_while(|char| char.is_alphabetic());
    let (count, bytes) = letters.fold((0, 0), |(count, bytes), char| {
        (count + 1, bytes + char.len_utf8())
    });
    if !(3..=LETTERS_MAX).contains(&count) {
        return None;
    }
    let (name, rest) = text.split_at(bytes);
    let name = name.to_lowercase();
    let is_named = |names: &&[&str]| names.iter().any(|begin| name.starts_with(begin));
    let month = MONTHS.iter().position(is_named)?;
    Some((month as i64 + 1, rest.trim_start_matches('.')))
}
