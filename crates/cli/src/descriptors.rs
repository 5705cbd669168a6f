//! The limit on open files: raises it as far as the system allows, and divides it.
//!
//! Many systems start a process with a soft limit of 1,024, for programs that cannot handle more
//! descriptors, and let the process raise it to the hard limit.

use crate::settings::Settings;
use marigram::Descriptors;
use marigram_server::ServerConfig;

/// What was found and decided, for the operator.
pub(crate) struct DescriptorReport {
    /// Lines to log at startup.
    pub lines: Vec<String>,
}

/// Raises the soft limit to the hard limit. Fits connections, and the settings that the operator
/// did not give, to the limit.
pub(crate) fn share(settings: &mut Settings, config: &mut ServerConfig) -> DescriptorReport {
    let before = raise();
    let wanted = config.connections_max;
    let descriptors = Descriptors::of_process(settings.shards, wanted);
    let files = *settings.open_files.get_or_insert(descriptors.segments);
    config.connections_max = descriptors.connections_max;
    let limit = descriptors.limit;
    let raised = match before {
        Some(before) if before < limit => format!("{limit} (raised from {before})"),
        _ => limit.to_string(),
    };
    let connections = descriptors.connections_max;
    let mut lines = vec![format!(
        "{raised} may be open: {files} of segments, {connections} connections of each protocol"
    )];
    if connections < wanted {
        lines.push(format!(
            "connections_max = {wanted} does not fit: raise the limit of open files (ulimit -n, \
             LimitNOFILE=)"
        ));
    }
    DescriptorReport { lines }
}

/// Raises the soft limit to the hard limit; returns the previous limit, if known.
#[cfg(unix)]
fn raise() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    // If the system refuses, the old limit stays in force.
    let _ = setrlimit(Resource::Nofile, raised);
    limits.current.and_then(|limit| usize::try_from(limit).ok())
}

#[cfg(not(unix))]
fn raise() -> Option<usize> {
    None
}
