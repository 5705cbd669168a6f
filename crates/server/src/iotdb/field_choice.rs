//! Which field a value of a device goes to, and in which type.

use super::cast::is_convertible;
use super::catalog::{DeviceFields, DeviceTypes, MissingPart};
use marigram_iotdb::{IotDbType, field_name};

/// Where values of a timeseries go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldTarget {
    /// The field.
    pub(super) field: String,
    /// The type of its values.
    pub(super) kind: IotDbType,
}

/// Where values of a timeseries go, or why they go nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldChoice {
    /// Into a field.
    Into(FieldTarget),
    /// The timeseries has this type, to which the values do not convert.
    WrongType(IotDbType),
}

/// Chooses the field for values of a type.
///
/// `types` gives the types of the device's timeseries; it is only called if the fields of the measurement
/// do not decide: nearly always there is one, of the type of the values.
///
/// # Errors
/// Those of `types`.
pub(super) fn choose_field<T: AsRef<DeviceTypes>>(
    fields: &DeviceFields,
    measurement: &str,
    kind: IotDbType,
    types: impl FnOnce() -> Result<T, MissingPart>,
) -> Result<FieldChoice, MissingPart> {
    let known = fields.of_measurement(measurement);
    match known {
        [] if !fields.has_declared() => {
            return Ok(into(field_name(measurement, kind, None), kind));
        }
        [(field, found)] if found.stored() == kind.stored() => {
            return Ok(into(field.clone(), *found));
        }
        _ => {}
    }
    let types = types()?;
    let Some(registered) = types.as_ref().get(measurement).copied() else {
        return Ok(named_field(known, measurement, kind));
    };
    if !is_convertible(kind, registered) {
        return Ok(FieldChoice::WrongType(registered));
    }
    Ok(named_field(known, measurement, registered))
}

/// The type in which a text of a device is read: that of its timeseries, or `inferred`.
///
/// # Errors
/// Those of `types`.
pub(super) fn choose_text_kind<T: AsRef<DeviceTypes>>(
    fields: &DeviceFields,
    measurement: &str,
    inferred: IotDbType,
    types: impl FnOnce() -> Result<T, MissingPart>,
) -> Result<IotDbType, MissingPart> {
    match fields.of_measurement(measurement) {
        [] if !fields.has_declared() => Ok(inferred),
        [(_, kind)] if kind.stored() == inferred.stored() => Ok(*kind),
        known => {
            let types = types()?;
            if let Some(registered) = types.as_ref().get(measurement) {
                return Ok(*registered);
            }
            // A new timeseries is like those of other devices.
            Ok(known.first().map_or(inferred, |(_, kind)| *kind))
        }
    }
}

/// The field of a measurement for a type, whether it is there or not.
fn named_field(known: &[(String, IotDbType)], measurement: &str, kind: IotDbType) -> FieldChoice {
    let mut same = known
        .iter()
        .filter(|(_, found)| found.stored() == kind.stored());
    if let Some((field, _)) = same.next() {
        return into(field.clone(), kind);
    }
    let plain = known.iter().find(|(field, _)| field == measurement);
    let plain = plain.map(|(_, kind)| *kind);
    into(field_name(measurement, kind, plain), kind)
}

fn into(field: String, kind: IotDbType) -> FieldChoice {
    FieldChoice::Into(FieldTarget {
        field,
        kind: kind.stored(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use marigram_iotdb::TreePath;
    use marigram_service::ROLE_KEY;
    use std::collections::HashMap;
    use std::sync::Arc;

    fn fields(columns: &[(&str, DataType)]) -> DeviceFields {
        let role = HashMap::from([(ROLE_KEY.to_owned(), "field".to_owned())]);
        let columns = columns
            .iter()
            .map(|(name, kind)| Field::new(*name, kind.clone(), true).with_metadata(role.clone()));
        DeviceFields::from_schema(&Schema::new(columns.collect::<Vec<_>>()))
    }

    fn chosen(
        columns: &[(&str, DataType)],
        kind: IotDbType,
        own: Option<IotDbType>,
    ) -> FieldChoice {
        let types = own.map(|own| ("s".to_owned(), own)).into_iter().collect();
        let types = || Ok(Arc::new(types));
        choose_field(&fields(columns), "s", kind, types).expect("known")
    }

    #[test]
    fn the_usual_value_needs_no_types() {
        let missing = || {
            let device = TreePath::parse("root.a.b").expect("a path");
            Err::<Arc<DeviceTypes>, _>(MissingPart::Device(device))
        };
        for columns in [&[][..], &[("s", DataType::Int32)]] {
            let choice = choose_field(&fields(columns), "s", IotDbType::Int32, missing);
            assert_eq!(choice, Ok(into("s".to_owned(), IotDbType::Int32)));
        }
        let both = [("s", DataType::Int32), ("s::TEXT", DataType::Utf8)];
        assert!(choose_field(&fields(&both), "s", IotDbType::Int32, missing).is_err());
        let declared = fields(&[]).with_declared(true);
        assert!(choose_field(&declared, "s", IotDbType::Int32, missing).is_err());
        let types = || {
            Ok(Arc::new(DeviceTypes::from([(
                "s".to_owned(),
                IotDbType::Double,
            )])))
        };
        assert_eq!(
            choose_field(&declared, "s", IotDbType::Int32, types),
            Ok(into("s".to_owned(), IotDbType::Double))
        );
    }

    #[test]
    fn another_type_has_a_field_of_its_own_or_is_converted() {
        use IotDbType::{Boolean, Double, Int32, Int64, Text};
        let int = [("s", DataType::Int32)];
        assert_eq!(chosen(&int, Text, None), into("s::TEXT".to_owned(), Text));
        assert_eq!(
            chosen(&int, Text, Some(Int32)),
            FieldChoice::WrongType(Int32)
        );
        let double = [("s", DataType::Float64)];
        assert_eq!(
            chosen(&double, Int32, Some(Double)),
            into("s".to_owned(), Double)
        );
        assert_eq!(
            chosen(&double, Int32, None),
            into("s::INT32".to_owned(), Int32)
        );
        let both = [("s", DataType::Boolean), ("s::INT64", DataType::Int64)];
        assert_eq!(
            chosen(&both, Int32, Some(Int64)),
            into("s::INT64".to_owned(), Int64)
        );
        assert_eq!(
            chosen(&both, Boolean, Some(Int64)),
            FieldChoice::WrongType(Int64)
        );
        assert_eq!(chosen(&both, Boolean, None), into("s".to_owned(), Boolean));
    }

    #[test]
    fn texts_are_read_as_their_timeseries_is() {
        let kind = |columns: &[(&str, DataType)], own: Option<IotDbType>| {
            let types: DeviceTypes = own.map(|own| ("s".to_owned(), own)).into_iter().collect();
            let types = || Ok(Arc::new(types));
            choose_text_kind(&fields(columns), "s", IotDbType::Double, types).expect("known")
        };
        assert_eq!(kind(&[], None), IotDbType::Double);
        let int = [("s", DataType::Int32)];
        assert_eq!(kind(&int, None), IotDbType::Int32);
        assert_eq!(kind(&int, Some(IotDbType::Text)), IotDbType::Text);
    }
}
