//! The possible states of a database when some changes may or may not have been made.
//!
//! A change that a power loss interrupted, or that failed with an I/O error, may or may not be
//! found after recovery: in each shard, a write or delete completely or not at all; a change of the
//! catalog completely or not at all. A refused write is never found, but its table and columns may
//! be. All other changes are certain. The history keeps the changes since the last certain state,
//! and finds the choice of changes that explains what is read.

use super::compare::{Tolerance, compare};
use super::observe::ObservedDatabase;
use super::{Oracle, OracleChange, OracleRows, OracleTags};
use std::collections::BTreeSet;

/// With more changes than this in doubt at once, there would be too many choices.
const DOUBTS_MAX: usize = 6;

/// Whether changes in doubt may be visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// After recovery: either way.
    Either,
    /// In the process in which they failed: refused rows must not be visible.
    Refused,
}

/// The model, with changes in doubt.
#[derive(Clone, Debug, Default)]
pub struct OracleHistory {
    base: Oracle,
    /// The changes since then, and whether each is in doubt.
    since: Vec<(OracleChange, bool)>,
    /// Refused writes, with the number of changes before each.
    refused: Vec<(usize, OracleChange)>,
    /// The state if none of the changes in doubt was made.
    current: Oracle,
    doubts: usize,
    one_shard: bool,
}

impl OracleHistory {
    /// An empty database with this many shards.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self {
            one_shard: shards == 1,
            ..Self::default()
        }
    }

    /// A history that starts with a certain state.
    #[must_use]
    pub fn from_state(state: Oracle, shards: usize) -> Self {
        Self {
            base: state.clone(),
            current: state,
            ..Self::new(shards)
        }
    }

    /// The state if none of the changes in doubt was made.
    #[must_use]
    pub fn current(&self) -> &Oracle {
        &self.current
    }

    /// Whether a change is in doubt.
    #[must_use]
    pub fn has_doubts(&self) -> bool {
        self.doubts > 0
    }

    /// Whether a write was refused.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Whether tables and columns, or rows, are uncertain.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        self.has_doubts() || self.has_refused()
    }

    /// Whether no further changes in doubt are possible before the state is certain again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.doubts >= DOUBTS_MAX
    }

    /// Records an acknowledged change.
    pub fn acknowledge(&mut self, change: OracleChange) {
        self.current.apply(&change);
        self.since.push((change, false));
    }

    /// Records a change that may or may not have been made.
    pub fn doubt(&mut self, change: OracleChange) {
        self.since.push((change, true));
        self.doubts += 1;
    }

    /// Records a write whose rows must never be found. Its table and columns may be.
    pub fn refuse(&mut self, write: OracleChange) {
        self.refused.push((self.since.len(), write));
    }

    /// Compares what was read with the possible states.
    ///
    /// # Errors
    /// If no choice of the changes in doubt explains it: the difference from the nearest one.
    pub fn check(
        &self,
        observed: &ObservedDatabase,
        now_ns: i64,
        strictness: Strictness,
    ) -> Result<(), String> {
        self.explain(observed, now_ns, strictness).map(|_| ())
    }

    /// Compares what was read after recovery with the possible states, and takes it as certain.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn settle(&mut self, observed: &ObservedDatabase, now_ns: i64) -> Result<(), String> {
        let explained = self.explain(observed, now_ns, Strictness::Either)?;
        self.base = explained;
        self.current = self.base.clone();
        self.since.clear();
        self.refused.clear();
        self.doubts = 0;
        Ok(())
    }

    fn explain(
        &self,
        observed: &ObservedDatabase,
        now_ns: i64,
        strictness: Strictness,
    ) -> Result<Oracle, String> {
        let candidates: Vec<_> = (0..1_u32 << self.doubts)
            .map(|made| self.replay(made, false))
            .collect();
        let mut difference = String::new();
        for catalog in self.catalog_choices() {
            match self.explain_rows(&candidates, catalog, observed, now_ns, strictness) {
                Ok(oracle) => return Ok(oracle),
                // The first choice is the likeliest: none of the changes in doubt was made.
                Err(reason) if difference.is_empty() => difference = reason,
                Err(_) => {}
            }
        }
        Err(difference)
    }

    /// The state if the changes in doubt whose bits are set were made and, only for tables and
    /// columns, if the `refused` writes were.
    fn replay(&self, made: u32, refused: bool) -> Oracle {
        let mut oracle = self.base.clone();
        let mut doubt = 0;
        let mut refused = self.refused.iter().filter(|_| refused).peekable();
        for (at, (change, in_doubt)) in self.since.iter().enumerate() {
            while let Some((_, write)) = refused.next_if(|(before, _)| *before <= at) {
                oracle.apply(write);
            }
            if *in_doubt {
                doubt += 1;
                if made & (1 << (doubt - 1)) == 0 {
                    continue;
                }
            }
            oracle.apply(change);
        }
        refused.for_each(|(_, write)| oracle.apply(write));
        oracle
    }

    /// Bits of the changes in doubt that concern the catalog.
    fn catalog_bits(&self) -> u32 {
        let doubts = self
            .since
            .iter()
            .filter(|(_, in_doubt)| *in_doubt)
            .enumerate();
        doubts
            .filter(|(_, (change, _))| change.is_of_catalog())
            .map(|(at, _)| 1 << at)
            .sum()
    }

    /// All choices of the catalog's changes in doubt.
    fn catalog_choices(&self) -> BTreeSet<u32> {
        let bits = self.catalog_bits();
        (0..1 << self.doubts).map(|made: u32| made & bits).collect()
    }

    /// For each shard, finds the choice of row changes that explains it, given the catalog's
    /// choice.
    fn explain_rows(
        &self,
        candidates: &[Oracle],
        catalog: u32,
        observed: &ObservedDatabase,
        now_ns: i64,
        strictness: Strictness,
    ) -> Result<Oracle, String> {
        let bits = self.catalog_bits();
        let most = self.replay(!bits & (candidates.len() as u32 - 1) | catalog, true);
        let mut explained = explain_schemas(&candidates[catalog as usize], &most, observed)?;
        for group in groups(candidates, observed) {
            let mut difference = String::new();
            let choice = (0..candidates.len() as u32)
                .filter(|made| made & bits == catalog)
                .find(|made| {
                    // A single shard takes a refused write or not; with several, one of them may
                    // have taken its part.
                    let refused = strictness == Strictness::Refused && self.one_shard;
                    if refused && *made != catalog {
                        return false;
                    }
                    let oracle = &candidates[*made as usize];
                    match compare_group(oracle, observed, group, now_ns) {
                        Ok(()) => true,
                        Err(reason) => {
                            if difference.is_empty() {
                                difference = reason;
                            }
                            false
                        }
                    }
                });
            let Some(choice) = choice else {
                return Err(difference);
            };
            for (name, table) in &candidates[choice as usize].tables {
                let Some(into) = explained.tables.get_mut(name) else {
                    continue;
                };
                into.rows.extend(cut(&table.rows, observed, name, group));
            }
        }
        Ok(explained)
    }
}

/// The engine's tables and columns, without rows, if they are possible ones. A lost write may have
/// left its table and columns behind.
fn explain_schemas(
    least: &Oracle,
    most: &Oracle,
    observed: &ObservedDatabase,
) -> Result<Oracle, String> {
    if let Some(name) = least
        .tables
        .keys()
        .find(|name| !observed.tables.contains_key(*name))
    {
        return Err(format!("the table {name} is missing"));
    }
    let mut explained = Oracle::default();
    for (name, found) in &observed.tables {
        let Some(most) = most.tables.get(name) else {
            return Err(format!("the table {name} should not be there"));
        };
        let mut table = super::OracleTable {
            options: most.options.clone(),
            ..Default::default()
        };
        table.tags = found
            .schema
            .tags
            .iter()
            .map(|t| (t.name.clone(), t.kind))
            .collect();
        let fields = found.schema.fields.iter();
        table.fields = fields
            .map(|field| (field.name.clone(), field.kind))
            .collect();
        if found.schema.options != most.options {
            return Err(format!(
                "the settings of {name}: {:?}",
                found.schema.options
            ));
        }
        let least = least.tables.get(name);
        let lost_tag = least.and_then(|t| t.tags.iter().find(|tag| !table.tags.contains(tag)));
        let lost_field = least.and_then(|t| {
            t.fields
                .iter()
                .find(|(name, kind)| table.fields.get(*name) != Some(kind))
        });
        let odd_tag = table.tags.iter().find(|tag| !most.tags.contains(tag));
        let odd_field = table
            .fields
            .iter()
            .find(|(name, kind)| most.fields.get(*name) != Some(kind));
        if lost_tag.is_some() || odd_tag.is_some() {
            return Err(format!(
                "tags of {name}: lost {lost_tag:?}, odd {odd_tag:?}"
            ));
        }
        if lost_field.is_some() || odd_field.is_some() {
            return Err(format!(
                "fields of {name}: lost {lost_field:?}, odd {odd_field:?}"
            ));
        }
        explained.tables.insert(name.clone(), table);
    }
    Ok(explained)
}

/// The shards of the rows; `None` for series that have not been seen in any shard.
fn groups(candidates: &[Oracle], observed: &ObservedDatabase) -> BTreeSet<Option<usize>> {
    let expected = candidates.iter().flat_map(|oracle| {
        oracle
            .tables
            .iter()
            .flat_map(|(name, table)| table.rows.keys().map(|tags| shard(observed, name, tags)))
    });
    let seen = observed
        .tables
        .iter()
        .flat_map(|(name, table)| table.rows.keys().map(|tags| shard(observed, name, tags)));
    expected.chain(seen).collect()
}

fn shard(observed: &ObservedDatabase, table: &str, tags: &OracleTags) -> Option<usize> {
    observed.tables.get(table)?.shards.get(tags).copied()
}

fn cut(
    rows: &OracleRows,
    observed: &ObservedDatabase,
    table: &str,
    group: Option<usize>,
) -> OracleRows {
    let rows = rows
        .iter()
        .filter(|(tags, _)| shard(observed, table, tags) == group);
    rows.map(|(tags, rows)| (tags.clone(), rows.clone()))
        .collect()
}

fn compare_group(
    oracle: &Oracle,
    observed: &ObservedDatabase,
    group: Option<usize>,
    now_ns: i64,
) -> Result<(), String> {
    for (name, found) in &observed.tables {
        let tolerance = Tolerance::for_options(&found.schema.options, now_ns);
        let found = cut(&found.rows, observed, name, group);
        let expected = oracle.tables.get(name);
        let expected = expected.map(|table| cut(&table.rows, observed, name, group));
        compare(&expected.unwrap_or_default(), &found, tolerance)
            .map_err(|reason| format!("table {name}, shard {group:?}: {reason}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{ObservedTable, OracleRow, OracleTable, WrittenRow};
    use super::*;
    use marigram_model::{ColumnId, FieldType, FieldValue, TagValue};
    use marigram_model::{FieldColumn, TableId, TableOptions, TableSchema, TagColumn, TagType};
    use std::sync::Arc;

    fn write(rows: &[(&str, i64)]) -> OracleChange {
        let row = |(device, time): &(&str, i64)| WrittenRow {
            tags: OracleTags::from([("device".into(), TagValue::String((*device).into()))]),
            time: *time,
            fields: OracleRow::from([("x".into(), FieldValue::I64(1))]),
        };
        OracleChange::Write {
            table: "t".into(),
            rows: rows.iter().map(row).collect(),
        }
    }

    /// What an engine that made these changes would show; device "a" is in shard 0.
    fn observed(changes: &[&OracleChange]) -> ObservedDatabase {
        let mut oracle = Oracle::default();
        for change in changes {
            oracle.apply(change);
        }
        let table = |(name, table): (&String, &OracleTable)| {
            let tag = TagColumn {
                name: "device".into(),
                kind: TagType::String,
            };
            let field = FieldColumn {
                id: ColumnId(1),
                name: "x".into(),
                kind: FieldType::I64,
                codec: marigram_model::ColumnCodec::default(),
            };
            let schema = TableSchema {
                id: TableId(1),
                database: "d".into(),
                name: name.clone(),
                time_name: "time".into(),
                tags: vec![tag],
                fields: vec![field],
                options: TableOptions::default(),
                rollup: None,
                view: None,
                dropped_max: 0,
                declared: Vec::new(),
            };
            let shard =
                |tags: &OracleTags| usize::from(tags["device"] != TagValue::String("a".into()));
            let shards = table
                .rows
                .keys()
                .map(|tags| (tags.clone(), shard(tags)))
                .collect();
            let rows = table.rows.clone();
            (
                name.clone(),
                ObservedTable {
                    schema: Arc::new(schema),
                    rows,
                    shards,
                },
            )
        };
        ObservedDatabase {
            tables: oracle.tables.iter().map(table).collect(),
        }
    }

    #[test]
    fn a_write_in_doubt_is_there_wholly_or_not_at_all_in_each_shard() {
        let (sure, doubt) = (
            write(&[("a", 1), ("b", 1)]),
            write(&[("a", 2), ("a", 3), ("b", 2)]),
        );
        let mut history = OracleHistory::new(2);
        history.acknowledge(sure.clone());
        history.doubt(doubt.clone());
        let check = |part: &OracleChange| {
            history
                .check(&observed(&[&sure, part]), 0, Strictness::Either)
                .is_ok()
        };
        for possible in [vec![], vec![("a", 2), ("a", 3)], vec![("b", 2)]] {
            assert!(check(&write(&possible)), "{possible:?}");
        }
        assert!(check(&doubt));
        assert!(!check(&write(&[("a", 2)])));
        assert!(!check(&write(&[("a", 4)])));
        assert!(
            history
                .check(&observed(&[&doubt]), 0, Strictness::Either)
                .is_err()
        );

        // What was found once stays.
        history
            .settle(&observed(&[&sure, &write(&[("b", 2)])]), 0)
            .unwrap();
        assert!(
            history
                .check(&observed(&[&sure, &doubt]), 0, Strictness::Either)
                .is_err()
        );
    }

    #[test]
    fn no_row_of_a_refused_write_is_ever_found() {
        let (sure, refused) = (write(&[("a", 1)]), write(&[("a", 2), ("b", 2)]));
        let mut history = OracleHistory::new(2);
        history.refuse(refused.clone());
        history.acknowledge(sure.clone());
        history.settle(&observed(&[&sure]), 0).unwrap();
        history.refuse(refused.clone());
        let both = observed(&[&sure, &refused]);
        let half = observed(&[&sure, &write(&[("b", 2)])]);
        for found in [both, half] {
            assert!(history.check(&found, 0, Strictness::Either).is_err());
        }
    }

    #[test]
    fn a_refused_write_is_not_seen_before_a_restart() {
        let (sure, doubt) = (write(&[("a", 1)]), write(&[("a", 2)]));
        let mut history = OracleHistory::new(1);
        history.acknowledge(sure.clone());
        history.doubt(doubt.clone());
        let both = observed(&[&sure, &doubt]);
        assert!(history.check(&both, 0, Strictness::Either).is_ok());
        assert!(history.check(&both, 0, Strictness::Refused).is_err());
        assert!(
            history
                .check(&observed(&[&sure]), 0, Strictness::Refused)
                .is_ok()
        );
    }

    #[test]
    fn a_table_whose_drop_is_in_doubt_is_whole_or_gone() {
        let (sure, drop) = (
            write(&[("a", 1), ("b", 1)]),
            OracleChange::DropTable { table: "t".into() },
        );
        let mut history = OracleHistory::new(2);
        history.acknowledge(sure.clone());
        history.doubt(drop);
        for (changes, possible) in [
            (vec![&sure], true),
            (vec![], true),
            (vec![&write(&[("a", 1)])], false),
        ] {
            let checked = history.check(&observed(&changes), 0, Strictness::Either);
            assert_eq!(checked.is_ok(), possible, "{checked:?}");
        }
    }
}
