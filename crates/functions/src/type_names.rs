//! Translates Arrow's names of types and values to those of SQL.

/// Arrow's names of types without arguments, and SQL's names.
const TYPES: &[(&str, &str)] = &[
    ("Binary", "bytes"),
    ("BinaryView", "bytes"),
    ("Boolean", "boolean"),
    ("Date32", "date"),
    ("Date64", "date"),
    ("Float16", "real"),
    ("Float32", "real"),
    ("Float64", "double precision"),
    ("Int16", "smallint"),
    ("Int32", "integer"),
    ("Int64", "bigint"),
    ("Int8", "smallint"),
    ("LargeBinary", "bytes"),
    ("LargeUtf8", "text"),
    ("Null", "unknown"),
    ("UInt16", "integer unsigned"),
    ("UInt32", "integer unsigned"),
    ("UInt64", "bigint unsigned"),
    ("UInt8", "smallint unsigned"),
    ("Utf8", "text"),
    ("Utf8View", "text"),
];

/// Translates the types and values in a text of DataFusion or Arrow to SQL: `Int64` becomes
/// `bigint`, and `Int64(1)` becomes `1`. Quoted text is the user's own and stays unchanged.
pub fn in_sql(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        if !after_word && first.is_ascii_uppercase() {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let (sql, after) = type_or_value(word, after);
            out.push_str(&sql);
            rest = after;
            after_word = true;
            continue;
        }
        // An apostrophe within a word does not begin a quotation.
        let quotes = matches!(first, '\'' | '"') && !after_word;
        let width = first.len_utf8();
        let end = match rest[width..].find(first) {
            Some(close) if quotes => close + 2 * width,
            _ => width,
        };
        out.push_str(&rest[..end]);
        after_word = first.is_alphanumeric() || first == '_';
        rest = &rest[end..];
    }
    out
}

/// Translates a word, with the arguments that belong to it, and returns the text that follows.
fn type_or_value<'a>(word: &str, after: &'a str) -> (String, &'a str) {
    if let Some((arguments, after)) = parenthesized(after)
        && let Some(sql) = with_arguments(word, arguments)
    {
        return (sql, after);
    }
    let named = TYPES.iter().find(|(arrow, _)| *arrow == word);
    let sql = named.map_or(word, |(_, sql)| *sql);
    (sql.to_owned(), after)
}

/// The text within the parentheses at the start of `text`, and the text after them.
fn parenthesized(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    for (at, sign) in text.char_indices() {
        match sign {
            '"' if depth > 0 => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((&text[1..at], &text[at + 1..]));
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn with_arguments(word: &str, arguments: &str) -> Option<String> {
    Some(match word {
        "Dictionary" => in_sql(arguments.split_once(", ")?.1),
        "List" | "LargeList" | "ListView" => format!("{}[]", in_sql(arguments)),
        "Struct" => "record".to_owned(),
        "Timestamp" if arguments.contains(", ") && !arguments.ends_with("None") => {
            "timestamp with time zone".to_owned()
        }
        "Timestamp" => "timestamp".to_owned(),
        "Time32" | "Time64" => "time".to_owned(),
        "Interval" | "Duration" => "interval".to_owned(),
        "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => {
            match arguments.strip_prefix("Some(") {
                Some(value) => value.split(')').next()?.to_owned(),
                None => format!("numeric({arguments})"),
            }
        }
        "TimestampNanosecond" | "Date64" => arguments.split(',').next()?.to_owned(),
        "IntervalMonthDayNano" => arguments.replace('"', "'"),
        "Boolean" | "Date32" | "Float16" | "Float32" | "Float64" | "Int8" | "Int16" | "Int32"
        | "Int64" | "UInt8" | "UInt16" | "UInt32" | "UInt64" => arguments.to_owned(),
        "Utf8" | "LargeUtf8" | "Utf8View" | "Binary" => match arguments {
            "NULL" => arguments.to_owned(),
            text => format!("'{}'", text.trim_matches('"')),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_values_stand_as_sql_writes_them() {
        for (arrow, sql) in [
            ("Float64 + Boolean", "double precision + boolean"),
            ("Dictionary(Int32, Utf8) = Int64", "text = bigint"),
            ("List(Int32)", "integer[]"),
            ("Interval(MonthDayNano)", "interval"),
            ("Timestamp(ns)", "timestamp"),
            ("Timestamp(ns, \"UTC\")", "timestamp with time zone"),
            ("Timestamp(Nanosecond, None)", "timestamp"),
            ("Decimal128(38, 10)", "numeric(38, 10)"),
            ("Struct(\"c0\": Int64)", "record"),
            ("r.temp > Int64(1)", "r.temp > 1"),
            ("Utf8(\"a)b\") || x", "'a)b' || x"),
            ("count(Int64(1))", "count(1)"),
            ("'Int64' is Int64", "'Int64' is bigint"),
            ("There isn't a type Int64", "There isn't a type bigint"),
            ("the column Int64x", "the column Int64x"),
            ("Int64(", "bigint("),
            ("ü Null ü", "ü unknown ü"),
            ("count(…) Int64", "count(…) bigint"),
            ("'open Int64", "'open bigint"),
        ] {
            assert_eq!(in_sql(arrow), sql);
        }
    }
}
