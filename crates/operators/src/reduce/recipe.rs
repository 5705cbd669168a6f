//! The recipe: what an aggregate over a scan computes, in terms of series, as read from
//! DataFusion's plan.

mod calls;
mod keys;

use super::fold::{
    AccumulatorFold, CountFold, F32, F64, FirstLastFold, FoldOutput, I32, I64, NumericFold,
    NumericOutputs, SeriesFold, TimeNumbers, U64, VarianceFold,
};
use crate::rows::OutputColumnSource;
use crate::scan::SeriesScan;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use keys::GroupKeys;
use marigram_functions::{NumericResult, TimeBuckets, TimeEdge};
use marigram_model::TagType;
use std::sync::Arc;

type PhysicalExprRef = Arc<dyn PhysicalExpr>;

/// A group key of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecipeKey {
    /// An expression over tags: its index in [`GroupingTags::keys`].
    Tags(usize),
    /// The start of the bucket.
    Bucket,
}

/// The expressions over tags by which rows are grouped.
#[derive(Debug)]
pub(super) struct GroupingTags {
    /// The tags that they use.
    pub ordinals: Vec<(u16, TagType)>,
    /// The schema of a batch with those tags.
    pub schema: SchemaRef,
    /// The expressions.
    pub keys: Vec<PhysicalExprRef>,
    /// The schema of their values.
    pub keys_schema: SchemaRef,
}

impl GroupingTags {
    /// The tag, if rows are grouped by a single text tag.
    pub(super) fn one_text(&self) -> Option<u16> {
        match (&self.keys[..], &self.ordinals[..]) {
            ([key], [(ordinal, TagType::String)]) if key.downcast_ref::<Column>().is_some() => {
                Some(*ordinal)
            }
            _ => None,
        }
    }
}

/// An argument of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldArgument {
    /// A field, by its index among the scan's columns.
    Field(usize),
    /// Times.
    Time,
    /// An expression, by its index in [`AggregateRecipe::computed`].
    Computed(usize),
}

/// An expression over rows. It is null unless `mask` is true.
#[derive(Clone, Debug)]
pub(super) struct RowExpression {
    /// The expression.
    pub expr: PhysicalExprRef,
    /// The condition of a FILTER.
    pub mask: Option<PhysicalExprRef>,
}

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberType {
    /// See [`I32`].
    I32,
    /// See [`I64`].
    I64,
    /// See [`U64`].
    U64,
    /// See [`F32`].
    F32,
    /// See [`F64`].
    F64,
    /// See [`TimeNumbers`].
    Time,
}

/// The kind of a fold.
#[derive(Clone, Debug)]
pub(super) enum FoldKind {
    /// Number of rows.
    Rows,
    /// Number of values.
    Values,
    /// Numbers of a type.
    Numbers(NumberType, DataType, NumericOutputs),
    /// Variance of numbers of a type.
    Moments(NumberType),
    /// First or last value by time; the flag says whether a null counts as a value.
    Edges(TimeEdge, bool, DataType),
    /// A function that is not ours, with the types of its arguments; the flag says whether it has a
    /// FILTER.
    Foreign(Arc<AggregateFunctionExpr>, Vec<DataType>, bool),
}

/// A fold and its arguments.
#[derive(Clone, Debug)]
pub(super) struct FoldSpec {
    /// Its kind.
    pub make: FoldKind,
    /// Its arguments.
    pub args: Vec<FoldArgument>,
}

impl FoldSpec {
    /// Creates the fold, without slots.
    ///
    /// # Errors
    /// If a function that is not ours cannot create an accumulator.
    pub(super) fn fold(&self) -> Result<Box<dyn SeriesFold>> {
        Ok(match &self.make {
            FoldKind::Rows => Box::new(CountFold::rows()),
            FoldKind::Values => Box::new(CountFold::values()),
            FoldKind::Edges(side, nulls, kind) => {
                Box::new(FirstLastFold::new(*side, *nulls, kind.clone()))
            }
            FoldKind::Foreign(call, kinds, filtered) => {
                Box::new(AccumulatorFold::new(call, kinds.clone(), *filtered)?)
            }
            FoldKind::Moments(number) => match number {
                NumberType::I32 => Box::new(VarianceFold::<I32>::new()),
                NumberType::I64 | NumberType::Time => Box::new(VarianceFold::<I64>::new()),
                NumberType::U64 => Box::new(VarianceFold::<U64>::new()),
                NumberType::F32 => Box::new(VarianceFold::<F32>::new()),
                NumberType::F64 => Box::new(VarianceFold::<F64>::new()),
            },
            FoldKind::Numbers(number, kind, asked) => {
                let kind = kind.clone();
                match number {
                    NumberType::I32 => Box::new(NumericFold::<I32>::new(kind, *asked)),
                    NumberType::I64 => Box::new(NumericFold::<I64>::new(kind, *asked)),
                    NumberType::U64 => Box::new(NumericFold::<U64>::new(kind, *asked)),
                    NumberType::F32 => Box::new(NumericFold::<F32>::new(kind, *asked)),
                    NumberType::F64 => Box::new(NumericFold::<F64>::new(kind, *asked)),
                    NumberType::Time => Box::new(NumericFold::<TimeNumbers>::new(kind, *asked)),
                }
            }
        })
    }
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct AggregateRecipe {
    /// Group keys, then the results of the calls.
    pub schema: SchemaRef,
    /// Group keys in order.
    pub keys: Vec<RecipeKey>,
    /// The expressions over tags among the keys, if any.
    pub tags: Option<GroupingTags>,
    /// The buckets of time, if rows are grouped by them.
    pub buckets: Option<TimeBuckets>,
    /// The condition on rows.
    pub predicate: Option<PhysicalExprRef>,
    /// The columns of the scan that `predicate` and `computed` use, in their numbering.
    pub inputs: Vec<OutputColumnSource>,
    /// The schema of a batch with those columns.
    pub inputs_schema: SchemaRef,
    /// Expressions over rows.
    pub computed: Vec<RowExpression>,
    /// The folds.
    pub folds: Vec<FoldSpec>,
    /// The source of each call's result.
    pub answers: Vec<CallSource>,
    /// The columns of `schema` by which the result is sorted, which are group keys. Empty for any
    /// order.
    pub sorted_by: Vec<(usize, SortOptions)>,
}

/// The source of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSource {
    /// A fold, and which of its results.
    Fold(usize, FoldOutput),
    /// A group key.
    Key(usize),
}

impl AggregateRecipe {
    /// Whether expressions must be evaluated for the rows.
    pub(super) fn has_expressions(&self) -> bool {
        self.predicate.is_some() || !self.computed.is_empty()
    }

    /// Whether times are needed for more than finding buckets.
    pub(super) fn needs_times(&self) -> bool {
        let by_time = |spec: &FoldSpec| spec.args.contains(&FoldArgument::Time);
        let order = self.needs_order();
        order || self.inputs.contains(&OutputColumnSource::Time) || self.folds.iter().any(by_time)
    }

    /// Whether a fold depends on the order of times.
    pub(super) fn needs_order(&self) -> bool {
        let by_order = |spec: &FoldSpec| matches!(spec.make, FoldKind::Edges(..));
        self.folds.iter().any(by_order)
    }

    /// Whether only the last row of each series is needed.
    pub(super) fn needs_last_rows_only(&self) -> bool {
        let by_last = |spec: &FoldSpec| match (&spec.make, spec.args.as_slice()) {
            (
                FoldKind::Edges(TimeEdge::Last, ..),
                [FoldArgument::Field(_) | FoldArgument::Time],
            ) => true,
            (FoldKind::Numbers(NumberType::Time, _, asked), [FoldArgument::Time]) => {
                asked.is_max_only()
            }
            _ => false,
        };
        let plain = !self.has_expressions() && self.buckets.is_none();
        plain && !self.folds.is_empty() && self.folds.iter().all(by_last)
    }

    /// Whether the last row of a series suffices even if this column is null in it.
    pub(super) fn takes_nulls(&self, column: usize) -> bool {
        let takes = |spec: &FoldSpec| match spec.make {
            FoldKind::Edges(_, nulls, _) => nulls || spec.args != [FoldArgument::Field(column)],
            _ => true,
        };
        self.folds.iter().all(takes)
    }

    /// Reads an aggregate and the operators below it; `None` if the series-aware operator does not
    /// support it.
    ///
    /// # Errors
    /// DataFusion's errors, for expressions.
    pub(super) fn from_plan(
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<(Self, Arc<SeriesScan>)>> {
        let Some(last) = plan.downcast_ref::<AggregateExec>() else {
            return Ok(None);
        };
        let first = match last.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned => last,
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                match last.input().downcast_ref::<AggregateExec>() {
                    Some(first) if *first.mode() == AggregateMode::Partial => first,
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        if first.group_expr().has_grouping_set() || !first.group_expr().is_single() {
            return Ok(None);
        }
        let keys = first.group_expr().expr().iter();
        let mut below = AggregateInput {
            keys: keys.map(|(expr, _)| Arc::clone(expr)).collect(),
            orders: first
                .aggr_expr()
                .iter()
                .map(|call| call.order_bys().to_vec())
                .collect(),
            args: first
                .aggr_expr()
                .iter()
                .map(|call| call.expressions())
                .collect(),
            filters: first.filter_expr().to_vec(),
            predicate: None,
        };
        let Some(scan) = below.descend(first.input())? else {
            return Ok(None);
        };
        let mut reading = RecipeBuilder::new(&scan);
        let Some(GroupKeys {
            list: keys,
            tags,
            buckets,
        }) = reading.keys(&below.keys)?
        else {
            return Ok(None);
        };
        let predicate = match &below.predicate {
            Some(predicate) => Some(reading.input(predicate)?),
            None => None,
        };
        for (at, call) in first.aggr_expr().iter().enumerate() {
            let call = ScanAggregateCall {
                function: call,
                args: &below.args[at],
                orders: &below.orders[at],
                filter: below.filters[at].as_ref(),
                keys: &below.keys,
            };
            if !reading.call(&call)? {
                return Ok(None);
            }
        }
        let recipe = Self {
            schema: last.schema(),
            keys,
            tags,
            buckets,
            predicate,
            inputs_schema: reading.inputs_schema()?,
            inputs: reading.sources(),
            computed: reading.computed,
            folds: reading.folds,
            answers: reading.answers,
            sorted_by: Vec::new(),
        };
        Ok(Some((recipe, scan)))
    }
}

/// The expressions of an aggregate, in terms of the operator below it.
struct AggregateInput {
    keys: Vec<PhysicalExprRef>,
    args: Vec<Vec<PhysicalExprRef>>,
    orders: Vec<Vec<PhysicalSortExpr>>,
    filters: Vec<Option<PhysicalExprRef>>,
    predicate: Option<PhysicalExprRef>,
}

impl AggregateInput {
    /// Descends to the scan, through projections and filters; `None` if there is any other
    /// operator.
    fn descend(&mut self, mut plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<SeriesScan>>> {
        loop {
            if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                let exprs: Vec<PhysicalExprRef> = projection
                    .expr()
                    .iter()
                    .map(|projected| Arc::clone(&projected.expr))
                    .collect();
                self.replace(&exprs)?;
                plan = projection.input();
            } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
                if filter.fetch().is_some() {
                    return Ok(None);
                }
                if let Some(places) = filter.projection() {
                    let schema = filter.input().schema();
                    let column = |place: &usize| {
                        Arc::new(Column::new(schema.field(*place).name(), *place))
                            as PhysicalExprRef
                    };
                    let exprs: Vec<PhysicalExprRef> = places.iter().map(column).collect();
                    self.replace(&exprs)?;
                }
                let own = Arc::clone(filter.predicate());
                self.predicate = Some(match self.predicate.take() {
                    Some(other) => {
                        let and = datafusion::logical_expr::Operator::And;
                        Arc::new(BinaryExpr::new(own, and, other))
                    }
                    None => own,
                });
                plan = filter.input();
            } else {
                let scan = Arc::clone(plan) as Arc<dyn std::any::Any + Send + Sync>;
                let scan = scan.downcast::<SeriesScan>().ok();
                return Ok(scan.filter(|scan| scan.request().limit.is_none()));
            }
        }
    }

    /// Replaces columns with `exprs`.
    fn replace(&mut self, exprs: &[PhysicalExprRef]) -> Result<()> {
        let all = self.keys.iter_mut().chain(self.args.iter_mut().flatten());
        let filters = self.filters.iter_mut().flatten();
        let orders = self.orders.iter_mut().flatten();
        let orders = orders.map(|order| &mut order.expr);
        for expr in all.chain(filters).chain(orders).chain(&mut self.predicate) {
            *expr = replaced(expr, |column| Ok(Arc::clone(&exprs[column.index()])))?;
        }
        Ok(())
    }
}

/// An expression whose columns are replaced.
pub(super) fn replaced(
    expr: &PhysicalExprRef,
    mut with: impl FnMut(&Column) -> Result<PhysicalExprRef>,
) -> Result<PhysicalExprRef> {
    let replaced = Arc::clone(expr).transform_up(|node| {
        Ok(match node.downcast_ref::<Column>() {
            Some(column) => Transformed::yes(with(column)?),
            None => Transformed::no(node),
        })
    })?;
    Ok(replaced.data)
}

/// A recipe under construction.
struct RecipeBuilder<'a> {
    scan: &'a SeriesScan,
    /// The columns of the scan that expressions use.
    inputs: Vec<usize>,
    computed: Vec<RowExpression>,
    folds: Vec<FoldSpec>,
    answers: Vec<CallSource>,
}

/// An aggregate call in terms of the scan.
struct ScanAggregateCall<'a> {
    function: &'a Arc<AggregateFunctionExpr>,
    args: &'a [PhysicalExprRef],
    orders: &'a [PhysicalSortExpr],
    filter: Option<&'a PhysicalExprRef>,
    /// The group keys.
    keys: &'a [PhysicalExprRef],
}

impl<'a> RecipeBuilder<'a> {
    fn new(scan: &'a SeriesScan) -> Self {
        Self {
            scan,
            inputs: Vec::new(),
            computed: Vec::new(),
            folds: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// The source of a column of the scan.
    fn source(&self, column: &Column) -> OutputColumnSource {
        self.scan.sources()[column.index()]
    }

    /// Rewrites an expression over the scan's columns to one over `inputs`.
    fn input(&mut self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        replaced(expr, |column| {
            let known = self
                .inputs
                .iter()
                .position(|input| *input == column.index());
            let place = known.unwrap_or_else(|| {
                self.inputs.push(column.index());
                self.inputs.len() - 1
            });
            Ok(Arc::new(Column::new(column.name(), place)))
        })
    }

    fn inputs_schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.scan.schema().project(&self.inputs)?))
    }

    fn sources(&self) -> Vec<OutputColumnSource> {
        let sources = self.scan.sources();
        self.inputs.iter().map(|place| sources[*place]).collect()
    }
}
