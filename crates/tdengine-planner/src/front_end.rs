//! TDengine's SQL as one of the service's query languages.

use crate::answer::answer;
use crate::run::catalog::TaosCatalog;
use crate::run::{SYSTEM_DATABASES, TaosRun, done, fault};
use crate::{definition, insert, query, remove, show};
use async_trait::async_trait;
use marigram_service::{Language, LanguageRequest, Result, ServiceError, Session};
use marigram_sql::SqlResult;
use marigram_sql::front_end::{FrontEnd, Script, StatementContext, StatementRows};
use marigram_tdengine::ast::TaosStatement;
use marigram_tdengine::{TaosCode, parse_statement};
use std::sync::Arc;

/// The tag of the answer to `USE`: whoever keeps the session sets its database.
pub const USE_TAG: &str = "USE";

/// The front end for statements. Clones share what they know of tables.
#[derive(Clone, Debug, Default)]
pub struct TDengineStatements {
    catalog: Arc<TaosCatalog>,
}

impl FrontEnd for TDengineStatements {
    fn language(&self) -> Language {
        Language::TDengine
    }

    fn parse(&self, _session: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>> {
        let statement = parse_statement(&request.text).map_err(|error| ServiceError::Invalid {
            message: error.message,
            position: None,
            sqlstate: error.code.sqlstate(),
        })?;
        Ok(Arc::new(TaosScript {
            text: request.text.clone(),
            statement,
            catalog: Arc::clone(&self.catalog),
        }))
    }
}

/// A request: one statement.
struct TaosScript {
    text: String,
    statement: TaosStatement,
    catalog: Arc<TaosCatalog>,
}

#[async_trait]
impl Script for TaosScript {
    fn len(&self) -> usize {
        1
    }

    async fn execute(
        &self,
        _statement: usize,
        context: &StatementContext,
    ) -> SqlResult<StatementRows> {
        let run = TaosRun::new(context, Arc::clone(&self.catalog), &self.text).await?;
        execute(&run, &self.statement).await
    }
}

async fn execute(run: &TaosRun<'_>, statement: &TaosStatement) -> SqlResult<StatementRows> {
    match statement {
        TaosStatement::Query(parsed) => {
            let relation = query::plan_query(run, parsed).await?;
            answer(run, relation).await
        }
        TaosStatement::Explain(parsed) => {
            let relation = query::plan_query(run, parsed).await?;
            show::explain(run, relation).await
        }
        TaosStatement::Insert(parsed) => insert::insert(run, parsed).await,
        TaosStatement::CreateDatabase {
            name,
            if_not_exists,
            options,
        } => definition::create_database(run, name, *if_not_exists, options).await,
        TaosStatement::AlterDatabase { name, options } => {
            definition::alter_database(run, name, options).await
        }
        TaosStatement::DropDatabase { name, if_exists } => {
            definition::drop_database(run, name, *if_exists).await
        }
        TaosStatement::UseDatabase(name) => {
            run.check_database(name)?;
            let is_system = SYSTEM_DATABASES.contains(&name.as_str());
            if !is_system && !run.context.session().rights.see(name) {
                return Err(fault(TaosCode::NoRights));
            }
            Ok(done(USE_TAG, 0))
        }
        TaosStatement::CreateTable(table) => definition::create_table(run, table).await,
        TaosStatement::CreateSubTables(tables) => {
            crate::sub_table::create_sub_tables(run, tables).await
        }
        TaosStatement::DropTables(tables) => {
            for table in tables {
                definition::drop_table(run, table, false).await?;
            }
            Ok(done("DROP TABLE", 0))
        }
        TaosStatement::DropStable(table) => {
            definition::drop_table(run, table, true).await?;
            Ok(done("DROP STABLE", 0))
        }
        TaosStatement::AlterTable(change) => crate::alteration::alter_table(run, change).await,
        TaosStatement::Describe(name) => show::describe(run, name).await,
        TaosStatement::Show(parsed) => show::show(run, parsed).await,
        TaosStatement::Delete { table, condition } => {
            remove::delete(run, table, condition.as_ref()).await
        }
        TaosStatement::Maintain => Ok(done("OK", 0)),
    }
}
