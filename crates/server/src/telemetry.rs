//! The servers' own metrics, and the text format of Prometheus.
//!
//! Routes are a fixed set of labels, so that no client can increase the number of time series.

use crate::failures::FailureLog;
use marigram_service::Metric;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt::Write;
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
pub struct Telemetry {
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
    pub fn request(&self, route: &'static str, status: u16, begin: Instant) {
        self.requests
            .get_or_create(&RequestOutcome { route, status })
            .inc();
        self.seconds
            .get_or_create(&RequestRoute { route })
            .observe(begin.elapsed().as_secs_f64());
    }

    /// Counts stored rows.
    pub fn rows(&self, route: &'static str, rows: u64) {
        self.rows_stored
            .get_or_create(&RequestRoute { route })
            .inc_by(rows);
    }

    /// All metrics, in Prometheus' text format: those of the database and of the servers.
    pub fn text(&self, metrics: &[Metric]) -> String {
        let mut text = String::new();
        write_metrics(&mut text, metrics).expect("writing to a String cannot fail");
        encode(&mut text, &self.registry).expect("writing to a String cannot fail");
        text
    }
}

/// Writes metrics in the `OpenMetrics` text format, all values of a name together, without the end
/// mark.
fn write_metrics(text: &mut String, metrics: &[Metric]) -> std::fmt::Result {
    let mut by_name: BTreeMap<&str, Vec<&Metric>> = BTreeMap::new();
    for metric in metrics {
        by_name
            .entry(metric.name.trim_end_matches("_total"))
            .or_default()
            .push(metric);
    }
    for (name, metrics) in by_name {
        let counter = metrics[0].counter;
        let (kind, suffix) = if counter {
            ("counter", "_total")
        } else {
            ("gauge", "")
        };
        writeln!(text, "# HELP {name} {}", metrics[0].help.replace('\n', " "))?;
        writeln!(text, "# TYPE {name} {kind}")?;
        for metric in metrics {
            write!(text, "{name}{suffix}")?;
            for (at, (label, value)) in metric.labels.iter().enumerate() {
                let open = if at == 0 { '{' } else { ',' };
                write!(text, "{open}{label}=\"")?;
                for character in value.chars() {
                    match character {
                        '\\' => text.push_str("\\\\"),
                        '"' => text.push_str("\\\""),
                        '\n' => text.push_str("\\n"),
                        other => text.push(other),
                    }
                }
                text.push('"');
            }
            let close = if metric.labels.is_empty() { "" } else { "}" };
            writeln!(text, "{close} {}", metric.value)?;
        }
    }
    Ok(())
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
        ];
        let mut text = String::new();
        write_metrics(&mut text, &metrics).unwrap();
        assert_eq!(
            text,
            "# HELP memory_bytes help\n# TYPE memory_bytes gauge\nmemory_bytes 2.5\n\
             # HELP rows help\n# TYPE rows counter\nrows_total{table=\"a\\\"b\"} 1\n\
             rows_total{table=\"c\"} 3\n"
        );
    }

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let telemetry = Telemetry::default();
        telemetry.request("/write", 204, Instant::now());
        telemetry.rows("/write", 5);
        let text = telemetry.text(&[]);
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
