//! Implements the traits that servers use: [`Ingest`], [`Query`], [`LanguageQuery`],
//! [`Authentication`], [`Status`] and [`Backup`].
//!
//! Invariant: nothing here blocks the calling task. Writes run on threads for blocking work.
//! Queries run on those of `marigram_sql`, and stop when their reader disconnects.

use crate::arrow_rows::Roles;
use crate::database::Marigram;
use crate::error::{service_error, to_service};
use crate::metrics;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use futures::StreamExt;
use marigram_access::{AccessRights, PasswordVerifiers};
use marigram_engine::{EngineError, Holder, TableGrowth};
use marigram_model::{ColumnId, RetentionPolicies, TableColumn, TableSchema, WriteBatch, quoted};
use marigram_service::{
    Answer, ArrowRoles, Authentication, Backup, BackupReport, Identity, Ingest, LanguageQuery,
    LanguageRequest, Metric, Prepared, Query, RejectedRow, Result, ServiceError, Session,
    StatementAnswers, Status, WriteReport,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Tables of one request that are written at the same time, so that they share an fsync.
const TABLES_AT_ONCE: usize = 16;

#[async_trait]
impl Ingest for Marigram {
    async fn write(
        &self,
        database: &str,
        batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>> {
        let writes = by_table(batches).into_iter().map(|batches| {
            let (database, db) = (database.to_owned(), self.clone());
            self.runtime.run_blocking(move || {
                let store = |(place, batch)| (place, db.store(&database, &batch, create_database));
                batches.into_iter().map(store).collect::<Vec<_>>()
            })
        });
        let tables: Vec<_> = futures::stream::iter(writes)
            .buffered(TABLES_AT_ONCE)
            .collect()
            .await;
        let mut reports: Vec<(usize, Result<WriteReport>)> = Vec::new();
        for table in tables {
            reports.extend(table?);
        }
        reports.sort_by_key(|(place, _)| *place);
        reports.into_iter().map(|(_, report)| report).collect()
    }

    async fn write_measurements(
        &self,
        database: &str,
        retention_policy: Option<&str>,
        batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>> {
        let policies = match self.engine.retention_policies(database) {
            Err(EngineError::NotFound { .. }) if create_database => {
                Arc::new(RetentionPolicies::default())
            }
            policies => policies.map_err(service_error)?,
        };
        let name = retention_policy.unwrap_or(&policies.default);
        let Some(policy) = policies.find(name) else {
            let message = match retention_policy {
                Some(name) => format!("retention policy not found: {name}"),
                None => format!("default retention policy not set for: {database}"),
            };
            return Err(ServiceError::NotFound(message, "42704"));
        };
        let mut kept = Vec::with_capacity(batches.len());
        let mut refused = Vec::new();
        for (place, mut batch) in batches.into_iter().enumerate() {
            match policies
                .table_name(policy, &batch.table)
                .map(Cow::into_owned)
            {
                Some(table) => {
                    batch.table = table;
                    kept.push(batch);
                }
                None => refused.push((place, other_policys(&batch))),
            }
        }
        let mut reports = Ingest::write(self, database, kept, create_database).await?;
        for (place, report) in refused {
            reports.insert(place, report);
        }
        Ok(reports)
    }

    async fn table_schema(&self, database: &str, table: &str) -> Result<SchemaRef> {
        let schema = self.engine.table(database, table).map_err(service_error)?;
        Ok(arrow_schema(&schema))
    }

    async fn write_arrow(
        &self,
        database: &str,
        table: &str,
        batch: RecordBatch,
        roles: Option<&ArrowRoles>,
    ) -> Result<WriteReport> {
        let (db, database, name) = (self.clone(), database.to_owned(), table.to_owned());
        let roles = roles.map(|roles| Roles {
            time: roles.time.clone(),
            tags: roles.tags.clone(),
        });
        let write = move || Self::write_arrow(&db, &database, &name, &batch, roles.as_ref());
        let report = self
            .runtime
            .run_blocking(write)
            .await?
            .map_err(to_service)?;
        Ok(to_report(report, table))
    }
}

/// The refusal of a measurement whose name is that of another retention policy's table.
fn other_policys(batch: &WriteBatch) -> WriteReport {
    let reason = format!(
        "'{}' is the name of a table of another retention policy; give the measurement another name",
        batch.table
    );
    let refuse = |row| RejectedRow {
        row,
        reason: reason.clone(),
    };
    WriteReport {
        rejected: (0..batch.len()).map(refuse).collect(),
        ..WriteReport::default()
    }
}

/// Groups batches, with their positions, by table and in order: a later one overwrites.
fn by_table(batches: Vec<WriteBatch>) -> Vec<Vec<(usize, WriteBatch)>> {
    let mut tables: Vec<Vec<(usize, WriteBatch)>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, batch) in batches.into_iter().enumerate() {
        let table = *places.entry(batch.table.clone()).or_insert(tables.len());
        if table == tables.len() {
            tables.push(Vec::new());
        }
        tables[table].push((place, batch));
    }
    tables
}

impl Marigram {
    /// Writes one batch. A fault of the batch as a whole (an invalid name, too many columns)
    /// refuses its rows, but no other batch's.
    fn store(&self, database: &str, batch: &WriteBatch, create: bool) -> Result<WriteReport> {
        let mut result = self.write(database, batch);
        let mut created = None;
        if let Err(crate::Error::Engine(EngineError::NotFound {
            kind: "database", ..
        })) = &result
            && create
        {
            self.engine
                .create_database(database, true)
                .map_err(service_error)?;
            created = Some(format!("CREATE DATABASE {}", quoted(database)));
            result = self.write(database, batch);
        }
        let stored = self.stored(batch, result);
        stored.map(|mut report| {
            report.created.splice(0..0, created);
            report
        })
    }

    /// The report of a batch that was written, or refused as a whole.
    fn stored(
        &self,
        batch: &WriteBatch,
        result: crate::Result<marigram_engine::WriteReport>,
    ) -> Result<WriteReport> {
        match result {
            // If the disk of one shard fails, the rows in the other shards stay stored: that is not
            // a refusal of the batch.
            Ok(report) if !report.rejected.is_empty() => match self.engine.status().read_only {
                Some(reason) => Err(ServiceError::Internal(format!(
                    "{reason}; {} rows of table '{}' are stored and {} are not",
                    report.stored,
                    batch.table,
                    report.rejected.len()
                ))),
                None => Ok(to_report(report, &batch.table)),
            },
            Ok(report) => Ok(to_report(report, &batch.table)),
            Err(crate::Error::Engine(
                error @ (EngineError::Invalid(_) | EngineError::Schema(_)),
            )) => {
                let reason = error.to_string();
                let refuse = |row| RejectedRow {
                    row,
                    reason: reason.clone(),
                };
                Ok(WriteReport {
                    rejected: (0..batch.len()).map(refuse).collect(),
                    ..WriteReport::default()
                })
            }
            Err(error) => Err(to_service(error)),
        }
    }
}

fn to_report(report: marigram_engine::WriteReport, table: &str) -> WriteReport {
    let created = report.growth.map(|growth| statement_of(&growth, table));
    let rejected = report.rejected.into_iter().map(|rejected| RejectedRow {
        row: rejected.row as usize,
        reason: rejected.reason,
    });
    WriteReport {
        stored: report.stored,
        rejected: rejected.collect(),
        created: created.into_iter().collect(),
    }
}

/// The statement that would have made a table, or added what it lacked.
fn statement_of(growth: &TableGrowth, table: &str) -> String {
    let tags = growth.tags.iter();
    let tags = tags.map(|(name, kind)| format!("{} {kind} TAG", quoted(name)));
    let fields = growth.fields.iter();
    let fields = fields.map(|(name, kind)| format!("{} {kind} FIELD", quoted(name)));
    let columns: Vec<String> = tags.chain(fields).collect();
    let table = quoted(table);
    if growth.is_new {
        format!("CREATE TABLE {table} ({})", columns.join(", "))
    } else {
        format!("ALTER TABLE {table} ADD {}", columns.join(", ADD "))
    }
}

/// A table's schema as Arrow, in the order of its columns; each column's metadata names its role.
fn arrow_schema(schema: &TableSchema) -> SchemaRef {
    let column = |name: &str, data_type: DataType, role: &str, nullable: bool| {
        let role = HashMap::from([("marigram.role".to_owned(), role.to_owned())]);
        Field::new(name, data_type, nullable).with_metadata(role)
    };
    let zoned = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let is_zoned = |id| schema.options.zoned.contains(&id);
    let time_type = if is_zoned(ColumnId::TIME) {
        zoned.clone()
    } else {
        DataType::Timestamp(TimeUnit::Nanosecond, None)
    };
    let described = |described| {
        let name = schema.name_of(described)?;
        Some(match described {
            TableColumn::Time => column(name, time_type.clone(), "time", false),
            TableColumn::Tag(ordinal) => {
                let tag = schema.tags.get(usize::from(ordinal))?;
                column(name, tag.kind.data_type(), "tag", true)
            }
            TableColumn::Field(id) if is_zoned(id) => column(name, zoned.clone(), "field", true),
            TableColumn::Field(id) => {
                let kind = schema.field_by_id(id)?.kind;
                column(name, kind.data_type(), "field", true)
            }
        })
    };
    Arc::new(Schema::new(
        schema.columns().filter_map(described).collect::<Vec<_>>(),
    ))
}

#[async_trait]
impl Query for Marigram {
    fn wrapped(&self) -> Option<&dyn Query> {
        Some(&self.sql)
    }

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        let running = self.statements.begin();
        let work = self.sql.execute(session, statement);
        let answer = running.until_stopped(work).await?;
        Ok(running.watch(answer))
    }

    async fn prepare_typed(
        &self,
        session: &Session,
        statement: &str,
        types: &[DataType],
    ) -> Result<Arc<dyn Prepared>> {
        self.sql.prepare_typed(session, statement, types).await
    }

    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        let running = self.statements.begin();
        let work = self.sql.execute_prepared(session, prepared, parameters);
        let answer = running.until_stopped(work).await?;
        Ok(running.watch(answer))
    }
}

#[async_trait]
impl LanguageQuery for Marigram {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        self.sql.run(session, request).await
    }
}

#[async_trait]
impl Authentication for Marigram {
    fn is_open(&self) -> bool {
        self.sql.access().is_open()
    }

    fn rights(&self, identity: &Identity) -> Result<Arc<AccessRights>> {
        self.sql.access().rights(identity)
    }

    async fn check_password(&self, user: &str, password: &str) -> Result<Identity> {
        if let Some(known) = self.sql.access().known_password(user, password) {
            return Ok(known);
        }
        let _place = self.password_checks.enter().await?;
        let (sql, user, password) = (self.sql.clone(), user.to_owned(), password.to_owned());
        let check = move || sql.access().check_password(&user, &password);
        self.runtime.run_blocking(check).await?
    }

    fn check_token(&self, text: &str) -> Option<Identity> {
        self.sql.access().check_token(text)
    }

    fn user_number(&self, user: &str) -> u64 {
        self.sql.access().user_number(user)
    }

    fn verifiers(&self, user: &str) -> PasswordVerifiers {
        self.sql.access().verifiers(user)
    }
}

#[async_trait]
impl Status for Marigram {
    fn health(&self) -> std::result::Result<(), String> {
        match self.engine.status().read_only {
            Some(reason) => Err(format!("writes are refused: {reason}")),
            None => Ok(()),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let damaged = self.engine.status().segments_damaged;
        let warning = format!(
            "segments whose files are missing or damaged: {damaged}; queries that need their rows \
             fail. The log of the start names them; see marigram verify and marigram restore"
        );
        (damaged > 0).then_some(warning).into_iter().collect()
    }

    fn metrics(&self) -> Vec<Metric> {
        let memory_limit = self.engine.memory().limit();
        let plans = self.sql.plan_cache();
        let mut metrics = metrics::engine_metrics(&self.engine.status(), memory_limit, plans);
        if let Some(watch) = &self.watch {
            metrics.extend(metrics::process_metrics(&watch.figures));
        }
        metrics.extend(metrics::view_metrics(&self.sql.views()));
        metrics
    }

    fn take_memory(&self, bytes: usize) -> bool {
        self.engine.memory().try_grow(Holder::Requests, bytes)
    }

    fn give_memory(&self, bytes: usize) {
        self.engine.memory().shrink(Holder::Requests, bytes);
    }

    fn memory_max(&self) -> usize {
        self.engine.memory().attainable(Holder::Requests)
    }
}

#[async_trait]
impl Backup for Marigram {
    async fn backup(&self, folder: &Path, keep: Option<usize>) -> Result<BackupReport> {
        let (db, folder) = (self.clone(), folder.to_owned());
        let taken = self
            .runtime
            .run_blocking(move || Self::backup(&db, &folder, keep))
            .await?
            .map_err(to_service)?;
        Ok(BackupReport {
            number: taken.info.number,
            taken_ns: taken.info.taken_ns,
            files: taken.info.files,
            bytes: taken.info.bytes,
            bytes_new: taken.info.bytes_new,
            rows: taken.info.rows,
            pruned: taken.pruned,
            warnings: taken.warnings,
        })
    }
}

impl Roles {
    /// The roles that [`Ingest::table_schema`] wrote into a schema's metadata; `None` if no column
    /// is the time.
    pub fn from_metadata(schema: &Schema) -> Option<Self> {
        let of_role = |role: &'static str| {
            schema
                .fields()
                .iter()
                .filter(move |field| {
                    field
                        .metadata()
                        .get("marigram.role")
                        .is_some_and(|found| found == role)
                })
                .map(|field| field.name().clone())
        };
        let time = of_role("time").next()?;
        Some(Self {
            time,
            tags: of_role("tag").collect(),
        })
    }
}
