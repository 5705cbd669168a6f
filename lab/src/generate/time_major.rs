//! The order in which thermometers report: all devices of a client at one step of time, then all
//! devices at the next.

/// Batches of (devices, steps); a row has one of each.
#[derive(Debug)]
pub(super) struct TimeMajor {
    client: u32,
    clients: u32,
    devices: u32,
    rows: u64,
    batch_rows: usize,
    device: u32,
    step: u64,
}

impl TimeMajor {
    /// The rows of client `client` of `clients`, which share `devices` devices with `rows` rows
    /// each; the client has device d when d mod `clients` is `client`.
    pub(super) fn new(
        devices: usize,
        rows: usize,
        client: usize,
        clients: usize,
        batch_rows: usize,
    ) -> Self {
        Self {
            client: client as u32,
            clients: clients.max(1) as u32,
            devices: devices as u32,
            rows: rows as u64,
            batch_rows: batch_rows.max(1),
            device: client as u32,
            step: 0,
        }
    }
}

impl Iterator for TimeMajor {
    type Item = (Vec<u32>, Vec<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.client >= self.devices || self.step >= self.rows {
            return None;
        }
        let mut devices = Vec::with_capacity(self.batch_rows);
        let mut steps = Vec::with_capacity(self.batch_rows);
        while devices.len() < self.batch_rows && self.step < self.rows {
            devices.push(self.device);
            steps.push(self.step);
            self.device += self.clients;
            if self.device >= self.devices {
                self.device = self.client;
                self.step += 1;
            }
        }
        Some((devices, steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_devices_of_a_client_report_before_the_next_step() {
        let batches: Vec<_> = TimeMajor::new(5, 3, 1, 2, 4).collect();
        assert_eq!(
            batches,
            [
                (vec![1, 3, 1, 3], vec![0, 0, 1, 1]),
                (vec![1, 3], vec![2, 2])
            ]
        );
    }

    #[test]
    fn a_client_without_devices_sends_nothing() {
        assert_eq!(TimeMajor::new(2, 3, 2, 3, 4).count(), 0);
        assert_eq!(TimeMajor::new(2, 0, 0, 1, 4).count(), 0);
    }
}
