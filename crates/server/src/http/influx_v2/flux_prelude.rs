//! What a query sends besides its script, as statements of Flux that run before it: `extern`, a file
//! of Flux as a syntax tree in JSON, `params`, and `now`.
//!
//! Invariant: the text has no more statements than the request: names are checked, texts are escaped.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value};

/// The statements of a request.
///
/// # Errors
/// What of them is not supported, and what is wrong.
pub(super) fn prelude(request: &Map<String, Value>) -> Result<String, String> {
    let mut text = String::new();
    match request.get("now") {
        None | Some(Value::Null) => {}
        Some(Value::String(now)) if now.is_empty() => {}
        Some(Value::String(now)) => {
            text.extend(["option now = () => ", &time(now)?, "\n"]);
        }
        Some(_) => return Err("now is no time".to_owned()),
    }
    match request.get("params") {
        None | Some(Value::Null) => {}
        Some(params @ Value::Object(_)) => {
            text.extend(["params = ", &plain(params)?, "\n"]);
        }
        Some(_) => return Err("params is no object".to_owned()),
    }
    match request.get("extern") {
        None | Some(Value::Null) => {}
        Some(Value::Object(file)) => {
            for import in list(file.get("imports")) {
                let path = import.get("path").and_then(|path| path.get("value"));
                let path = path
                    .and_then(Value::as_str)
                    .ok_or("extern: an import has no path")?;
                let name = match import.get("as").and_then(|name| name.get("name")) {
                    Some(Value::String(alias)) => name(alias)?,
                    _ => "",
                };
                text.extend(["import ", name, " ", &quoted(path), "\n"]);
            }
            for statement in list(file.get("body")) {
                text.push_str(&statement_text(statement)?);
                text.push('\n');
            }
        }
        Some(_) => return Err("extern is no object".to_owned()),
    }
    Ok(text)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn kind(node: &Value) -> &str {
    node.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn statement_text(node: &Value) -> Result<String, String> {
    match kind(node) {
        "OptionStatement" => {
            let assignment = node.get("assignment").unwrap_or(&Value::Null);
            Ok(format!("option {}", assignment_text(assignment)?))
        }
        "VariableAssignment" => assignment_text(node),
        other => Err(format!(
            "extern: statements of type {other:?} are not supported"
        )),
    }
}

fn assignment_text(node: &Value) -> Result<String, String> {
    if kind(node) != "VariableAssignment" {
        return Err(format!(
            "extern: assignments of type {:?} are not supported",
            kind(node)
        ));
    }
    let id = node
        .get("id")
        .and_then(|id| id.get("name"))
        .and_then(Value::as_str);
    let id = name(id.unwrap_or_default())?;
    let value = expression(node.get("init").unwrap_or(&Value::Null))?;
    Ok(format!("{id} = {value}"))
}

/// A name of Flux.
fn name(text: &str) -> Result<&str, String> {
    let begins = text.starts_with(|char: char| char == '_' || char.is_ascii_alphabetic());
    let is_name = |char: char| char == '_' || char.is_ascii_alphanumeric();
    if begins && text.chars().all(is_name) {
        return Ok(text);
    }
    Err(format!("extern: {text:?} is no name"))
}

/// A text of Flux.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' | '$' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

fn time(text: &str) -> Result<String, String> {
    let time = DateTime::parse_from_rfc3339(text);
    let time = time.map_err(|error| format!("{text:?} is no time: {error}"))?;
    Ok(time.to_utc().to_rfc3339_opts(SecondsFormat::Nanos, true))
}

fn float(value: f64) -> String {
    let shown = value.to_string();
    if shown.contains('.') {
        shown
    } else {
        format!("{shown}.0")
    }
}

/// A value of JSON as a value of Flux.
fn plain(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => format!("({value})"),
            (None, Some(value)) => format!("({})", float(value)),
            (None, None) => return Err(format!("params: {number} is no number of Flux")),
        },
        Value::String(text) => quoted(text),
        Value::Array(elements) => {
            let elements = elements.iter().map(plain).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", elements.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| {
                let value = plain(value)?;
                Ok(format!("{}: {value}", quoted(name)))
            });
            format!(
                "{{{}}}",
                members.collect::<Result<Vec<_>, String>>()?.join(", ")
            )
        }
        Value::Null => return Err("params: null is no value of Flux".to_owned()),
    })
}

/// The text of a literal's value, which may stand in JSON as a number.
fn literal(node: &Value) -> String {
    match node.get("value") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn expression(node: &Value) -> Result<String, String> {
    let wrong = || format!("extern: a {} has no such value", kind(node));
    let part = |name: &str| expression(node.get(name).unwrap_or(&Value::Null));
    Ok(match kind(node) {
        "StringLiteral" => {
            let text = node
                .get("value")
                .and_then(Value::as_str)
                .ok_or_else(wrong)?;
            quoted(text)
        }
        "BooleanLiteral" => {
            let value = node
                .get("value")
                .and_then(Value::as_bool)
                .ok_or_else(wrong)?;
            value.to_string()
        }
        "IntegerLiteral" => {
            let value: i64 = literal(node).parse().map_err(|_| wrong())?;
            format!("({value})")
        }
        "FloatLiteral" => {
            let value: f64 = literal(node).parse().map_err(|_| wrong())?;
            if !value.is_finite() {
                return Err(wrong());
            }
            format!("({})", float(value))
        }
        "DateTimeLiteral" => time(&literal(node))?,
        "DurationLiteral" => duration(node)?,
        "Identifier" => {
            let id = node.get("name").and_then(Value::as_str).unwrap_or_default();
            name(id)?.to_owned()
        }
        "ArrayExpression" => {
            let elements = list(node.get("elements")).iter().map(expression);
            format!("[{}]", elements.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        "ObjectExpression" => {
            let members = list(node.get("properties")).iter().map(|member| {
                let key = member.get("key").unwrap_or(&Value::Null);
                let key = key.get("name").or_else(|| key.get("value"));
                let key = key.and_then(Value::as_str).ok_or_else(wrong)?;
                let value = expression(member.get("value").unwrap_or(&Value::Null))?;
                Ok(format!("{}: {value}", quoted(key)))
            });
            format!(
                "{{{}}}",
                members.collect::<Result<Vec<_>, String>>()?.join(", ")
            )
        }
        "UnaryExpression" => {
            let operator = node
                .get("operator")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if !matches!(operator, "-" | "+" | "not" | "exists") {
                return Err(wrong());
            }
            format!("({operator} {})", part("argument")?)
        }
        "CallExpression" => {
            let arguments = match list(node.get("arguments")) {
                [] => String::new(),
                [arguments] if kind(arguments) == "ObjectExpression" => {
                    let members = list(arguments.get("properties")).iter().map(|member| {
                        let key = member.get("key").and_then(|key| key.get("name"));
                        let key = name(key.and_then(Value::as_str).unwrap_or_default())?;
                        let value = expression(member.get("value").unwrap_or(&Value::Null))?;
                        Ok(format!("{key}: {value}"))
                    });
                    members.collect::<Result<Vec<_>, String>>()?.join(", ")
                }
                _ => return Err(wrong()),
            };
            format!("{}({arguments})", part("callee")?)
        }
        "ParenExpression" => format!("({})", part("expression")?),
        other => {
            return Err(format!(
                "extern: expressions of type {other:?} are not supported"
            ));
        }
    })
}

/// The parts of a duration, all of which have the same sign.
fn duration(node: &Value) -> Result<String, String> {
    let wrong = || "extern: a duration has no such value".to_owned();
    let (mut text, mut is_negative) = (String::new(), false);
    for part in list(node.get("values")) {
        let magnitude = part
            .get("magnitude")
            .and_then(Value::as_i64)
            .ok_or_else(wrong)?;
        let unit = part.get("unit").and_then(Value::as_str).ok_or_else(wrong)?;
        if !unit
            .chars()
            .all(|char| char.is_ascii_alphabetic() || char == 'µ')
        {
            return Err(wrong());
        }
        is_negative |= magnitude < 0;
        text += &magnitude.unsigned_abs().to_string();
        text += unit;
    }
    match (text.is_empty(), is_negative) {
        (true, _) => Err(wrong()),
        (false, true) => Ok(format!("(-{text})")),
        (false, false) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(request: Value) -> Result<String, String> {
        match request {
            Value::Object(request) => prelude(&request),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn parameters_become_an_option() {
        let property = |name: &str, value: Value| json!({"type": "Property", "key": {"type": "Identifier", "name": name}, "value": value});
        let record = json!({"type": "ObjectExpression", "properties": [
            property("a", json!({"type": "StringLiteral", "value": "x\"\n${y}"})),
            property("b", json!({"type": "IntegerLiteral", "value": "-5"})),
            property("c", json!({"type": "FloatLiteral", "value": 2})),
            property("d", json!({"type": "DurationLiteral",
                "values": [{"magnitude": -60, "unit": "s"}]})),
            property("e", json!({"type": "DateTimeLiteral", "value": "2024-01-01T01:00:00+01:00"})),
            property("f", json!({"type": "ArrayExpression",
                "elements": [{"type": "BooleanLiteral", "value": true}]})),
        ]});
        let request = json!({"extern": {"type": "File", "imports": [], "body": [
            {"type": "OptionStatement", "assignment": {"type": "VariableAssignment",
                "id": {"type": "Identifier", "name": "params"}, "init": record}}]}});
        let expected = "option params = {\"a\": \"x\\\"\\n\\${y}\", \"b\": (-5), \"c\": (2.0), \
                        \"d\": (-60s), \"e\": 2024-01-01T00:00:00.000000000Z, \"f\": [true]}\n";
        assert_eq!(text(request).unwrap(), expected);
        let request = json!({"now": "2024-01-01T00:00:00Z", "params": {"n": 1, "t": "a"}});
        let expected = "option now = () => 2024-01-01T00:00:00.000000000Z\n\
                        params = {\"n\": (1), \"t\": \"a\"}\n";
        assert_eq!(text(request).unwrap(), expected);
        assert_eq!(text(json!({"now": null, "extern": null})).unwrap(), "");
    }

    #[test]
    fn nothing_else_gets_into_the_script() {
        let assigned = |name: &str, init: Value| {
            json!({"extern": {"body": [{"type": "VariableAssignment",
                "id": {"name": name}, "init": init}]}})
        };
        let number = json!({"type": "IntegerLiteral", "value": "1"});
        assert!(text(assigned("x", number.clone())).is_ok());
        for wrong in [
            assigned("x = 1\ny", number),
            assigned("x", json!({"type": "IntegerLiteral", "value": "1 y = 2"})),
            assigned("x", json!({"type": "Identifier", "name": "a b"})),
            assigned("x", json!({"type": "FunctionExpression"})),
            assigned(
                "x",
                json!({"type": "DurationLiteral",
                "values": [{"magnitude": 1, "unit": "s y = 1"}]}),
            ),
            json!({"now": "yesterday"}),
            json!({"params": 1}),
            json!({"extern": {"body": [{"type": "BuiltinStatement"}]}}),
        ] {
            assert!(text(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
