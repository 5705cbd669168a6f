//! The servers' own metrics, and the text format of Prometheus.
//!
//! Routes are a fixed set of labels, so that no client can increase the number of time series.

use crate::failures::FailureLog;
use marigram_service::Metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// A request, and its outcome.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestOutcome {
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestRoute {
    route: &'static str,
}

/// The servers' own metrics.
#[derive(Debug)]
pub(crate) struct Telemetry {
    registry: Registry,
    requests: Family<RequestOutcome, Counter>,
    seconds: Family<RequestRoute, Histogram>,
    /// Rows stored, by route.
    rows_stored: Family<RequestRoute, Counter>,
    /// PostgreSQL connections open now.
    pub postgres_connections: Gauge,
    /// Logs requests that failed.
    pub failures: FailureLog,
}

impl Default for Telemetry {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("marigram");
        let requests = Family::<RequestOutcome, Counter>::default();
        let seconds = Family::<RequestRoute, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.0005, 2.5, 12))
        });
        let rows_stored = Family::<RequestRoute, Counter>::default();
        let postgres_connections = Gauge::default();
        registry.register(
            "server_requests",
            "Requests answered, by route and status",
            requests.clone(),
        );
        registry.register(
            "server_request_duration_seconds",
            "Time from a request's head to the head of its answer, by route",
            seconds.clone(),
        );
        registry.register(
            "server_rows_stored",
            "Rows stored, by route",
            rows_stored.clone(),
        );
        registry.register(
            "server_postgres_connections",
            "PostgreSQL connections open now",
            postgres_connections.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
            rows_stored,
            postgres_connections,
            failures: FailureLog::default(),
        }
    }
}

impl Telemetry {
    /// Counts a request that began at `begin` and ended with `status` (an HTTP status; the
    /// PostgreSQL server also uses 200, 400 and 500).
    pub(crate) fn request(&self, route: &'static str, status: u16, begin: Instant) {
        self.requests
            .get_or_create(&RequestOutcome { route, status })
            .inc();
        self.seconds
            .get_or_create(&RequestRoute { route })
            .observe(begin.elapsed().as_secs_f64());
    }

    /// Counts stored rows.
    pub(crate) fn rows(&self, route: &'static str, rows: u64) {
        self.rows_stored
            .get_or_create(&RequestRoute { route })
            .inc_by(rows);
    }

    /// All metrics, in Prometheus' text format: those of the database and of the servers.
    pub(crate) fn text(&self, metrics: Vec<Metric>) -> String {
        let mut database = Registry::default();
        database.register_collector(Box::new(DatabaseMetrics(metrics)));
        let mut text = String::new();
        encode_registry(&mut text, &database).expect("writing to a String cannot fail");
        encode(&mut text, &self.registry).expect("writing to a String cannot fail");
        text
    }
}

/// The metrics of the database at one moment.
#[derive(Debug)]
struct DatabaseMetrics(Vec<Metric>);

impl Collector for DatabaseMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut by_name: BTreeMap<&str, Vec<&Metric>> = BTreeMap::new();
        for metric in &self.0 {
            by_name
                .entry(metric.name.trim_end_matches("_total"))
                .or_default()
                .push(metric);
        }
        for (name, metrics) in by_name {
            let kind = if metrics[0].counter {
                MetricType::Counter
            } else {
                MetricType::Gauge
            };
            let help = metrics[0].help.replace('\n', " ");
            let mut values = encoder.encode_descriptor(name, &help, None, kind)?;
            for metric in metrics {
                if metric.labels.is_empty() {
                    encode_value(&mut values, metric)?;
                } else {
                    encode_value(&mut values.encode_family(&metric.labels)?, metric)?;
                }
            }
        }
        Ok(())
    }
}

/// Writes a value; a whole number has no decimal point.
fn encode_value(encoder: &mut MetricEncoder<'_>, metric: &Metric) -> fmt::Result {
    /// Larger floats are not exact.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    let value = metric.value;
    let is_whole = value.fract() == 0.0 && value.abs() <= WHOLE_MAX;
    match (metric.counter, is_whole) {
        (true, true) if value >= 0.0 => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&(value as u64), None)
        }
        (true, _) => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (false, true) => encoder.encode_gauge(&(value as i64)),
        (false, false) => encoder.encode_gauge(&value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_name_stand_together_and_labels_are_escaped() {
        let metric = |name, counter, label: Option<&str>, value| Metric {
            name,
            help: "help",
            counter,
            labels: label
                .map(|text| ("table", text.to_owned()))
                .into_iter()
                .collect(),
            value,
        };
        let metrics = [
            metric("rows", true, Some("a\"b"), 1.0),
            metric("memory_bytes", false, None, 2.5),
            metric("rows", true, Some("c"), 3.0),
            metric("seconds_total", true, None, 0.25),
            metric("time", false, Some("a\\b\n"), -9_007_199_254_740_993.0),
        ];
        let text = Telemetry::default().text(metrics.to_vec());
        let of_database = text.split("# HELP marigram_server").next().unwrap();
        assert_eq!(
            of_database,
            "# HELP memory_bytes help\n# TYPE memory_bytes gauge\nmemory_bytes 2.5\n\
             # HELP rows help\n# TYPE rows counter\nrows_total{table=\"a\\\"b\"} 1\n\
             rows_total{table=\"c\"} 3\n\
             # HELP seconds help\n# TYPE seconds counter\nseconds_total 0.25\n\
             # HELP time help\n# TYPE time gauge\n\
             time{table=\"a\\\\b\\n\"} -9007199254740992\n"
        );
    }

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let telemetry = Telemetry::default();
        telemetry.request("/write", 204, Instant::now());
        telemetry.rows("/write", 5);
        let text = telemetry.text(Vec::new());
        assert!(
            text.contains("marigram_server_requests_total{route=\"/write\",status=\"204\"} 1"),
            "{text}"
        );
        assert!(
            text.contains("marigram_server_rows_stored_total{route=\"/write\"} 5"),
            "{text}"
        );
    }
}
