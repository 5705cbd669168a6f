//! The open windows of a partition, and which rows they take.

use crate::call_class::{CallClass, class};
use crate::stage::accumulator::{Accumulator, accumulator};
use crate::stage::driver::interpolation::InterpolationStage;
use crate::stage::driver::{StageMode, StageOutput, StageSpec};
use crate::stage::row_set::RowSet;
use crate::stage::sequence::Sequence;
use crate::taos_value::{Val, ValColumn};
use marigram_sql::SqlResult;
use std::collections::VecDeque;

/// Bytes that an open window holds beside its accumulators.
const WINDOW_BYTES: usize = 256;

/// A row of the input.
pub(in crate::stage) struct StageRow<'a> {
    pub(in crate::stage) time: i64,
    pub(in crate::stage) columns: &'a [ValColumn],
    pub(in crate::stage) row: usize,
}

impl StageRow<'_> {
    pub(in crate::stage) fn get(&self, column: usize) -> Val {
        self.columns
            .get(column)
            .map_or(Val::Null, |column| column.get(self.row))
    }

    fn carried(&self, spec: &StageSpec) -> Vec<Val> {
        let first = spec.first_carried();
        (first..first + spec.carried.len())
            .map(|place| self.get(place))
            .collect()
    }
}

/// What a call has computed of a window.
enum CallState {
    One(Box<dyn Accumulator>),
    Set(RowSet),
}

/// A window that is not complete.
pub(in crate::stage) struct OpenWindow {
    start: i64,
    end: i64,
    rows: u64,
    calls: Vec<CallState>,
    carried: Vec<Val>,
}

impl OpenWindow {
    pub(in crate::stage) fn new(spec: &StageSpec, start: i64, end: i64) -> Self {
        let calls = spec.calls.iter();
        let calls = calls.map(|call| match class(&call.name) {
            Some(CallClass::RowSet) => CallState::Set(RowSet::new(call)),
            _ => CallState::One(accumulator(call)),
        });
        Self {
            start,
            end,
            rows: 0,
            calls: calls.collect(),
            carried: vec![Val::Null; spec.carried.len()],
        }
    }

    fn push(&mut self, spec: &StageSpec, row: &StageRow<'_>) {
        self.rows += 1;
        let mut place = spec.first_argument();
        let mut selects = spec.selector.is_none();
        for (number, (call, state)) in spec.calls.iter().zip(&mut self.calls).enumerate() {
            let count = call.arguments.len();
            let arguments: Vec<Val> = (place..place + count).map(|at| row.get(at)).collect();
            place += count;
            match state {
                CallState::One(state) => {
                    selects |= state.push(row.time, &arguments) && spec.selector == Some(number);
                }
                CallState::Set(set) => {
                    let value = arguments.first().unwrap_or(&Val::Null);
                    set.push(row.time, value, &|| row.carried(spec));
                }
            }
        }
        if selects && !self.carried.is_empty() {
            self.carried = row.carried(spec);
        }
    }

    pub(in crate::stage) fn held_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| match call {
            CallState::One(state) => state.held_bytes() + 96,
            CallState::Set(set) => set.held_bytes() + 96,
        });
        WINDOW_BYTES + calls.sum::<usize>()
    }
}

/// The state of a partition.
pub(in crate::stage) enum PartitionState {
    Windows {
        open: VecDeque<OpenWindow>,
        state: Val,
        seen: u64,
    },
    Rows(Vec<Sequence>),
    Interpolation(InterpolationStage),
}

pub(in crate::stage) fn begun(spec: &StageSpec) -> PartitionState {
    match &spec.mode {
        StageMode::Rows => {
            let calls = spec.calls.iter();
            PartitionState::Rows(
                calls
                    .map(|call| Sequence::new(call, spec.tick_ns))
                    .collect(),
            )
        }
        StageMode::Interpolation(own) => {
            PartitionState::Interpolation(InterpolationStage::new(own.clone(), spec.calls.len()))
        }
        _ => PartitionState::Windows {
            open: VecDeque::new(),
            state: Val::Null,
            seen: 0,
        },
    }
}

/// The rows of a complete window: its times, results and carried columns.
pub(in crate::stage) type WindowRows = Vec<((i64, i64), Vec<Val>, Vec<Val>)>;

pub(in crate::stage) fn window_rows(window: OpenWindow) -> WindowRows {
    let times = (window.start, window.end);
    let mut set = None;
    let mut results = Vec::with_capacity(window.calls.len());
    for (place, call) in window.calls.into_iter().enumerate() {
        match call {
            CallState::One(state) => results.push(state.value()),
            CallState::Set(rows) => {
                results.push(Val::Null);
                set = Some((place, rows.finish()));
            }
        }
    }
    let Some((place, rows)) = set else {
        return vec![(times, results, window.carried)];
    };
    rows.into_iter()
        .map(|(_, value, carried)| {
            let mut results = results.clone();
            if let Some(result) = results.get_mut(place) {
                *result = value;
            }
            let carried = if carried.is_empty() {
                window.carried.clone()
            } else {
                carried
            };
            (times, results, carried)
        })
        .collect()
}

pub(in crate::stage) fn close(rows: &WindowRows, key: &[Val], output: &mut StageOutput) {
    for (times, results, carried) in rows {
        output.push(
            key,
            *times,
            results.iter().cloned(),
            carried.iter().cloned(),
        );
    }
}

/// Takes a row into the windows of its partition.
pub(in crate::stage) fn push(
    spec: &StageSpec,
    (key, state): (&[Val], &mut PartitionState),
    row: &StageRow<'_>,
    output: &mut StageOutput,
) -> SqlResult<()> {
    let time = row.time;
    match state {
        PartitionState::Rows(sequences) => {
            let first = spec.first_argument();
            let results: Vec<Option<Val>> = sequences
                .iter_mut()
                .enumerate()
                .map(|(place, sequence)| sequence.push(time, &row.get(first + place)))
                .collect();
            if results.iter().any(Option::is_some) {
                let results = results
                    .into_iter()
                    .map(|result| result.unwrap_or(Val::Null));
                output.push(key, (time, time), results, row.carried(spec));
            }
        }
        PartitionState::Interpolation(state) => {
            let first = spec.first_argument();
            let values = (first..first + spec.calls.len()).map(|place| row.get(place));
            state.push(time, values.collect(), key, output)?;
        }
        PartitionState::Windows { open, state, seen } => {
            before_row(spec, row, (open, state, seen), (key, output));
            for window in open.iter_mut() {
                window.push(spec, row);
            }
            after_row(spec, row, open, (key, output));
        }
    }
    Ok(())
}

/// Closes the windows that a row does not belong to, and opens those that begin with it.
fn before_row(
    spec: &StageSpec,
    row: &StageRow<'_>,
    (open, state, seen): (&mut VecDeque<OpenWindow>, &mut Val, &mut u64),
    (key, output): (&[Val], &mut StageOutput),
) {
    let time = row.time;
    let mut close_first = |open: &mut VecDeque<OpenWindow>| {
        if let Some(window) = open.pop_front() {
            close(&window_rows(window), key, output);
        }
    };
    match &spec.mode {
        StageMode::Interval(windows) => {
            let mut next = open.back().map(|window| windows.next_start(window.start));
            while open.front().is_some_and(|window| window.end <= time) {
                close_first(open);
            }
            let first = windows.first_start(time);
            let mut start = next.take().map_or(first, |next| next.max(first));
            while start <= time {
                open.push_back(OpenWindow::new(spec, start, windows.end(start)));
                let after = windows.next_start(start);
                if after <= start {
                    break;
                }
                start = after;
            }
        }
        StageMode::Session(gap) => {
            let is_over = |window: &OpenWindow| time.saturating_sub(window.end) > *gap;
            if open.front().is_some_and(is_over) {
                close_first(open);
            }
            extend_or_open(spec, open, time);
        }
        StageMode::State => {
            let own = row.get(spec.first_extra());
            if own.is_null() {
                // A row without a state ends nothing and belongs to nothing.
                while !open.is_empty() {
                    close_first(open);
                }
                *state = Val::Null;
                return;
            }
            if own != *state {
                close_first(open);
                *state = own;
            }
            extend_or_open(spec, open, time);
        }
        StageMode::Event => {
            let begins = row.get(spec.first_extra()).truth() == Some(true);
            if !open.is_empty() || begins {
                extend_or_open(spec, open, time);
            }
        }
        StageMode::Count(_, sliding) => {
            if *seen % (*sliding).max(1) == 0 {
                open.push_back(OpenWindow::new(spec, time, time));
            }
            *seen += 1;
            for window in open.iter_mut() {
                window.end = time;
            }
        }
        _ => extend_or_open(spec, open, time),
    }
}

fn extend_or_open(spec: &StageSpec, open: &mut VecDeque<OpenWindow>, time: i64) {
    match open.front_mut() {
        Some(window) => window.end = time,
        None => open.push_back(OpenWindow::new(spec, time, time)),
    }
}

/// Closes the windows that end with a row.
fn after_row(
    spec: &StageSpec,
    row: &StageRow<'_>,
    open: &mut VecDeque<OpenWindow>,
    (key, output): (&[Val], &mut StageOutput),
) {
    let ends = match &spec.mode {
        StageMode::Event => row.get(spec.first_extra() + 1).truth() == Some(true),
        StageMode::Count(count, _) => open.front().is_some_and(|window| window.rows >= *count),
        _ => false,
    };
    if ends && let Some(window) = open.pop_front() {
        close(&window_rows(window), key, output);
    }
}
