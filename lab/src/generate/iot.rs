//! IoT-Benchmark's model of a plant, after its source (github.com/thulab/iot-benchmark): each
//! device has many sensors, values follow simple functions, and rows may be late.
//!
//! A request of IoT-Benchmark carries rows of *one* device. So a stream here is not time-major like
//! those of other sources: it has one batch of the client's first device, one of its second, …, and
//! then the next batch of the first.
//!
//! Times begin at 2022-01-01T00:00:00Z and are exact multiples of the step, so that a question
//! about a time finds a row. By default, IoT-Benchmark adds a random part of a step.

mod function;
mod late;
mod sensor;

use super::draw::Key;
use super::{IotSpec, Path};
use crate::data::{Column, Field, Rows, Source, Stream, Table, Tag, TagKind};
use late::Lateness;
use sensor::Sensor;
use std::sync::{Arc, OnceLock};

/// Time of step 0: 2022-01-01T00:00:00Z, IoT-Benchmark's date (which is in China's time zone).
const START_MS: i64 = 1_640_995_200_000;
const MS_NS: i64 = 1_000_000;
/// Number of groups of devices.
const GROUPS: usize = 20;

/// IoT-Benchmark's devices.
pub(super) struct Iot {
    tables: Vec<Table>,
    spec: IotSpec,
    sensors: Vec<Sensor>,
    late: Lateness,
    /// Steps that the fastest device completes; computed when it is needed.
    steps: OnceLock<u64>,
}

impl Iot {
    /// The devices that `spec` describes.
    pub(super) fn new(spec: &IotSpec, seed: u64) -> Self {
        let tag = |name: &str| Tag {
            name: name.to_owned(),
            kind: TagKind::Text,
        };
        let field = |sensor| Field {
            name: format!("s_{sensor}"),
            kind: spec.kind,
        };
        let tags = |device| {
            vec![
                Some(format!("d_{device}")),
                Some(format!("g_{}", device % GROUPS)),
            ]
        };
        let table = Table {
            name: "g".to_owned(),
            tags: vec![tag("device"), tag("sgroup")],
            key: 0,
            fields: (0..spec.sensors).map(field).collect(),
            series: Arc::new((0..spec.devices).map(tags).collect()),
        };
        let key = Key::new(seed);
        let step_ms = i64::from(spec.step_ms);
        let sensor = |sensor| Sensor::new(key.with(0).with(sensor), spec.kind, step_ms);
        Self {
            tables: vec![table],
            sensors: (0..spec.sensors as u64).map(sensor).collect(),
            late: Lateness::new(spec.late, spec.rows, key.with(1)),
            spec: spec.clone(),
            steps: OnceLock::new(),
        }
    }

    /// The same devices with one tag, `device`: their paths.
    pub(super) fn with_paths(mut self, path: Path) -> Self {
        for table in &mut self.tables {
            table.tags.truncate(1);
            let paths = (0..self.spec.devices).map(|device| vec![Some(path.name(device))]);
            table.series = Arc::new(paths.collect());
        }
        self
    }

    fn batch(&self, device: usize, steps: &[u64]) -> Rows {
        let step_ms = i64::from(self.spec.step_ms);
        let time = |step: &u64| (START_MS + *step as i64 * step_ms) * MS_NS;
        let slots = if self.spec.fresh_values {
            Vec::new()
        } else {
            sensor::slots(device as u64, steps)
        };
        let column = |sensor: &Sensor| Column {
            values: if self.spec.fresh_values {
                sensor.fresh(device as u64, steps)
            } else {
                sensor.cycled(&slots)
            },
            present: None,
        };
        Rows {
            table: 0,
            series: vec![device as u32; steps.len()],
            times: steps.iter().map(time).collect(),
            columns: self.sensors.iter().map(column).collect(),
        }
    }
}

impl Source for Iot {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn rows(&self) -> u64 {
        self.spec.devices as u64 * self.spec.rows as u64
    }

    fn repeats(&self) -> bool {
        self.late.repeats()
    }

    fn span_ns(&self) -> (i64, i64) {
        let rows = self.spec.rows as u64;
        let steps = *self.steps.get_or_init(|| {
            let devices = 0..self.spec.devices as u64;
            let steps = devices.map(|device| self.late.steps_of(device, rows));
            steps.max().unwrap_or(0)
        });
        let length_ms = steps as i64 * i64::from(self.spec.step_ms);
        (START_MS * MS_NS, (START_MS + length_ms) * MS_NS)
    }

    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_> {
        let clients = clients.max(1);
        let own = self.spec.devices.saturating_sub(client).div_ceil(clients);
        Box::new(Batches {
            iot: self,
            client,
            clients,
            batch_rows: batch_rows.max(1) as u64,
            turn: 0,
            row: 0,
            // Without repetition, the number of rows sent determines the next row.
            clocks: vec![0; if self.repeats() { own } else { 0 }],
            own,
        })
    }
}

/// One client's batches.
struct Batches<'a> {
    iot: &'a Iot,
    client: usize,
    clients: usize,
    batch_rows: u64,
    /// The devices of the client, and the index of the next one.
    own: usize,
    turn: usize,
    /// Rows that the next device has sent.
    row: u64,
    /// Steps that each device completed, if that differs from the number of its rows.
    clocks: Vec<u64>,
}

impl Iterator for Batches<'_> {
    type Item = Rows;

    fn next(&mut self) -> Option<Rows> {
        let rows = self.iot.spec.rows as u64;
        if self.own == 0 || self.row >= rows {
            return None;
        }
        let device = self.client + self.turn * self.clients;
        let end = rows.min(self.row + self.batch_rows);
        let sent = self.row..end;
        let steps = match self.clocks.get_mut(self.turn) {
            Some(clock) => self.iot.late.repeating(device as u64, sent, clock),
            None => self.iot.late.permuted(device as u64, sent),
        };
        self.turn += 1;
        if self.turn == self.own {
            self.turn = 0;
            self.row = end;
        }
        Some(self.iot.batch(device, &steps))
    }
}

#[cfg(test)]
mod tests;
