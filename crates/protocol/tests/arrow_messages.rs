//! Messages as Arrow writes them are read; damaged ones are refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DurationSecondArray, Float64Array, Int64Array, NullArray, RecordBatch,
    StringArray, StringViewArray, TimestampNanosecondArray,
};
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions,
};
use bytes::Bytes;
use marigram_protocol::flight::{ArrowLimits, ArrowMessage, ArrowMessageError, ArrowMessages};
use proptest::prelude::*;
use std::sync::Arc;

const LIMITS: ArrowLimits = ArrowLimits {
    dictionary_bytes: 1 << 20,
};

/// The messages of a batch: schema, dictionaries, rows.
fn messages(batch: &RecordBatch) -> Vec<EncodedData> {
    let (generator, options) = (IpcDataGenerator::default(), IpcWriteOptions::default());
    let mut tracker = DictionaryTracker::new(false);
    let schema =
        generator.schema_to_bytes_with_dictionary_tracker(&batch.schema(), &mut tracker, &options);
    let (dictionaries, rows) = generator
        .encode(
            batch,
            &mut tracker,
            &options,
            &mut IpcWriteContext::default(),
        )
        .unwrap();
    std::iter::once(schema)
        .chain(dictionaries)
        .chain([rows])
        .collect()
}

fn columns() -> RecordBatch {
    let mut tags = StringDictionaryBuilder::<Int32Type>::new();
    tags.extend([Some("a"), None, Some("a")]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(TimestampNanosecondArray::from(vec![1, 2, 3]).with_timezone("UTC")),
        ),
        ("tag", Arc::new(tags.finish())),
        (
            "text",
            Arc::new(StringArray::from(vec![Some("x"), None, Some("")])),
        ),
        (
            "view",
            Arc::new(StringViewArray::from(vec![
                "short",
                "longer than twelve bytes",
                "",
            ])),
        ),
        (
            "f",
            Arc::new(Float64Array::from(vec![Some(0.5), None, None])),
        ),
        ("n", Arc::new(Int64Array::from(vec![1, 2, i64::MIN]))),
        ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn read_all(messages: &[EncodedData]) -> Result<Vec<RecordBatch>, ArrowMessageError> {
    let mut reader = ArrowMessages::new(LIMITS);
    let mut read = Vec::new();
    for message in messages {
        let body = Bytes::from(message.arrow_data.clone());
        if let ArrowMessage::Rows(rows) = reader.read(&message.ipc_message, body)? {
            read.push(rows);
        }
    }
    Ok(read)
}

#[test]
fn rows_come_back_as_they_were() {
    let batch = columns();
    assert_eq!(read_all(&messages(&batch)).unwrap(), [batch]);
}

#[test]
fn nulls_need_no_type_and_no_bytes_but_have_a_limit() {
    let nulls = |count| {
        let column: ArrayRef = Arc::new(NullArray::new(count));
        RecordBatch::try_from_iter_with_nullable([("nothing", column, true)]).unwrap()
    };
    assert_eq!(read_all(&messages(&nulls(3))).unwrap(), [nulls(3)]);
    let error = read_all(&messages(&nulls(10_001))).unwrap_err();
    assert!(
        error.to_string().contains("more rows than bytes"),
        "{error}"
    );
}

/// Reads a column of integers whose message says that a buffer has another length.
fn read_with_length(buffer: [i64; 2], length: u8) -> Result<ArrowMessage, ArrowMessageError> {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let written = messages(&RecordBatch::try_from_iter([("n", column)]).unwrap());
    let mut header = written[1].ipc_message.clone();
    let told: Vec<u8> = buffer.into_iter().flat_map(i64::to_le_bytes).collect();
    let mut places = header.windows(told.len());
    let at = places.rposition(|window| window == told).unwrap();
    header[at + 8] = length;
    let mut reader = ArrowMessages::new(LIMITS);
    reader.read(&written[0].ipc_message, Bytes::new()).unwrap();
    reader.read(&header, Bytes::from(written[1].arrow_data.clone()))
}

#[test]
fn buffers_that_end_too_soon_are_refused() {
    let malformed = |what| Err(ArrowMessageError::Malformed(what));
    // The bits of nulls begin at 0, and the values at 64.
    assert_eq!(
        read_with_length([0, 1], 0),
        malformed("nulls without their bits")
    );
    assert_eq!(
        read_with_length([64, 24], 23),
        malformed("a part of a value")
    );
    assert!(read_with_length([64, 24], 16).is_err());
    assert!(read_with_length([64, 24], 24).is_ok());
}

#[test]
fn what_does_not_belong_is_refused() {
    let written = messages(&columns());
    let alone = read_all(&written[2..]);
    assert!(
        matches!(alone, Err(ArrowMessageError::Malformed(_))),
        "{alone:?}"
    );
    let durations: ArrayRef = Arc::new(DurationSecondArray::from(vec![1]));
    let durations = RecordBatch::try_from_iter([("for", durations)]).unwrap();
    let error = read_all(&messages(&durations)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("column 'for' has the Arrow type Duration"),
        "{error}"
    );
    let mut reader = ArrowMessages::new(ArrowLimits {
        dictionary_bytes: 1,
    });
    let mut results = written.iter().map(|message| {
        reader.read(
            &message.ipc_message,
            Bytes::from(message.arrow_data.clone()),
        )
    });
    let error = results.find_map(Result::err).unwrap();
    assert!(
        matches!(error, ArrowMessageError::TooLarge { .. }),
        "{error}"
    );
    // A body that was cut off.
    let last = written.last().unwrap();
    let mut reader = ArrowMessages::new(LIMITS);
    for message in &written[..2] {
        let body = Bytes::from(message.arrow_data.clone());
        reader.read(&message.ipc_message, body).unwrap();
    }
    let cut = Bytes::from(last.arrow_data[..8].to_vec());
    assert!(reader.read(&last.ipc_message, cut).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn damaged_messages_never_panic(
        which in 0..3_usize, at in any::<prop::sample::Index>(), value in any::<u8>(), in_body in any::<bool>(),
        also in any::<prop::sample::Index>(),
    ) {
        let mut written: Vec<(Vec<u8>, Vec<u8>)> = messages(&columns())
            .iter()
            .map(|message| (message.ipc_message.clone(), message.arrow_data.clone()))
            .collect();
        let (header, body) = &mut written[which];
        let bytes = if in_body && !body.is_empty() { body } else { header };
        let (at, also) = (at.index(bytes.len()), also.index(bytes.len()));
        bytes[at] = value;
        bytes[also] ^= 0x80;
        let mut reader = ArrowMessages::new(LIMITS);
        for (header, body) in written {
            if reader.read(&header, Bytes::from(body)).is_err() {
                break;
            }
        }
    }
}
