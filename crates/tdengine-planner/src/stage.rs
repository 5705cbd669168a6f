//! Stages over rows that are ordered by partition and time: windows with their aggregates, functions of
//! the rows before, and interpolation.
//!
//! A stage is a table of DataFusion whose rows are computed while they are read, so that whatever stands
//! above it is a plan like any other.

mod accumulator;
mod driver;
mod row_set;
mod sequence;
mod streamed;
mod windows;

pub(crate) use driver::interpolation::InterpolationSpec;
pub(crate) use driver::interpolation::fill::{TaosFillSpec, TaosFillWith, filled};
pub(crate) use driver::{StageMode, StageSpec, staged};
pub(crate) use row_set::histogram_bins;
pub(crate) use windows::IntervalSpec;
