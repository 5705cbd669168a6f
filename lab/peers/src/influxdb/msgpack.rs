//! `MessagePack`, as far as InfluxDB's answers use it. Source: the specification at
//! <https://github.com/msgpack/msgpack/blob/master/spec.md>.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Number, Value};

/// The largest depth of a document; answers have a depth of six.
const DEPTH_MAX: usize = 32;

/// The document in `body`, which must end with it. Values that JSON cannot represent (not a number,
/// infinity) become null.
pub(super) fn decode(mut body: &[u8]) -> Result<Value> {
    let value = value(&mut body, DEPTH_MAX)?;
    ensure!(body.is_empty(), "{} bytes after the document", body.len());
    Ok(value)
}

fn take<'a>(body: &mut &'a [u8], bytes: usize) -> Result<&'a [u8]> {
    let (taken, rest) = body
        .split_at_checked(bytes)
        .context("the document is cut off")?;
    *body = rest;
    Ok(taken)
}

fn array<const N: usize>(body: &mut &[u8]) -> Result<[u8; N]> {
    let mut out = [0; N];
    out.copy_from_slice(take(body, N)?);
    Ok(out)
}

/// An unsigned number of `bytes` bytes.
fn unsigned(body: &mut &[u8], bytes: usize) -> Result<u64> {
    let digits = take(body, bytes)?.iter();
    Ok(digits.fold(0, |number, digit| number << 8 | u64::from(*digit)))
}

fn value(body: &mut &[u8], depth: usize) -> Result<Value> {
    ensure!(depth > 0, "the document is nested too deeply");
    let [tag] = array(body)?;
    Ok(match tag {
        0x00..=0x7f => Value::from(tag),
        0x80..=0x8f => map(body, usize::from(tag & 0x0f), depth)?,
        0x90..=0x9f => list(body, usize::from(tag & 0x0f), depth)?,
        0xa0..=0xbf => text(body, usize::from(tag & 0x1f))?,
        0xc0 => Value::Null,
        0xc2 => Value::Bool(false),
        0xc3 => Value::Bool(true),
        0xca => float(f64::from(f32::from_be_bytes(array(body)?))),
        0xcb => float(f64::from_be_bytes(array(body)?)),
        0xcc..=0xcf => Value::from(unsigned(body, 1 << (tag - 0xcc))?),
        0xd0 => Value::from(i8::from_be_bytes(array(body)?)),
        0xd1 => Value::from(i16::from_be_bytes(array(body)?)),
        0xd2 => Value::from(i32::from_be_bytes(array(body)?)),
        0xd3 => Value::from(i64::from_be_bytes(array(body)?)),
        0xd9..=0xdb => {
            let bytes = unsigned(body, 1 << (tag - 0xd9))?;
            text(body, bytes as usize)?
        }
        0xdc | 0xdd => {
            let length = unsigned(body, 2 << (tag - 0xdc))?;
            list(body, length as usize, depth)?
        }
        0xde | 0xdf => {
            let length = unsigned(body, 2 << (tag - 0xde))?;
            map(body, length as usize, depth)?
        }
        0xe0..=0xff => Value::from(tag as i8),
        _ => bail!("a value of kind {tag:#x}"),
    })
}

fn float(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn text(body: &mut &[u8], bytes: usize) -> Result<Value> {
    let text = std::str::from_utf8(take(body, bytes)?).context("a text that is none")?;
    Ok(Value::String(text.to_owned()))
}

fn list(body: &mut &[u8], length: usize, depth: usize) -> Result<Value> {
    // No memory is reserved for a length that is only claimed.
    let mut all = Vec::new();
    for _ in 0..length {
        all.push(value(body, depth - 1)?);
    }
    Ok(Value::Array(all))
}

fn map(body: &mut &[u8], length: usize, depth: usize) -> Result<Value> {
    let mut all = Map::new();
    for _ in 0..length {
        let Value::String(name) = value(body, depth - 1)? else {
            bail!("a name that is no text");
        };
        all.insert(name, value(body, depth - 1)?);
    }
    Ok(Value::Object(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_value_is_read() {
        let cases: [(&[u8], Value); 20] = [
            (&[0x2a], json!(42)),
            (&[0xff], json!(-1)),
            (&[0xc0], json!(null)),
            (&[0xc2], json!(false)),
            (&[0xc3], json!(true)),
            (&[0xca, 0x3f, 0xc0, 0, 0], json!(1.5)),
            (&[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], json!(1.5)),
            (&[0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], json!(null)),
            (&[0xcc, 200], json!(200)),
            (&[0xcd, 1, 0], json!(256)),
            (&[0xce, 0, 1, 0, 0], json!(65_536)),
            (&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0], json!(4_294_967_296_u64)),
            (&[0xd0, 0x80], json!(-128)),
            (&[0xd1, 0x01, 0x2c], json!(300)),
            (&[0xd2, 0xff, 0xfe, 0xee, 0x90], json!(-70_000)),
            (
                &[0xd3, 0x16, 0x55, 0xf2, 0x9d, 0x78, 0x7c, 0, 1],
                json!(1_609_459_200_000_000_001_i64),
            ),
            (&[0xa2, b'o', b'k'], json!("ok")),
            (&[0xd9, 2, b'o', b'k'], json!("ok")),
            (&[0xdc, 0, 2, 1, 0x91, 2], json!([1, [2]])),
            (&[0xde, 0, 1, 0xa1, b'a', 0x80], json!({"a": {}})),
        ];
        for (body, expected) in cases {
            assert_eq!(decode(body).expect("a document"), expected, "{body:x?}");
        }
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        let deep = [0x91; 1000];
        let cases: [&[u8]; 7] = [
            &[],
            &[0xa2, b'o'],
            &[0xdd, 0xff, 0xff, 0xff, 0xff, 1],
            &[0xc1],
            &[1, 2],
            &[0x81, 1, 2],
            &deep,
        ];
        for body in cases {
            decode(body).expect_err(&format!("{body:x?}"));
        }
    }
}
