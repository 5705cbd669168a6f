//! Changes of the database: which of them are acknowledged, refused or in doubt.

use super::machine::{CheckedState, DATABASE, SimMachine};
use super::trouble::CrashTrouble;
use super::workload::{keys_batch, to_batch};
use crate::oracle::{OracleChange, WrittenRow};
use marigram_engine::{Engine, EngineError, TableChange, TableSpec, WriteOptions};
use marigram_env::Clock as _;

/// The outcome of a change.
struct ChangeOutcome {
    done: Option<OracleChange>,
    /// What was refused, and why.
    refused: Option<(OracleChange, EngineError)>,
}

impl SimMachine {
    /// Makes a change, if it is sensible, and updates the model accordingly.
    pub(super) fn change(
        &mut self,
        engine: &Engine,
        trouble: CrashTrouble,
        change: OracleChange,
    ) -> CheckedState {
        let current = self.history.current();
        let exists = |table: &str| current.tables.contains_key(table);
        let was_read_only = engine.status().read_only.is_some();
        // Nonsensical changes are not tried; other tests cover refusals for other reasons.
        let sensible = match &change {
            OracleChange::Write { .. } => true,
            OracleChange::CreateTable { table, .. } => !exists(table) && !self.history.is_unsure(),
            OracleChange::AddField { table, field, .. } => {
                current
                    .tables
                    .get(table)
                    .is_some_and(|table| !table.fields.contains_key(field))
                    && !self.history.is_unsure()
            }
            OracleChange::Delete { table, .. }
            | OracleChange::DeleteRows { table, .. }
            | OracleChange::DropTable { table } => exists(table) && !self.history.is_unsure(),
            // The database is recreated at once, which a read-only engine would refuse.
            OracleChange::DropDatabase => !self.history.is_unsure() && !was_read_only,
        };
        if !sensible {
            return Ok(());
        }
        // A read-only engine still executes what frees disk space, unless its log failed.
        let frees_room = matches!(
            change,
            OracleChange::Delete { .. }
                | OracleChange::DeleteRows { .. }
                | OracleChange::DropTable { .. }
        );
        let made = self.make(engine, trouble, change)?;
        if was_read_only && !frees_room {
            match made.refused {
                None => return Err(format!("a read-only engine has made {:?}", made.done)),
                Some((_, EngineError::ReadOnly(_))) => return Ok(()),
                Some(_) => {}
            }
        }
        if let Some(done) = made.done {
            self.history.acknowledge(done);
        }
        if let Some((change, error)) = made.refused {
            self.note(|| format!("  {error}"));
            Self::excuse("change", trouble, &error)?;
            let is_write = matches!(change, OracleChange::Write { .. });
            match error {
                // A refused write, or one rolled back from the log, leaves no row; only the schema
                // may have grown before.
                EngineError::Busy { .. } | EngineError::ReadOnly(_) if is_write => {
                    self.history.refuse(change);
                }
                EngineError::Busy { .. } => {}
                _ => {
                    self.summary.doubts += 1;
                    self.history.doubt(change);
                }
            }
            let is_busy = matches!(error, EngineError::Busy { .. });
            if is_write && !is_busy && !self.fs.is_crashed() && engine.status().read_only.is_none()
            {
                return Err(format!("not read-only after a write failed: {error}"));
            }
        }
        Ok(())
    }

    /// Makes a change, and returns which parts of it are acknowledged and which are not.
    fn make(
        &mut self,
        engine: &Engine,
        trouble: CrashTrouble,
        change: OracleChange,
    ) -> Result<ChangeOutcome, String> {
        let done = match change {
            OracleChange::Write { table, rows } => return self.write(engine, trouble, table, rows),
            OracleChange::Delete {
                ref table,
                ref filter,
                range,
            } => engine.table(DATABASE, table).and_then(|schema| {
                engine.delete(DATABASE, table, &filter.to_engine(&schema), range)
            }),
            OracleChange::DeleteRows {
                ref table,
                ref rows,
            } => engine.delete_rows(DATABASE, &keys_batch(table, rows)),
            OracleChange::CreateTable {
                ref table,
                ref options,
            } => {
                let options = options.clone();
                let spec = TableSpec {
                    name: table.clone(),
                    options,
                    ..TableSpec::default()
                };
                engine.create_table(DATABASE, &spec, false).map(|_| ())
            }
            OracleChange::AddField {
                ref table,
                ref field,
                kind,
            } => {
                let added = TableChange::AddField(field.clone(), kind);
                engine.alter_table(DATABASE, table, &added).map(|_| ())
            }
            OracleChange::DropTable { ref table } => engine.drop_table(DATABASE, table, false),
            OracleChange::DropDatabase => engine.drop_database(DATABASE, false).and_then(|()| {
                let made = engine.create_database(DATABASE, false);
                if !matches!(made, Err(EngineError::Busy { .. })) {
                    return made;
                }
                // Either the whole change or nothing: the operator frees space.
                CrashTrouble::relieve(&self.fs);
                engine.create_database(DATABASE, false)
            }),
        };
        Ok(match done {
            Ok(()) => ChangeOutcome {
                done: Some(change),
                refused: None,
            },
            Err(error) => ChangeOutcome {
                done: None,
                refused: Some((change, error)),
            },
        })
    }

    fn write(
        &mut self,
        engine: &Engine,
        trouble: CrashTrouble,
        table: String,
        rows: Vec<WrittenRow>,
    ) -> Result<ChangeOutcome, String> {
        let (oracle, now_ns) = (self.history.current(), self.clock.now_ns());
        let faults: Vec<_> = rows
            .iter()
            .map(|row| oracle.refusal(&table, row, now_ns))
            .collect();
        let batch = to_batch(&table, &rows);
        let written = engine.write(DATABASE, &batch, WriteOptions { grow: true });
        let report = match written {
            Ok(report) => report,
            Err(error) => {
                let good = rows
                    .into_iter()
                    .zip(faults)
                    .filter(|(_, fault)| fault.is_none());
                let rows = good.map(|(row, _)| row).collect();
                let refused = Some((OracleChange::Write { table, rows }, error));
                return Ok(ChangeOutcome {
                    done: None,
                    refused,
                });
            }
        };
        if report.stored + report.rejected.len() != rows.len() {
            return Err(format!(
                "{} rows stored, {:?}",
                report.stored, report.rejected
            ));
        }
        self.summary.rows += report.stored as u64;
        let mut rejected = report.rejected.into_iter().peekable();
        let (mut taken, mut lost, mut reason) = (Vec::new(), Vec::new(), String::new());
        let is_loss = |reason: &str| {
            reason.starts_with("writes are refused")
                || reason.contains("is known when it is opened")
        };
        for (at, (row, fault)) in rows.into_iter().zip(faults).enumerate() {
            let rejection = rejected.next_if(|rejected| rejected.row as usize == at);
            match (rejection, fault) {
                (None, None) => taken.push(row),
                (Some(_), Some(_)) => {}
                // One of several shards can fail alone: then its rows are refused.
                (Some(rejection), None)
                    if trouble != CrashTrouble::None && is_loss(&rejection.reason) =>
                {
                    reason = rejection.reason;
                    lost.push(row);
                }
                // The types of columns that may or may not exist are uncertain.
                (None, Some(_)) if self.history.is_unsure() => taken.push(row),
                (Some(_), None) if self.history.is_unsure() => {}
                (found, fault) => {
                    return Err(format!(
                        "row {at} of {table}: {found:?}, expected: {fault:?}"
                    ));
                }
            }
        }
        let done = Some(OracleChange::Write {
            table: table.clone(),
            rows: taken,
        });
        let refused = (!lost.is_empty()).then_some((
            OracleChange::Write { table, rows: lost },
            EngineError::Uncertain(reason),
        ));
        Ok(ChangeOutcome { done, refused })
    }
}
