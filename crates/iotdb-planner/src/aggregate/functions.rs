//! Functions of rows that know the windows and groups of a query.

use crate::device_rows::time_type;
use arrow::array::{ArrayRef, AsArray, Int64Builder, ListBuilder, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, TimestampNanosecondType};
use datafusion::common::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use marigram_iotdb::WindowSequence;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A function that knows something of the query; equal only to itself.
macro_rules! equal_by_address {
    ($name:ident, $field:ident) => {
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.$field, &other.$field)
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                std::ptr::from_ref(&*self.$field).hash(state);
            }
        }
    };
}

/// The numbers of the windows that have a time.
#[derive(Debug)]
pub(super) struct WindowsOfTime {
    windows: Arc<WindowSequence>,
    signature: Signature,
}

equal_by_address!(WindowsOfTime, windows);

impl WindowsOfTime {
    pub(super) fn new(windows: WindowSequence) -> Self {
        Self {
            windows: Arc::new(windows),
            signature: Signature::new(TypeSignature::Any(1), Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for WindowsOfTime {
    fn name(&self) -> &'static str {
        "iotdb_windows_of_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        let item = Field::new("item", DataType::Int64, true);
        Ok(DataType::List(Arc::new(item)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let times = match args.args.first() {
            Some(times) => times.to_array(args.number_rows)?,
            None => return datafusion::common::internal_err!("a function lacks its argument"),
        };
        let times = cast(&times, &time_type())?;
        let times = times.as_primitive::<TimestampNanosecondType>();
        let mut lists = ListBuilder::new(Int64Builder::new());
        for time in times {
            if let Some(time) = time {
                // A window that has its end has no times behind it.
                let has_ends = self.windows.windows().has_ends;
                let ms = if has_ends {
                    time.div_euclid(1_000_000) + i64::from(time.rem_euclid(1_000_000) > 0)
                } else {
                    time.div_euclid(1_000_000)
                };
                for number in self.windows.of_time(ms) {
                    lists.values().append_option(i64::try_from(number).ok());
                }
            }
            lists.append(true);
        }
        let lists: ArrayRef = Arc::new(lists.finish());
        Ok(ColumnarValue::Array(lists))
    }
}

/// The group of a device.
#[derive(Debug)]
pub(super) struct DeviceAggregates {
    names: Arc<HashMap<Arc<str>, Arc<str>>>,
    signature: Signature,
}

equal_by_address!(DeviceAggregates, names);

impl DeviceAggregates {
    pub(super) fn new(names: HashMap<Arc<str>, Arc<str>>) -> Self {
        Self {
            names: Arc::new(names),
            signature: Signature::new(TypeSignature::Any(1), Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for DeviceAggregates {
    fn name(&self) -> &'static str {
        "iotdb_device_group"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let devices = match args.args.first() {
            Some(devices) => devices.to_array(args.number_rows)?,
            None => return datafusion::common::internal_err!("a function lacks its argument"),
        };
        let devices = cast(&devices, &DataType::Utf8)?;
        let texts = devices.as_string::<i32>().iter();
        let groups: StringArray = texts
            .map(|text| self.names.get(text?).map(|group| &**group))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(groups)))
    }
}
