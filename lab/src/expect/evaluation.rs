//! One question, answered row by row.

use crate::data::{Column, Rows, Table, Values};
use crate::question::{Aggregate, Answer, Cell, Devices, Select, Selection};
use std::collections::HashMap;

/// A series that the question does not include.
const NOT_ASKED: u32 = u32::MAX;

/// A question and the state of its answer.
pub(super) struct Evaluation<'a> {
    select: &'a Select,
    table: &'a Table,
    /// By series: its group, or [`NOT_ASKED`]. Latest rows have one group per device, which is a
    /// value of the key.
    group_of: Vec<u32>,
    state: State,
}

/// Time and fields of a row.
type Newest = (i64, Vec<Cell>);

enum State {
    Rows(Vec<Vec<Cell>>),
    /// By device: its key, and its newest row.
    Last(Vec<(Cell, Option<Newest>)>),
    Groups(Groups),
}

/// Sums of one aggregate's field over one group.
#[derive(Clone)]
struct Sums {
    count: u64,
    numbers: u64,
    sum: f64,
    min: f64,
    max: f64,
}

/// Groups by tags and time.
struct Groups {
    /// Values of the tags of `by`, by group of series.
    tags: Vec<Vec<Cell>>,
    /// Index in `sums` by group of series and start of the bucket.
    places: HashMap<(u32, i64), usize>,
    /// The last bucket and index of each group of series.
    latest: Vec<Option<(i64, usize)>>,
    sums: Vec<Vec<Sums>>,
}

const NO_VALUES: Sums = Sums {
    count: 0,
    numbers: 0,
    sum: 0.0,
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
};

fn is_asked(devices: &Devices, tags: &[Option<String>]) -> bool {
    match devices {
        Devices::All => true,
        Devices::In(tag, values) => tags[*tag]
            .as_ref()
            .is_some_and(|value| values.contains(value)),
        Devices::Below(tag, limit) => tags[*tag]
            .as_ref()
            .and_then(|value| value.parse::<i64>().ok())
            .is_some_and(|value| value < *limit),
    }
}

fn tag(value: Option<&String>) -> Cell {
    value.map_or(Cell::Null, |value| Cell::Text(value.clone()))
}

fn cell(column: &Column, row: usize) -> Cell {
    if !column.is_present(row) {
        return Cell::Null;
    }
    match &column.values {
        Values::Text(values) => Cell::Text(values[row].clone()),
        values => values.number(row).map_or(Cell::Null, Cell::Number),
    }
}

impl Sums {
    fn add(&mut self, column: &Column, row: usize) {
        if !column.is_present(row) {
            return;
        }
        self.count += 1;
        if let Some(number) = column.values.number(row) {
            self.numbers += 1;
            self.sum += number;
            self.min = self.min.min(number);
            self.max = self.max.max(number);
        }
    }

    fn cell(&self, aggregate: Aggregate) -> Cell {
        let number = match aggregate {
            Aggregate::Count => return Cell::Number(self.count as f64),
            _ if self.numbers == 0 => return Cell::Null,
            Aggregate::Sum => self.sum,
            Aggregate::Avg => self.sum / self.numbers as f64,
            Aggregate::Min => self.min,
            Aggregate::Max => self.max,
            Aggregate::Spread => self.max - self.min,
        };
        Cell::Number(number)
    }
}

impl Groups {
    fn new(tags: Vec<Vec<Cell>>) -> Self {
        Self {
            places: HashMap::new(),
            latest: vec![None; tags.len()],
            sums: Vec::new(),
            tags,
        }
    }

    /// The sums of a group of series in the bucket that begins at `start`.
    fn sums(&mut self, group: u32, start: i64, aggregates: usize) -> &mut [Sums] {
        let latest = &mut self.latest[group as usize];
        // Rows of a device mostly belong to the same bucket as the row before, so no search is
        // needed.
        let place = match latest {
            Some((bucket, place)) if *bucket == start => *place,
            _ => {
                let sums = &mut self.sums;
                let place = *self.places.entry((group, start)).or_insert_with(|| {
                    sums.push(vec![NO_VALUES; aggregates]);
                    sums.len() - 1
                });
                *latest = Some((start, place));
                place
            }
        };
        &mut self.sums[place]
    }
}

impl<'a> Evaluation<'a> {
    /// `select`, which asks for something of `table`, before the first row.
    pub(super) fn new(select: &'a Select, table: &'a Table) -> Self {
        let series = table.series.len();
        let mut group_of = vec![NOT_ASKED; series];
        let mut numbers: HashMap<Vec<Option<&String>>, u32> = HashMap::new();
        let mut tags: Vec<Vec<Cell>> = Vec::new();
        let key = [table.key];
        let by_tags: &[usize] = match select.what {
            Selection::Rows(_) => &[],
            Selection::Last(_) => &key,
            Selection::Aggregates(_) => &select.by,
        };
        for (number, values) in table.series.iter().enumerate() {
            if !is_asked(&select.devices, values) {
                continue;
            }
            let by = by_tags.iter().map(|index| values[*index].as_ref());
            let next = numbers.len() as u32;
            group_of[number] = *numbers.entry(by.collect()).or_insert_with_key(|by| {
                tags.push(by.iter().map(|value| tag(*value)).collect());
                next
            });
        }
        let state = match select.what {
            Selection::Rows(_) => State::Rows(Vec::new()),
            Selection::Last(_) => {
                let keys = tags.into_iter().map(|mut tags| tags.remove(0));
                State::Last(keys.map(|key| (key, None)).collect())
            }
            Selection::Aggregates(_) => State::Groups(Groups::new(tags)),
        };
        Self {
            select,
            table,
            group_of,
            state,
        }
    }

    /// Adds rows number `rows` of `batch`.
    pub(super) fn take(&mut self, batch: &Rows, rows: &[usize]) {
        if batch.table != self.select.table {
            return;
        }
        let select = self.select;
        let from = select.from_ns.unwrap_or(i64::MIN);
        let to = select.to_ns;
        for row in rows.iter().copied() {
            let (series, time) = (batch.series[row] as usize, batch.times[row]);
            let group = self.group_of[series];
            if group == NOT_ASKED || time < from || to.is_some_and(|to| time >= to) {
                continue;
            }
            if let Some((field, limit)) = select.above {
                let column = &batch.columns[field];
                let number = column.values.number(row).filter(|_| column.is_present(row));
                if number.is_none_or(|number| number <= limit) {
                    continue;
                }
            }
            match (&mut self.state, &select.what) {
                (State::Groups(groups), Selection::Aggregates(aggregates)) => {
                    let start = select
                        .bucket_ns
                        .map_or(0, |window| time - time.rem_euclid(window.max(1)));
                    let sums = groups.sums(group, start, aggregates.len());
                    for (sums, (_, field)) in sums.iter_mut().zip(aggregates) {
                        sums.add(&batch.columns[*field], row);
                    }
                }
                (State::Last(newest), Selection::Last(fields)) => {
                    let (_, newest) = &mut newest[group as usize];
                    if newest.as_ref().is_none_or(|(newest, _)| *newest < time) {
                        let (newest, cells) = newest.get_or_insert_default();
                        *newest = time;
                        cells.clear();
                        let fields = fields.iter().map(|field| &batch.columns[*field]);
                        cells.extend(fields.map(|column| cell(column, row)));
                    }
                }
                (State::Rows(found), Selection::Rows(fields)) => {
                    let key = tag(self.table.series[series][self.table.key].as_ref());
                    let fields = fields.iter().map(|field| &batch.columns[*field]);
                    let cells = fields.map(|column| cell(column, row));
                    found.push([key, Cell::Time(time)].into_iter().chain(cells).collect());
                }
                // The state was made for this kind of question.
                _ => {}
            }
        }
    }

    /// The answer, after the last row; its rows have no order.
    pub(super) fn answer(self) -> Answer {
        let rows = match (self.state, &self.select.what) {
            (State::Rows(rows), _) => rows,
            (State::Last(newest), _) => {
                let found = newest.into_iter().filter_map(|(key, newest)| {
                    let (time, cells) = newest?;
                    Some([key, Cell::Time(time)].into_iter().chain(cells).collect())
                });
                found.collect()
            }
            (State::Groups(groups), Selection::Aggregates(aggregates)) => {
                let cells = |sums: &[Sums]| -> Vec<Cell> {
                    let pairs = sums.iter().zip(aggregates);
                    pairs.map(|(sums, (kind, _))| sums.cell(*kind)).collect()
                };
                let one_row = self.select.by.is_empty() && self.select.bucket_ns.is_none();
                if one_row && groups.places.is_empty() {
                    vec![cells(&vec![NO_VALUES; aggregates.len()])]
                } else {
                    let row = |(&(group, start), &place): (&(u32, i64), &usize)| {
                        let tags = groups.tags[group as usize].iter().cloned();
                        let start = self.select.bucket_ns.map(|_| Cell::Time(start));
                        tags.chain(start)
                            .chain(cells(&groups.sums[place]))
                            .collect()
                    };
                    groups.places.iter().map(row).collect()
                }
            }
            // The state was made for this kind of question.
            (State::Groups(_), Selection::Rows(_) | Selection::Last(_)) => Vec::new(),
        };
        Answer { rows }
    }
}
