//! The savepoints of a transaction block.
//!
//! The database takes back what changed in reference tables. Changes of tables of series stay; this module
//! knows of them, so that a client learns of changes that ROLLBACK TO leaves, and of a savepoint that does not
//! exist.

use crate::postgres::error::PgError;

/// The most savepoints of a block.
const SAVEPOINTS_MAX: usize = 1000;

/// The savepoints, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Savepoints(Vec<Savepoint>);

#[derive(Debug)]
struct Savepoint {
    name: String,
    /// Whether the block changed something between the savepoint before and this one.
    has_changed_before: bool,
}

impl Savepoints {
    /// Sets a savepoint; `has_changed` says whether something changed since the last one.
    ///
    /// # Errors
    /// 54000 if there are too many.
    pub(super) fn set(&mut self, name: &str, has_changed: &mut bool) -> Result<(), PgError> {
        if self.0.len() >= SAVEPOINTS_MAX {
            let message = format!("a transaction block has at most {SAVEPOINTS_MAX} savepoints");
            return Err(PgError::new("54000", message));
        }
        self.0.push(Savepoint {
            name: name.to_owned(),
            has_changed_before: std::mem::take(has_changed),
        });
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, PgError> {
        let found = self.0.iter().rposition(|savepoint| savepoint.name == name);
        found.ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            PgError::new("3B001", message)
        })
    }

    /// Forgets a savepoint and those after it.
    ///
    /// # Errors
    /// 3B001 if it does not exist.
    pub(super) fn release(&mut self, name: &str, has_changed: &mut bool) -> Result<(), PgError> {
        let at = self.find(name)?;
        for savepoint in self.0.drain(at..) {
            *has_changed |= savepoint.has_changed_before;
        }
        Ok(())
    }

    /// Forgets the savepoints after one; returns whether something changed since.
    ///
    /// # Errors
    /// 3B001 if it does not exist.
    pub(super) fn roll_back(
        &mut self,
        name: &str,
        has_changed: &mut bool,
    ) -> Result<bool, PgError> {
        let at = self.find(name)?;
        for savepoint in self.0.drain(at + 1..) {
            *has_changed |= savepoint.has_changed_before;
        }
        Ok(*has_changed)
    }

    /// Forgets all savepoints; returns whether something changed before the last one.
    pub(super) fn end(&mut self) -> bool {
        let savepoints = self.0.drain(..);
        savepoints.fold(false, |any, savepoint| any | savepoint.has_changed_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_since_a_savepoint_are_known() {
        let (mut savepoints, mut has_changed) = (Savepoints::default(), true);
        savepoints.set("a", &mut has_changed).unwrap();
        assert!(!savepoints.roll_back("a", &mut has_changed).unwrap());
        has_changed = true;
        savepoints.set("b", &mut has_changed).unwrap();
        assert!(!savepoints.roll_back("b", &mut has_changed).unwrap());
        assert!(savepoints.roll_back("a", &mut has_changed).unwrap());
        let error = savepoints.roll_back("b", &mut has_changed).unwrap_err();
        assert_eq!(error.message, "savepoint \"b\" does not exist");
        savepoints.release("a", &mut has_changed).unwrap();
        assert!(has_changed);
        assert!(savepoints.release("a", &mut has_changed).is_err());
        savepoints.set("c", &mut has_changed).unwrap();
        assert!(savepoints.end() && !savepoints.end());
    }

    #[test]
    fn their_number_is_bounded() {
        let mut savepoints = Savepoints::default();
        for _ in 0..SAVEPOINTS_MAX {
            savepoints.set("s", &mut false).unwrap();
        }
        assert!(savepoints.set("s", &mut false).is_err());
    }
}
