//! Two small tables of every type, with nulls and a missing tag, made from formulas.

use crate::data::{
    Column, Field, FieldKind, Rows, SECOND_NS, Source, Stream, Table, Tag, TagKind, Values,
};
use std::sync::Arc;

/// Time of the first rows: 2024-01-01T00:00:30Z, in the middle of a minute.
pub const START_NS: i64 = 1_704_067_230 * SECOND_NS;

/// Devices of each table.
pub const DEVICES: usize = 4;

/// Rows of each device in `lab_plain`, one a second.
pub const PLAIN_ROWS: usize = 200;

/// Rows of each device in `lab_mixed`, one every five seconds.
pub const MIXED_ROWS: usize = 50;

/// Distance of two rows of a device in `lab_mixed`.
pub const MIXED_STEP_NS: i64 = 5 * SECOND_NS;

/// Sites of the devices of `lab_mixed`; the last has none.
pub const SITES: [Option<&str>; DEVICES] = [Some("north"), Some("south"), Some("north"), None];

/// Name of a device.
pub fn name(device: usize) -> String {
    format!("dev_{device}")
}

/// Number of a device: 7 … 10, whose order as text is another.
pub fn number(device: usize) -> i64 {
    device as i64 + 7
}

/// Time of a row in `lab_plain`, nanoseconds.
pub fn plain_time(row: usize) -> i64 {
    START_NS + row as i64 * SECOND_NS
}

/// Time of a row in `lab_mixed`, nanoseconds.
pub fn mixed_time(row: usize) -> i64 {
    START_NS + row as i64 * MIXED_STEP_NS
}

/// Field `celsius`; negative ones among them.
pub fn celsius(device: usize, row: usize) -> i32 {
    ((row * 7 + device * 13) % 41) as i32 - 10
}

/// Field `humidity`, exact in single precision.
pub fn humidity(device: usize, row: usize) -> f32 {
    ((row * 3 + device * 5) % 64) as f32 * 0.25
}

/// Field `load`: a third of its values are null, those of two devices' newest rows among them.
pub fn load(device: usize, row: usize) -> Option<f64> {
    ((row + device) % 3 != 1).then_some(row as f64 * 1.0625 - device as f64 * 100.0)
}

/// Field `rain`.
pub fn rain(device: usize, row: usize) -> bool {
    (row + device).is_multiple_of(4)
}

/// Field `beats`, a large integer.
pub fn beats(device: usize, row: usize) -> i64 {
    (device as i64 + 1) * 5_000_000_000 + row as i64
}

/// Field `note`: spaces, a comma, an equals sign, a quote.
pub fn note(device: usize, row: usize) -> String {
    format!("r={row}, \"{}\" it's", device * 11)
}

/// The source: `lab_plain` (numbers, nothing missing) and `lab_mixed` (everything else).
pub struct Sample {
    tables: Vec<Table>,
}

fn table<const T: usize, const F: usize>(
    name: String,
    tags: [(&str, TagKind); T],
    fields: [(&str, FieldKind); F],
    series: Vec<Vec<Option<String>>>,
) -> Table {
    let tag = |(name, kind): (&str, TagKind)| Tag {
        name: name.to_owned(),
        kind,
    };
    let field = |(name, kind): (&str, FieldKind)| Field {
        name: name.to_owned(),
        kind,
    };
    Table {
        name,
        tags: tags.map(tag).to_vec(),
        key: 1,
        fields: fields.map(field).to_vec(),
        series: Arc::new(series),
    }
}

impl Sample {
    /// The tables with `suffix` at the end of their names.
    pub fn new(suffix: &str) -> Self {
        let text = |text: &str| Some(text.to_owned());
        let plain = |device| vec![text(&number(device).to_string()), text(&name(device))];
        let mixed = |device: usize| vec![SITES[device].and_then(text), text(&name(device))];
        let plain = table(
            format!("lab_plain{suffix}"),
            [("devid", TagKind::Integer), ("devname", TagKind::Text)],
            [("celsius", FieldKind::I32), ("humidity", FieldKind::F32)],
            (0..DEVICES).map(plain).collect(),
        );
        let mixed = table(
            format!("lab_mixed{suffix}"),
            [("site", TagKind::Text), ("devname", TagKind::Text)],
            [
                ("load", FieldKind::F64),
                ("rain", FieldKind::Bool),
                ("beats", FieldKind::I64),
                ("note", FieldKind::Text),
            ],
            (0..DEVICES).map(mixed).collect(),
        );
        Self {
            tables: vec![plain, mixed],
        }
    }

    /// Rows of the (device, row) pairs `of` in table `index`.
    fn batch(index: usize, of: &[(usize, usize)]) -> Rows {
        let all = |values| Column {
            values,
            present: None,
        };
        let each = || of.iter().copied();
        let (time, columns): (fn(usize) -> i64, _) = if index == 0 {
            let celsius = each().map(|(device, row)| celsius(device, row)).collect();
            let humidity = each().map(|(device, row)| humidity(device, row)).collect();
            (
                plain_time,
                vec![all(Values::I32(celsius)), all(Values::F32(humidity))],
            )
        } else {
            let loads: Vec<_> = each().map(|(device, row)| load(device, row)).collect();
            let loads = Column {
                present: Some(loads.iter().map(Option::is_some).collect()),
                values: Values::F64(loads.iter().map(|load| load.unwrap_or(0.0)).collect()),
            };
            let rains = each().map(|(device, row)| rain(device, row)).collect();
            let beats = each().map(|(device, row)| beats(device, row)).collect();
            let notes = each().map(|(device, row)| note(device, row)).collect();
            (
                mixed_time,
                vec![
                    loads,
                    all(Values::Bool(rains)),
                    all(Values::I64(beats)),
                    all(Values::Text(notes)),
                ],
            )
        };
        Rows {
            table: index,
            series: each().map(|(device, _)| device as u32).collect(),
            times: each().map(|(_, row)| time(row)).collect(),
            columns,
        }
    }
}

impl Source for Sample {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn rows(&self) -> u64 {
        (DEVICES * (PLAIN_ROWS + MIXED_ROWS)) as u64
    }

    fn span_ns(&self) -> (i64, i64) {
        let end = plain_time(PLAIN_ROWS).max(mixed_time(MIXED_ROWS));
        (START_NS, end)
    }

    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_> {
        let batches = move |index: usize, rows: usize| {
            let mine = (client..DEVICES).step_by(clients);
            let all: Vec<_> = (0..rows)
                .flat_map(|row| mine.clone().map(move |device| (device, row)))
                .collect();
            let batches: Vec<_> = all
                .chunks(batch_rows)
                .map(|of| Self::batch(index, of))
                .collect();
            batches
        };
        Box::new(
            batches(0, PLAIN_ROWS)
                .into_iter()
                .chain(batches(1, MIXED_ROWS)),
        )
    }
}
