//! Flux as one of the service's query languages.

use crate::evaluate::{FluxEvaluator, FluxResult};
use crate::fault::fault;
use crate::output::{batches, end_of_result};
use crate::run::{TableStream, opened};
use crate::statement::{CatalogBuckets, FluxRun};
use crate::value::{FluxCaller, FluxScope};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::execution::session_state::SessionState;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use marigram_flux::ast::FluxFile;
use marigram_flux::{FluxPosition, parse_flux};
use marigram_influx::{Budget, CatalogPolicies, Policies};
use marigram_service::{Language, LanguageRequest, Result, ServiceError, Session};
use marigram_sql::SqlResult;
use marigram_sql::front_end::{FrontEnd, Script, StatementContext, StatementRows};
use std::collections::VecDeque;
use std::sync::Arc;

/// The front end for Flux.
#[derive(Clone, Debug)]
pub struct FluxLanguage {
    policies: Arc<dyn Policies>,
}

impl Default for FluxLanguage {
    fn default() -> Self {
        Self {
            policies: Arc::new(CatalogPolicies),
        }
    }
}

impl FrontEnd for FluxLanguage {
    fn language(&self) -> Language {
        Language::Flux
    }

    fn parse(&self, _: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>> {
        let read = |text: &str| {
            parse_flux(text).map_err(|error| ServiceError::Invalid {
                message: format!("compilation failed: {error}"),
                position: None,
                sqlstate: "42601",
            })
        };
        Ok(Arc::new(FluxScript {
            prelude: read(&request.prelude)?,
            file: read(&request.text)?,
            policies: Arc::clone(&self.policies),
        }))
    }
}

/// A script, and the statements that run before it.
struct FluxScript {
    prelude: FluxFile,
    file: FluxFile,
    policies: Arc<dyn Policies>,
}

/// InfluxDB's error of a script that only defines names.
const NO_RESULT: &str = "this Flux script returns no streaming data. Consider adding a \"yield\" or \
                         invoking streaming functions directly, without performing an assignment";

fn now_ns(state: &SessionState) -> i64 {
    let start = state.execution_props().query_execution_start_time;
    start
        .and_then(|start| start.timestamp_nanos_opt())
        .unwrap_or_default()
}

#[async_trait]
impl Script for FluxScript {
    fn len(&self) -> usize {
        1
    }

    async fn execute(&self, _: usize, context: &StatementContext) -> SqlResult<StatementRows> {
        let session = context.session();
        let state = context.state(&session.database)?;
        let budget = Budget::new(context.memory_pool());
        let buckets = Arc::new(CatalogBuckets {
            engine: context.engine().clone(),
            policies: Arc::clone(&self.policies),
            rights: Arc::clone(&session.rights),
            user: session.identity.user.clone(),
        });
        let access = Arc::clone(&buckets);
        let mut evaluator = FluxEvaluator::new(now_ns(&state), &budget, access);
        let scope = evaluator.run(&self.prelude.statements, FluxScope::default())?;
        evaluator.run(&self.file.statements, scope)?;
        if evaluator.results.is_empty() {
            return Err(fault(FluxPosition { line: 1, column: 1 }, NO_RESULT));
        }
        let run = Arc::new(FluxRun {
            buckets,
            views: context.views_as_tables().await?,
            state: Arc::new(state),
            budget,
            now_ns: evaluator.now_ns(),
        });
        Ok(StatementRows::Rows {
            schema: Arc::new(Schema::empty()),
            batches: result_batches(&run, evaluator.results),
        })
    }
}

/// The progress through the results.
struct ResultsInWork {
    run: Arc<FluxRun>,
    results: VecDeque<FluxResult>,
    /// The result that is read, its tables, and the number of the next one.
    open: Option<(Arc<str>, TableStream, usize)>,
    ready: VecDeque<RecordBatch>,
}

fn result_batches(
    run: &Arc<FluxRun>,
    results: Vec<FluxResult>,
) -> BoxStream<'static, SqlResult<RecordBatch>> {
    let work = ResultsInWork {
        run: Arc::clone(run),
        results: results.into(),
        open: None,
        ready: VecDeque::new(),
    };
    stream::try_unfold(work, ResultsInWork::step).boxed()
}

impl ResultsInWork {
    async fn step(mut self) -> SqlResult<Option<(RecordBatch, Self)>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some((batch, self)));
            }
            let Some((name, tables, number)) = &mut self.open else {
                let Some(result) = self.results.pop_front() else {
                    return Ok(None);
                };
                let tables = opened(&self.run, &result.stream);
                self.open = Some((result.name, tables, 0));
                continue;
            };
            if let Some(table) = tables.try_next().await? {
                self.ready = batches(name, *number, &table).collect::<SqlResult<_>>()?;
                *number += 1;
            } else {
                self.ready.push_back(end_of_result(name)?);
                self.open = None;
            }
        }
    }
}
