//! The studies.
//!
//! To add one: a file here with `pub fn study() -> Study`, and a line in [`all`]. A plan is data:
//! it opens nothing and builds no source, so tests can check it at every scale. Figures that others
//! published are in `lab/published/*.toml`, each with its source.

mod cardinality;
mod ceiling;
mod dashboards;
mod fleet;
mod identity;
mod idle;
mod iot;
mod late;
mod mixed;
mod parts;
mod published;
mod set_s;
#[cfg(test)]
mod tests;
mod trucks;

use crate::study::Study;

/// Every study, in the order in which they are listed.
#[must_use]
pub fn all() -> Vec<Study> {
    let mut studies = vec![set_s::study(), set_s::growth()];
    studies.extend(iot::studies());
    studies.extend(fleet::studies());
    studies.extend([trucks::load(), trucks::query()]);
    studies.push(cardinality::study());
    studies.extend([mixed::study(), dashboards::study(), dashboards::cold()]);
    studies.push(identity::study());
    studies.extend([late::study(), late::asked(), late::amplification()]);
    studies.extend([idle::study(), ceiling::study()]);
    studies
}
