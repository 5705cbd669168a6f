//! Times with a zone: `AT TIME ZONE`, and the effects of the session's zone.
//!
//! A `timestamptz` is `Timestamp(Nanosecond, "UTC")` in every plan, whatever the session's zone is:
//! the zone changes the behavior of functions and casts, never a type. The plans of a session in
//! UTC are the same as without zones
//! ([decision](../../../docs/decisions/0023-times-with-a-zone.md)).

mod integers;
mod origin;
mod planner;
mod rule;
mod session;

pub(crate) use integers::times_of_integers;
pub(crate) use planner::DateComparison;
pub(crate) use rule::ZonedTimes;
pub(crate) use session::{SessionZone, plan_scope};
