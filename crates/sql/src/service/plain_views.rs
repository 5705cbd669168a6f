//! Plain views: `CREATE VIEW`, and their plans in statements.

use super::SqlServiceInner;
use super::changes::StatementDone;
use super::planned::PlannedStatementKind;
use crate::catalog::plain_views::through;
use crate::dialect::column_names::{Names, named_schema};
use crate::dialect::identifiers::target_of;
use crate::dialect::parse;
use crate::dialect::statement::{Command, CreatePlainView};
use crate::error::{SqlError, SqlResult};
use crate::statements::ddl_execution::exists_already;
use crate::tables::batches::texts;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::TableReference;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use marigram_engine::{EngineError, TableChange, TableSpec};
use marigram_model::quoted;
use marigram_model::{TableId, TableSchema, View, ViewColumn};
use marigram_service::{Identity, Session};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The user as whom the queries of views are planned.
const USER: &str = "marigram";

impl SqlServiceInner {
    /// Plans the queries of plain views that have not been planned yet.
    pub(super) async fn read_plain_views(&self) -> SqlResult<()> {
        let views = self.contexts.views();
        for view in views.missing(&self.engine) {
            let Some(query) = view.view.as_ref().map(|view| view.query.clone()) else {
                continue;
            };
            let session = Session::new(&view.database, Identity::owner(USER));
            let planned = async {
                let state = self.contexts.state(&session)?;
                let (statement, _) = query_of(&query)?;
                self.plan_statement(&state, &session, statement).await
            };
            // On the heap, since the state of planning is large.
            let planned = Box::pin(planned).await.map_err(|error| {
                let reason = error.into_service(&query).to_string();
                tracing::error!(view = %view.name, %reason, "its query cannot be read");
                reason
            });
            views.put(&self.engine, &view, planned);
        }
        Ok(())
    }

    /// The plain views that a statement reads, with everything that they read.
    pub(super) fn views_in(
        &self,
        state: &SessionState,
        session: &Session,
        statement: &Statement,
    ) -> SqlResult<Vec<Arc<TableSchema>>> {
        let mut found: Vec<Arc<TableSchema>> = Vec::new();
        if self.engine.views().is_empty() {
            return Ok(found);
        }
        for reference in state.resolve_table_references(statement)? {
            let Some(table) = self.table_of(session, &reference) else {
                continue;
            };
            if table.view.is_some() {
                found.extend(through(&self.engine, &table));
            }
        }
        Ok(found)
    }

    /// The engine's table or view to which a name refers.
    fn table_of(&self, session: &Session, name: &TableReference) -> Option<Arc<TableSchema>> {
        let target = target_of(&name.to_vec())?;
        let database = target.database.as_ref().unwrap_or(&session.database);
        // Planning refuses what the client may not see, and says so.
        let is_visible = session.rights.see(database);
        let table = is_visible.then(|| self.engine.table(database, &target.table));
        table.and_then(Result::ok)
    }

    /// `CREATE VIEW`
    pub(super) async fn create_plain_view(
        self: Arc<Self>,
        session: &Session,
        asked: CreatePlainView,
    ) -> SqlResult<StatementDone> {
        let name = asked.target.table.clone();
        let database = asked.target.database.clone();
        let database = database.unwrap_or_else(|| session.database.clone());
        let done = StatementDone::new("CREATE VIEW");
        let existing = match self.engine.table(&database, &name) {
            Ok(table) => Some(table),
            Err(EngineError::NotFound { kind: "table", .. }) => None,
            Err(error) => return Err(error.into()),
        };
        match &existing {
            Some(_) if asked.if_not_exists => return Ok(done.telling(Some(exists_already(&name)))),
            Some(table) if asked.or_replace && table.view.is_none() => {
                let message = format!("'{name}' is not a view, so a view cannot replace it");
                return Err(SqlError::named("42809", &name, message));
            }
            Some(table) if !asked.or_replace => {
                let kind = if table.view.is_some() {
                    "view"
                } else {
                    "table"
                };
                let message = format!("{kind} '{name}' exists already");
                return Err(SqlError::named("42P07", &name, message));
            }
            _ => {}
        }
        // Names in the query are resolved in the view's database, whoever runs the query. It is
        // planned with the rights of the client, which errors must not tell more than it may know.
        let session = Session {
            rights: Arc::clone(&session.rights),
            ..Session::new(&database, session.identity.clone())
        };
        let state = self.contexts.state(&session)?;
        let (statement, names) = query_of(&asked.query)?;
        let reads = self.reads(&state, &session, &statement, &name)?;
        if let Some(view) = &existing {
            self.check_recursion(&name, view.id, &reads)?;
        }
        let plan = self.plan(&state, &session, statement).await?;
        if !matches!(self.kind(&plan)?, PlannedStatementKind::Rows)
            || matches!(plan, LogicalPlan::Explain(_))
        {
            return Err(SqlError::syntax("a view needs a SELECT"));
        }
        if let Some(parameter) = plan.get_parameter_names()?.into_iter().next() {
            let message = format!("a view has no parameters, and its query has {parameter}");
            return Err(SqlError::named("42P02", &parameter, message));
        }
        let view = View {
            query: asked.query.trim().to_owned(),
            columns: columns_of(&plan, &names, &asked.columns, &name)?,
            reads: reads.into_iter().collect(),
        };
        let time_name = time_of(&plan, &view);
        let engine = self.engine.clone();
        let store = move || match existing {
            Some(old) => {
                keeps_columns(&old, &view)?;
                engine.alter_table(&old.database, &old.name, &TableChange::SetView(view))?;
                Ok(())
            }
            None => {
                let spec = TableSpec {
                    name,
                    time_name,
                    view: Some(view),
                    ..TableSpec::default()
                };
                engine.create_table(&database, &spec, false)?;
                Ok(())
            }
        };
        self.workers.commit(store).await?;
        Ok(done)
    }

    /// The tables and views of the view's own database that a query reads.
    fn reads(
        &self,
        state: &SessionState,
        session: &Session,
        statement: &Statement,
        view: &str,
    ) -> SqlResult<BTreeSet<TableId>> {
        let mut reads = BTreeSet::new();
        for reference in state.resolve_table_references(statement)? {
            let Some(table) = self.table_of(session, &reference) else {
                let parts = reference.to_vec();
                let known = ["pg_catalog", "information_schema", parse::SERIES_SCHEMA];
                let is_ours = parts.iter().any(|part| known.contains(&part.as_str()));
                if is_ours {
                    let message = format!(
                        "view '{view}' would read '{reference}', but a view can only read tables and views"
                    );
                    return Err(SqlError::unsupported(message));
                }
                // The planner reports tables that do not exist.
                continue;
            };
            if table.database != session.database {
                let message = format!(
                    "view '{view}' is in database '{}', and '{}' is not; a view can only read its \
                     own database",
                    session.database, table.name
                );
                return Err(SqlError::named("0A000", &table.name, message));
            }
            reads.insert(table.id);
        }
        Ok(reads)
    }

    /// Refuses a view that would read itself.
    fn check_recursion(
        &self,
        name: &str,
        view: TableId,
        reads: &BTreeSet<TableId>,
    ) -> SqlResult<()> {
        let tables = reads.iter().filter_map(|id| self.engine.table_by_id(*id));
        for table in tables {
            let reached = through(&self.engine, &table);
            if reached.iter().any(|table| table.id == view) {
                let message = if table.id == view {
                    format!("view '{name}' would read itself")
                } else {
                    format!("view '{name}' would read itself through '{}'", table.name)
                };
                return Err(SqlError::named("42P17", name, message));
            }
        }
        Ok(())
    }
}

/// The statement that would create a view.
///
/// # Errors
/// None that can occur.
pub(super) fn statement(table: &TableSchema, view: &View) -> SqlResult<RecordBatch> {
    let renamed = view
        .columns
        .iter()
        .any(|column| column.of_query != column.name);
    let columns: Vec<String> = view
        .columns
        .iter()
        .map(|column| quoted(&column.name))
        .collect();
    let columns = if renamed {
        format!(" ({})", columns.join(", "))
    } else {
        String::new()
    };
    let statement = format!(
        "CREATE VIEW {}{columns} AS\n{}",
        quoted(&table.name),
        view.query
    );
    texts(vec![
        ("view_name", vec![table.name.clone()]),
        ("statement", vec![statement]),
    ])
}

/// Parses the query of a view.
fn query_of(query: &str) -> SqlResult<(Statement, Names)> {
    let Command::Plan(statement, names) = parse::parse(query)? else {
        return Err(SqlError::syntax("a view needs a SELECT"));
    };
    if statement.need().is_deep() {
        let message = "the query of a view is nested too deeply; statements that read the view \
                       would be as deep";
        return Err(SqlError::invalid("54001", message));
    }
    Ok((statement.into_inner(), names))
}

/// The error for a column name that occurs twice in a view.
pub(super) fn repeated_column(name: &str, view: &str) -> SqlError {
    let message = format!("column '{name}' appears twice in view '{view}'; rename one with AS");
    SqlError::named("42701", name, message)
}

/// The columns of a view: those of its query, under the given names, or those of the result.
fn columns_of(
    plan: &LogicalPlan,
    answer: &Names,
    names: &[String],
    view: &str,
) -> SqlResult<Vec<ViewColumn>> {
    let fields = plan.schema().fields();
    let answer = named_schema(answer, Arc::clone(plan.schema().inner()));
    if names.len() > fields.len() {
        let message = format!(
            "view '{view}' names {} columns, but its query has {}",
            names.len(),
            fields.len()
        );
        return Err(SqlError::named("42601", view, message));
    }
    let mut columns: Vec<ViewColumn> = Vec::with_capacity(fields.len());
    let (mut of_query, mut of_view) = (HashSet::new(), HashSet::new());
    for (at, field) in fields.iter().enumerate() {
        let name = names.get(at).unwrap_or(answer.field(at).name());
        if !of_query.insert(field.name().clone()) || !of_view.insert(name.clone()) {
            return Err(repeated_column(name, view));
        }
        columns.push(ViewColumn {
            of_query: field.name().clone(),
            name: name.clone(),
        });
    }
    Ok(columns)
}

/// The column that is used when a shorthand form names no time: the first time column.
fn time_of(plan: &LogicalPlan, view: &View) -> Option<String> {
    let fields = plan.schema().fields().iter().zip(&view.columns);
    let mut times =
        fields.filter(|(field, _)| matches!(field.data_type(), DataType::Timestamp(..)));
    times.next().map(|(_, column)| column.name.clone())
}

/// Refuses a new query without the view's existing columns: other views may read them.
fn keeps_columns(old: &TableSchema, new: &View) -> SqlResult<()> {
    let Some(before) = &old.view else {
        return Ok(());
    };
    let mut kept = new.columns.iter().map(|column| &column.name);
    for column in &before.columns {
        match kept.next() {
            Some(name) if *name == column.name => {}
            Some(name) => {
                let message = format!(
                    "column '{}' of view '{}' would become '{name}'; the replacement of a view must keep \
                     its columns, and new ones must come last",
                    column.name, old.name
                );
                return Err(SqlError::named("42P16", name, message));
            }
            None => {
                let message = format!(
                    "view '{}' would lose column '{}'; the replacement of a view must keep its columns",
                    old.name, column.name
                );
                return Err(SqlError::named("42P16", &column.name, message));
            }
        }
    }
    Ok(())
}
