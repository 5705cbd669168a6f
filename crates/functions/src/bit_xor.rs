//! `bit_xor`: DataFusion's, except that `bit_xor(DISTINCT x)` takes each value of a group once.
//!
//! DataFusion's accumulator for many groups at once ignores DISTINCT; that for one group does not.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::bit_and_or_xor::bit_xor_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BitXor {
    other: Arc<AggregateUDF>,
}

/// `bit_xor(value)`
pub(crate) fn bit_xor() -> AggregateUDF {
    AggregateUDF::from(BitXor {
        other: bit_xor_udaf(),
    })
}

impl AggregateUDFImpl for BitXor {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.other.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.other.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct && self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.other.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}
