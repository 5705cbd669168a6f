//! Times in conditions.
