//! Values that were left out of a part of an insert, and the fault that names them.

use marigram_iotdb::{IotDbFault, IotDbType, StatusCode};

/// Values that a fault names.
const NAMED_MAX: usize = 8;

/// Why values of a part were left out.
#[derive(Default)]
pub(super) struct LeftOut {
    names: Vec<String>,
    reasons: Vec<String>,
}

impl LeftOut {
    /// Notes a value that cannot be stored; the first few are named.
    pub(super) fn note(&mut self, device: &str, measurement: &str, reason: &str) {
        if self.names.len() >= NAMED_MAX || self.names.iter().any(|name| name == measurement) {
            return;
        }
        self.names.push(measurement.to_owned());
        self.reasons
            .push(format!("{device}.{measurement}: {reason}"));
    }

    /// Notes a value of another type than its timeseries.
    pub(super) fn note_type(
        &mut self,
        device: &str,
        measurement: &str,
        registered: IotDbType,
        found: IotDbType,
        time_ms: i64,
    ) {
        if self.names.len() >= NAMED_MAX || self.names.iter().any(|name| name == measurement) {
            return;
        }
        self.names.push(measurement.to_owned());
        self.reasons.push(format!(
            "data type of {device}.{measurement} is not consistent, registered type {registered}, inserting \
             type {found}, timestamp {time_ms}"
        ));
    }

    /// Notes a row whose time cannot be stored.
    pub(super) fn note_time(&mut self, device: &str, time_ms: i64) {
        let reason = format!("the time {time_ms} is out of range");
        self.note(device, "*", &reason);
    }

    /// The fault, in IoTDB's words.
    pub(super) fn fault(self) -> Option<IotDbFault> {
        if self.names.is_empty() {
            return None;
        }
        let (names, reasons) = (self.names.join(", "), self.reasons.join(", "));
        let message = format!("Fail to insert measurements [{names}] caused by [{reasons}]");
        Some(IotDbFault::new(StatusCode::METADATA, message))
    }
}
