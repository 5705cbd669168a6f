//! The engine's figures as metrics with Prometheus names.

use crate::memory_watch::MemoryWatchFigures;
use marigram_engine::EngineStatus;
use marigram_service::Metric;
use marigram_sql::{PlanCacheStats, RollupStatus, touched_ns};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every metric of an engine, `memory_limit` in bytes.
#[expect(clippy::too_many_lines, reason = "a list of metrics")]
pub(crate) fn engine_metrics(
    status: &EngineStatus,
    memory_limit: usize,
    plans: PlanCacheStats,
) -> Vec<Metric> {
    let counter = |name, help, value: u64| metric(name, help, true, value as f64);
    let gauge = |name, help, value: f64| metric(name, help, false, value);
    let mut metrics = vec![
        gauge("marigram_databases", "Databases.", status.databases as f64),
        gauge(
            "marigram_tables",
            "Tables in all databases.",
            status.tables as f64,
        ),
        gauge(
            "marigram_series",
            "Series in all tables.",
            status.series as f64,
        ),
        gauge(
            "marigram_open_files",
            "Files of segments that are open.",
            status.open_files as f64,
        ),
        gauge(
            "marigram_open_files_max",
            "The most files of segments that are kept open.",
            status.open_files_max as f64,
        ),
        counter(
            "marigram_file_opens",
            "Files of segments opened since start.",
            status.file_opens,
        ),
        counter(
            "marigram_rows_written",
            "Rows stored since start.",
            status.rows_written,
        ),
        counter(
            "marigram_rows_late",
            "Rows stored since start that were late.",
            status.rows_late,
        ),
        counter(
            "marigram_rows_in_order",
            "Rows stored since start that were not late.",
            status.rows_in_order,
        ),
        counter(
            "marigram_rows_rejected",
            "Rows refused since start.",
            status.rows_rejected,
        ),
        counter(
            "marigram_plan_cache_hits",
            "Statements since start whose plan came from the plan cache.",
            plans.hits,
        ),
        counter(
            "marigram_plan_cache_misses",
            "Statements since start that were planned.",
            plans.misses,
        ),
        counter(
            "marigram_plan_cache_operators",
            "Statements since start whose physical plan came from the plan cache, too.",
            plans.template_hits,
        ),
        counter(
            "marigram_short_statements",
            "Statements since start that ran inline, on the calling thread.",
            plans.inline_statements,
        ),
        gauge(
            "marigram_plan_cache_plans",
            "Entries of the plan cache.",
            plans.plans as f64,
        ),
        gauge(
            "marigram_wal_bytes",
            "Bytes in write-ahead logs.",
            status.wal_bytes as f64,
        ),
        counter(
            "marigram_wal_syncs",
            "Syncs of write-ahead logs since start.",
            status.wal_syncs,
        ),
        gauge(
            "marigram_memtable_bytes",
            "Bytes in memtables.",
            status.memtable_bytes as f64,
        ),
        gauge("marigram_segments", "Segments.", status.segments as f64),
        gauge(
            "marigram_segments_damaged",
            "Segments whose files were missing or had another length at start.",
            status.segments_damaged as f64,
        ),
        gauge(
            "marigram_segment_bytes",
            "Bytes in segments.",
            status.segment_bytes as f64,
        ),
        counter(
            "marigram_flushes",
            "Memtables flushed since start.",
            status.flushes,
        ),
        counter(
            "marigram_flushed_bytes",
            "Bytes written by flushes since start: the ingested rows, encoded.",
            status.flushed_bytes,
        ),
        counter(
            "marigram_compactions",
            "Compactions since start.",
            status.compactions,
        ),
        counter(
            "marigram_compacted_bytes",
            "Bytes written by compactions since start, copied ones included.",
            status.compacted_bytes,
        ),
        counter(
            "marigram_compaction_copied_bytes",
            "Bytes of pages that compactions copied undecoded since start.",
            status.compaction_copied_bytes,
        ),
        counter(
            "marigram_compaction_read_bytes",
            "Bytes read by compactions since start.",
            status.compaction_read_bytes,
        ),
        counter(
            "marigram_compaction_moved_bytes",
            "Bytes of late segments that were moved instead of rewritten since start.",
            status.compaction_moved_bytes,
        ),
        gauge(
            "marigram_write_amplification",
            "Bytes written by flushes and compactions for each byte written by flushes.",
            status.write_amplification,
        ),
        gauge(
            "marigram_memory_limit_bytes",
            "The memory ceiling.",
            memory_limit as f64,
        ),
        gauge(
            "marigram_memory_used_peak_bytes",
            "The most memory in use by all holders together since start.",
            status.memory_peak_bytes as f64,
        ),
        gauge(
            "marigram_read_only",
            "1 if writes are refused, otherwise 0.",
            f64::from(u8::from(status.read_only.is_some())),
        ),
        gauge(
            "marigram_recovery_seconds",
            "How long opening took.",
            status.recovery_ms as f64 / 1e3,
        ),
        gauge(
            "marigram_recovery_wal_bytes",
            "Bytes of log replayed when opening.",
            status.recovery_wal_bytes as f64,
        ),
        gauge(
            "marigram_recovery_rows",
            "Rows of the log replayed when opening.",
            status.recovery_rows as f64,
        ),
    ];
    for (holder, usage) in &status.memory {
        let of_holder = |metric: Metric| Metric {
            labels: vec![("holder", (*holder).to_owned())],
            ..metric
        };
        metrics.extend([
            of_holder(gauge(
                "marigram_memory_bytes",
                "Memory in use by holder.",
                usage.bytes as f64,
            )),
            of_holder(gauge(
                "marigram_memory_peak_bytes",
                "The most memory in use by holder since start.",
                usage.peak_bytes as f64,
            )),
            of_holder(counter(
                "marigram_memory_refusals",
                "Times that memory was refused to a holder since start.",
                usage.refusals,
            )),
            of_holder(counter(
                "marigram_memory_waits",
                "Times that a holder waited for memory since start.",
                usage.waits,
            )),
        ]);
    }
    metrics
}

/// Figures of the watch over the process' memory.
pub(crate) fn process_metrics(figures: &MemoryWatchFigures) -> Vec<Metric> {
    let bytes = |of: &AtomicUsize| of.load(Ordering::Relaxed) as f64;
    vec![
        metric(
            "marigram_resident_bytes",
            "Resident memory of the process, including files that it has mapped.",
            false,
            bytes(&figures.resident_bytes),
        ),
        metric(
            "marigram_resident_peak_bytes",
            "The most resident memory of the process since start, measured 50 times per second.",
            false,
            bytes(&figures.resident_peak_bytes),
        ),
        metric(
            "marigram_memory_purges",
            "Times since start that the allocator was made to return freed memory.",
            true,
            figures.purges.load(Ordering::Relaxed) as f64,
        ),
        metric(
            "marigram_statements_stopped_for_memory",
            "Statements that were stopped since start because the process was over its limit.",
            true,
            figures.stopped.load(Ordering::Relaxed) as f64,
        ),
    ]
}

/// How far each materialized view is behind its source, and what its refreshes did.
pub(crate) fn view_metrics(views: &[RollupStatus]) -> Vec<Metric> {
    let seconds = |ns: i64| ns as f64 / 1e9;
    let of_view = |view: &RollupStatus| {
        let labels = vec![
            ("database", view.table.database.clone()),
            ("view", view.table.name.clone()),
        ];
        let all = [
            metric(
                "marigram_view_behind_seconds",
                "Time from the watermark of a materialized view to the newest row of its table.",
                false,
                seconds(view.behind_ns),
            ),
            metric(
                "marigram_view_touched_seconds",
                "Total length of the touched times of a materialized view.",
                false,
                seconds(touched_ns(view)),
            ),
            metric(
                "marigram_view_refresh_steps",
                "Steps of refreshes of a materialized view since start.",
                true,
                view.steps as f64,
            ),
            metric(
                "marigram_view_rows_written",
                "Rows that refreshes of a materialized view wrote since start.",
                true,
                view.rows as f64,
            ),
            metric(
                "marigram_view_refresh_failures",
                "Refreshes of a materialized view that failed since start.",
                true,
                view.failures as f64,
            ),
        ];
        all.map(|metric| Metric {
            labels: labels.clone(),
            ..metric
        })
    };
    views.iter().flat_map(of_view).collect()
}

fn metric(name: &'static str, help: &'static str, counter: bool, value: f64) -> Metric {
    Metric {
        name,
        help,
        counter,
        labels: Vec::new(),
        value,
    }
}
