//! Names and what they stand for while a script runs.
//!
//! A scope is a list that only grows at its front, so a function keeps the names that were known
//! where it was written, and no function can know itself.

use super::FluxValue;
use marigram_flux::ast::FluxFunction;
use std::sync::Arc;

/// The names that are known at a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct FluxScope(Option<Arc<FluxBinding>>);

#[derive(Debug)]
struct FluxBinding {
    name: Arc<str>,
    value: FluxValue,
    before: FluxScope,
}

impl FluxScope {
    /// The scope with one more name.
    #[must_use]
    pub(crate) fn with(&self, name: &str, value: FluxValue) -> Self {
        Self(Some(Arc::new(FluxBinding {
            name: name.into(),
            value,
            before: self.clone(),
        })))
    }

    /// What a name stands for.
    pub(crate) fn get(&self, name: &str) -> Option<&FluxValue> {
        let mut scope = self;
        while let Some(binding) = &scope.0 {
            if *binding.name == *name {
                return Some(&binding.value);
            }
            scope = &binding.before;
        }
        None
    }
}

/// A function of a script, with the names that it knows.
#[derive(Debug)]
pub(crate) struct FluxClosure {
    /// The function.
    pub function: Arc<FluxFunction>,
    /// The names.
    pub scope: FluxScope,
}
