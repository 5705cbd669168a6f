//! Latencies of requests, in a histogram of bounded size.

use crate::record::Latency;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Significant decimal digits that are kept.
const DIGITS: u8 = 3;

/// The longest latency that is distinguished from longer ones: a day.
const LATENCY_MAX: Duration = Duration::from_hours(24);

const NS_PER_MS: f64 = 1e6;

/// Latencies of the requests of one client, nanoseconds to three digits.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new(DIGITS).expect("three digits are allowed");
        Self { histogram }
    }
}

impl Latencies {
    /// Counts a request.
    #[expect(
        clippy::missing_panics_doc,
        reason = "a histogram that resizes takes every value of up to a day"
    )]
    pub fn record(&mut self, latency: Duration) {
        let ns = latency.min(LATENCY_MAX).as_nanos() as u64;
        self.histogram
            .record(ns.max(1))
            .expect("a histogram that resizes takes every value");
    }

    /// The summary over all `clients`.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "a histogram that resizes takes every other"
    )]
    pub fn summary(clients: &[Self]) -> Latency {
        let mut all = Self::default().histogram;
        for client in clients {
            all.add(&client.histogram)
                .expect("a histogram that resizes takes every other");
        }
        if all.is_empty() {
            return Latency::default();
        }
        let at = |quantile| all.value_at_quantile(quantile) as f64 / NS_PER_MS;
        let means = clients.iter().map(|client| client.histogram.mean());
        Latency {
            count: all.len(),
            mean: all.mean() / NS_PER_MS,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: all.max() as f64 / NS_PER_MS,
            slowest_client: means.fold(0.0, f64::max) / NS_PER_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_covers_all_clients_to_three_digits() {
        let mut clients = [Latencies::default(), Latencies::default()];
        for ms in 1..=1_000 {
            clients[usize::from(ms > 500)].record(Duration::from_millis(ms));
        }
        let summary = Latencies::summary(&clients);
        let near = |got: f64, wanted: f64| (got - wanted).abs() <= wanted / 500.0;
        assert_eq!(summary.count, 1_000);
        assert!(near(summary.mean, 500.5), "{summary:?}");
        assert!(near(summary.p50, 500.0), "{summary:?}");
        assert!(near(summary.p99, 990.0), "{summary:?}");
        assert!(near(summary.p999, 999.0), "{summary:?}");
        assert!(near(summary.max, 1_000.0), "{summary:?}");
        assert!(near(summary.slowest_client, 750.5), "{summary:?}");
    }

    #[test]
    fn no_requests_have_a_summary_of_zeros() {
        assert_eq!(Latencies::summary(&[]), Latency::default());
        assert_eq!(
            Latencies::summary(&[Latencies::default()]),
            Latency::default()
        );
    }

    #[test]
    fn hours_are_no_error() {
        let mut client = Latencies::default();
        client.record(Duration::from_hours(5));
        client.record(Duration::ZERO);
        let summary = Latencies::summary(&[client]);
        assert!(summary.max > 1.79e7, "{summary:?}");
    }
}
