//! `COPY … TO 'x.tsfile'`: writes a table or the result of a query to a TsFile.

use super::{FileUse, resolve};
use crate::SqlOptions;
use crate::dialect::copy_syntax::{StatementOptions, form_of};
use crate::dialect::statement::CopyFileFormat;
use crate::dialect::types::ROLE_KEY;
use crate::error::{SqlError, SqlResult};
use crate::statements::tsfile::TsFileExport;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// A COPY to a TsFile, before it is planned.
#[derive(Clone, Debug)]
pub(crate) struct CopyToTsFile {
    query: String,
    table: String,
    path: PathBuf,
    time: Option<String>,
    tags: Option<Vec<String>>,
    unit_ns: i64,
}

impl CopyToTsFile {
    /// Reads a statement as such a COPY; `None` for every other statement.
    ///
    /// # Errors
    /// If it is one, and may not use its file or has unknown options.
    pub(crate) fn from_statement(
        statement: &Statement,
        options: &SqlOptions,
    ) -> SqlResult<Option<Self>> {
        let Statement::CopyTo(copy) = statement else {
            return Ok(None);
        };
        let is_tsfile = match &copy.stored_as {
            Some(told) => told.eq_ignore_ascii_case("tsfile"),
            None => matches!(form_of(&copy.target, None), Ok(CopyFileFormat::TsFile)),
        };
        if !is_tsfile {
            return Ok(None);
        }
        let path = resolve(options, &copy.target, FileUse::Write)?;
        let text = |value: &ast::Value| match value {
            ast::Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        };
        let told = copy
            .options
            .iter()
            .map(|(name, value)| (name.clone(), text(value)));
        let mut told = StatementOptions::new(told);
        let (query, own_name) = match &copy.source {
            CopyToSource::Query(query) => (query.to_string(), None),
            CopyToSource::Relation(name) => {
                let last = name.0.last().and_then(|part| part.as_ident());
                (
                    format!("SELECT * FROM {name}"),
                    last.map(crate::name_forms::fold_case),
                )
            }
        };
        let names = |list: String| {
            list.split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect()
        };
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("rows");
        let found = Self {
            query,
            table: told
                .take("table")
                .or(own_name)
                .unwrap_or_else(|| stem.to_owned()),
            time: told.take("time"),
            tags: told.take("tags").map(names),
            unit_ns: told.take_unit_ns()?,
            path,
        };
        told.end()?;
        Ok(Some(found))
    }

    /// The query whose rows are to be written, as it was written.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// The query with its rows in the order that the file needs.
    ///
    /// # Errors
    /// If the time column is ambiguous.
    pub(crate) fn ordered(&self, schema: &Schema) -> SqlResult<(String, ExportRoles)> {
        let of_role = |role: &'static str| {
            let fields = schema.fields().iter();
            fields.filter(move |field| field.metadata().get(ROLE_KEY).is_some_and(|r| r == role))
        };
        let is_time = |kind: &DataType| matches!(kind, DataType::Timestamp(_, _));
        let first_time = || {
            schema
                .fields()
                .iter()
                .find(|field| is_time(field.data_type()))
        };
        let time = of_role("time")
            .next()
            .or_else(first_time)
            .map(|field| field.name().clone());
        let time = self.time.clone().or(time).ok_or_else(|| {
            SqlError::syntax("which column is the time? Add OPTIONS (time 'column')")
        })?;
        let tags = self
            .tags
            .clone()
            .unwrap_or_else(|| of_role("tag").map(|field| field.name().clone()).collect());
        let order = TsFileExport::<File, File>::order_by(&time, &tags);
        Ok((
            format!("SELECT * FROM ({}) {order}", self.query),
            ExportRoles { time, tags },
        ))
    }

    /// Creates a temporary file next to the target.
    ///
    /// # Errors
    /// If it cannot be created, or cannot hold the type of a column.
    pub(crate) fn begin(&self, schema: &Schema, roles: &ExportRoles) -> SqlResult<PendingFile> {
        let failed = |error: std::io::Error| {
            let place = self.path.display();
            SqlError::invalid("58030", format!("cannot write '{place}': {error}"))
        };
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or_else(|| std::path::Path::new("."));
        let file = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
        let out = BufWriter::with_capacity(1 << 18, file.reopen().map_err(failed)?);
        let scratch = tempfile::tempfile().map_err(failed)?;
        let export = TsFileExport::new(
            out,
            scratch,
            &self.table,
            schema,
            (&roles.time, &roles.tags),
            self.unit_ns,
        )?;
        Ok(PendingFile {
            export,
            file,
            path: self.path.clone(),
        })
    }
}

/// Which column is the time and which are tags.
#[derive(Clone, Debug)]
pub(crate) struct ExportRoles {
    time: String,
    tags: Vec<String>,
}

/// A file that is written next to its target, and moved there when it is complete.
pub(crate) struct PendingFile {
    export: TsFileExport<BufWriter<File>, File>,
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl PendingFile {
    /// Appends rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        self.export.write(batch)
    }

    /// Completes the file; returns the number of its rows.
    pub(crate) fn finish(self) -> SqlResult<u64> {
        use std::os::unix::fs::PermissionsExt;
        let (_, rows) = self.export.finish()?;
        let place = self.path.display();
        let failed = |error: std::io::Error| {
            SqlError::invalid("58030", format!("cannot write '{place}': {error}"))
        };
        // Temporary files are private to their owner; an export is a normal file.
        let mode = std::fs::Permissions::from_mode(0o644);
        self.file.as_file().set_permissions(mode).map_err(failed)?;
        self.file
            .persist(&self.path)
            .map_err(|error| failed(error.error))?;
        Ok(rows)
    }
}
