//! Numbers in JSON that are none to it: NaN and the infinities stand as texts, as in the server's
//! answers, so that they are not taken for NULL.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder};
use std::io::Write;

/// Writes floats.
#[derive(Debug)]
pub(crate) struct FloatEncoders;

impl EncoderFactory for FloatEncoders {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>();
                Box::new(FloatEncoder(move |at| {
                    let value = values.value(at);
                    (value, serde_json::to_vec(&value))
                }))
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>();
                Box::new(FloatEncoder(move |at| {
                    let value = values.value(at);
                    (f64::from(value), serde_json::to_vec(&value))
                }))
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

/// Writes the float of a row, which comes with its text.
struct FloatEncoder<F>(F);

impl<F: Fn(usize) -> (f64, serde_json::Result<Vec<u8>>)> Encoder for FloatEncoder<F> {
    fn encode(&mut self, at: usize, out: &mut Vec<u8>) {
        match (self.0)(at) {
            (value, Ok(text)) if value.is_finite() => out.extend_from_slice(&text),
            (value, _) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
            (value, _) => {
                let sign = if value < 0.0 { "-" } else { "" };
                // A vector takes everything.
                let _ = write!(out, "\"{sign}Infinity\"");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float32Array, Float64Array, RecordBatch};
    use arrow::json::WriterBuilder;
    use arrow::json::writer::LineDelimited;
    use std::sync::Arc;

    #[test]
    fn numbers_that_json_does_not_have_are_texts() {
        let wide = Float64Array::from(vec![Some(1.5), Some(f64::NAN), None, Some(-f64::INFINITY)]);
        let narrow = Float32Array::from(vec![0.1, f32::INFINITY, 2.0, f32::NAN]);
        let columns: [(&str, ArrayRef); 2] = [("w", Arc::new(wide)), ("n", Arc::new(narrow))];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let mut text = Vec::new();
        let mut writer = WriterBuilder::new()
            .with_explicit_nulls(true)
            .with_encoder_factory(Arc::new(FloatEncoders))
            .build::<_, LineDelimited>(&mut text);
        writer.write(&rows).unwrap();
        writer.finish().unwrap();
        drop(writer);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "{\"w\":1.5,\"n\":0.1}\n{\"w\":\"NaN\",\"n\":\"Infinity\"}\n{\"w\":null,\"n\":2.0}\n\
             {\"w\":\"-Infinity\",\"n\":\"NaN\"}\n"
        );
    }
}
