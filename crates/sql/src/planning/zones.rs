//! Times with a zone: `AT TIME ZONE`, and what the session's zone decides.
//!
//! A `timestamptz` is `Timestamp(Nanosecond, "UTC")` in every plan, whatever the session's zone is:
//! the zone changes what functions and casts do, never a type. A session in UTC has the plans that it
//! had without zones ([decision](../../../docs/decisions/0023-times-with-a-zone.md)).

mod integers;
mod origin;
mod planner;
mod rule;
mod session;

pub use integers::times_of_integers;
pub use planner::DateComparison;
pub use rule::ZonedTimes;
pub use session::{SessionZone, plan_scope};
