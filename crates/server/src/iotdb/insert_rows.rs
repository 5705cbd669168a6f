//! Turns the rows of an insert into batches, one after the other.
//!
//! A row without a value is left out. A value that does not fit its timeseries is left out as well, and its
//! part of the request gets a fault that names it, as IoTDB does it; the other values are stored.

use super::cast::{TreeValue, convert, inferred_kind, kind_of, read_text};
use super::catalog::{MissingPart, TreeCatalog};
use super::device_batches::{DatabaseRows, DevicePlace, OpenDatabase};
use super::field_choice::{FieldChoice, choose_field, choose_text_kind};
use super::left_out::LeftOut;
use marigram_iotdb::{
    IotDbFault, IotDbType, IotDbValue, PathNode, PathPattern, Tablet, TreeLiteral, TreePath,
    ms_to_ns,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Instant;

/// The rows of a request, or what must be known before they can be read.
pub(super) enum RowPreparation {
    /// The rows, and the faults of parts.
    Ready(Vec<DatabaseRows>, Vec<(usize, IotDbFault)>),
    /// What is missing.
    Missing(HashSet<MissingPart>),
}

/// Builds batches.
pub(super) struct InsertRows<'a> {
    catalog: &'a TreeCatalog,
    begin: Instant,
    devices: HashMap<&'a str, Option<Rc<DevicePlace>>>,
    databases: Vec<OpenDatabase>,
    missing: HashSet<MissingPart>,
    faults: Vec<(usize, IotDbFault)>,
}

impl<'a> InsertRows<'a> {
    /// No rows yet, of a request that came at `begin`.
    pub(super) fn new(catalog: &'a TreeCatalog, begin: Instant) -> Self {
        Self {
            catalog,
            begin,
            devices: HashMap::new(),
            databases: Vec::new(),
            missing: HashSet::new(),
            faults: Vec::new(),
        }
    }

    /// What was built.
    pub(super) fn finish(self) -> RowPreparation {
        if !self.missing.is_empty() {
            return RowPreparation::Missing(self.missing);
        }
        let databases = self.databases.into_iter().map(OpenDatabase::finish);
        let used = databases.filter(|rows| !rows.batches.is_empty());
        RowPreparation::Ready(used.collect(), self.faults)
    }

    /// Adds a row whose values have types.
    ///
    /// # Errors
    /// If the numbers of measurements and values differ.
    pub(super) fn add_record(
        &mut self,
        part: usize,
        (device, time_ms): (&'a str, i64),
        measurements: &[&str],
        values: &[Option<IotDbValue<'_>>],
    ) -> Result<(), IotDbFault> {
        check_counts(measurements.len(), values.len())?;
        let Some(place) = self.device(part, device) else {
            return Ok(());
        };
        let mut left_out = LeftOut::default();
        let mut cells = Vec::with_capacity(values.len());
        for (name, value) in measurements.iter().zip(values) {
            let Some(value) = value else { continue };
            let Some(name) = self.measurement(part, name) else {
                continue;
            };
            let Some(choice) = self.target(&place, &name, kind_of(*value)) else {
                continue;
            };
            match &*choice {
                FieldChoice::Into(target) => match convert(*value, target.kind) {
                    Some(value) => cells.push((choice.clone(), TreeValue::Borrowed(value))),
                    None => left_out.note(&place.text, &name, "it is no text"),
                },
                FieldChoice::WrongType(registered) => {
                    left_out.note_type(&place.text, &name, *registered, kind_of(*value), time_ms);
                }
            }
        }
        self.end_row(part, &place, time_ms, &cells, &mut left_out);
        self.note_left_out(part, left_out);
        Ok(())
    }

    /// Adds a row of texts.
    ///
    /// # Errors
    /// If the numbers of measurements and values differ.
    pub(super) fn add_texts(
        &mut self,
        part: usize,
        (device, time_ms): (&'a str, i64),
        measurements: &[&str],
        values: &[&str],
    ) -> Result<(), IotDbFault> {
        check_counts(measurements.len(), values.len())?;
        let Some(place) = self.device(part, device) else {
            return Ok(());
        };
        let mut left_out = LeftOut::default();
        let mut cells = Vec::with_capacity(values.len());
        for (name, text) in measurements.iter().zip(values) {
            let literal = TreeLiteral::from_text(text);
            let Some(inferred) = inferred_kind(&literal) else {
                continue;
            };
            let Some(name) = self.measurement(part, name) else {
                continue;
            };
            let Some(kind) = self.text_kind(&place, &name, inferred) else {
                continue;
            };
            let Some(value) = read_text(text, &literal, kind) else {
                left_out.note_type(&place.text, &name, kind, inferred, time_ms);
                continue;
            };
            let Some(choice) = self.target(&place, &name, kind) else {
                continue;
            };
            match &*choice {
                FieldChoice::Into(target) if target.kind == kind.stored() => {
                    cells.push((choice, value));
                }
                FieldChoice::Into(target) => {
                    left_out.note_type(&place.text, &name, target.kind, kind, time_ms);
                }
                FieldChoice::WrongType(registered) => {
                    left_out.note_type(&place.text, &name, *registered, kind, time_ms);
                }
            }
        }
        self.end_row(part, &place, time_ms, &cells, &mut left_out);
        self.note_left_out(part, left_out);
        Ok(())
    }

    /// Adds the rows of a tablet.
    ///
    /// # Errors
    /// If the numbers of measurements and columns differ.
    pub(super) fn add_tablet(
        &mut self,
        part: usize,
        device: &'a str,
        measurements: &[&str],
        tablet: &Tablet<'_>,
    ) -> Result<(), IotDbFault> {
        check_counts(measurements.len(), tablet.columns().len())?;
        let Some(place) = self.device(part, device) else {
            return Ok(());
        };
        let mut left_out = LeftOut::default();
        let mut columns = Vec::new();
        for (name, column) in measurements.iter().zip(tablet.columns()) {
            if column.values().all(|value| value.is_none()) {
                continue;
            }
            let Some(name) = self.measurement(part, name) else {
                continue;
            };
            let Some(choice) = self.target(&place, &name, column.kind) else {
                continue;
            };
            match &*choice {
                FieldChoice::Into(target) => {
                    let kind = target.kind;
                    columns.push((choice, name, kind, column.values()));
                }
                FieldChoice::WrongType(registered) => {
                    let first = tablet.times().next().unwrap_or_default();
                    left_out.note_type(&place.text, &name, *registered, column.kind, first);
                }
            }
        }
        let mut cells = Vec::with_capacity(columns.len());
        for time_ms in tablet.times() {
            cells.clear();
            for (choice, name, kind, values) in &mut columns {
                let Some(value) = values.next().flatten() else {
                    continue;
                };
                match convert(value, *kind) {
                    Some(value) => cells.push((choice.clone(), TreeValue::Borrowed(value))),
                    None => left_out.note(&place.text, name, "it is no text"),
                }
            }
            self.end_row(part, &place, time_ms, &cells, &mut left_out);
        }
        self.note_left_out(part, left_out);
        Ok(())
    }

    /// Where rows of a device go; `None` if that is not known, or the device cannot be.
    fn device(&mut self, part: usize, text: &'a str) -> Option<Rc<DevicePlace>> {
        if let Some(Some(known)) = self.devices.get(text) {
            return Some(Rc::clone(known));
        }
        let path = match device_path(text) {
            Ok(path) => path,
            Err(fault) => {
                self.faults.push((part, fault));
                return None;
            }
        };
        if self.devices.contains_key(text) {
            return None;
        }
        let place = match self.place(path) {
            Ok(place) => place.map(Rc::new),
            Err(missing) => {
                self.missing.insert(missing);
                None
            }
        };
        self.devices.insert(text, place.clone());
        place
    }

    fn place(&mut self, path: TreePath) -> Result<Option<DevicePlace>, MissingPart> {
        let Some(database) = self.catalog.database_of(&path, self.begin)? else {
            return Ok(None);
        };
        let mut open = self.databases.iter();
        let known = open.position(|open| open.database == database);
        let database = match known {
            Some(known) => known,
            None => {
                let fields = self.catalog.fields_of(&database, self.begin)?;
                self.databases.push(OpenDatabase::new(database, fields));
                self.databases.len() - 1
            }
        };
        Ok(Some(DevicePlace {
            text: path.to_string(),
            path,
            database,
        }))
    }

    /// The name of a measurement; `None`, and a fault, if it is none.
    fn measurement<'n>(&mut self, part: usize, text: &'n str) -> Option<Cow<'n, str>> {
        let name = measurement_name(text);
        if name.is_none() {
            let fault = IotDbFault::path(format!("{text} is not a legal measurement"));
            self.faults.push((part, fault));
        }
        name
    }

    fn target(
        &mut self,
        place: &DevicePlace,
        measurement: &str,
        kind: IotDbType,
    ) -> Option<Rc<FieldChoice>> {
        let open = self.databases.get_mut(place.database)?;
        if let Some(known) = open.shared_target(measurement, kind) {
            return Some(known);
        }
        let key = (place.text.clone(), measurement.to_owned(), kind);
        if let Some(known) = open.own_targets.get(&key) {
            return Some(Rc::clone(known));
        }
        let (catalog, begin) = (self.catalog, self.begin);
        let mut depends_on_device = false;
        let types = || {
            depends_on_device = true;
            catalog.types_of(&place.path, begin)
        };
        match choose_field(&open.fields, measurement, kind, types) {
            Ok(choice) => {
                let choice = Rc::new(choice);
                if depends_on_device {
                    open.own_targets.insert(key, Rc::clone(&choice));
                } else {
                    let known = open.shared_targets.entry(measurement.to_owned());
                    known.or_default().push((kind, Rc::clone(&choice)));
                }
                Some(choice)
            }
            Err(missing) => {
                self.missing.insert(missing);
                None
            }
        }
    }

    fn text_kind(
        &mut self,
        place: &DevicePlace,
        measurement: &str,
        inferred: IotDbType,
    ) -> Option<IotDbType> {
        let open = self.databases.get(place.database)?;
        let (catalog, begin) = (self.catalog, self.begin);
        let types = || catalog.types_of(&place.path, begin);
        match choose_text_kind(&open.fields, measurement, inferred, types) {
            Ok(kind) => Some(kind),
            Err(missing) => {
                self.missing.insert(missing);
                None
            }
        }
    }

    /// Adds a row with these values, if there are any.
    fn end_row(
        &mut self,
        part: usize,
        place: &DevicePlace,
        time_ms: i64,
        cells: &[(Rc<FieldChoice>, TreeValue<'_>)],
        left_out: &mut LeftOut,
    ) {
        if cells.is_empty() || !self.missing.is_empty() {
            return;
        }
        let Some(time_ns) = ms_to_ns(time_ms) else {
            left_out.note_time(&place.text, time_ms);
            return;
        };
        if let Some(open) = self.databases.get_mut(place.database) {
            open.add_row(part, place, time_ns, cells, left_out);
        }
    }

    fn note_left_out(&mut self, part: usize, left_out: LeftOut) {
        if let Some(fault) = left_out.fault() {
            self.faults.push((part, fault));
        }
    }
}

fn check_counts(measurements: usize, values: usize) -> Result<(), IotDbFault> {
    if measurements == values {
        return Ok(());
    }
    Err(IotDbFault::parameter(format!(
        "there are {measurements} measurements, and {values} values for them"
    )))
}

fn device_path(text: &str) -> Result<TreePath, IotDbFault> {
    let path = TreePath::parse(text)?;
    if path.is_absolute() && path.nodes().len() >= 2 {
        return Ok(path);
    }
    Err(IotDbFault::path(format!("{text} is not a legal device")))
}

/// The name that a client writes as a node; `None` if it is no node.
fn measurement_name(text: &str) -> Option<Cow<'_, str>> {
    let is_plain = |char: char| char.is_alphanumeric() || "_:@#${}".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Some(Cow::Borrowed(text));
    }
    let pattern = PathPattern::parse(text).ok()?;
    match pattern.nodes() {
        [PathNode::Name(name)] => Some(Cow::Owned(name.clone())),
        _ => None,
    }
}
