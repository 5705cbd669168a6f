//! Holds back changes of tables whose rows are being rewritten; reads and other tables go on.
//!
//! Every change of a table passes the gate and keeps its pass until it is visible. Whoever holds a
//! table first waits until all passes are returned, so that from then on nothing that was resolved
//! before can be committed to the table.

use crate::error::{EngineError, Result};
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};
use std::time::Duration;

/// How long a change waits for a held table.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// When a refused writer may retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Database and name of a table.
type TableName = (String, String);

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct TableGate {
    held: RwLock<Vec<TableName>>,
    waiting: Mutex<()>,
    released: Condvar,
}

/// Returned when a change is visible.
pub(crate) type TablePass<'a> = RwLockReadGuard<'a, Vec<TableName>>;

/// A table that nothing changes but the holder, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldTable<'a> {
    gate: &'a TableGate,
    name: TableName,
}

impl TableGate {
    /// A pass for a change of a table.
    ///
    /// # Errors
    /// `Busy` if the table stays held for too long.
    pub(crate) fn pass(&self, database: &str, table: &str) -> Result<TablePass<'_>> {
        self.pass_unless(|held| held.0 == database && held.1 == table)
    }

    /// A pass for a change of all tables of a database.
    ///
    /// # Errors
    /// As [`pass`](Self::pass).
    pub(crate) fn pass_database(&self, database: &str) -> Result<TablePass<'_>> {
        self.pass_unless(|held| held.0 == database)
    }

    /// Holds a table. Waits for the changes that passed before.
    ///
    /// # Errors
    /// As [`pass`](Self::pass), if somebody else holds it.
    pub(crate) fn hold(&self, database: &str, table: &str) -> Result<HeldTable<'_>> {
        loop {
            drop(self.pass(database, table)?);
            let name = (database.to_owned(), table.to_owned());
            let mut held = self.held.write();
            if !held.contains(&name) {
                held.push(name.clone());
                return Ok(HeldTable { gate: self, name });
            }
        }
    }

    fn pass_unless(&self, is_meant: impl Fn(&TableName) -> bool) -> Result<TablePass<'_>> {
        let mut has_waited = false;
        loop {
            let held = self.held.read();
            let Some((_, table)) = held.iter().find(|name| is_meant(name)) else {
                return Ok(held);
            };
            if has_waited {
                let reason = format!("a column of table '{table}' is getting another type");
                let retry_after = RETRY_AFTER;
                return Err(EngineError::Busy {
                    reason,
                    retry_after,
                });
            }
            drop(held);
            let mut waiting = self.waiting.lock();
            has_waited = self.released.wait_for(&mut waiting, WAIT_MAX).timed_out();
        }
    }
}

impl Drop for HeldTable<'_> {
    fn drop(&mut self) {
        self.gate.held.write().retain(|name| *name != self.name);
        drop(self.gate.waiting.lock());
        self.gate.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::TableGate;
    use crate::error::EngineError;

    #[test]
    fn a_held_table_holds_back_its_own_changes() {
        let gate = TableGate::default();
        let held = gate.hold("d", "t").unwrap();
        assert!(gate.pass("d", "u").is_ok());
        assert!(gate.pass("e", "t").is_ok());
        assert!(gate.pass_database("e").is_ok());
        assert!(matches!(gate.pass("d", "t"), Err(EngineError::Busy { .. })));
        drop(held);
        assert!(gate.pass("d", "t").is_ok());
        drop(gate.hold("d", "t").unwrap());
    }

    #[test]
    fn a_change_waits_until_the_table_is_released() {
        let gate = TableGate::default();
        let held = gate.hold("d", "t").unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.pass("d", "t").map(drop));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
    }
}
