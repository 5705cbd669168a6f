//! `array_agg`, `string_agg` and `percentile_cont` as functions: DataFusion's, with our accumulators.

use super::accumulators::{Collection, GroupedValues, SingleGroup};
use super::rows::CollectedOrder;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::types::{NativeType, logical_float64};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Documentation, GroupsAccumulator,
    ReversedUDAF, Signature, TypeSignatureClass, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Literal};
use std::sync::Arc;

/// The aggregates that collect values, instead of DataFusion's of the same names.
pub(crate) fn collecting_aggregates() -> [AggregateUDF; 3] {
    let percentile = percentile_cont_udaf();
    let float = || {
        Coercion::new_implicit(
            TypeSignatureClass::Native(logical_float64()),
            vec![TypeSignatureClass::Numeric],
            NativeType::Float64,
        )
    };
    // PostgreSQL's percentile of REAL is DOUBLE PRECISION, too.
    let floats = Signature::coercible(vec![float(), float()], Volatility::Immutable);
    let of = |inner: Arc<AggregateUDF>, signature: Signature| {
        AggregateUDF::from(Collecting { inner, signature })
    };
    let plain = |inner: Arc<AggregateUDF>| {
        let signature = inner.signature().clone();
        of(inner, signature)
    };
    [
        plain(array_agg_udaf()),
        plain(string_agg_udaf()),
        of(percentile, floats),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Collecting {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

impl Collecting {
    /// Our accumulator for a call; `None` if DataFusion's is to do the work, or to refuse it.
    fn values(&self, args: &AccumulatorArgs) -> Result<Option<GroupedValues>> {
        let field = &args.expr_fields[0];
        let is_list = self.inner.name() == "array_agg";
        let Some(collection) = self.collection(args) else {
            return Ok(None);
        };
        let keys = if matches!(collection, Collection::Percentile { .. }) {
            if args.is_distinct {
                vec![SortOptions::new(false, false)]
            } else {
                Vec::new()
            }
        } else if args.is_distinct {
            match args.order_bys {
                [] => vec![SortOptions::new(false, false)],
                [single] if is_value(&single.expr, args)? => vec![single.options],
                _ => return Ok(None),
            }
        } else {
            args.order_bys.iter().map(|key| key.options).collect()
        };
        let order = CollectedOrder {
            keys,
            distinct: args.is_distinct,
            keeps_nulls: is_list && !args.ignore_nulls,
        };
        let order_fields = if args.is_distinct || order.keys.is_empty() {
            Fields::empty()
        } else {
            let fields = args.order_bys.iter().map(|key| {
                let data_type = key.expr.data_type(args.schema)?;
                Ok(Field::new(key.expr.to_string(), data_type, true))
            });
            fields.collect::<Result<Vec<_>>>()?.into()
        };
        let value_type = field.data_type().clone();
        let values = GroupedValues::new(
            collection,
            order,
            value_type,
            order_fields,
            args.exprs.len(),
        );
        Ok(Some(values))
    }

    /// What a call makes of its values; `None` if its other argument is no constant.
    fn collection(&self, args: &AccumulatorArgs) -> Option<Collection> {
        let constant = || Some(args.exprs.get(1)?.downcast_ref::<Literal>()?.value());
        Some(match self.inner.name() {
            "string_agg" => Collection::Text(delimiter_text(constant()?)),
            "percentile_cont" => {
                // A percentile of NULLs is DataFusion's, too.
                if *args.expr_fields[0].data_type() != DataType::Float64 {
                    return None;
                }
                let fraction = match constant()? {
                    ScalarValue::Float64(Some(fraction)) => *fraction,
                    _ => return None,
                };
                let key = args.order_bys.first();
                Collection::Percentile {
                    fraction: (0.0..=1.0).contains(&fraction).then_some(fraction)?,
                    is_descending: key.is_some_and(|key| key.options.descending),
                }
            }
            _ => Collection::List,
        })
    }
}

fn delimiter_text(value: &ScalarValue) -> String {
    let text = value.try_as_str().flatten();
    text.unwrap_or_default().to_owned()
}

/// Whether rows are ordered by the aggregated value: by itself, or by a text that the planner cast
/// to another type of texts.
fn is_value(key: &Arc<dyn PhysicalExpr>, args: &AccumulatorArgs) -> Result<bool> {
    let value = &args.exprs[0];
    let is_text = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    Ok(match value.downcast_ref::<CastExpr>() {
        Some(cast) if key.eq(cast.expr()) => {
            is_text(&key.data_type(args.schema)?) && is_text(args.expr_fields[0].data_type())
        }
        _ => key.eq(value),
    })
}

impl AggregateUDFImpl for Collecting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.values(&args)? {
            Some(values) => Ok(Box::new(SingleGroup(values))),
            None => self.inner.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.values(&args).is_ok_and(|values| values.is_some())
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match self.values(&args)? {
            Some(values) => Ok(Box::new(values)),
            None => self.inner.create_groups_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match self.inner.name() {
            "percentile_cont" => self.inner.inner().state_fields(args),
            _ => array_agg_udaf().state_fields(args),
        }
    }

    /// Rows are sorted here, without a sort before the aggregation.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Beneficial
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
