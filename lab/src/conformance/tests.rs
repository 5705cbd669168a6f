//! A target that knows the answers, and the result of the check when it does something wrong.

use super::*;
use crate::data::Rows;
use crate::question::Answer;
use crate::target::{Body, Payload, Reply, Session, TargetFacts};
use std::sync::LazyLock;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// One row of this answer is left out.
    Short(&'static str),
    /// It fails at this question.
    Fails(&'static str),
    /// It says that it cannot answer this question, and would fail at it.
    Cannot(&'static str),
    /// The order of the rows is that of the expected answer, oldest first.
    Unordered,
}

struct Fake(Fault);

impl Target for Fake {
    fn start(&mut self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        let text = || "fake".to_owned();
        TargetFacts {
            version: text(),
            path: text(),
            durability: text(),
            notes: text(),
        }
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn create(&self, _: &[Table]) -> Result<()> {
        Ok(())
    }

    fn connect(&self, _: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(Self(self.0)))
    }

    fn settle(&self, _: &[Table]) -> Result<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        Ok(1)
    }

    fn restart(&mut self, _: &[Table]) -> Result<Option<Duration>> {
        Ok(Some(Duration::ZERO))
    }

    fn cannot(&self, _: &[Table], question: &Question) -> Option<String> {
        (self.0 == Fault::Cannot(known(question).name)).then(|| "no".to_owned())
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

static CASES: LazyLock<Vec<ConformanceCase>> = LazyLock::new(cases);

fn known(question: &Question) -> &'static ConformanceCase {
    let found = CASES.iter().find(|case| case.name == question.name);
    found.expect("a question of the check")
}

impl Session for Fake {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Bytes(Vec::new()),
        })
    }

    fn write(&mut self, _: &Payload) -> Result<()> {
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let name = known(question).name;
        let fails = self.0 == Fault::Fails(name) || self.0 == Fault::Cannot(name);
        ensure!(!fails, "out of order");
        Ok(Reply::Bytes(Vec::new()))
    }

    fn decode(&mut self, question: &Question, _: Reply) -> Result<Answer> {
        let ConformanceCase {
            name,
            select,
            answer,
        } = known(question);
        let mut rows = answer.rows.clone();
        if self.0 == Fault::Short(name) {
            rows.pop();
        }
        if let Some(column) = cases::time_column(select)
            && select.descending
            && self.0 != Fault::Unordered
        {
            let time = |row: &Vec<Cell>| match row[column] {
                Cell::Time(ns) => ns,
                _ => 0,
            };
            rows.sort_by_key(|row| std::cmp::Reverse(time(row)));
        }
        Ok(Answer { rows })
    }
}

fn verdict(fault: Fault) -> Result<(), String> {
    check(&mut Fake(fault), Path::new("/")).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_right_target_passes() {
    assert_eq!(verdict(Fault::None), Ok(()));
}

#[test]
fn what_a_target_cannot_do_is_passed_over() {
    assert_eq!(verdict(Fault::Cannot("last rows")), Ok(()));
}

#[test]
fn a_missing_row_a_failure_and_a_wrong_order_are_told() {
    let expect = |fault, text: &str| {
        let error = verdict(fault).expect_err("a fault");
        assert!(error.contains(text), "{error}");
    };
    expect(
        Fault::Short("all rows"),
        "all rows: 799 rows instead of 800",
    );
    expect(Fault::Fails("by window"), "by window: out of order");
    expect(
        Fault::Unordered,
        "newest window first: rows are not newest first",
    );
}

#[test]
fn the_sample_gives_every_client_its_devices() {
    let sample = Sample::new("");
    let mut rows = 0;
    for client in 0..3 {
        for batch in sample.stream(client, 3, 16) {
            assert!(
                batch
                    .series
                    .iter()
                    .all(|series| *series as usize % 3 == client)
            );
            assert!(batch.times.is_sorted());
            rows += batch.len() as u64;
        }
    }
    assert_eq!(rows, sample.rows());
}
