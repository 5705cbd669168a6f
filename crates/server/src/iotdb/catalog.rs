//! What inserts must know of the database: which databases of IoTDB there are, and which fields and types
//! their measurements have.
//!
//! It is asked for when an insert needs it, and then remembered for a short while: others may change it at
//! any time. A change that a client of this listener makes is seen at once.
//!
//! Invariant: what is remembered is bounded.

use crate::listener::ServerState;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema, TimeUnit};
use futures::StreamExt;
use marigram_iotdb::{
    DEVICES_TABLE, IotDbType, PathPattern, TIMESERIES_TABLE, TreePath, database_path,
    databases_above, measurement_of_field,
};
use marigram_service::{
    Answer, Identity, Language, LanguageRequest, ROLE_KEY, Result, ServiceError, Session,
};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long databases and fields are remembered.
const TABLES_FRESH: Duration = Duration::from_secs(5);

/// How long the types of a device's timeseries are remembered.
const DEVICES_FRESH: Duration = Duration::from_mins(1);

/// Devices and databases that are remembered.
const DEVICES_MAX: usize = 20_000;
const TABLES_MAX: usize = 2_000;

/// The fields of a database's devices.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceFields {
    by_measurement: HashMap<String, Vec<(String, IotDbType)>>,
    /// Whether timeseries were created before they had values.
    has_declared: bool,
}

/// The types of a device's timeseries, by measurement.
pub(super) type DeviceTypes = HashMap<String, IotDbType>;

/// What is known.
#[derive(Debug, Default)]
pub(super) struct TreeCatalog {
    known: Mutex<KnownTree>,
}

#[derive(Debug, Default)]
struct KnownTree {
    databases: Option<(Instant, Arc<HashSet<String>>)>,
    tables: HashMap<String, (Instant, Arc<DeviceFields>)>,
    devices: HashMap<TreePath, (Instant, Arc<DeviceTypes>)>,
}

/// What an insert needs and the catalog does not know.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum MissingPart {
    /// The databases.
    Databases,
    /// The fields of a database.
    Fields(String),
    /// The types of a device's timeseries.
    Device(TreePath),
}

/// The database of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceDatabase {
    /// Its name.
    pub(super) name: String,
    /// Whether it is there already.
    pub(super) exists: bool,
}

impl DeviceFields {
    /// Those of a table.
    pub(super) fn from_schema(schema: &Schema) -> Self {
        let mut by_measurement: HashMap<String, Vec<(String, IotDbType)>> = HashMap::new();
        for field in schema.fields() {
            if field.metadata().get(ROLE_KEY).map(String::as_str) != Some("field") {
                continue;
            }
            let (measurement, named) = measurement_of_field(field.name());
            let Some(kind) = named.or_else(|| kind_of_arrow(field.data_type())) else {
                continue;
            };
            let fields = by_measurement.entry(measurement.to_owned()).or_default();
            fields.push((field.name().clone(), kind));
        }
        Self {
            by_measurement,
            has_declared: false,
        }
    }

    /// The same, where timeseries may have types before they have values.
    #[must_use]
    pub(super) fn with_declared(self, has_declared: bool) -> Self {
        Self {
            has_declared,
            ..self
        }
    }

    /// Whether timeseries may have types before they have values.
    pub(super) fn has_declared(&self) -> bool {
        self.has_declared
    }

    /// The fields of a measurement, and their types.
    pub(super) fn of_measurement(&self, measurement: &str) -> &[(String, IotDbType)] {
        self.by_measurement
            .get(measurement)
            .map_or(&[], Vec::as_slice)
    }
}

/// The type that a field of this Arrow type has, if its name says no other.
fn kind_of_arrow(kind: &DataType) -> Option<IotDbType> {
    Some(match kind {
        DataType::Boolean => IotDbType::Boolean,
        DataType::Int32 => IotDbType::Int32,
        DataType::Int64 => IotDbType::Int64,
        DataType::Float32 => IotDbType::Float,
        DataType::Float64 => IotDbType::Double,
        DataType::Utf8 => IotDbType::Text,
        DataType::Binary => IotDbType::Blob,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => IotDbType::Timestamp,
        _ => return None,
    })
}

impl TreeCatalog {
    fn lock(&self) -> MutexGuard<'_, KnownTree> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything, after a statement that may have changed it.
    pub(super) fn forget(&self) {
        *self.lock() = KnownTree::default();
    }

    /// Forgets the databases and the fields, after rows that did not fit.
    pub(super) fn forget_tables(&self) {
        let mut known = self.lock();
        known.databases = None;
        known.tables.clear();
    }

    /// The database of a device, as it was known at `begin`.
    pub(super) fn database_of(
        &self,
        device: &TreePath,
        begin: Instant,
    ) -> std::result::Result<Option<DeviceDatabase>, MissingPart> {
        let databases = match &self.lock().databases {
            Some((since, databases)) if is_fresh(*since, begin, TABLES_FRESH) => {
                Arc::clone(databases)
            }
            _ => return Err(MissingPart::Databases),
        };
        let mut above = databases_above(device).map(|path| path.to_string());
        let found = above.find(|name| databases.contains(name));
        let database = match found {
            Some(name) => Some(DeviceDatabase { name, exists: true }),
            None => marigram_iotdb::default_database(device).map(|path| DeviceDatabase {
                name: path.to_string(),
                exists: false,
            }),
        };
        Ok(database)
    }

    /// The fields of a database.
    pub(super) fn fields_of(
        &self,
        database: &DeviceDatabase,
        begin: Instant,
    ) -> std::result::Result<Arc<DeviceFields>, MissingPart> {
        if !database.exists {
            return Ok(Arc::default());
        }
        match self.lock().tables.get(&database.name) {
            Some((since, fields)) if is_fresh(*since, begin, TABLES_FRESH) => {
                Ok(Arc::clone(fields))
            }
            _ => Err(MissingPart::Fields(database.name.clone())),
        }
    }

    /// The types of a device's timeseries.
    pub(super) fn types_of(
        &self,
        device: &TreePath,
        begin: Instant,
    ) -> std::result::Result<Arc<DeviceTypes>, MissingPart> {
        match self.lock().devices.get(device) {
            Some((since, types)) if is_fresh(*since, begin, DEVICES_FRESH) => Ok(Arc::clone(types)),
            _ => Err(MissingPart::Device(device.clone())),
        }
    }

    /// Asks the database again for what it is and what a database has; returns whether something else
    /// was known.
    ///
    /// # Errors
    /// Why it does not answer.
    pub(super) async fn has_changed(&self, server: &ServerState, database: &str) -> Result<bool> {
        let (databases, fields) = {
            let known = self.lock();
            let databases = known.databases.as_ref().map(|(_, it)| Arc::clone(it));
            let fields = known.tables.get(database).map(|(_, it)| Arc::clone(it));
            (databases, fields)
        };
        self.learn(server, MissingPart::Databases).await?;
        let fields_now = MissingPart::Fields(database.to_owned());
        self.learn(server, fields_now).await?;
        let known = self.lock();
        let databases_now = known.databases.as_ref().map(|(_, it)| it);
        let fields_now = known.tables.get(database).map(|(_, it)| it);
        Ok(databases.as_ref() != databases_now || fields.as_ref() != fields_now)
    }

    /// Asks the database for what is missing.
    ///
    /// # Errors
    /// Why it does not answer.
    pub(super) async fn learn(&self, server: &ServerState, missing: MissingPart) -> Result<()> {
        match missing {
            MissingPart::Databases => {
                let databases = databases(server).await?;
                self.lock().databases = Some((Instant::now(), Arc::new(databases)));
            }
            MissingPart::Fields(name) => {
                let fields = fields(server, &name).await?;
                let mut known = self.lock();
                if known.tables.len() >= TABLES_MAX {
                    known.tables.clear();
                }
                known
                    .tables
                    .insert(name, (Instant::now(), Arc::new(fields)));
            }
            MissingPart::Device(device) => {
                let types = device_types(server, &device).await?;
                let mut known = self.lock();
                if known.devices.len() >= DEVICES_MAX {
                    known.devices.clear();
                }
                known
                    .devices
                    .insert(device, (Instant::now(), Arc::new(types)));
            }
        }
        Ok(())
    }
}

/// Whether something that was asked for at `since` was fresh at `begin`.
fn is_fresh(since: Instant, begin: Instant, fresh: Duration) -> bool {
    begin.saturating_duration_since(since) <= fresh
}

async fn databases(server: &ServerState) -> Result<HashSet<String>> {
    let mut names = HashSet::new();
    for batch in shown(server, "SHOW DATABASES").await? {
        for name in text_column(&batch, 0)? {
            if database_path(&name).is_some() {
                names.insert(name);
            }
        }
    }
    Ok(names)
}

async fn fields(server: &ServerState, database: &str) -> Result<DeviceFields> {
    let ingest = &server.services.ingest;
    let fields = match ingest.table_schema(database, DEVICES_TABLE).await {
        Ok(schema) => DeviceFields::from_schema(&schema),
        // It comes with the first rows.
        Err(ServiceError::NotFound(..)) => DeviceFields::default(),
        Err(error) => return Err(error),
    };
    let declared = ingest.table_schema(database, TIMESERIES_TABLE).await;
    Ok(fields.with_declared(declared.is_ok()))
}

async fn device_types(server: &ServerState, device: &TreePath) -> Result<DeviceTypes> {
    let shown = shown(server, &format!("SHOW TIMESERIES {device}.*")).await?;
    let mut types = DeviceTypes::new();
    for batch in shown {
        let place = |name: &str| {
            let found = batch.schema().index_of(name).ok();
            found.ok_or_else(|| ServiceError::Internal(format!("SHOW TIMESERIES has no {name}")))
        };
        let paths = text_column(&batch, place("Timeseries")?)?;
        let kinds = text_column(&batch, place("DataType")?)?;
        for (path, kind) in paths.into_iter().zip(kinds) {
            let path = PathPattern::parse(&path).ok().and_then(|it| it.as_path());
            let kind = IotDbType::from_name(&kind);
            if let (Some(path), Some(kind)) = (path, kind)
                && let Some((_, measurement)) = path.split_last()
            {
                types.insert(measurement.to_owned(), kind);
            }
        }
    }
    Ok(types)
}

/// What SHOW answers. The server itself asks: where rows belong does not depend on who sends them.
async fn shown(server: &ServerState, text: &str) -> Result<Vec<RecordBatch>> {
    let mut session = Session::new("", Identity::owner("iotdb"));
    session.read_only = true;
    session.statement_timeout = server.config.statement_timeout();
    let request = LanguageRequest::new(Language::IotDb, text);
    let mut answers = server.services.languages.run(&session, request).await?;
    let mut batches = Vec::new();
    while let Some(answer) = answers.next().await {
        match answer.answer {
            Ok(Answer::Rows(mut rows)) => {
                while let Some(batch) = rows.batches.next().await {
                    batches.push(batch?);
                }
            }
            Ok(Answer::Done { .. }) | Err(ServiceError::NotFound(..)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(batches)
}

/// A column of texts; no text for null.
fn text_column(batch: &RecordBatch, place: usize) -> Result<Vec<String>> {
    let column = batch.columns().get(place);
    let texts = column.and_then(|column| column.as_string_opt::<i32>());
    let texts =
        texts.ok_or_else(|| ServiceError::Internal("an answer of SHOW has no text".to_owned()))?;
    let texts = (0..texts.len()).map(|row| texts.value(row).to_owned());
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).expect("a path")
    }

    #[test]
    fn a_device_belongs_to_the_nearest_database() {
        let catalog = TreeCatalog::default();
        let begin = Instant::now();
        let device = path("root.sg.a.d");
        assert_eq!(
            catalog.database_of(&device, begin),
            Err(MissingPart::Databases)
        );
        let names = ["root.sg", "root.sg.a", "root.x"].map(str::to_owned);
        catalog.lock().databases = Some((begin, Arc::new(HashSet::from(names))));
        let known = |device: &str| catalog.database_of(&path(device), begin).expect("known");
        let database = |name: &str, exists| {
            Some(DeviceDatabase {
                name: name.to_owned(),
                exists,
            })
        };
        assert_eq!(known("root.sg.a.d"), database("root.sg.a", true));
        assert_eq!(known("root.sg.b.d"), database("root.sg", true));
        assert_eq!(known("root.new.b.d"), database("root.new", false));
        assert_eq!(known("a.b"), None);
        let later = begin + TABLES_FRESH + Duration::from_millis(1);
        assert!(catalog.database_of(&device, later).is_err());
        catalog.forget_tables();
        assert!(catalog.database_of(&device, begin).is_err());
    }

    #[test]
    fn fields_have_measurements_and_types() {
        let role = |name: &str| HashMap::from([(ROLE_KEY.to_owned(), name.to_owned())]);
        let schema = Schema::new(vec![
            Field::new("device", DataType::Utf8, true).with_metadata(role("tag")),
            Field::new("s", DataType::Int32, true).with_metadata(role("field")),
            Field::new("s::DATE", DataType::Int32, true).with_metadata(role("field")),
            Field::new("t", DataType::UInt64, true).with_metadata(role("field")),
        ]);
        let fields = DeviceFields::from_schema(&schema);
        let expected = [
            ("s".to_owned(), IotDbType::Int32),
            ("s::DATE".to_owned(), IotDbType::Date),
        ];
        assert_eq!(fields.of_measurement("s"), expected);
        assert!(fields.of_measurement("t").is_empty());
        assert!(fields.of_measurement("device").is_empty());
    }
}
