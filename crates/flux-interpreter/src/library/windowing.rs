//! `window` and `aggregateWindow`.

use crate::apply::applied;
use crate::fault::fault;
use crate::merge::merged;
use crate::value::{
    ENDLESS, FluxArguments, FluxBuiltin, FluxCaller, FluxColumn, FluxKind, FluxOperation, FluxSpan,
    FluxStream, FluxTable, FluxValue,
};
use crate::windows::FluxWindows;
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The windows that a table may have.
const WINDOWS_MAX: usize = 1_000_000;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "window",
        call: window,
    },
    FluxBuiltin {
        name: "aggregateWindow",
        call: aggregate_window,
    },
    FluxBuiltin {
        name: "timeShift",
        call: time_shift,
    },
];

/// How a table is cut.
struct WindowCut {
    at: FluxPosition,
    windows: FluxWindows,
    time: Arc<str>,
    start: Arc<str>,
    stop: Arc<str>,
    creates_empty: bool,
}

fn windows(arguments: &mut FluxArguments) -> SqlResult<FluxWindows> {
    let every = arguments.span_or("every", FluxSpan::default())?;
    let mut period = arguments.span_or("period", every)?;
    if period.is_zero() {
        period = every;
    }
    let offset = arguments.span_or("offset", FluxSpan::default())?;
    if arguments.take("location").is_some() {
        return Err(crate::fault::unsupported(arguments.at, "argument location"));
    }
    let windows = FluxWindows {
        every,
        period,
        offset,
    };
    match windows.problem() {
        Some(problem) => Err(arguments.fault(problem)),
        None => Ok(windows),
    }
}

impl WindowCut {
    fn too_many(&self) -> marigram_sql::SqlError {
        fault(
            self.at,
            format!("a table has more than {WINDOWS_MAX} windows"),
        )
    }

    /// The rows of each window, by its start.
    fn rows(&self, table: &FluxTable) -> SqlResult<BTreeMap<i64, Vec<usize>>> {
        let times = table
            .column(&self.time)
            .ok_or_else(|| fault(self.at, format!("column {:?} does not exist", self.time)))?;
        let mut found: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for row in 0..table.rows {
            let FluxValue::Time(ns) = times.value(row) else {
                continue;
            };
            let mut start = self.windows.first(*ns);
            while start <= *ns {
                if *ns < self.windows.stop(start) {
                    found.entry(start).or_default().push(row);
                }
                let next = self.windows.next(start);
                if next <= start {
                    break;
                }
                start = next;
            }
        }
        let (begin, end) = table.range;
        let is_bounded = begin != i64::MIN && end != i64::MAX;
        if self.creates_empty && is_bounded {
            let mut start = self.windows.first(begin);
            while start < end {
                found.entry(start).or_default();
                if found.len() > WINDOWS_MAX {
                    return Err(self.too_many());
                }
                let next = self.windows.next(start);
                if next <= start {
                    break;
                }
                start = next;
            }
        }
        if found.len() > WINDOWS_MAX {
            return Err(self.too_many());
        }
        Ok(found)
    }

    /// The rows of a window as a table.
    fn cut(&self, table: &FluxTable, start: i64, rows: &[usize]) -> FluxTable {
        let mut cut = table.taken(rows);
        let begin = start.max(table.range.0);
        let end = self.windows.stop(start).min(table.range.1);
        self.mark(&mut cut, (begin, end));
        cut
    }

    fn mark(&self, table: &mut FluxTable, (begin, end): (i64, i64)) {
        let time = |name, ns| FluxColumn::same(name, FluxKind::Time, FluxValue::Time(ns));
        table.put_key(time(&self.start, begin));
        table.put_key(time(&self.stop, end));
    }

    fn each(&self, mut table: FluxTable) -> SqlResult<Vec<FluxTable>> {
        if self.windows.is_endless() {
            let range = table.range;
            self.mark(&mut table, range);
            return Ok(vec![table]);
        }
        let found = self.rows(&table)?;
        let windows = found.iter();
        let tables = windows.map(|(start, rows)| self.cut(&table, *start, rows));
        Ok(tables.collect())
    }
}

fn window(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let cut = WindowCut {
        at: arguments.at,
        windows: windows(arguments)?,
        time: arguments.text_or("timeColumn", "_time")?,
        start: arguments.text_or("startColumn", "_start")?,
        stop: arguments.text_or("stopColumn", "_stop")?,
        creates_empty: arguments.bool_or("createEmpty", false)?,
    };
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| cut.each(table);
    FluxStream::regroup(arguments.at, input, Box::new(make))
}

/// A window after another, so that one window's rows are held at a time.
fn aggregate_window(
    caller: &mut dyn FluxCaller,
    arguments: &mut FluxArguments,
) -> SqlResult<FluxValue> {
    let at = arguments.at;
    let input = arguments.stream()?;
    let function = arguments.function("fn")?;
    let column = FluxValue::Text(arguments.text_or("column", "_value")?);
    let source = arguments.text_or("timeSrc", "_stop")?;
    let target = arguments.text_or("timeDst", "_time")?;
    let cut = WindowCut {
        at,
        windows: windows(arguments)?,
        time: "_time".into(),
        start: "_start".into(),
        stop: "_stop".into(),
        creates_empty: arguments.bool_or("createEmpty", true)?,
    };
    if cut.windows.every == ENDLESS {
        return Err(arguments.fault("every does not end; use the aggregate itself"));
    }
    let placeholder = FluxStream::new(at, FluxOperation::Placeholder, Vec::new())?;
    let given = vec![("column".to_owned(), column)];
    let piped = Some(FluxValue::Stream(placeholder));
    let FluxValue::Stream(aggregate) = caller.call(at, &function, given, piped)? else {
        return Err(arguments.fault("fn returns no stream"));
    };
    let make = move |table: FluxTable, caller: &mut dyn FluxCaller| {
        let mut made = Vec::new();
        for (start, rows) in cut.rows(&table)? {
            let window = cut.cut(&table, start, &rows);
            for mut answer in applied(&aggregate, &[window], caller)? {
                if answer.rows == 0 {
                    continue;
                }
                let mut times =
                    super::record_columns::needed((at, "aggregateWindow"), &answer, &source)?
                        .clone();
                times.name = Arc::clone(&target);
                answer.key.retain(|key| *key != target);
                answer.put(times);
                answer.range = table.range;
                cut.mark(&mut answer, table.range);
                made.push(answer);
            }
        }
        let mut made = merged(at, made)?;
        for answer in &mut made {
            // Known columns keep their places.
            let place = |column: &FluxColumn| table.place(&column.name).unwrap_or(usize::MAX);
            answer.columns.sort_by_key(place);
        }
        Ok(made)
    };
    FluxStream::each(at, input, Box::new(make))
}

fn time_shift(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let FluxValue::Duration(span) = arguments.need("duration")? else {
        return Err(arguments.fault("argument duration is no duration"));
    };
    let names = arguments.texts_or("columns", &["_start", "_stop", "_time"])?;
    let make = move |mut table: FluxTable, _: &mut dyn FluxCaller| {
        for column in &mut table.columns {
            if names.contains(&column.name) {
                column.change(|value| match value {
                    FluxValue::Time(ns) => FluxValue::Time(span.after(*ns)),
                    other => other.clone(),
                });
            }
        }
        table.range = (span.after(table.range.0), span.after(table.range.1));
        Ok(vec![table])
    };
    FluxStream::regroup(arguments.at, input, Box::new(make))
}
