//! `marigram inspect`: shows what a data directory or a segment contains. It does not open the
//! database, so it also works while a server runs and on damaged data.

mod directory;
mod segment;

use anyhow::{Result, bail};
use clap::Args;
use marigram_env::{Env, LogStore};
use marigram_manifest::{Catalog, CatalogState};
use marigram_model::{ColumnId, TableId};
use marigram_segment::Segment;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Show what a directory or a segment contains.
#[derive(Args)]
pub(crate) struct Inspect {
    /// Data directory, or a segment file in one (shards/NNNN/segments/N.seg)
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// For a segment: show every page with its encoding, sizes and statistics
    #[arg(long)]
    pages: bool,
    /// For a directory: list every segment
    #[arg(long)]
    segments: bool,
}

impl Inspect {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let fs = Env::real().fs;
        if self.path.is_file() {
            let names = CatalogNames::near(fs.as_ref(), &self.path);
            segment::show(&fs, &self.path, &names, self.pages)?;
        } else if self.path.join("CATALOG").exists() {
            directory::show(&fs, &self.path, self.segments)?;
        } else {
            bail!(
                "{} is neither a data directory nor a segment",
                self.path.display()
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Names of tables and columns; numbers if there is no catalog.
pub(crate) struct CatalogNames(Option<CatalogState>);

impl CatalogNames {
    /// The names of the data directory in which a segment lies.
    fn near(fs: &dyn LogStore, segment: &Path) -> Self {
        let dir = segment.ancestors().nth(4).map(Path::to_path_buf);
        let dir = dir.filter(|dir| dir.join("CATALOG").exists());
        Self(dir.and_then(|dir| Catalog::read(fs, &dir).ok()))
    }

    /// A table's name with its database.
    pub(crate) fn table(&self, id: TableId) -> String {
        match self.schema(id) {
            Some(schema) => format!("{}.{}", schema.database, schema.name),
            None => format!("table {id}"),
        }
    }

    /// A column's name.
    pub(crate) fn column(&self, table: TableId, id: ColumnId) -> String {
        let Some(schema) = self.schema(table) else {
            return format!("column {id}");
        };
        if id == ColumnId::TIME {
            return schema.time_name.clone();
        }
        schema
            .field_by_id(id)
            .map_or_else(|| format!("column {id}"), |field| field.name.clone())
    }

    fn schema(&self, id: TableId) -> Option<&Arc<marigram_model::TableSchema>> {
        self.0.as_ref()?.tables.get(&id)
    }
}

/// Opens the segment in a file.
fn open_segment(fs: &Arc<dyn LogStore>, path: &Path) -> Result<Segment> {
    let file = fs.open(path);
    let file = file.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    Ok(Segment::from_file(file, path)?)
}
