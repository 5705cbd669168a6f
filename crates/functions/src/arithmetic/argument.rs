//! Arguments of functions as operands of the loops.

use super::kernel::KernelOperand;
use arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

/// An argument as an array.
pub(super) struct OperatorArgument {
    /// The column; it has one row if it is a single value.
    pub array: ArrayRef,
    /// Whether it is a single value.
    pub is_scalar: bool,
}

impl OperatorArgument {
    /// Makes an array of an argument.
    pub(super) fn new(arg: ColumnarValue) -> Result<Self> {
        Ok(match arg {
            ColumnarValue::Array(array) => Self {
                array,
                is_scalar: false,
            },
            ColumnarValue::Scalar(scalar) => Self {
                array: scalar.to_array()?,
                is_scalar: true,
            },
        })
    }

    /// The argument as an operand of a loop.
    pub(super) fn operand(&self) -> KernelOperand<'_> {
        KernelOperand {
            array: &self.array,
            is_scalar: self.is_scalar,
        }
    }
}
