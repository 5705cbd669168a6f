//! Runs streams: tables come one by one where a function allows it, and together where it needs all.

use crate::apply::filtered;
use crate::evaluate::FluxEvaluator;
use crate::fault::fault;
use crate::listing::listed_tables;
use crate::merge::merged;
use crate::read::bucket_tables;
use crate::statement::FluxRun;
use crate::value::{FluxOperation, FluxStream, FluxTable};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use marigram_sql::SqlResult;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Tables as they are made.
pub(crate) type TableStream = BoxStream<'static, SqlResult<FluxTable>>;

/// Lets others run, and the statement be stopped.
async fn give_way() {
    let mut is_first = true;
    poll_fn(|context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// The tables of a stream.
pub(crate) fn opened(run: &Arc<FluxRun>, stream: &Arc<FluxStream>) -> TableStream {
    match &stream.operation {
        FluxOperation::Read(read) => bucket_tables(Arc::clone(run), stream.at, read.clone()),
        FluxOperation::Listing(listing) => {
            let tables = listed_tables(run, listing);
            ready(run, tables)
        }
        FluxOperation::Constant(tables) => ready(run, Ok(tables.clone())),
        FluxOperation::Placeholder => {
            let error = fault(stream.at, "the stream has no tables");
            ready(run, Err(error))
        }
        FluxOperation::Yield => match stream.inputs.first() {
            Some(input) => opened(run, input),
            None => ready(run, Ok(Vec::new())),
        },
        FluxOperation::Filter { .. } | FluxOperation::Each(_) => each(run, stream),
        FluxOperation::Regroup(_) | FluxOperation::Gather(_) => gathered(run, stream),
    }
}

fn ready(run: &Arc<FluxRun>, tables: SqlResult<Vec<FluxTable>>) -> TableStream {
    let budget = run.budget.clone();
    match tables {
        Ok(tables) => {
            let tables = tables.into_iter();
            stream::iter(tables.map(move |table| table.accounted(&budget))).boxed()
        }
        Err(error) => stream::iter([Err(error)]).boxed(),
    }
}

/// The tables that a function makes of one table, with their memory.
fn made(
    run: &FluxRun,
    stream: &FluxStream,
    table: FluxTable,
    evaluator: &mut FluxEvaluator,
) -> SqlResult<Vec<FluxTable>> {
    let tables = match &stream.operation {
        FluxOperation::Filter {
            predicate,
            keeps_empty,
        } => {
            let filter = (predicate, *keeps_empty);
            let kept = filtered(stream.at, table, filter, evaluator)?;
            kept.into_iter().collect()
        }
        FluxOperation::Each(function) | FluxOperation::Regroup(function) => {
            function(table, evaluator)?
        }
        _ => vec![table],
    };
    let tables = tables.into_iter().map(|table| match table.held {
        Some(_) => Ok(table),
        None => table.accounted(&run.budget),
    });
    tables.collect()
}

/// The progress of a function over tables.
struct TablesInWork {
    run: Arc<FluxRun>,
    stream: Arc<FluxStream>,
    input: TableStream,
    evaluator: FluxEvaluator,
    made: VecDeque<FluxTable>,
}

fn each(run: &Arc<FluxRun>, stream: &Arc<FluxStream>) -> TableStream {
    let Some(input) = stream.inputs.first() else {
        return ready(run, Ok(Vec::new()));
    };
    let work = TablesInWork {
        run: Arc::clone(run),
        stream: Arc::clone(stream),
        input: opened(run, input),
        evaluator: run.row_evaluator(),
        made: VecDeque::new(),
    };
    stream::try_unfold(work, TablesInWork::step).boxed()
}

impl TablesInWork {
    async fn step(mut self) -> SqlResult<Option<(FluxTable, Self)>> {
        loop {
            if let Some(table) = self.made.pop_front() {
                return Ok(Some((table, self)));
            }
            give_way().await;
            let Some(table) = self.input.try_next().await? else {
                return Ok(None);
            };
            self.made = made(&self.run, &self.stream, table, &mut self.evaluator)?.into();
        }
    }
}

fn gathered(run: &Arc<FluxRun>, stream: &Arc<FluxStream>) -> TableStream {
    let tables = gather(Arc::clone(run), Arc::clone(stream));
    let each = |tables: Vec<FluxTable>| stream::iter(tables.into_iter().map(SqlResult::Ok));
    stream::once(tables).map_ok(each).try_flatten().boxed()
}

async fn gather(run: Arc<FluxRun>, stream: Arc<FluxStream>) -> SqlResult<Vec<FluxTable>> {
    let mut evaluator = run.row_evaluator();
    let mut inputs = Vec::with_capacity(stream.inputs.len());
    for input in &stream.inputs {
        let mut tables = opened(&run, input);
        let mut found = Vec::new();
        while let Some(table) = tables.try_next().await? {
            give_way().await;
            found.extend(made(&run, &stream, table, &mut evaluator)?);
        }
        inputs.push(found);
    }
    let tables = match &stream.operation {
        FluxOperation::Gather(function) => function(inputs, &mut evaluator)?,
        _ => merged(stream.at, inputs.into_iter().flatten().collect())?,
    };
    let tables = tables.into_iter();
    tables.map(|table| table.accounted(&run.budget)).collect()
}
