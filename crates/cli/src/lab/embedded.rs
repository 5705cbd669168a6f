//! The library in the laboratory's own process: columnar batches in, Arrow out.

mod batch;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::RecordBatch;
use marigram::{DEFAULT_DATABASE, Marigram, OpenOptions, Status, WriteBatch};
use marigram_lab::data::{Rows, Table};
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::{Answer, Question};
use marigram_lab::target::{
    Kind, Options, Payload, Reply, Session, Settings, Target, TargetFacts, Tuning,
};
use marigram_lab_drivers::marigram::{figures, schema};
use marigram_lab_drivers::{arrow, sql};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Marigram as a library.
pub(super) const KIND: Kind = Kind {
    name: "embedded",
    about: "Marigram as a library in this process: columnar batches, answers in Arrow",
    peer: false,
    make: |settings| Ok(Box::new(Embedded::new(settings))),
};

struct Embedded {
    settings: Settings,
    data: PathBuf,
    db: Option<Marigram>,
}

impl Embedded {
    fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            data: PathBuf::new(),
            db: None,
        }
    }

    fn open(&self) -> Result<Marigram> {
        let mut options = options(&self.settings.tuning.server)?;
        if let Some(bytes) = self.settings.memory_bytes {
            options = options.memory_limit(usize::try_from(bytes)?);
        }
        if let Some(cores) = self.settings.cores {
            options = options.shards(cores).query_threads(cores);
        }
        Ok(options.open(&self.data)?)
    }

    fn db(&self) -> Result<&Marigram> {
        self.db.as_ref().context("the database is not open")
    }
}

/// Parses options by their names in a configuration file. Fails on unknown names and on values that
/// an option cannot have.
fn options(settings: &Options) -> Result<OpenOptions> {
    let value = |text: &String| match text.parse::<u64>() {
        Ok(number) => serde_json::Value::from(number),
        Err(_) => serde_json::Value::from(text.as_str()),
    };
    let values = settings
        .iter()
        .map(|(name, text)| (name.clone(), value(text)));
    Ok(serde_json::from_value(serde_json::Value::Object(
        values.collect(),
    ))?)
}

/// Those of `tables` that contain rows.
fn filled<'a>(db: &Marigram, tables: &'a [Table]) -> Result<Vec<&'a str>> {
    let mut filled = Vec::new();
    for table in tables {
        let answer = db.sql(&format!("SELECT time FROM {} LIMIT 1", table.name))?;
        if answer.iter().any(|batch| batch.num_rows() > 0) {
            filled.push(table.name.as_str());
        }
    }
    Ok(filled)
}

impl Target for Embedded {
    fn start(&mut self, dir: &Path) -> Result<()> {
        ensure!(
            self.settings.url.is_none(),
            "the embedded library has no address"
        );
        self.data = dir.join("data");
        self.db = Some(self.open()?);
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: concat!("Marigram ", env!("CARGO_PKG_VERSION")).to_owned(),
            path: "columnar batches in the client's process; SQL, answers in Arrow".to_owned(),
            durability: "fsync before acknowledgement".to_owned(),
            notes: "Default settings, except those that a study chooses. Client and database share a process: their processor time \
                    and memory are one. A restart drops the database without closing it, so that \
                    the log is replayed as after a crash, and opens it again. Settling is FLUSH \
                    and COMPACT."
                .to_owned(),
        }
    }

    fn refuses(&self, tuning: &Tuning) -> Option<String> {
        let error = options(&tuning.server).err()?;
        Some(format!(
            "the library cannot be opened with these settings: {error:#}"
        ))
    }

    fn tell(&self) -> Result<BTreeMap<String, f64>> {
        let metrics = self.db()?.metrics();
        let told = metrics.iter().map(|metric| {
            let mut labels = metric.labels.iter();
            let holder = labels.find(|(label, _)| *label == "holder");
            (
                metric.name,
                holder.map(|(_, holder)| holder.as_str()),
                metric.value,
            )
        });
        Ok(figures(told))
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        for table in tables {
            let options = &self.settings.tuning.table;
            self.db()?.sql(&schema::create(table, true, options))?;
        }
        Ok(())
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(EmbeddedSession {
            db: self.db()?.clone(),
            tables: Arc::clone(tables),
        }))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        self.db()?.sql("FLUSH; COMPACT")?;
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.db()?.sql("FLUSH")?;
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        folder_bytes(&self.data)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let db = self.db.take().context("the database is not open")?;
        let before = filled(&db, tables)?;
        // Dropping the last clone ends the threads and releases the folder, without a flush.
        drop(db);
        let start = Instant::now();
        let db = self
            .open()
            .context("reopening the database, which requires that all sessions have ended")?;
        let after = filled(&db, tables)?;
        let elapsed = start.elapsed();
        ensure!(after == before, "{after:?} have rows instead of {before:?}");
        self.db = Some(db);
        Ok(Some(elapsed))
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        schema::cannot(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        Ok(())
    }
}

struct EmbeddedSession {
    db: Marigram,
    tables: Arc<[Table]>,
}

impl Session for EmbeddedSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = self.tables.get(rows.table).context("no such table")?;
        Ok(Payload::from_value(rows, batch::encode(table, rows)?))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let batch: &WriteBatch = payload.value()?;
        let report = self.db.write(DEFAULT_DATABASE, batch)?;
        if let Some(row) = report.rejected.first() {
            bail!(
                "{} rows refused, the first: {}",
                report.rejected.len(),
                row.reason
            );
        }
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let statement = sql::question_statement(&schema::DIALECT, &self.tables, question)?;
        let batches = self.db.sql(&statement).with_context(|| statement)?;
        Ok(Reply::from_value(batches))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let batches: Vec<RecordBatch> = reply.into_value()?;
        arrow::answer(question, &batches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::conformance;

    #[test]
    fn settings_go_by_the_names_of_the_configuration_file() {
        let named = |name: &str, value: &str| Options::from([(name.to_owned(), value.to_owned())]);
        let opened = options(&named("memory_limit", "64MiB")).expect("a size");
        assert_eq!(opened.memory_limit.map(|size| size.0), Some(64 << 20));
        assert_eq!(
            options(&named("shards", "3")).expect("a number").shards,
            Some(3)
        );
        let target = Embedded::new(&Settings::default());
        let refused = |server| {
            target.refuses(&Tuning {
                server,
                ..Tuning::default()
            })
        };
        assert!(refused(named("shards", "many")).is_some());
        assert!(refused(named("no_such_setting", "1")).is_some_and(|why| why.contains("no_such")));
        assert_eq!(refused(Options::new()), None);
    }

    #[test]
    fn the_library_answers_the_laboratory_rightly() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut target = Embedded::new(&Settings::default());
        conformance::check(&mut target, folder.path()).expect("every answer right");
    }
}
