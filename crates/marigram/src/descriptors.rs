//! Divides the file descriptors of a process among segments, connections and the rest.
//!
//! A process has a limited number of them (`ulimit -n`). Segments are many and can be opened again,
//! so they get what is left. Connections may take half. Enough are set aside for the log, the
//! manifest and a flush.

/// Set aside for the process itself: standard streams, sockets that listen, threads' epolls.
const PROCESS: usize = 48;
/// Set aside for each shard: its log, manifest and series log, and the files that a flush and a
/// compaction write and that a backup reads.
const SHARD: usize = 8;
/// Of what is left after connections, segments get this many of [`PARTS`] parts; the rest is for
/// reads in progress, files that queries spill, and `COPY`.
const SEGMENT_PARTS: usize = 3;
const PARTS: usize = 4;
/// Fewest and most segment files to keep open.
const SEGMENTS_MIN: usize = 8;
const SEGMENTS_MAX: usize = 65_536;
/// Fewest connections of each protocol.
const CONNECTIONS_MIN: usize = 4;
/// Assumed if the system does not report a limit.
const LIMIT_UNKNOWN: usize = 1024;

/// The descriptors of a process, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Descriptors that the process may have open.
    pub limit: usize,
    /// Segment files that are kept open.
    pub segments: usize,
    /// Connections of each of two protocols.
    pub connections_max: usize,
}

impl Descriptors {
    /// Divides `limit` descriptors for a database with `shards` and, if it is served, up to
    /// `connections` of each protocol.
    #[must_use]
    pub fn share(limit: usize, shards: usize, connections: usize) -> Self {
        let left = limit.saturating_sub(PROCESS + SHARD * shards);
        let fair = (left / 4).max(CONNECTIONS_MIN);
        let connections_max = connections.min(fair);
        let rest = left.saturating_sub(2 * connections_max);
        Self {
            limit,
            segments: (rest / PARTS * SEGMENT_PARTS).clamp(SEGMENTS_MIN, SEGMENTS_MAX),
            connections_max,
        }
    }

    /// Divides the descriptors that this process may currently have open.
    #[must_use]
    pub fn of_process(shards: Option<usize>, connections: usize) -> Self {
        let shards = shards.unwrap_or_else(crate::machine::cores);
        let limit = crate::machine::open_files_limit().unwrap_or(LIMIT_UNKNOWN);
        Self::share(limit, shards, connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_get_what_connections_and_logs_leave() {
        let ample = Descriptors::share(20_000, 2, 1000);
        assert_eq!(ample.connections_max, 1000);
        assert!(ample.segments > 13_000, "{ample:?}");
        for limit in [0, 64, 128, 256, 1024, 4096] {
            for shards in [1, 4, 16] {
                let shared = Descriptors::share(limit, shards, 1000);
                assert!(shared.connections_max >= CONNECTIONS_MIN);
                assert!(shared.segments >= SEGMENTS_MIN);
                let used = shared.segments + 2 * shared.connections_max + SHARD * shards + PROCESS;
                assert!(
                    used <= limit || limit <= 256,
                    "{shared:?} of {shards} shards"
                );
            }
        }
        assert_eq!(Descriptors::share(1024, 2, 0).connections_max, 0);
    }
}
