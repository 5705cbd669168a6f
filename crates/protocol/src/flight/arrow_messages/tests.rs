//! Messages as Arrow writes them are read; damaged ones are refused.

use super::*;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    BooleanArray, Float64Array, Int64Array, NullArray, StringArray, StringViewArray,
    TimestampNanosecondArray,
};
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions,
};
use proptest::prelude::*;

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
        let body = Bytes::from(message.arrow_data.to_vec());
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
fn what_does_not_belong_is_refused() {
    let written = messages(&columns());
    let alone = read_all(&written[2..]);
    assert!(
        matches!(alone, Err(ArrowMessageError::Malformed(_))),
        "{alone:?}"
    );
    let nulls: ArrayRef = Arc::new(NullArray::new(3));
    let nulls = RecordBatch::try_from_iter([("nothing", nulls)]).unwrap();
    let error = read_all(&messages(&nulls)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("column 'nothing' has the Arrow type Null"),
        "{error}"
    );
    let mut reader = ArrowMessages::new(ArrowLimits {
        dictionary_bytes: 1,
    });
    let mut results = written.iter().map(|message| {
        reader.read(
            &message.ipc_message,
            Bytes::from(message.arrow_data.to_vec()),
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
        let body = Bytes::from(message.arrow_data.to_vec());
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
            .map(|message| (message.ipc_message.to_vec(), message.arrow_data.to_vec()))
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
