//! The package `strings`.

use crate::value::{FluxArguments, FluxBuiltin, FluxCaller, FluxValue};
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The bytes that `repeat` and `replaceAll` may make.
const MADE_BYTES_MAX: usize = 1 << 20;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "toUpper",
        call: |_, arguments| of_one(arguments, str::to_uppercase),
    },
    FluxBuiltin {
        name: "toLower",
        call: |_, arguments| of_one(arguments, str::to_lowercase),
    },
    FluxBuiltin {
        name: "trimSpace",
        call: |_, arguments| of_one(arguments, trimmed),
    },
    FluxBuiltin {
        name: "trimPrefix",
        call: trim_prefix,
    },
    FluxBuiltin {
        name: "trimSuffix",
        call: trim_suffix,
    },
    FluxBuiltin {
        name: "hasPrefix",
        call: has_prefix,
    },
    FluxBuiltin {
        name: "hasSuffix",
        call: has_suffix,
    },
    FluxBuiltin {
        name: "containsStr",
        call: contains_text,
    },
    FluxBuiltin {
        name: "strlen",
        call: length,
    },
    FluxBuiltin {
        name: "substring",
        call: substring,
    },
    FluxBuiltin {
        name: "replaceAll",
        call: replace_all,
    },
    FluxBuiltin {
        name: "replace",
        call: replace,
    },
    FluxBuiltin {
        name: "split",
        call: split,
    },
    FluxBuiltin {
        name: "joinStr",
        call: joined,
    },
];

/// A text; `None` for null.
fn text(arguments: &mut FluxArguments, name: &str) -> SqlResult<Option<Arc<str>>> {
    match arguments.need(name)? {
        FluxValue::Text(text) => Ok(Some(text)),
        FluxValue::Null => Ok(None),
        other => {
            let kind = other.type_name();
            Err(arguments.fault(format!("argument {name} is {kind}, and not string")))
        }
    }
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}

fn shown(text: Option<String>) -> FluxValue {
    text.map_or(FluxValue::Null, |text| FluxValue::text(&text))
}

fn of_one(arguments: &mut FluxArguments, compute: fn(&str) -> String) -> SqlResult<FluxValue> {
    let text = text(arguments, "v")?;
    Ok(shown(text.map(|text| compute(&text))))
}

fn trim_prefix(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let texts = text(arguments, "v")?.zip(text(arguments, "prefix")?);
    let trim = |(text, prefix): (Arc<str>, Arc<str>)| {
        text.strip_prefix(&*prefix).unwrap_or(&text).to_owned()
    };
    Ok(shown(texts.map(trim)))
}

fn trim_suffix(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let texts = text(arguments, "v")?.zip(text(arguments, "suffix")?);
    let trim = |(text, suffix): (Arc<str>, Arc<str>)| {
        text.strip_suffix(&*suffix).unwrap_or(&text).to_owned()
    };
    Ok(shown(texts.map(trim)))
}

fn tested(
    arguments: &mut FluxArguments,
    other: &str,
    test: fn(&str, &str) -> bool,
) -> SqlResult<FluxValue> {
    let texts = text(arguments, "v")?.zip(text(arguments, other)?);
    Ok(texts.map_or(FluxValue::Null, |(a, b)| FluxValue::Bool(test(&a, &b))))
}

fn has_prefix(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    tested(arguments, "prefix", |text, prefix| text.starts_with(prefix))
}

fn has_suffix(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    tested(arguments, "suffix", |text, suffix| text.ends_with(suffix))
}

fn contains_text(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    tested(arguments, "substr", |text, part| text.contains(part))
}

fn length(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let text = text(arguments, "v")?;
    let count = |text: Arc<str>| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    Ok(text.map_or(FluxValue::Null, |text| FluxValue::Int(count(text))))
}

fn substring(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let text = text(arguments, "v")?;
    let (start, end) = (arguments.count("start")?, arguments.count("end")?);
    let cut = |text: Arc<str>| {
        let chars = text.chars().skip(start);
        chars.take(end.saturating_sub(start)).collect()
    };
    Ok(shown(text.map(cut)))
}

fn replaced(arguments: &mut FluxArguments, count: usize) -> SqlResult<FluxValue> {
    let (text, old, new) = (
        text(arguments, "v")?,
        text(arguments, "t")?,
        text(arguments, "u")?,
    );
    let (Some(text), Some(old), Some(new)) = (text, old, new) else {
        return Ok(FluxValue::Null);
    };
    let found = text.matches(&*old).take(count).count();
    if found.saturating_mul(new.len()).saturating_add(text.len()) > MADE_BYTES_MAX {
        return Err(arguments.fault(format!("the text has more than {MADE_BYTES_MAX} bytes")));
    }
    Ok(FluxValue::text(&text.replacen(&*old, &new, count)))
}

fn replace_all(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    replaced(arguments, usize::MAX)
}

fn replace(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let count = arguments.count("i")?;
    replaced(arguments, count)
}

fn split(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let texts = text(arguments, "v")?.zip(text(arguments, "t")?);
    let Some((text, separator)) = texts else {
        return Ok(FluxValue::Null);
    };
    let parts: Vec<FluxValue> = if separator.is_empty() {
        text.chars()
            .map(|char| FluxValue::text(&char.to_string()))
            .collect()
    } else {
        text.split(&*separator).map(FluxValue::text).collect()
    };
    Ok(FluxValue::Array(Arc::new(parts)))
}

fn joined(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let parts = arguments.texts_or("arr", &[])?;
    let separator = arguments.text("v")?;
    let bytes = parts.iter().map(|part| part.len() + separator.len());
    if bytes.sum::<usize>() > MADE_BYTES_MAX {
        return Err(arguments.fault(format!("the text has more than {MADE_BYTES_MAX} bytes")));
    }
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    Ok(FluxValue::text(&parts.join(&separator)))
}
