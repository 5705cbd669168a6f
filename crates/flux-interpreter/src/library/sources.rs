//! Where tables come from, what restricts them, and what makes them results.

use crate::value::{
    BucketRead, FluxArguments, FluxBuiltin, FluxCaller, FluxColumn, FluxKind, FluxListing,
    FluxOperation, FluxStream, FluxTable, FluxValue,
};
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The functions of every script.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "from",
        call: from,
    },
    FluxBuiltin {
        name: "range",
        call: range,
    },
    FluxBuiltin {
        name: "filter",
        call: filter,
    },
    FluxBuiltin {
        name: "yield",
        call: yielded,
    },
    FluxBuiltin {
        name: "buckets",
        call: buckets,
    },
];

/// Those of the packages `schema` and `v1`.
pub(super) const SCHEMA: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "measurements",
        call: measurements,
    },
    FluxBuiltin {
        name: "tagKeys",
        call: tag_keys,
    },
    FluxBuiltin {
        name: "measurementTagKeys",
        call: tag_keys,
    },
    FluxBuiltin {
        name: "tagValues",
        call: tag_values,
    },
    FluxBuiltin {
        name: "measurementTagValues",
        call: tag_values,
    },
    FluxBuiltin {
        name: "fieldKeys",
        call: field_keys,
    },
    FluxBuiltin {
        name: "measurementFieldKeys",
        call: field_keys,
    },
    FluxBuiltin {
        name: "fieldsAsCols",
        call: super::grouping::fields_as_columns,
    },
];

/// Those of the package `array`.
pub(super) const ARRAY: &[FluxBuiltin] = &[FluxBuiltin {
    name: "from",
    call: array_from,
}];

fn source(arguments: &FluxArguments, operation: FluxOperation) -> SqlResult<FluxValue> {
    let stream = FluxStream::new(arguments.at, operation, Vec::new())?;
    Ok(FluxValue::Stream(stream))
}

fn from(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    for ignored in ["org", "orgID"] {
        arguments.take(ignored);
    }
    let bucket = arguments.text("bucket")?;
    let bucket = caller.bucket(arguments.at, &bucket)?;
    let read = BucketRead {
        bucket,
        range: None,
        predicates: Vec::new(),
    };
    source(arguments, FluxOperation::Read(read))
}

fn range(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let (input, now_ns) = (arguments.stream()?, caller.now_ns());
    let start = arguments.need("start")?;
    let mut only = FluxArguments::new(arguments.at, "range", vec![("start".to_owned(), start)]);
    let start = only.time_or("start", now_ns, i64::MIN)?;
    let stop = arguments.time_or("stop", now_ns, now_ns)?;
    if start >= stop {
        return Err(arguments.fault("cannot query an empty range: start is not before stop"));
    }
    let range = (start, stop);
    if let FluxOperation::Read(read) = &input.operation
        && read.range.is_none()
    {
        let read = BucketRead {
            range: Some(range),
            ..read.clone()
        };
        return source(arguments, FluxOperation::Read(read));
    }
    let is_within = move |value: &FluxValue| match value {
        FluxValue::Time(ns) => *ns >= range.0 && *ns < range.1,
        _ => false,
    };
    let restrict = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let Some(times) = table.column("_time") else {
            return Ok(Vec::new());
        };
        let rows = (0..table.rows).filter(|row| is_within(times.value(*row)));
        let rows: Vec<usize> = rows.collect();
        let mut table = table.taken(&rows);
        for (name, ns) in [("_start", range.0), ("_stop", range.1)] {
            table.put_key(FluxColumn::same(name, FluxKind::Time, FluxValue::Time(ns)));
        }
        table.range = range;
        Ok(vec![table])
    };
    FluxStream::regroup(arguments.at, input, Box::new(restrict))
}

/// A read with one more predicate: of the stream itself, or below its filters.
fn with_predicate(
    stream: &Arc<FluxStream>,
    predicate: &FluxValue,
) -> SqlResult<Option<Arc<FluxStream>>> {
    match &stream.operation {
        FluxOperation::Read(read) => {
            let mut read = read.clone();
            read.predicates.push(predicate.clone());
            FluxStream::new(stream.at, FluxOperation::Read(read), Vec::new()).map(Some)
        }
        FluxOperation::Filter {
            predicate: known,
            keeps_empty: false,
        } => {
            let below = match stream.inputs.first() {
                Some(below) => with_predicate(below, predicate)?,
                None => None,
            };
            let Some(below) = below else {
                return Ok(None);
            };
            let operation = FluxOperation::Filter {
                predicate: known.clone(),
                keeps_empty: false,
            };
            FluxStream::new(stream.at, operation, vec![below]).map(Some)
        }
        _ => Ok(None),
    }
}

fn filter(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let predicate = arguments.function("fn")?;
    let keeps_empty = match &*arguments.text_or("onEmpty", "drop")? {
        "drop" => false,
        "keep" => true,
        _ => return Err(arguments.fault("onEmpty is drop or keep")),
    };
    let input = match with_predicate(&input, &predicate)? {
        Some(pushed) if !keeps_empty => pushed,
        _ => input,
    };
    let operation = FluxOperation::Filter {
        predicate,
        keeps_empty,
    };
    let stream = FluxStream::new(arguments.at, operation, vec![input])?;
    Ok(FluxValue::Stream(stream))
}

fn yielded(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("name", "_result")?;
    let stream = FluxStream::new(arguments.at, FluxOperation::Yield, vec![input])?;
    caller.add_result(arguments.at, &name, Arc::clone(&stream))?;
    Ok(FluxValue::Stream(stream))
}

fn buckets(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    for ignored in ["org", "orgID"] {
        arguments.take(ignored);
    }
    source(arguments, FluxOperation::Listing(FluxListing::Buckets))
}

/// The bucket and the predicate of a function of schemas. Its times are checked and not used: the
/// index of series has none.
fn listed(
    caller: &mut dyn FluxCaller,
    arguments: &mut FluxArguments,
) -> SqlResult<(crate::value::FluxBucket, Option<FluxValue>)> {
    let name = arguments.text("bucket")?;
    let bucket = caller.bucket(arguments.at, &name)?;
    let now_ns = caller.now_ns();
    for name in ["start", "stop"] {
        arguments.time_or(name, now_ns, now_ns)?;
    }
    let predicate = match arguments.take("predicate") {
        Some(predicate @ (FluxValue::Function(_) | FluxValue::Builtin(_))) => Some(predicate),
        Some(_) => return Err(arguments.fault("argument predicate is no function")),
        None => None,
    };
    let measurement = arguments.take("measurement");
    if (arguments.function.starts_with("measurement") && arguments.function != "measurements")
        != measurement.is_some()
    {
        return Err(arguments.fault("missing or needless argument measurement"));
    }
    let predicate = match measurement {
        Some(FluxValue::Text(name)) => Some(FluxValue::Text(name)),
        Some(_) => return Err(arguments.fault("argument measurement is no string")),
        None => predicate,
    };
    Ok((bucket, predicate))
}

fn measurements(
    caller: &mut dyn FluxCaller,
    arguments: &mut FluxArguments,
) -> SqlResult<FluxValue> {
    let (bucket, predicate) = listed(caller, arguments)?;
    let tag = "_measurement".into();
    let listing = FluxListing::TagValues {
        bucket,
        tag,
        predicate,
    };
    source(arguments, FluxOperation::Listing(listing))
}

fn tag_keys(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let (bucket, predicate) = listed(caller, arguments)?;
    let listing = FluxListing::TagKeys { bucket, predicate };
    source(arguments, FluxOperation::Listing(listing))
}

fn tag_values(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let tag = arguments.text("tag")?;
    let (bucket, predicate) = listed(caller, arguments)?;
    let listing = FluxListing::TagValues {
        bucket,
        tag,
        predicate,
    };
    source(arguments, FluxOperation::Listing(listing))
}

fn field_keys(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let (bucket, predicate) = listed(caller, arguments)?;
    let tag = "_field".into();
    let listing = FluxListing::TagValues {
        bucket,
        tag,
        predicate,
    };
    source(arguments, FluxOperation::Listing(listing))
}

fn array_from(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let FluxValue::Array(rows) = arguments.need("rows")? else {
        return Err(arguments.fault("argument rows is no array of records"));
    };
    let records = rows.iter().map(|row| match row {
        FluxValue::Record(record) => Ok(&**record),
        _ => Err(arguments.fault("argument rows is no array of records")),
    });
    let records: Vec<_> = records.collect::<SqlResult<_>>()?;
    let columns = super::record_columns::columns_of_records(&records)
        .map_err(|message| arguments.fault(message))?;
    let table = FluxTable::new(columns, Vec::new(), records.len());
    source(arguments, FluxOperation::Constant(vec![table]))
}
