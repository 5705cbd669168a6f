//! Functions of texts.

use crate::expression::scalar_function::{RowFunction, RowFunctionSpec, SOME_TEXT};
use crate::taos_value::Val;
use marigram_tdengine::TaosType;
use std::sync::Arc;

/// Longest text that a function makes, bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Computes from all arguments.
type TextFunction = fn(&[Val]) -> Val;

/// A function of texts.
pub(crate) fn spec(name: &str) -> Option<RowFunctionSpec> {
    let one: Option<fn(&str) -> Val> = match name {
        "lower" | "lcase" => Some(|text| Val::of_text(text.to_lowercase())),
        "upper" | "ucase" => Some(|text| Val::of_text(text.to_uppercase())),
        "ltrim" => Some(|text| Val::of_text(text.trim_start_matches(' '))),
        "rtrim" => Some(|text| Val::of_text(text.trim_end_matches(' '))),
        "trim" => Some(|text| Val::of_text(text.trim_matches(' '))),
        "reverse" => Some(|text| Val::of_text(text.chars().rev().collect::<String>())),
        _ => None,
    };
    if let Some(one) = one {
        let function: RowFunction = Arc::new(move |values: &[Val]| match values[0].shown() {
            Some(text) => one(&text),
            None => Val::Null,
        });
        return Some(RowFunctionSpec {
            arity: (1, 1),
            kind: SOME_TEXT,
            function,
        });
    }
    let (arity, kind, compute): ((usize, usize), TaosType, TextFunction) = match name {
        "length" => ((1, 1), TaosType::BigInt, |values| {
            let length = match &values[0] {
                Val::Bytes(bytes) => bytes.len(),
                value => match value.shown() {
                    Some(text) => text.len(),
                    None => return Val::Null,
                },
            };
            count(length)
        }),
        "char_length" => ((1, 1), TaosType::BigInt, |values| match values[0].shown() {
            Some(text) => count(text.chars().count()),
            None => Val::Null,
        }),
        "ascii" => ((1, 1), TaosType::Int, |values| match values[0].shown() {
            Some(text) => Val::Int(text.bytes().next().map_or(0, i64::from)),
            None => Val::Null,
        }),
        "char" => ((1, 64), SOME_TEXT, |values| {
            let codes = values.iter().filter_map(Val::integer);
            let text: String = codes.map(|code| char::from((code & 0xff) as u8)).collect();
            Val::of_text(text)
        }),
        "concat" => ((2, 8), SOME_TEXT, |values| {
            match values.iter().map(Val::shown).collect::<Option<Vec<_>>>() {
                Some(texts) => limited(texts.concat()),
                None => Val::Null,
            }
        }),
        "concat_ws" => ((3, 9), SOME_TEXT, |values| {
            let Some(between) = values[0].shown() else {
                return Val::Null;
            };
            let texts: Vec<String> = values[1..].iter().filter_map(Val::shown).collect();
            limited(texts.join(&between))
        }),
        "substr" | "substring" => ((2, 3), SOME_TEXT, substring),
        "substring_index" => ((3, 3), SOME_TEXT, substring_index),
        "replace" => ((3, 3), SOME_TEXT, |values| {
            match (values[0].shown(), values[1].shown(), values[2].shown()) {
                (Some(text), Some(from), Some(_)) if from.is_empty() => Val::of_text(text),
                (Some(text), Some(from), Some(to)) => {
                    let found = text.matches(&from).count();
                    if text.len() + found * to.len() > TEXT_BYTES_MAX {
                        return Val::Null;
                    }
                    Val::of_text(text.replace(&from, &to))
                }
                _ => Val::Null,
            }
        }),
        "repeat" => ((2, 2), SOME_TEXT, |values| {
            match (values[0].shown(), values[1].integer()) {
                (Some(text), Some(times)) => {
                    let times = usize::try_from(times).unwrap_or(0);
                    if text.len().saturating_mul(times) > TEXT_BYTES_MAX {
                        return Val::Null;
                    }
                    Val::of_text(text.repeat(times))
                }
                _ => Val::Null,
            }
        }),
        "position" | "locate" => ((2, 2), TaosType::BigInt, |values| {
            match (values[0].shown(), values[1].shown()) {
                (Some(part), Some(text)) => match text.find(&part) {
                    Some(at) => count(text[..at].chars().count() + 1),
                    None => Val::Int(0),
                },
                _ => Val::Null,
            }
        }),
        _ => return None,
    };
    Some(RowFunctionSpec {
        arity,
        kind,
        function: Arc::new(compute),
    })
}

fn count(count: usize) -> Val {
    i64::try_from(count).map_or(Val::Null, Val::Int)
}

fn limited(text: String) -> Val {
    if text.len() > TEXT_BYTES_MAX {
        return Val::Null;
    }
    Val::of_text(text)
}

/// A part of a text from a place, counted from 1; a negative one counts from the end.
fn substring(values: &[Val]) -> Val {
    let (Some(text), Some(from)) = (values[0].shown(), values[1].integer()) else {
        return Val::Null;
    };
    let length = text.chars().count();
    let total = i64::try_from(length).unwrap_or(i64::MAX);
    let start = match from {
        0 => return Val::of_text(""),
        from if from > 0 => from - 1,
        from => total.saturating_add(from),
    };
    if start < 0 || start >= total {
        return Val::of_text("");
    }
    let wanted = match values.get(2) {
        None => total,
        Some(wanted) => match wanted.integer() {
            Some(wanted) => wanted.max(0),
            None => return Val::Null,
        },
    };
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    Val::of_text(text.chars().skip(start).take(wanted).collect::<String>())
}

/// What stands before the n-th separator, or behind the n-th from the end.
fn substring_index(values: &[Val]) -> Val {
    let (Some(text), Some(separator)) = (values[0].shown(), values[1].shown()) else {
        return Val::Null;
    };
    let Some(number) = values[2].integer() else {
        return Val::Null;
    };
    if separator.is_empty() || number == 0 {
        return Val::of_text("");
    }
    let parts: Vec<&str> = text.split(&separator).collect();
    let wanted = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let shown = if number > 0 {
        &parts[..wanted.min(parts.len())]
    } else {
        &parts[parts.len().saturating_sub(wanted)..]
    };
    Val::of_text(shown.join(&separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, values: &[Val]) -> Val {
        (spec(name).expect("there is such a function").function)(values)
    }

    #[test]
    fn texts_are_cut_and_joined() {
        let text = Val::of_text;
        assert_eq!(call("substr", &[text("日本語"), Val::Int(2)]), text("本語"));
        assert_eq!(
            call("substr", &[text("abc"), Val::Int(-2), Val::Int(1)]),
            text("b")
        );
        assert_eq!(call("substr", &[text("abc"), Val::Int(0)]), text(""));
        assert_eq!(call("concat", &[text("a"), Val::Null]), Val::Null);
        assert_eq!(
            call("concat_ws", &[text("-"), text("a"), text("b")]),
            text("a-b")
        );
        assert_eq!(
            call("substring_index", &[text("a.b.c"), text("."), Val::Int(-2)]),
            text("b.c")
        );
        assert_eq!(call("length", &[text("日本")]), Val::Int(6));
        assert_eq!(call("char_length", &[text("日本")]), Val::Int(2));
        assert_eq!(call("position", &[text("b"), text("ab")]), Val::Int(2));
        assert_eq!(call("repeat", &[text("ab"), Val::Int(i64::MAX)]), Val::Null);
    }
}
