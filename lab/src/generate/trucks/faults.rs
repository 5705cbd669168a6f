//! Missing rows, values and tags, at the rates of TSBS's `batch_config.go`.
//!
//! TSBS takes rows in batches of ten. It draws random numbers for a batch and for the first ten
//! rows that may fill it; rows that replace missing or late rows have none. Here, each row has its
//! own random numbers, with the same rates.

use super::random::{Random, RandomPurpose};
use super::truck::{DIAGNOSTICS_FIELDS, FIXED_FIELDS, READINGS_FIELDS};
use super::{DIAGNOSTICS, TAGS};

/// Rows of a batch in TSBS.
pub(super) const BATCH: usize = 10;

/// Probability that a batch is lost.
const BATCH_MISSING: f64 = 0.01;
/// Probability that a batch that is not lost is late.
pub(super) const BATCH_LATE: f64 = 0.05;
/// Probability that one of the first ten rows is missing.
const MISSING: f64 = 0.1;
/// Probability that one of the first ten rows, if not missing, is late.
const LATE: f64 = 0.3;
/// Probability that the next batch, or row, is one that was delayed before.
pub(super) const CATCH_UP: f64 = 0.5;
/// Probability that a row of a batch lacks a field, if a row could be missing in its place.
const NULL_FIELD: f64 = 0.1;
/// The same for a tag.
const NULL_TAG: f64 = 0.01;

/// Fraction of all rows that TSBS loses one by one. To send ten rows it takes eleven new ones: one
/// of the first ten is missing, and as many late rows arrive as are delayed.
pub(super) const ROW_MISSING: f64 = {
    let missing = BATCH as f64 * MISSING;
    missing / (BATCH as f64 + missing)
};

/// Fraction of all rows that TSBS loses by batches. Of 100 decisions, one loses ten rows; of the
/// others, each late batch needs one more decision to send it.
pub(super) const GROUP_MISSING: f64 = {
    let lost = BATCH_MISSING * BATCH as f64;
    let filled = (1.0 - BATCH_MISSING) / (1.0 + BATCH_LATE);
    lost / (lost + filled * BATCH as f64 * (1.0 + MISSING))
};

/// Probability that one of the first ten rows is late: TSBS's probability, if the row is neither
/// missing now nor missing when it is sent later, for which TSBS draws again.
pub(super) const ROW_LATE: f64 = (1.0 - MISSING) * LATE * (1.0 - MISSING);

/// Fraction of the sent rows that lack a field.
pub(super) const ROW_NULL_FIELD: f64 = (1.0 - MISSING) * NULL_FIELD;

/// Fraction of the sent rows that lack one of TSBS's eight tags. Three of them are fields here, and
/// one is the name, which is never lost.
pub(super) const ROW_NULL_TAG: f64 = (1.0 - MISSING) * NULL_TAG;

/// Which of TSBS's eight tags is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostTag {
    /// One of [`TAGS`], never the first.
    Tag(usize),
    /// One of [`FIXED_FIELDS`].
    Field(usize),
}

/// What a row lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    /// A tag of TSBS's.
    pub(super) lost: Option<LostTag>,
    /// A field, counted from the end of the fixed ones.
    pub(super) null: Option<usize>,
}

/// Decides what goes missing.
pub(super) struct Faults {
    seed: u64,
}

impl Faults {
    /// Decisions for this seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// What the row of `truck` at `step` lacks; `None` if there is no such row.
    pub(super) fn at_step(&self, table: usize, step: usize, truck: usize) -> Option<Fault> {
        let key = (step * 2 + table) as u64;
        let group = (truck / BATCH) as u64;
        if Random::new(self.seed, RandomPurpose::Group, key, group).chance(GROUP_MISSING) {
            return None;
        }
        let mut random = Random::new(self.seed, RandomPurpose::Row, key, truck as u64);
        if random.chance(ROW_MISSING) {
            return None;
        }
        let lost = random
            .chance(ROW_NULL_TAG)
            .then(|| random.below(TAGS.len() + FIXED_FIELDS.len()));
        let null = random.chance(ROW_NULL_FIELD).then(|| {
            // TSBS draws for the longest table, and wraps around for the other.
            let drawn = random.below(READINGS_FIELDS.len());
            if table == DIAGNOSTICS {
                drawn % DIAGNOSTICS_FIELDS.len()
            } else {
                drawn
            }
        });
        Some(Fault {
            lost: lost.and_then(|tag| match tag {
                0 => None,
                tag if tag < TAGS.len() => Some(LostTag::Tag(tag)),
                field => Some(LostTag::Field(field - TAGS.len())),
            }),
            null,
        })
    }
}
