//! Rows that are made in memory.

use crate::answer::answer;
use crate::relation::{Relation, RelationColumn, RelationColumnRole, plan_column};
use crate::run::TaosRun;
use crate::taos_value::{Val, array_of, arrow_type};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use datafusion::common::DataFusionError;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::LogicalPlanBuilder;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::{TaosPrecision, TaosType};
use std::sync::Arc;

/// Rows with named columns.
pub(crate) struct TaosListing {
    columns: Vec<(&'static str, TaosType)>,
    values: Vec<Vec<Val>>,
}

impl TaosListing {
    /// No rows.
    pub(crate) fn new(columns: Vec<(&'static str, TaosType)>) -> Self {
        let values = columns.iter().map(|_| Vec::new()).collect();
        Self { columns, values }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn push(&mut self, run: &TaosRun<'_>, row: Vec<Val>) -> SqlResult<()> {
        let bytes: usize = row.iter().map(|value| value.held_bytes() + 32).sum();
        run.budget.keep(bytes)?;
        for (column, value) in self.values.iter_mut().zip(row) {
            column.push(value);
        }
        Ok(())
    }

    /// Only the column of this name.
    pub(crate) fn only(mut self, name: &str) -> Self {
        if let Some(place) = self.columns.iter().position(|column| column.0 == name) {
            self.columns = vec![self.columns[place]];
            self.values = vec![self.values.swap_remove(place)];
        }
        self
    }

    /// Without the rows whose text in a column does not match a pattern of LIKE.
    pub(crate) fn like(mut self, name: &str, pattern: Option<&str>) -> Self {
        let place = self.columns.iter().position(|column| column.0 == name);
        if let (Some(place), Some(pattern)) = (place, pattern) {
            let own = self.values[place].iter();
            let keeps: Vec<bool> = own
                .map(|value| value.text().is_some_and(|text| is_like(text, pattern)))
                .collect();
            for column in &mut self.values {
                let mut keeps = keeps.iter();
                column.retain(|_| keeps.next().copied().unwrap_or(false));
            }
        }
        self
    }

    /// The rows as a relation.
    pub(crate) fn relation(self) -> SqlResult<Relation> {
        let fields = self.columns.iter().enumerate();
        let fields: Vec<Field> = fields
            .map(|(place, (_, kind))| Field::new(format!("l{place}"), arrow_type(*kind), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = self.values.iter().zip(&self.columns);
        let arrays = arrays.map(|(values, (_, kind))| array_of(values, *kind));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect())
            .map_err(DataFusionError::from)?;
        let table = MemTable::try_new(schema, vec![vec![batch]])?;
        let source = provider_as_source(Arc::new(table));
        Ok(Relation {
            plan: LogicalPlanBuilder::scan("m", source, None)?.build()?,
            columns: self
                .columns
                .iter()
                .enumerate()
                .map(|(place, (name, kind))| RelationColumn {
                    table: None,
                    name: (*name).to_owned(),
                    kind: *kind,
                    expr: plan_column(&format!("l{place}")),
                    role: RelationColumnRole::Field,
                })
                .collect(),
            precision: TaosPrecision::Milli,
            is_one_table: false,
        })
    }

    /// The rows as an answer.
    pub(crate) async fn answer(self, run: &TaosRun<'_>) -> SqlResult<StatementRows> {
        answer(run, self.relation()?).await
    }
}

/// Whether a text matches a pattern: `%` stands for any characters, `_` for one.
pub(crate) fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        let (wanted, is_literal) = match pattern.get(place) {
            Some('\\') if pattern.get(place + 1).is_some() => (pattern.get(place + 1), true),
            other => (other, false),
        };
        match wanted {
            Some('%') if !is_literal => {
                star = Some((place, at));
                place += 1;
            }
            Some(wanted) if (*wanted == '_' && !is_literal) || *wanted == text[at] => {
                place += 1 + usize::from(is_literal);
                at += 1;
            }
            _ => match star {
                Some((before, from)) => {
                    star = Some((before, from + 1));
                    place = before + 1;
                    at = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[place..].iter().all(|wanted| *wanted == '%')
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn patterns_match_whole_texts() {
        assert!(is_like("meters", "me%s"));
        assert!(is_like("d_1", "d\\_1"));
        assert!(!is_like("dx1", "d\\_1"));
        assert!(is_like("dx1", "d_1"));
        assert!(!is_like("meters", "meter"));
        assert!(is_like("", "%"));
        assert!(is_like("aXbXc", "%X%c"));
    }
}
