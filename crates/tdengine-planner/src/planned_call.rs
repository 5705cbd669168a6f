//! A call of a function of many rows, as a stage computes it.

use crate::expression::Typed;
use crate::taos_value::Val;
use marigram_tdengine::TaosType;

/// A call of a function of many rows.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCall {
    /// The function.
    pub(crate) name: String,
    /// The arguments that are computed for each row.
    pub(crate) arguments: Vec<Typed>,
    /// The arguments that are constants.
    pub(crate) constants: Vec<Val>,
    /// The type of the result.
    pub(crate) kind: TaosType,
}
