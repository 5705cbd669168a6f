//! Parses the settings of tables and columns: `WITH (…)`, `SET (…)`, `ENCODING …`.

use crate::dialect::hypertable_settings::HypertableSettings;
use crate::dialect::identifiers::{accept_word, parse_name};
use crate::dialect::statement::{CodecChange, OptionChanges};
use crate::dialect::timescale::settings::{accept_key, optional_value};
use crate::error::{SqlError, SqlResult, nearest};
use datafusion::sql::sqlparser::ast::Value;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use marigram_functions::duration::parse_fixed_ns;
use marigram_model::{ColdCodec, Compressor, Encoding, SeriesIdentity};

/// The word that leaves the choice to Marigram.
const AUTO: &str = "AUTO";
/// Every setting of a table.
pub(crate) const SETTINGS: [&str; 7] = [
    "ttl",
    "partition",
    "page_size",
    "encoding",
    "compression",
    "cold_codec",
    "series_identity",
];

/// `(setting = value, …)`; the second part has TimescaleDB's settings, if there are any.
pub(crate) fn settings(
    parser: &mut Parser<'_>,
) -> SqlResult<(OptionChanges, Option<HypertableSettings>)> {
    let mut changes = OptionChanges::default();
    let mut hypertable: Option<HypertableSettings> = None;
    parser.expect_token(&Token::LParen)?;
    loop {
        if let Some(key) = accept_key(parser)? {
            let value = optional_value(parser, value)?;
            hypertable.get_or_insert_default().set(&key, value)?;
        } else {
            let key = parse_name(parser)?;
            parser.expect_token(&Token::Eq)?;
            let value = value(parser)?;
            set(&mut changes, &key, value)?;
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok((changes, hypertable))
}

/// Sets one setting; `None` for NULL.
pub(crate) fn set(changes: &mut OptionChanges, key: &str, value: Option<String>) -> SqlResult<()> {
    let fixed = |text: &str| {
        parse_fixed_ns(text)
            .map_err(|reason| SqlError::named("22023", key, format!("{key}: {reason}")))
    };
    let needed = |what: &str| {
        value
            .as_deref()
            .ok_or_else(|| SqlError::named("22023", key, format!("{key} needs {what}")))
    };
    match key {
        "ttl" => {
            let none =
                |text: &String| ["none", "forever", "0"].contains(&text.to_lowercase().as_str());
            changes.ttl_ns = Some(match value.filter(|text| !none(text)) {
                Some(text) => Some(fixed(&text)?),
                None => None,
            });
        }
        "partition" => changes.partition_ns = Some(fixed(needed("a length of time")?)?),
        "page_size" => changes.page_bytes = Some(size(key, needed("a size, as in '64KiB'")?)?),
        "encoding" => changes.codec.encoding = Some(encoding(needed("a name, or 'auto'")?)?),
        "compression" | "compressor" => {
            changes.codec.compressor = Some(compressor(needed("a name, or 'auto'")?)?);
        }
        "cold_codec" => {
            let names = ColdCodec::ALL.map(|codec| (codec.name(), codec));
            changes.cold_codec = Some(one_of(key, needed("'auto' or 'same'")?, &names)?);
        }
        "series_identity" => {
            let names = SeriesIdentity::ALL.map(|identity| (identity.name(), identity));
            changes.identity = Some(one_of(key, needed("'plain' or 'sha256'")?, &names)?);
        }
        _ => return Err(SqlError::unknown("22023", "table setting", key, SETTINGS)),
    }
    Ok(())
}

/// A setting's value; `None` for NULL.
pub(crate) fn value(parser: &mut Parser<'_>) -> SqlResult<Option<String>> {
    if let Token::Word(word) = parser.peek_token().token
        && word.quote_style.is_none()
    {
        parser.next_token();
        return Ok((!word.value.eq_ignore_ascii_case("null")).then_some(word.value));
    }
    let found = parser.peek_token();
    match parser.parse_value()?.value {
        Value::Null => Ok(None),
        Value::SingleQuotedString(text) | Value::Number(text, _) => Ok(Some(text)),
        _ => Ok(parser.expected("a value like '30d'", found)?),
    }
}

/// Reads `ENCODING name` or `COMPRESSION name`, if it comes next.
pub(crate) fn codec_clause(parser: &mut Parser<'_>, change: &mut CodecChange) -> SqlResult<bool> {
    if accept_word(parser, "ENCODING") {
        change.encoding = Some(encoding(&codec_name(parser, "an encoding")?)?);
    } else if accept_word(parser, "COMPRESSION") || accept_word(parser, "COMPRESSOR") {
        change.compressor = Some(compressor(&codec_name(parser, "a compressor")?)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn codec_name(parser: &mut Parser<'_>, what: &str) -> SqlResult<String> {
    let found = parser.next_token();
    match &found.token {
        Token::Word(word) => Ok(word.value.clone()),
        Token::SingleQuotedString(text) => Ok(text.clone()),
        _ => Ok(parser.expected(what, found)?),
    }
}

fn encoding(written: &str) -> SqlResult<Option<Encoding>> {
    let names = Encoding::ALL.map(Encoding::name);
    codec(written, "encoding", Encoding::from_name, &names)
}

fn compressor(written: &str) -> SqlResult<Option<Compressor>> {
    let names = Compressor::ALL.map(Compressor::name);
    codec(written, "compressor", Compressor::from_name, &names)
}

/// The encoding or compressor with a name; `None` for AUTO.
fn codec<T>(
    written: &str,
    kind: &str,
    from_name: impl Fn(&str) -> Option<T>,
    names: &[&str],
) -> SqlResult<Option<T>> {
    if written.eq_ignore_ascii_case(AUTO) {
        return Ok(None);
    }
    from_name(written).map(Some).ok_or_else(|| {
        let all = || std::iter::once(AUTO).chain(names.iter().copied());
        let hint = nearest(written, all()).map(|near| format!("; did you mean {near}?"));
        let message = format!(
            "{kind} '{written}' does not exist{} There are {}",
            hint.unwrap_or_else(|| ".".to_owned()),
            all().collect::<Vec<_>>().join(", ")
        );
        SqlError::named("22023", written, message)
    })
}

fn one_of<T: Copy>(key: &str, written: &str, names: &[(&str, T)]) -> SqlResult<T> {
    let found = names
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(written));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<String> = names.iter().map(|(name, _)| format!("'{name}'")).collect();
        let message = format!("{key} is {}, not '{written}'", all.join(" or "));
        SqlError::named("22023", written, message)
    })
}

/// A size in bytes: `65536`, `64KiB`, `64KB`.
fn size(key: &str, text: &str) -> SqlResult<u32> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
    let factor = match unit.trim().to_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "kib" => 1024,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        _ => 0,
    };
    let bytes = number
        .parse::<u32>()
        .ok()
        .and_then(|n| n.checked_mul(factor));
    bytes.filter(|_| factor > 0).ok_or_else(|| {
        let message = format!("{key}: '{text}' is not a size; write it like '64KiB' or 65536");
        SqlError::named("22023", key, message)
    })
}

/// Formats a size as users write it.
pub(crate) fn format_size(bytes: u32) -> String {
    if bytes.is_multiple_of(1024) {
        format!("{}KiB", bytes / 1024)
    } else {
        bytes.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_back_as_they_are_written() {
        for bytes in [1024, 5000, 65536, 262_144, 0, u32::MAX] {
            assert_eq!(size("page_size", &format_size(bytes)).unwrap(), bytes);
        }
        assert_eq!(size("page_size", " 64 kb ").unwrap(), 64_000);
        for bad in [
            "",
            "KiB",
            "64Kib2",
            "-1",
            "1.5KiB",
            "99999MiB",
            "64 parsecs",
        ] {
            assert!(size("page_size", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_name_is_known_and_others_name_all() {
        for known in Encoding::ALL {
            assert_eq!(encoding(&known.name().to_lowercase()).unwrap(), Some(known));
        }
        for known in Compressor::ALL {
            assert_eq!(compressor(known.name()).unwrap(), Some(known));
        }
        assert_eq!(encoding("auto").unwrap(), None);
        let error = encoding("gorila").unwrap_err().to_string();
        assert!(error.contains("did you mean GORILLA?"), "{error}");
        let error = compressor("lzma2").unwrap_err().to_string();
        assert!(error.contains("There are AUTO, UNCOMPRESSED"), "{error}");
    }
}
