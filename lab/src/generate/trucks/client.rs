//! The rows of a client's trucks in the order of time, and batches of rows.

use super::faults::LostTag;
use super::truck::{FIELDS_MAX, FIXED_FIELDS, Load, Truck};
use super::{DIAGNOSTICS, READINGS, START_NS, Trucks};
use crate::data::{Rows, Table, Values};

/// A row on its way.
#[derive(Clone, Debug)]
pub(super) struct SentRow {
    table: usize,
    series: u32,
    time_ns: i64,
    values: [f64; FIELDS_MAX],
    /// One bit per field, set if the field is null.
    nulls: u16,
}

/// All rows of a client that are not missing, as if none were late.
///
/// At each time, all trucks send their readings, then all send their diagnostics, as in TSBS. If
/// there are more trucks than rows in a batch, they take turns in groups of that size, so that
/// batches of the two tables alternate.
pub(super) struct Client<'a> {
    source: &'a Trucks,
    trucks: Vec<Truck>,
    load: Load,
    /// Number of trucks that take their turn together.
    turn: usize,
    step: usize,
    /// First truck of the turn.
    begin: usize,
    table: usize,
    /// Next truck, counted from `begin`.
    at: usize,
}

impl<'a> Client<'a> {
    pub(super) fn new(source: &'a Trucks, client: usize, clients: usize, turn: usize) -> Self {
        let own = (client..source.count).step_by(clients);
        Self {
            trucks: own.map(|number| Truck::new(source.seed, number)).collect(),
            load: Load::new(source.seed, source.count),
            source,
            turn: turn.max(1),
            step: 0,
            begin: 0,
            table: READINGS,
            at: 0,
        }
    }

    /// Moves to the next truck: within the turn, to the other table, to the next turn, or to the
    /// next time.
    fn proceed(&mut self) {
        self.at += 1;
        if self.at < self.turn.min(self.trucks.len() - self.begin) {
            return;
        }
        self.at = 0;
        if self.table == READINGS {
            self.table = DIAGNOSTICS;
            return;
        }
        self.table = READINGS;
        self.begin += self.turn;
        if self.begin >= self.trucks.len() {
            self.begin = 0;
            self.step += 1;
            self.load.advance();
        }
    }
}

impl Iterator for Client<'_> {
    type Item = SentRow;

    fn next(&mut self) -> Option<SentRow> {
        if self.trucks.is_empty() {
            return None;
        }
        while self.step < self.source.steps {
            let (step, table) = (self.step, self.table);
            let truck = &mut self.trucks[self.begin + self.at];
            if table == READINGS && step > 0 {
                truck.advance();
            }
            let number = truck.number;
            let fault = self.source.faults.at_step(table, step, number);
            let row = fault.map(|fault| {
                let mut nulls = 0;
                if let Some(LostTag::Field(field)) = fault.lost {
                    nulls |= 1 << field;
                }
                if let Some(field) = fault.null {
                    nulls |= 1 << (FIXED_FIELDS.len() + field);
                }
                SentRow {
                    table,
                    series: self.source.series(number, fault.lost),
                    time_ns: START_NS + step as i64 * self.source.step_ns,
                    values: if table == READINGS {
                        truck.readings()
                    } else {
                        truck.diagnostics(self.load.value)
                    },
                    nulls,
                }
            });
            self.proceed();
            if row.is_some() {
                return row;
            }
        }
        None
    }
}

/// Gathers rows into batches of one table each.
pub(super) struct Batches<'a, I> {
    tables: &'a [Table],
    rows: I,
    batch_rows: usize,
    open: Vec<Rows>,
}

impl<'a, I: Iterator<Item = SentRow>> Batches<'a, I> {
    pub(super) fn new(tables: &'a [Table], rows: I, batch_rows: usize) -> Self {
        let empty = |(index, table)| Rows::new(index, table);
        Self {
            tables,
            rows,
            batch_rows: batch_rows.max(1),
            open: tables.iter().enumerate().map(empty).collect(),
        }
    }

    fn close(&mut self, table: usize) -> Rows {
        let empty = Rows::new(table, &self.tables[table]);
        std::mem::replace(&mut self.open[table], empty)
    }
}

impl<I: Iterator<Item = SentRow>> Iterator for Batches<'_, I> {
    type Item = Rows;

    fn next(&mut self) -> Option<Rows> {
        while let Some(row) = self.rows.next() {
            let open = &mut self.open[row.table];
            push(open, &row);
            if open.len() == self.batch_rows {
                return Some(self.close(row.table));
            }
        }
        let rest = self.open.iter().position(|rows| !rows.is_empty())?;
        Some(self.close(rest))
    }
}

fn push(rows: &mut Rows, row: &SentRow) {
    for (field, column) in rows.columns.iter_mut().enumerate() {
        let null = row.nulls >> field & 1 == 1;
        if null || column.present.is_some() {
            // If the column has no nulls yet, all rows so far have a value.
            let all = || vec![true; rows.times.len()];
            column.present.get_or_insert_with(all).push(!null);
        }
        match &mut column.values {
            Values::I64(values) => values.push(row.values[field] as i64),
            Values::F64(values) => values.push(row.values[field]),
            _ => unreachable!("fields are of 64 bits"),
        }
    }
    rows.series.push(row.series);
    rows.times.push(row.time_ns);
}
