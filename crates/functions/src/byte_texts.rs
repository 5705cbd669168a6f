//! `encode(bytes, format)` and `decode(text, format)` with PostgreSQL's formats `hex`, `escape` and `base64`.
//! For other formats the functions are DataFusion's.

use crate::refusal::refused;
use crate::value_casts::parse_bytes;
use arrow::array::{ArrayRef, AsArray, BinaryArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions::encoding;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::fmt::Write as _;
use std::sync::Arc;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The characters of a line of base64.
const LINE: usize = 76;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ByteTextUdf {
    other: Arc<ScalarUDF>,
    encodes: bool,
}

/// The functions.
pub(crate) fn functions() -> [ScalarUDF; 2] {
    [(encoding::encode(), true), (encoding::decode(), false)]
        .map(|(other, encodes)| ScalarUDF::from(ByteTextUdf { other, encodes }))
}

#[derive(Clone, Copy)]
enum ByteFormat {
    Hexadecimal,
    Escape,
    Base64,
}

fn format_of(arg: &ColumnarValue) -> Option<ByteFormat> {
    let ColumnarValue::Scalar(format) = arg else {
        return None;
    };
    match format.try_as_str()??.to_ascii_lowercase().as_str() {
        "hex" => Some(ByteFormat::Hexadecimal),
        "escape" => Some(ByteFormat::Escape),
        "base64" => Some(ByteFormat::Base64),
        _ => None,
    }
}

impl ScalarUDFImpl for ByteTextUdf {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(format) = args.args.get(1).and_then(format_of) else {
            let unknown = match args.args.get(1) {
                Some(ColumnarValue::Scalar(name)) => name.try_as_str().flatten(),
                _ => None,
            };
            let unknown = unknown
                .filter(|name| !name.to_ascii_lowercase().starts_with("base64"))
                .map(|name| refused("22023", format!("unrecognized encoding: \"{name}\"")));
            return match unknown {
                Some(error) => Err(error),
                None => self.other.invoke_with_args(args),
            };
        };
        let to = args.return_type().clone();
        let is_one = matches!(args.args[0], ColumnarValue::Scalar(_));
        let values = args.args[0].to_array(args.number_rows)?;
        let made: ArrayRef = if self.encodes {
            let bytes = cast(&values, &DataType::Binary)?;
            let texts = bytes.as_binary::<i32>().iter();
            Arc::new(
                texts
                    .map(|bytes| bytes.map(|bytes| encoded(bytes, format)))
                    .collect::<StringArray>(),
            )
        } else {
            let texts = cast(&values, &DataType::Utf8)?;
            let bytes = texts.as_string::<i32>().iter();
            let bytes = bytes.map(|text| text.map(|text| decoded(text, format)).transpose());
            let bytes = bytes.collect::<Result<Vec<_>>>()?;
            Arc::new(bytes.iter().map(Option::as_deref).collect::<BinaryArray>())
        };
        let made = cast(&made, &to)?;
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?)
        } else {
            ColumnarValue::Array(made)
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}

fn encoded(bytes: &[u8], format: ByteFormat) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    match format {
        ByteFormat::Hexadecimal => {
            for byte in bytes {
                // Writing to a String cannot fail.
                let _ = write!(out, "{byte:02x}");
            }
        }
        ByteFormat::Escape => {
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0 | 128.. => {
                        let _ = write!(out, "\\{byte:03o}");
                    }
                    plain => out.push(char::from(*plain)),
                }
            }
        }
        ByteFormat::Base64 => {
            let mut line = 0;
            for group in bytes.chunks(3) {
                if line == LINE {
                    out.push('\n');
                    line = 0;
                }
                let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
                let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
                for at in 0..4 {
                    if at > group.len() {
                        out.push('=');
                        continue;
                    }
                    let digit = bits >> (18 - 6 * at) & 63;
                    out.push(char::from(BASE64[digit as usize]));
                }
                line += 4;
            }
        }
    }
    out
}

fn decoded(text: &str, format: ByteFormat) -> Result<Vec<u8>> {
    let wrong = |message: String| Err(refused("22023", message));
    match format {
        ByteFormat::Escape => {
            // A leading \x has no meaning here.
            let text = match text.strip_prefix("\\x") {
                Some(_) => return Err(refused("22P02", "invalid input syntax for type bytea")),
                None => text,
            };
            parse_bytes(text).map_err(|message| refused("22P02", message))
        }
        ByteFormat::Hexadecimal => {
            let digits: Vec<char> = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            let mut bytes = Vec::with_capacity(digits.len() / 2);
            for pair in digits.chunks(2) {
                let mut byte = 0;
                for digit in pair {
                    let Some(value) = digit.to_digit(16) else {
                        return wrong(format!("invalid hexadecimal digit: \"{digit}\""));
                    };
                    byte = byte * 16 + value as u8;
                }
                if pair.len() < 2 {
                    return wrong("invalid hexadecimal data: odd number of digits".to_owned());
                }
                bytes.push(byte);
            }
            Ok(bytes)
        }
        ByteFormat::Base64 => from_base64(text),
    }
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let wrong = |message: String| -> DataFusionError { refused("22023", message) };
    let (mut bits, mut count, mut padding) = (0_u32, 0_usize, 0_usize);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for c in text.chars().filter(|c| !c.is_ascii_whitespace()) {
        let digit = BASE64.iter().position(|digit| char::from(*digit) == c);
        let digit = match (digit, c) {
            (Some(digit), _) if padding == 0 => digit as u32,
            (None, '=') if count % 4 >= 2 => {
                padding += 1;
                0
            }
            (_, '=' | 'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '/') => {
                return Err(wrong(
                    "unexpected \"=\" while decoding base64 sequence".to_owned(),
                ));
            }
            _ => {
                let message =
                    format!("invalid symbol \"{c}\" found while decoding base64 sequence");
                return Err(wrong(message));
            }
        };
        bits = bits << 6 | digit;
        count += 1;
        if count.is_multiple_of(4) {
            let group = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
            bytes.extend_from_slice(&group[..3 - padding.min(2)]);
            bits = 0;
            padding = 0;
        }
    }
    if !count.is_multiple_of(4) {
        return Err(wrong("invalid base64 end sequence".to_owned()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for format in [
            ByteFormat::Hexadecimal,
            ByteFormat::Escape,
            ByteFormat::Base64,
        ] {
            for length in [0, 1, 2, 3, 57, 58, 256] {
                let text = encoded(&bytes[..length], format);
                assert_eq!(decoded(&text, format).unwrap(), bytes[..length], "{text}");
            }
        }
        assert_eq!(encoded(b"\0\xff\\a", ByteFormat::Escape), "\\000\\377\\\\a");
        assert_eq!(encoded(b"ab", ByteFormat::Base64), "YWI=");
        for (text, format) in [
            ("zz", ByteFormat::Hexadecimal),
            ("0", ByteFormat::Hexadecimal),
            ("\\9", ByteFormat::Escape),
            ("YW", ByteFormat::Base64),
            ("=YWI", ByteFormat::Base64),
            ("Y!==", ByteFormat::Base64),
        ] {
            assert!(decoded(text, format).is_err(), "{text}");
        }
    }
}
