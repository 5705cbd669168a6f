//! What a statement's times depend on.

use super::zone_text::zone_offset;
use crate::status::{IotDbFault, StatusCode};
use jiff::tz::TimeZone;

/// What a statement's times depend on.
#[derive(Clone, Debug)]
pub struct TreeSqlContext {
    /// The time of `now()`.
    pub now_ms: i64,
    /// The zone of times that name none.
    pub zone: TimeZone,
}

impl TreeSqlContext {
    /// The context of a session in this time zone: a name such as `Asia/Shanghai`, or an offset such as
    /// `+08:00`.
    ///
    /// # Errors
    /// If there is no such zone.
    pub fn for_zone(now_ms: i64, zone: &str) -> Result<Self, IotDbFault> {
        let named = match zone_offset(zone) {
            Some((offset, "")) => Some(offset),
            _ => TimeZone::get(zone).ok(),
        };
        let zone = named.ok_or_else(|| {
            IotDbFault::new(
                StatusCode::SET_TIME_ZONE,
                format!("there is no time zone {zone}"),
            )
        })?;
        Ok(Self { now_ms, zone })
    }

    /// The context of a session in UTC.
    pub fn for_utc(now_ms: i64) -> Self {
        Self {
            now_ms,
            zone: TimeZone::UTC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_names_or_offsets() {
        for zone in ["UTC", "Etc/UTC", "Asia/Shanghai", "+08:00", "Z", "-01:30"] {
            assert!(TreeSqlContext::for_zone(0, zone).is_ok(), "{zone}");
        }
        for zone in ["", "Nowhere", "+08:00x", "+99:00"] {
            let fault = TreeSqlContext::for_zone(0, zone).expect_err(zone);
            assert_eq!(fault.code, StatusCode::SET_TIME_ZONE);
        }
    }
}
