//! What standard set S and TDengine's comparison share: numbered thermometers in groups of a
//! hundred that report once per second, in the order of time.

use super::delayed::Delayed;
use super::time_major::TimeMajor;
use crate::data::{
    Column, Field, FieldKind, Rows, SECOND_NS, Source, Stream, Table, Tag, TagKind, Values,
};
use std::sync::Arc;

/// A device.
pub(super) trait Thermometer: Send + Sync {
    /// Temperature and humidity at a step of time, one step per second.
    fn reading(&self, step: u64) -> (i32, f32);
}

/// Devices that each have the same number of rows.
pub(super) struct Thermometers<D> {
    tables: Vec<Table>,
    /// The devices, by series.
    pub devices: Vec<D>,
    rows: usize,
    start_ns: i64,
    /// How rows arrive if not in the order of time.
    delayed: Option<Delayed>,
}

/// The table `name`; `series` are the (number, name) of the devices.
fn table(name: &str, series: impl Iterator<Item = (usize, String)>) -> Table {
    let tag = |name: &str, kind| Tag {
        name: name.to_owned(),
        kind,
    };
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let values = series.map(|(number, name)| {
        vec![
            Some(number.to_string()),
            Some(name),
            Some((number % 100).to_string()),
        ]
    });
    Table {
        name: name.to_owned(),
        tags: vec![
            tag("devid", TagKind::Integer),
            tag("devname", TagKind::Text),
            tag("devgroup", TagKind::Integer),
        ],
        key: 1,
        fields: vec![
            field("temperature", FieldKind::I32),
            field("humidity", FieldKind::F32),
        ],
        series: Arc::new(values.collect()),
    }
}

impl<D: Thermometer> Thermometers<D> {
    /// `devices` with their (number, name), in the table `name`, with `rows` rows each from
    /// `start_ns` on.
    pub(super) fn new(
        name: &str,
        devices: impl Iterator<Item = ((usize, String), D)>,
        rows: usize,
        start_ns: i64,
    ) -> Self {
        let (series, devices): (Vec<_>, Vec<D>) = devices.unzip();
        Self {
            tables: vec![table(name, series.into_iter())],
            devices,
            rows,
            start_ns,
            delayed: None,
        }
    }

    /// The same rows in another order.
    pub(super) fn delayed(self, delayed: Delayed) -> Self {
        Self {
            delayed: Some(delayed),
            ..self
        }
    }

    /// The steps of the rows that `devices` send as numbers `positions`.
    fn steps(&self, devices: &[u32], positions: Vec<u64>) -> Vec<u64> {
        let Some(delayed) = &self.delayed else {
            return positions;
        };
        let rows = devices.iter().zip(positions);
        rows.map(|(device, position)| delayed.step(u64::from(*device), position))
            .collect()
    }

    fn batch(&self, devices: Vec<u32>, steps: &[u64]) -> Rows {
        let rows = devices.iter().zip(steps);
        let (temperature, humidity) = rows
            .map(|(device, step)| self.devices[*device as usize].reading(*step))
            .unzip();
        let column = |values| Column {
            values,
            present: None,
        };
        let time = |step: &u64| self.start_ns + *step as i64 * SECOND_NS;
        Rows {
            table: 0,
            series: devices,
            times: steps.iter().map(time).collect(),
            columns: vec![
                column(Values::I32(temperature)),
                column(Values::F32(humidity)),
            ],
        }
    }
}

impl<D: Thermometer> Source for Thermometers<D> {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn rows(&self) -> u64 {
        self.devices.len() as u64 * self.rows as u64
    }

    fn span_ns(&self) -> (i64, i64) {
        (self.start_ns, self.start_ns + self.rows as i64 * SECOND_NS)
    }

    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_> {
        let order = TimeMajor::new(self.devices.len(), self.rows, client, clients, batch_rows);
        Box::new(order.map(|(devices, positions)| {
            let steps = self.steps(&devices, positions);
            self.batch(devices, &steps)
        }))
    }
}
