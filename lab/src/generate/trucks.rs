//! TSBS's trucks: the model of the Time Series Benchmark Suite for the Internet of things
//! (`pkg/data/usecases/iot` of timescale/tsbs). Trucks send readings and diagnostics; rows may be
//! missing or late, or lack a value or a tag.
//!
//! The seed, the truck and the time alone determine whether a row exists and what it holds, so any
//! number of clients together send the same rows. Each client decides the order in which its rows
//! arrive ([`arrival`]).
//!
//! Two things differ from TSBS, which draws all random numbers from one sequence. Whole batches are
//! lost for ten neighbouring trucks at one time, not for ten neighbouring rows of a running count.
//! And a row never loses the truck's name, as one row in 900 does in TSBS: two such rows would be
//! indistinguishable and would overwrite each other.

mod arrival;
mod client;
mod faults;
mod random;
mod truck;

#[cfg(test)]
mod tests;

use crate::data::{Field, FieldKind, SECOND_NS, Source, Stream, Table, Tag, TagKind};
use arrival::Arrival;
use client::{Batches, Client};
use faults::{Faults, LostTag};
use std::sync::Arc;
use truck::{DIAGNOSTICS_FIELDS, FIXED_FIELDS, READINGS_FIELDS};

/// First time: 2016-01-01T00:00:00Z, as in TSBS's own scripts.
pub(super) const START_NS: i64 = 1_451_606_400 * SECOND_NS;

const READINGS: usize = 0;
const DIAGNOSTICS: usize = 1;
const TABLES: [usize; 2] = [READINGS, DIAGNOSTICS];

/// The tags; a row can lose one of them, but not the first.
const TAGS: [&str; 5] = ["name", "fleet", "driver", "model", "device_version"];

/// TSBS's trucks.
pub(super) struct Trucks {
    tables: [Table; 2],
    count: usize,
    steps: usize,
    step_ns: i64,
    seed: u64,
    faults: Faults,
    rows: u64,
    /// Trucks without one of their tags, each a series of its own after those with all tags: truck
    /// × 4 + tag − 1, in order.
    reduced: Vec<u64>,
}

impl Trucks {
    /// `trucks` trucks, each with a reading and a diagnosis every `step_s` seconds, `steps` times;
    /// about a tenth of the rows never arrive. Passes once over everything that can be missing, so
    /// that the number of rows and the series are known; this takes some nanoseconds per row.
    #[must_use]
    pub(super) fn new(trucks: usize, steps: usize, step_s: u32, seed: u64) -> Self {
        let faults = Faults::new(seed);
        let mut rows = 0;
        let mut reduced = Vec::new();
        for step in 0..steps {
            for table in TABLES {
                for truck in 0..trucks {
                    let Some(fault) = faults.at_step(table, step, truck) else {
                        continue;
                    };
                    rows += 1;
                    if let Some(LostTag::Tag(tag)) = fault.lost {
                        reduced.push(reduced_key(truck, tag));
                    }
                }
            }
        }
        reduced.sort_unstable();
        reduced.dedup();

        let whole = |truck| truck::tags(seed, truck).to_vec();
        let without = |key: &u64| {
            let mut tags = whole((key / 4) as usize);
            tags[(key % 4) as usize + 1] = None;
            tags
        };
        let series = (0..trucks).map(whole).chain(reduced.iter().map(without));
        let series = Arc::new(series.collect::<Vec<_>>());
        Self {
            tables: [
                table("readings", &READINGS_FIELDS, &series),
                table("diagnostics", &DIAGNOSTICS_FIELDS, &series),
            ],
            count: trucks,
            steps,
            step_ns: i64::from(step_s) * SECOND_NS,
            seed,
            faults,
            rows,
            reduced,
        }
    }

    /// Index of the series of `truck` without the tag that was `lost`.
    fn series(&self, truck: usize, lost: Option<LostTag>) -> u32 {
        let reduced = match lost {
            Some(LostTag::Tag(tag)) => self.reduced.binary_search(&reduced_key(truck, tag)).ok(),
            Some(LostTag::Field(_)) | None => None,
        };
        reduced.map_or(truck, |place| self.count + place) as u32
    }
}

fn reduced_key(truck: usize, tag: usize) -> u64 {
    truck as u64 * 4 + tag as u64 - 1
}

fn table(name: &str, fields: &[&str], series: &Arc<Vec<Vec<Option<String>>>>) -> Table {
    let tag = |name: &str| Tag {
        name: name.to_owned(),
        kind: TagKind::Text,
    };
    let field = |name: &&str| Field {
        name: (*name).to_owned(),
        kind: if *name == "status" {
            FieldKind::I64
        } else {
            FieldKind::F64
        },
    };
    Table {
        name: name.to_owned(),
        tags: TAGS.map(tag).to_vec(),
        key: 0,
        fields: FIXED_FIELDS.iter().chain(fields).map(field).collect(),
        series: Arc::clone(series),
    }
}

impl Source for Trucks {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn span_ns(&self) -> (i64, i64) {
        (START_NS, START_NS + self.steps as i64 * self.step_ns)
    }

    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_> {
        let rows = Client::new(self, client, clients, batch_rows);
        let arriving = Arrival::new(rows, self.seed, client);
        Box::new(Batches::new(&self.tables, arriving, batch_rows))
    }
}
