//! IoTDB's statements as one of the service's query languages.

use crate::statement::{TreeRun, fault};
use crate::{define, delete, insert, listing, select, show};
use async_trait::async_trait;
use marigram_iotdb::{TreeStatement, parse_statement};
use marigram_service::{Language, LanguageRequest, Result, Session};
use marigram_sql::SqlResult;
use marigram_sql::front_end::{FrontEnd, Script, StatementContext, StatementRows};
use std::sync::Arc;

/// The front end for statements of IoTDB's tree dialect: one in a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct IotDbStatements;

impl FrontEnd for IotDbStatements {
    fn language(&self) -> Language {
        Language::IotDb
    }

    /// The text is read when the statement runs: its times depend on the clock.
    fn parse(&self, _session: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>> {
        Ok(Arc::new(TreeScript(request.text.clone())))
    }
}

/// The text of a statement.
struct TreeScript(String);

#[async_trait]
impl Script for TreeScript {
    fn len(&self) -> usize {
        1
    }

    async fn execute(&self, _: usize, context: &StatementContext) -> SqlResult<StatementRows> {
        let run = TreeRun::new(context)?;
        let statement = parse_statement(&self.0, &run.times).map_err(fault)?;
        execute(&run, statement).await
    }
}

async fn execute(run: &TreeRun<'_>, statement: TreeStatement) -> SqlResult<StatementRows> {
    match statement {
        TreeStatement::Select(query) => select::answer(run, &query).await,
        TreeStatement::Show {
            target,
            offset,
            limit,
        } => {
            let page = listing::ListingPage { offset, limit };
            show::answer(run, &target, page).await
        }
        TreeStatement::Count(target) => show::count(run, &target).await,
        statement => {
            run.check_changes()?;
            change(run, statement).await
        }
    }
}

async fn change(run: &TreeRun<'_>, statement: TreeStatement) -> SqlResult<StatementRows> {
    match statement {
        TreeStatement::CreateDatabase(path, ttl_ms) => {
            define::create_database(run, &path, ttl_ms).await
        }
        TreeStatement::DropDatabases(patterns) => define::drop_databases(run, &patterns).await,
        TreeStatement::CreateTimeseries(series) => define::create_timeseries(run, series).await,
        TreeStatement::SetTtl(path, ttl_ms) => define::set_ttl(run, &path, ttl_ms).await,
        TreeStatement::DropTimeseries(patterns) => delete::drop_timeseries(run, &patterns).await,
        TreeStatement::Delete(patterns, range) => delete::delete(run, &patterns, range).await,
        TreeStatement::Insert(rows) => insert::insert(run, &rows).await,
        TreeStatement::Select(_) | TreeStatement::Show { .. } | TreeStatement::Count(_) => {
            Err(crate::statement::internal("the statement changes nothing"))
        }
    }
}
