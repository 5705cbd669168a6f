//! What a client is told beside a statement's answer, as PostgreSQL tells it in notices.
//!
//! Operators leave theirs in the session's configuration, where whoever carries the statement out
//! takes them.

use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;
use std::sync::Arc;

/// Notices of one statement.
#[derive(Debug, Default)]
pub struct StatementNotices(Mutex<Vec<String>>);

/// Most notices of one statement.
const NOTICES_MAX: usize = 100;

impl StatementNotices {
    /// Notices for the statement that `state` is for.
    pub fn for_statement(state: &mut SessionState) -> Arc<Self> {
        let notices = Arc::new(Self::default());
        state.config_mut().set_extension(Arc::clone(&notices));
        notices
    }

    /// Tells one, where the statement has a place for it.
    pub fn tell(config: &SessionConfig, notice: String) {
        if let Some(notices) = config.get_extension::<Self>() {
            let mut told = notices.0.lock();
            if told.len() < NOTICES_MAX {
                told.push(notice);
            }
        }
    }

    /// What was told.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}
