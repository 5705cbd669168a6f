//! Notices for the client, sent with a statement's result as PostgreSQL does.
//!
//! Operators add theirs to the session's configuration, from which the code that executes the
//! statement takes them.

use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;
use std::sync::Arc;

/// The notices of one statement.
#[derive(Debug, Default)]
pub(crate) struct StatementNotices(Mutex<Vec<String>>);

/// The largest number of notices of one statement.
const NOTICES_MAX: usize = 100;

impl StatementNotices {
    /// The notices of the statement for which `state` was created.
    pub(crate) fn for_statement(state: &mut SessionState) -> Arc<Self> {
        let notices = Arc::new(Self::default());
        state.config_mut().set_extension(Arc::clone(&notices));
        notices
    }

    /// Adds a notice, if the statement collects notices.
    pub(crate) fn tell(config: &SessionConfig, notice: String) {
        if let Some(notices) = config.get_extension::<Self>() {
            let mut told = notices.0.lock();
            if told.len() < NOTICES_MAX {
                told.push(notice);
            }
        }
    }

    /// Removes and returns all notices.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}
