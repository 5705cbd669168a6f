//! How the descriptors of a process are shared out among segments, connections and the rest.
//!
//! A process has a limited number of them (`ulimit -n`). Segments are many and can be opened again, so
//! they get what is left; connections may have half; and so much is set aside that the log, the
//! manifest and a flush always find theirs.

/// Set aside for the process itself: standard streams, sockets that listen, threads' epolls.
const PROCESS: usize = 48;
/// Set aside for each shard: its log, manifest and series log, what a flush and a compaction write, and
/// what a backup reads of it.
const SHARD: usize = 8;
/// Of what is left after connections, segments get so many parts of [`PARTS`]; the rest is for reads
/// under way, files that queries spill, and `COPY`.
const SEGMENT_PARTS: usize = 3;
const PARTS: usize = 4;
/// Files of segments that are kept open at least and at most.
const SEGMENTS_MIN: usize = 8;
const SEGMENTS_MAX: usize = 65_536;
/// Connections of each protocol that are taken at least.
const CONNECTIONS_MIN: usize = 4;
/// Where the system does not say how many there are.
const LIMIT_UNKNOWN: usize = 1024;

/// Descriptors of a process, shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// What the process may have open.
    pub limit: usize,
    /// Files of segments that are kept open.
    pub segments: usize,
    /// Connections of each of two protocols.
    pub connections_max: usize,
}

impl Descriptors {
    /// Shares out `limit` descriptors for a database of `shards` and, where it is served,
    /// `connections` of each protocol, if there are enough for so many.
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

    /// What this process may have open now, shared out.
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
