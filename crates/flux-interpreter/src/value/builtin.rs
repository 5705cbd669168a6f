//! Functions of this crate as values.

use super::{FluxArguments, FluxCaller, FluxValue};
use marigram_sql::SqlResult;

/// A function of this crate.
#[derive(Debug)]
pub(crate) struct FluxBuiltin {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub call: fn(&mut dyn FluxCaller, &mut FluxArguments) -> SqlResult<FluxValue>,
}
