//! Tablets: the rows of one device by columns, and rows whose values carry their types.
//!
//! Values stay in the request's bytes, and are read where they are needed; what is malformed is found
//! before.

use crate::status::IotDbFault;
use crate::value::{IotDbType, IotDbValue, ValueReader};

/// What stands for a value that is null in a row.
const NULL_TYPE: u8 = 0xfe;

/// The rows of one device.
#[derive(Clone, Debug)]
pub struct Tablet<'a> {
    times: &'a [u8],
    columns: Vec<TabletColumn<'a>>,
}

/// A column of a tablet.
#[derive(Clone, Copy, Debug)]
pub struct TabletColumn<'a> {
    /// The type of its values.
    pub kind: IotDbType,
    values: &'a [u8],
    /// A bit for each row, from the lowest one of each byte: set if the value is null.
    nulls: Option<&'a [u8]>,
    rows: usize,
}

impl<'a> Tablet<'a> {
    /// The tablet of these binaries.
    ///
    /// # Errors
    /// If their lengths do not fit the number of rows and the types, a type does not exist, or a text is
    /// not UTF-8.
    pub fn new(
        times: &'a [u8],
        values: &'a [u8],
        types: &[i32],
        rows: i32,
    ) -> Result<Self, IotDbFault> {
        let rows = usize::try_from(rows)
            .map_err(|_| IotDbFault::parameter(format!("a tablet cannot have {rows} rows")))?;
        if times.len() != rows.saturating_mul(8) {
            return Err(IotDbFault::parameter(format!(
                "a tablet of {rows} rows has {} bytes of times",
                times.len()
            )));
        }
        let mut reader = ValueReader::new(values);
        let mut columns = Vec::with_capacity(types.len());
        for (place, number) in types.iter().enumerate() {
            let kind = IotDbType::from_number(*number)?;
            let begin = reader.rest;
            for _ in 0..rows {
                let passed = match kind {
                    IotDbType::Text | IotDbType::String => reader.value(kind).map(drop),
                    _ => reader.pass(kind),
                };
                passed.ok_or_else(|| short(place, kind))?;
            }
            let len = begin.len() - reader.rest.len();
            columns.push(TabletColumn {
                kind,
                values: &begin[..len],
                nulls: None,
                rows,
            });
        }
        // Clients of versions before 2 leave the bitmaps out if there are no nulls.
        if !reader.is_empty() {
            for (place, column) in columns.iter_mut().enumerate() {
                let missing =
                    || IotDbFault::parameter(format!("the bitmap of column {place} is cut"));
                if reader.byte().ok_or_else(missing)? != 0 {
                    column.nulls = Some(reader.take(rows / 8 + 1).ok_or_else(missing)?);
                }
            }
        }
        Ok(Self { times, columns })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.times.len() / 8
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The times, ms.
    pub fn times(&self) -> impl Iterator<Item = i64> {
        let (times, _) = self.times.as_chunks::<8>();
        times.iter().map(|time| i64::from_be_bytes(*time))
    }

    /// The columns.
    pub fn columns(&self) -> &[TabletColumn<'a>] {
        &self.columns
    }
}

impl<'a> TabletColumn<'a> {
    /// The value of each row; `None` for null.
    pub fn values(&self) -> impl Iterator<Item = Option<IotDbValue<'a>>> {
        let mut reader = ValueReader::new(self.values);
        let (kind, nulls) = (self.kind, self.nulls);
        (0..self.rows).map(move |row| {
            let value = reader.value(kind);
            let byte = nulls.and_then(|nulls| nulls.get(row / 8));
            let is_null = byte.is_some_and(|byte| byte >> (row % 8) & 1 == 1);
            value.filter(|_| !is_null)
        })
    }
}

fn short(place: usize, kind: IotDbType) -> IotDbFault {
    IotDbFault::parameter(format!(
        "column {place} of the tablet does not hold the values of {kind} that it should"
    ))
}

/// The values of a row, each behind its type, in the order of the measurements; `None` for null.
///
/// # Errors
/// If there are more or fewer than `count`, or one is malformed.
pub fn record_values(
    bytes: &[u8],
    count: usize,
) -> Result<Vec<Option<IotDbValue<'_>>>, IotDbFault> {
    let mut reader = ValueReader::new(bytes);
    // A value takes a byte at least.
    let mut values = Vec::with_capacity(count.min(bytes.len()));
    for place in 0..count {
        let malformed = || {
            IotDbFault::parameter(format!(
                "value {place} of the row is missing, cut, or of an unknown type"
            ))
        };
        let number = reader.byte().ok_or_else(malformed)?;
        if number == NULL_TYPE {
            values.push(None);
            continue;
        }
        let kind = IotDbType::from_number(i32::from(number)).map_err(|_| malformed())?;
        values.push(Some(reader.value(kind).ok_or_else(malformed)?));
    }
    if !reader.is_empty() {
        return Err(IotDbFault::parameter(format!(
            "the row has more values than its {count} measurements"
        )));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tablet of a real client: an integer and a text, two rows, no null.
    const VALUES: &str = "00000001000000000000000261620000000163010200";

    fn bytes(hex: &str) -> Vec<u8> {
        let pairs = (0..hex.len()).step_by(2);
        pairs
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("it is hexadecimal"))
            .collect()
    }

    fn times(count: i64) -> Vec<u8> {
        (1..=count).flat_map(i64::to_be_bytes).collect()
    }

    #[test]
    fn columns_and_nulls_are_read() {
        let (times, values) = (times(2), bytes(VALUES));
        let tablet = Tablet::new(&times, &values, &[1, 5], 2).expect("it is a tablet");
        assert_eq!(tablet.times().collect::<Vec<_>>(), [1, 2]);
        let columns: Vec<Vec<_>> = tablet
            .columns()
            .iter()
            .map(|it| it.values().collect())
            .collect();
        // The bitmap of the first column names its second row.
        assert_eq!(columns[0], [Some(IotDbValue::Int32(1)), None]);
        assert_eq!(
            columns[1],
            [Some(IotDbValue::Text("ab")), Some(IotDbValue::Text("c"))]
        );
        // Clients before version 2 send no bitmaps where there is no null.
        let tablet = Tablet::new(&times, &values[..19], &[1, 5], 2).expect("it is a tablet");
        assert_eq!(tablet.columns()[0].values().flatten().count(), 2);
    }

    #[test]
    fn lengths_must_fit() {
        let (times, values) = (times(2), bytes(VALUES));
        for (types, rows) in [
            (&[1, 5][..], 3),
            (&[2, 5], 2),
            (&[1, 5, 5], 2),
            (&[1, 99], 2),
            (&[1], -1),
        ] {
            assert!(
                Tablet::new(&times, &values, types, rows).is_err(),
                "{types:?}, {rows}"
            );
        }
        for len in 0..values.len() {
            if len != 19 {
                assert!(
                    Tablet::new(&times, &values[..len], &[1, 5], 2).is_err(),
                    "{len}"
                );
            }
        }
        let no_text = [0, 0, 0, 1, 0xff];
        assert!(Tablet::new(&times[..8], &no_text, &[5], 1).is_err());
        let blob = Tablet::new(&times[..8], &no_text, &[10], 1).expect("bytes need not be text");
        assert_eq!(
            blob.columns()[0].values().next(),
            Some(Some(IotDbValue::Blob(&[0xff])))
        );
    }

    #[test]
    fn rows_carry_types() {
        let row = bytes("010000000505000000027a7afe");
        let values = record_values(&row, 3).expect("it is a row");
        assert_eq!(
            values,
            [
                Some(IotDbValue::Int32(5)),
                Some(IotDbValue::Text("zz")),
                None
            ]
        );
        assert!(record_values(&row, 2).is_err() && record_values(&row, 4).is_err());
        assert!(record_values(&row[..8], 3).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            values in proptest::collection::vec(any::<u8>(), 0..60),
            types in proptest::collection::vec(0..12, 0..4),
            rows in 0..9_i32,
        ) {
            let times = times(i64::from(rows));
            if let Ok(tablet) = Tablet::new(&times, &values, &types, rows) {
                for column in tablet.columns() {
                    prop_assert_eq!(column.values().count(), rows as usize);
                }
            }
            let _ = record_values(&values, types.len());
        }
    }
}
