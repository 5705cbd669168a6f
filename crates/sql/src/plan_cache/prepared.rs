//! Prepared statements: parsed and planned once.

use crate::catalog::plan_dependencies::{are_current, may_be_kept_prepared, tables_of};
use crate::dialect::column_names::{Names, named_schema};
use crate::dialect::declared_parameters::is_castable;
use crate::dialect::exact_numbers::exact_value;
use crate::dialect::statement::Command;
use crate::error::{SqlError, SqlResult};
use crate::plan_cache::generic_plan::GenericPlan;
use crate::plan_cache::plan_parameters::PlanParameters;
use crate::plan_cache::text_memory::TextMemory;
use crate::planning::answer_types::with_types;
use crate::planning::parameter_types::{OPEN_NUMBER, counts_always};
use crate::planning::zones::{plan_scope, times_of_integers};
use crate::stack::DeepTree;
use crate::tables::reference::reads::StatementReads;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use marigram_engine::Engine;
use marigram_model::TableSchema;
use marigram_reference::ReferenceStore;
use marigram_service::{Prepared, Session};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    sql: String,
    /// The database of the session that prepared it, in which its names were resolved.
    pub database: String,
    /// The scope under which its plan is cached.
    pub scope: String,
    /// The parsed statement.
    pub command: Command,
    /// Its plan, if DataFusion made one.
    pub plan: Option<DeepTree<LogicalPlan>>,
    /// What was learned from its executions, if one plan may serve for all of them.
    pub generic_plan: Option<Arc<GenericPlan>>,
    /// The types that clients are told.
    parameters: Vec<DataType>,
    /// The types that some of them have for PostgreSQL, where they are texts here.
    pg_types: Vec<Option<String>>,
    /// The types that the plan has; `None` if it leaves a type open.
    planned: Vec<Option<DataType>>,
    schema: Option<SchemaRef>,
    /// The types that the client named for its parameters.
    pub named: Vec<DataType>,
    /// The numbers of the parameters, from 1, for which such a type counts.
    counting: BTreeSet<usize>,
    tables: Vec<Arc<TableSchema>>,
    /// Whether it reads plain views, whose plans are not cached.
    pub reads_views: bool,
    /// The version of the reference tables for which it was planned, if it names any.
    reference_version: Option<u64>,
    /// The memory of its text while it exists.
    _memory: TextMemory,
}

impl PreparedStatement {
    /// A statement without a plan, and the schema of its result.
    pub(crate) fn direct(
        sql: &str,
        session: &Session,
        command: Command,
        schema: Option<SchemaRef>,
    ) -> Self {
        Self {
            sql: sql.to_owned(),
            database: session.database.clone(),
            scope: plan_scope(session).into_owned(),
            command,
            plan: None,
            generic_plan: None,
            parameters: Vec::new(),
            pg_types: Vec::new(),
            planned: Vec::new(),
            schema,
            named: Vec::new(),
            counting: BTreeSet::new(),
            tables: Vec::new(),
            reads_views: false,
            reference_version: None,
            _memory: TextMemory::default(),
        }
    }

    /// A planned statement; `rows` says whether it returns rows.
    ///
    /// # Errors
    /// If its parameters cannot be determined.
    pub(crate) fn planned(
        sql: &str,
        session: &Session,
        command: Command,
        plan: DeepTree<LogicalPlan>,
        rows: bool,
    ) -> SqlResult<Self> {
        let names = names_of(&command);
        let schema = rows.then(|| named_schema(names, Arc::clone(plan.schema().inner())));
        let PlanParameters { planned, pg_types } = PlanParameters::of_plan(&plan)?;
        let parameters = planned.iter().map(|kind| match kind {
            Some(DataType::Dictionary(_, value)) => value.as_ref().clone(),
            Some(kind @ DataType::List(inner)) => match inner.data_type() {
                DataType::Dictionary(_, value) => DataType::new_list(value.as_ref().clone(), true),
                _ => kind.clone(),
            },
            None | Some(DataType::Null) => DataType::Utf8,
            // The text of an exact number has all of its digits.
            Some(kind) if *kind == OPEN_NUMBER => DataType::Utf8,
            Some(other) => other.clone(),
        });
        // The types of exact numbers differ from value to value.
        let has_open_number = planned.contains(&Some(OPEN_NUMBER));
        let may_be_generic = rows && !has_open_number && !plan.need().is_deep();
        let generic_plan = if may_be_generic && may_be_kept_prepared(sql, &plan)? {
            GenericPlan::from_plan(&plan)?.map(Arc::new)
        } else {
            None
        };
        Ok(Self {
            sql: sql.to_owned(),
            database: session.database.clone(),
            scope: plan_scope(session).into_owned(),
            command,
            generic_plan,
            parameters: parameters.collect(),
            pg_types,
            planned,
            schema,
            named: Vec::new(),
            counting: BTreeSet::new(),
            tables: tables_of(&plan)?,
            reads_views: false,
            reference_version: None,
            plan: Some(plan),
            _memory: TextMemory::default(),
        })
    }

    /// The same with the types that its columns will have, where they differ from those of the plan.
    pub(crate) fn answering(self, types: Option<&[DataType]>) -> Self {
        let schema = match types {
            Some(types) => self.schema.map(|schema| with_types(&schema, types)),
            None => self.schema,
        };
        Self { schema, ..self }
    }

    /// The same with the types that the client named for its parameters, and the numbers of those for
    /// which they count.
    pub(crate) fn naming(self, named: Vec<DataType>, counting: BTreeSet<usize>) -> Self {
        Self {
            named,
            counting,
            ..self
        }
    }

    /// Whether the types that a client names would be used: the plan leaves such a type open, or the
    /// type counts in any case.
    pub(crate) fn wants(&self, named: &[DataType]) -> bool {
        if counts_always(named) {
            return true;
        }
        let mut counting = self
            .counting
            .iter()
            .filter_map(|number| named.get(number - 1));
        if counting.any(is_castable) {
            return true;
        }
        let pairs = self.planned.iter().zip(named);
        let mut open = pairs.filter(|(kind, _)| matches!(kind, None | Some(DataType::Null)));
        open.any(|(_, named)| *named != DataType::Null)
    }

    /// The names of its result's columns.
    pub(crate) fn names(&self) -> &Names {
        names_of(&self.command)
    }

    /// The same, reading these plain views: it is planned again when one of them changes.
    pub(crate) fn through(mut self, views: Vec<Arc<TableSchema>>) -> Self {
        if !views.is_empty() {
            self.reads_views = true;
            self.generic_plan = None;
            self.tables.extend(views);
        }
        self
    }

    /// The same, planned for this version of the reference tables.
    pub(crate) fn at_reference_version(mut self, version: Option<u64>) -> Self {
        self.reference_version = version;
        self
    }

    /// The same, holding the memory of its text while it exists.
    pub(crate) fn holding(self, memory: TextMemory) -> Self {
        Self {
            _memory: memory,
            ..self
        }
    }

    /// Whether it may serve other sessions: those that name no types of parameters, and see the same tables.
    pub(crate) fn may_be_shared(&self) -> bool {
        let names_none = self.named.iter().all(|kind| *kind == DataType::Null);
        names_none && self.reference_version.is_none()
    }

    /// Whether the tables of the plan are still those for which it was made.
    pub(crate) fn is_current(&self, engine: &Engine, store: &ReferenceStore) -> bool {
        let has_same_tables = self.reference_version.is_none_or(|version| {
            // Changes of its own transaction have no version yet.
            let reads = StatementReads::of_task();
            version == store.version() && !reads.is_some_and(|reads| reads.sees_own_changes())
        });
        has_same_tables && are_current(&self.tables, engine)
    }

    /// Converts the parameters to the plan's types.
    ///
    /// # Errors
    /// If there are too few or too many, or one has a type that the plan cannot accept.
    pub(crate) fn bind(&self, given: &[ArrayRef]) -> SqlResult<Vec<ScalarValue>> {
        if given.len() != self.planned.len() {
            let message = format!(
                "the statement has {} parameters, and {} were given",
                self.planned.len(),
                given.len()
            );
            return Err(SqlError::invalid("08P01", message));
        }
        let mut values = Vec::with_capacity(given.len());
        for (at, (array, kind)) in given.iter().zip(&self.planned).enumerate() {
            if array.len() != 1 {
                let message = format!("parameter ${} has {} values, not one", at + 1, array.len());
                return Err(SqlError::invalid("08P01", message));
            }
            let value = ScalarValue::try_from_array(array, 0)?;
            values.push(match kind {
                Some(kind @ DataType::Timestamp(..)) if array.data_type().is_numeric() => {
                    time_of_number(array, kind, at + 1)?
                }
                Some(kind) if *kind == OPEN_NUMBER => exact_number(value, at + 1)?,
                Some(kind) if *kind != DataType::Null => value.cast_to(kind)?,
                _ => value,
            });
        }
        Ok(values)
    }
}

/// An exact number with the decimal places that it is written with.
fn exact_number(value: ScalarValue, number: usize) -> SqlResult<ScalarValue> {
    if value.data_type().is_decimal() {
        return Ok(value);
    }
    let text = value.cast_to(&DataType::Utf8)?;
    let Some(text) = text.try_as_str().flatten() else {
        return Ok(ScalarValue::try_from(&OPEN_NUMBER)?);
    };
    exact_value(text).ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        let message =
            format!("parameter ${number}: \"{text}\" is no exact number of up to 76 digits");
        SqlError::invalid("22P02", message)
    })
}

/// A number as a time: as in the text of a statement, it must be a whole number that is plausible
/// in one unit.
fn time_of_number(array: &ArrayRef, kind: &DataType, number: usize) -> SqlResult<ScalarValue> {
    if !array.data_type().is_integer() {
        let kind = crate::error::in_sql(&array.data_type().to_string());
        let message = format!("parameter ${number} is a time, and {kind} is given");
        return Err(SqlError::invalid("42804", message));
    }
    let times = times_of_integers(array, kind)?;
    Ok(ScalarValue::try_from_array(&times, 0)?)
}

fn names_of(command: &Command) -> &Names {
    match command {
        Command::Plan(_, names) => names,
        _ => &None,
    }
}

impl Prepared for PreparedStatement {
    fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    fn parameter_pg_type(&self, position: usize) -> Option<&str> {
        self.pg_types.get(position)?.as_deref()
    }

    fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }

    fn sql(&self) -> &str {
        &self.sql
    }

    fn changes_rows(&self) -> bool {
        // No other plan is a node of our own at its top.
        matches!(self.plan.as_deref(), Some(LogicalPlan::Extension(_)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
