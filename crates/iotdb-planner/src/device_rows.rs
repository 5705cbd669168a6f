//! Plans that read the rows of devices: time, device, and values of measurements.

use crate::compile::balanced;
use crate::series::{FoundSeries, TreeSeries};
use crate::statement::{TreeRun, internal};
use crate::trees::{field_type, measurement_fields};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Column, ScalarValue};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    Expr, LogicalPlanBuilder, Operator, binary_expr, cast, in_list, lit,
};
use marigram_influx::scan_of;
use marigram_iotdb::{DEVICE_TAG, IotDbType, PathPattern};
use marigram_model::TableSchema;
use marigram_sql::SqlResult;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The column of times in plans.
pub(crate) const TIME: &str = "t";

/// The column of devices in plans.
pub(crate) const DEVICE: &str = "d";

/// The most devices that a plan names one by one.
const NAMED_DEVICES_MAX: usize = 2000;

/// A column by its exact name.
pub(crate) fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// The column of a measurement's values in plans.
pub(crate) fn value_column(place: usize) -> String {
    format!("m{place}")
}

/// A measurement with a type: what several devices may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueColumn {
    pub(crate) measurement: Arc<str>,
    /// The type in which fields keep it.
    pub(crate) stored: &'static str,
    pub(crate) kind: StoredKind,
}

/// A type as fields keep it, in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoredKind(u8);

impl ValueColumn {
    fn for_series(series: &TreeSeries) -> Self {
        let stored = series.kind.stored();
        Self {
            measurement: Arc::clone(&series.measurement),
            stored: stored.name(),
            kind: StoredKind(stored.number()),
        }
    }

    fn stored_type(&self) -> IotDbType {
        IotDbType::from_name(self.stored).unwrap_or(IotDbType::Text)
    }
}

/// The devices and measurements that a query reads.
pub(crate) struct DeviceRows {
    /// The devices by database.
    by_database: BTreeMap<usize, BTreeSet<Arc<str>>>,
    /// The measurements, in the order of their columns.
    columns: Vec<ValueColumn>,
    places: HashMap<ValueColumn, usize>,
    /// The first time and the last one, ms.
    range_ms: (i64, i64),
    /// The patterns of the devices, for many of them.
    patterns: Vec<PathPattern>,
}

impl DeviceRows {
    /// The rows of some timeseries.
    pub(crate) fn new<'s>(
        series: impl IntoIterator<Item = &'s TreeSeries>,
        range_ms: (i64, i64),
        patterns: Vec<PathPattern>,
    ) -> Self {
        let mut by_database: BTreeMap<usize, BTreeSet<Arc<str>>> = BTreeMap::new();
        let mut columns = BTreeSet::new();
        for one in series {
            let devices = by_database.entry(one.device.database).or_default();
            devices.insert(Arc::clone(&one.device.text));
            columns.insert(ValueColumn::for_series(one));
        }
        let columns: Vec<ValueColumn> = columns.into_iter().collect();
        let places = columns.iter().cloned().enumerate();
        Self {
            by_database,
            places: places.map(|(place, column)| (column, place)).collect(),
            columns,
            range_ms,
            patterns,
        }
    }

    /// The devices, in the order of their paths' texts.
    pub(crate) fn devices(&self) -> Vec<Arc<str>> {
        let mut all: Vec<_> = self.by_database.values().flatten().cloned().collect();
        all.sort();
        all
    }

    /// The place of the column with the values of a timeseries.
    pub(crate) fn place(&self, series: &TreeSeries) -> Option<usize> {
        self.places.get(&ValueColumn::for_series(series)).copied()
    }

    /// The state in which plans are made.
    ///
    /// # Errors
    /// If DataFusion cannot be set up.
    pub(crate) fn state(&self, run: &TreeRun<'_>, found: &FoundSeries) -> SqlResult<SessionState> {
        let first = self.by_database.keys().next();
        let database = first.and_then(|place| found.databases.get(*place));
        let name = database.map_or(run.session().database.as_str(), |it| it.name.as_str());
        run.context.state(name)
    }

    /// A plan for each database with rows, at least one: the columns [`TIME`], [`DEVICE`] and those of the values.
    /// Rows without any of these values are left out.
    ///
    /// # Errors
    /// If a table is gone.
    pub(crate) async fn plans(
        &self,
        state: &SessionState,
        found: &FoundSeries,
    ) -> SqlResult<Vec<LogicalPlanBuilder>> {
        let mut plans = Vec::new();
        for (place, devices) in &self.by_database {
            let Some(database) = found.databases.get(*place) else {
                continue;
            };
            let Some(table) = &database.devices else {
                continue;
            };
            plans.push(self.plan(state, table, devices).await?);
        }
        if plans.is_empty() {
            plans.push(self.plan_without_rows()?);
        }
        Ok(plans)
    }

    /// A plan with the same columns and no rows.
    fn plan_without_rows(&self) -> SqlResult<LogicalPlanBuilder> {
        let null = |kind: DataType| cast(Expr::Literal(ScalarValue::Null, None), kind);
        let mut shown = vec![
            null(time_type()).alias(TIME),
            null(DataType::Utf8).alias(DEVICE),
        ];
        for (place, wanted) in self.columns.iter().enumerate() {
            let kind = field_type(wanted.stored_type()).data_type();
            shown.push(null(kind).alias(value_column(place)));
        }
        Ok(LogicalPlanBuilder::empty(false).project(shown)?)
    }

    /// The plans as one.
    ///
    /// # Errors
    /// If there are no rows, or a table is gone.
    pub(crate) async fn plan_of_all(
        &self,
        state: &SessionState,
        found: &FoundSeries,
    ) -> SqlResult<LogicalPlanBuilder> {
        united(self.plans(state, found).await?)
    }

    async fn plan(
        &self,
        state: &SessionState,
        table: &TableSchema,
        devices: &BTreeSet<Arc<str>>,
    ) -> SqlResult<LogicalPlanBuilder> {
        let fields = measurement_fields(table);
        let field_of = |wanted: &ValueColumn| {
            let mut all = fields.iter();
            all.find(|field| {
                field.measurement == wanted.measurement && field.kind == wanted.stored_type()
            })
        };
        let mut conditions = self.time_conditions(table);
        conditions.extend(self.device_condition(devices));
        let mut shown = vec![
            column(&table.time_name).alias(TIME),
            column(DEVICE_TAG).alias(DEVICE),
        ];
        let mut has_value: Vec<Expr> = Vec::new();
        for (place, wanted) in self.columns.iter().enumerate() {
            let value = match field_of(wanted) {
                Some(field) => {
                    has_value.push(column(&field.field).is_not_null());
                    column(&field.field)
                }
                None => {
                    let null = Expr::Literal(ScalarValue::Null, None);
                    cast(null, field_type(wanted.stored_type()).data_type())
                }
            };
            shown.push(value.alias(value_column(place)));
        }
        // Each row has a value of some field.
        if has_value.len() < table.fields.len() {
            conditions.extend(balanced(has_value, Expr::or));
        }
        let mut rows = scan_of(state, table).await?;
        if let Some(condition) = balanced(conditions, Expr::and) {
            rows = rows.filter(condition)?;
        }
        Ok(rows.project(shown)?)
    }

    fn time_conditions(&self, table: &TableSchema) -> Vec<Expr> {
        let (from, to) = self.range_ms;
        let at = |ns: i64| Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), None), None);
        let time = || column(&table.time_name);
        let mut conditions = Vec::new();
        if from > i64::MIN {
            conditions.push(time().gt_eq(at(from.saturating_mul(1_000_000))));
        }
        if to < i64::MAX {
            let last = to.saturating_mul(1_000_000).saturating_add(999_999);
            conditions.push(time().lt_eq(at(last)));
        }
        conditions
    }

    fn device_condition(&self, devices: &BTreeSet<Arc<str>>) -> Option<Expr> {
        if devices.len() <= NAMED_DEVICES_MAX {
            let mut names = devices.iter();
            if let (Some(only), None) = (names.next(), names.next()) {
                return Some(column(DEVICE_TAG).eq(lit(&**only)));
            }
            let names = devices.iter().map(|name| lit(&**name)).collect();
            return Some(in_list(column(DEVICE_TAG), names, false));
        }
        let text = cast(column(DEVICE_TAG), DataType::Utf8);
        let matches = self
            .patterns
            .iter()
            .map(|pattern| binary_expr(text.clone(), Operator::RegexMatch, lit(pattern.regex())));
        balanced(matches.collect(), Expr::or)
    }
}

/// Plans as one; the types of their columns are equal.
///
/// # Errors
/// If there is none.
pub(crate) fn united(plans: Vec<LogicalPlanBuilder>) -> SqlResult<LogicalPlanBuilder> {
    let mut plans = plans.into_iter();
    let first = plans
        .next()
        .ok_or_else(|| internal("there are no rows to read"))?;
    let mut all = first;
    for plan in plans {
        all = all.union(plan.build()?)?;
    }
    Ok(all)
}

/// The Arrow type of times in plans.
pub(crate) fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, None)
}
