//! The studies.

mod trucks;

use crate::study::Study;

/// Every study, in the order in which they are listed.
#[must_use]
pub fn all() -> Vec<Study> {
    Vec::new()
}
