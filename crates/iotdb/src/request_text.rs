//! Requests outside of SQL as statements, so that there is one way to answer both.

use crate::path::{PathPattern, TreePath};
use crate::requests::{
    AggregationQueryRequest, CreateAlignedTimeseriesRequest, CreateMultiTimeseriesRequest,
    CreateTimeseriesRequest, DeleteDataRequest, FastLastDataQueryRequest, LastDataQueryRequest,
    RawDataQueryRequest,
};
use crate::sql::TreeAggregate;
use crate::status::IotDbFault;
use crate::value::IotDbType;
use std::fmt::{Display, Write};

/// A path below the root, as a column of a query from the root has it.
fn below_root(path: &str) -> Result<String, IotDbFault> {
    let pattern = absolute(path)?;
    let (_, below) = pattern.nodes().split_at(1);
    PathPattern::from_nodes(below.to_vec()).map(|below| below.to_string())
}

fn absolute(path: &str) -> Result<PathPattern, IotDbFault> {
    let pattern = PathPattern::parse(path)?;
    if pattern.is_absolute() && pattern.nodes().len() >= 2 {
        return Ok(pattern);
    }
    Err(IotDbFault::path(format!("{path} is not a legal path")))
}

fn list<T: Display>(
    values: impl Iterator<Item = Result<T, IotDbFault>>,
) -> Result<String, IotDbFault> {
    let mut text = String::new();
    for value in values {
        if !text.is_empty() {
            text.push_str(", ");
        }
        let _ = write!(text, "{}", value?);
    }
    if text.is_empty() {
        return Err(IotDbFault::parameter("the request names no path"));
    }
    Ok(text)
}

/// The query for points of timeseries.
///
/// # Errors
/// If a path is malformed.
pub fn raw_data_query(request: &RawDataQueryRequest<'_>) -> Result<String, IotDbFault> {
    let columns = list(request.paths.iter().map(|path| below_root(path)))?;
    let (start, end) = (request.start, request.end);
    Ok(format!(
        "SELECT {columns} FROM root WHERE time >= {start} AND time < {end}"
    ))
}

/// The query for the newest points of timeseries.
///
/// # Errors
/// If a path is malformed.
pub fn last_data_query(request: &LastDataQueryRequest<'_>) -> Result<String, IotDbFault> {
    let columns = list(request.paths.iter().map(|path| below_root(path)))?;
    let time = request.time;
    Ok(format!(
        "SELECT LAST {columns} FROM root WHERE time >= {time}"
    ))
}

/// The query for the newest points of a device.
///
/// # Errors
/// If a path is malformed.
pub fn fast_last_data_query(request: &FastLastDataQueryRequest<'_>) -> Result<String, IotDbFault> {
    let device = TreePath::parse(request.device)?;
    if !device.is_absolute() {
        return Err(IotDbFault::path(format!(
            "{} is not a legal path",
            request.device
        )));
    }
    let columns = list(request.measurements.iter().map(|name| {
        let pattern = PathPattern::parse(name)?;
        Ok(pattern.to_string())
    }))?;
    Ok(format!("SELECT LAST {columns} FROM {device}"))
}

/// The query for aggregates of timeseries.
///
/// # Errors
/// If a path is malformed, or there is no such function.
pub fn aggregation_query(request: &AggregationQueryRequest<'_>) -> Result<String, IotDbFault> {
    if request.paths.len() != request.aggregations.len() {
        return Err(IotDbFault::parameter(
            "the request must have a function for each path",
        ));
    }
    let functions = request.paths.iter().zip(&request.aggregations);
    let columns = list(functions.map(|(path, number)| {
        let function = TreeAggregate::from_number(*number).ok_or_else(|| {
            IotDbFault::unsupported(format!("the function number {number} is not supported"))
        })?;
        Ok(format!("{}({})", function.name(), below_root(path)?))
    }))?;
    let mut text = format!("SELECT {columns} FROM root");
    let range = request.start.zip(request.end);
    let interval = request.interval.filter(|interval| *interval > 0);
    match (range, interval) {
        (Some((start, end)), Some(interval)) => {
            let step = request.sliding_step.filter(|step| *step > 0);
            let step = step.unwrap_or(interval);
            let _ = write!(text, " GROUP BY ([{start}, {end}), {interval}ms, {step}ms)");
        }
        (Some((start, end)), None) => {
            let _ = write!(text, " WHERE time >= {start} AND time < {end}");
        }
        (None, None) => {}
        (None, Some(_)) => {
            return Err(IotDbFault::parameter(
                "windows need a first and a last time",
            ));
        }
    }
    Ok(text)
}

/// The statement that deletes points.
///
/// # Errors
/// If a path is malformed.
pub fn delete_data(request: &DeleteDataRequest<'_>) -> Result<String, IotDbFault> {
    let paths = list(request.paths.iter().map(|path| absolute(path)))?;
    let (start, end) = (request.start, request.end);
    Ok(format!(
        "DELETE FROM {paths} WHERE time >= {start} AND time <= {end}"
    ))
}

/// The statement that drops timeseries.
///
/// # Errors
/// If a path is malformed.
pub fn drop_timeseries(paths: &[&str]) -> Result<String, IotDbFault> {
    let paths = list(paths.iter().map(|path| absolute(path)))?;
    Ok(format!("DROP TIMESERIES {paths}"))
}

/// The statement that creates a database.
///
/// # Errors
/// If the path is malformed.
pub fn create_database(path: &str) -> Result<String, IotDbFault> {
    Ok(format!("CREATE DATABASE {}", absolute(path)?))
}

/// The statement that drops databases.
///
/// # Errors
/// If a path is malformed.
pub fn drop_databases(paths: &[&str]) -> Result<String, IotDbFault> {
    let paths = list(paths.iter().map(|path| absolute(path)))?;
    Ok(format!("DROP DATABASE {paths}"))
}

/// The statements that create timeseries: one for each device.
///
/// # Errors
/// If a path is malformed, or there is no such type.
pub fn create_timeseries(request: &CreateTimeseriesRequest<'_>) -> Result<Vec<String>, IotDbFault> {
    creations(&[request.path], &[request.data_type])
}

/// The same for several timeseries.
///
/// # Errors
/// As [`create_timeseries`].
pub fn create_multi_timeseries(
    request: &CreateMultiTimeseriesRequest<'_>,
) -> Result<Vec<String>, IotDbFault> {
    creations(&request.paths, &request.data_types)
}

/// The same for an aligned device.
///
/// # Errors
/// As [`create_timeseries`].
pub fn create_aligned_timeseries(
    request: &CreateAlignedTimeseriesRequest<'_>,
) -> Result<Vec<String>, IotDbFault> {
    let device = TreePath::parse(request.device)?;
    let names = request.measurements.iter().map(|name| {
        let measurement = TreePath::parse(name)?;
        let nodes = measurement.nodes().iter();
        let path = nodes.fold(device.clone(), |path, node| path.child(node));
        Ok(path.to_string())
    });
    let paths: Vec<String> = names.collect::<Result<_, IotDbFault>>()?;
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    creations(&paths, &request.data_types)
}

fn creations(paths: &[&str], types: &[i32]) -> Result<Vec<String>, IotDbFault> {
    if paths.len() != types.len() || paths.is_empty() {
        return Err(IotDbFault::parameter(
            "the request must have a type for each of its timeseries",
        ));
    }
    let mut devices: Vec<(TreePath, String)> = Vec::new();
    for (path, number) in paths.iter().zip(types) {
        let path = TreePath::parse(path)?;
        let malformed = || IotDbFault::path(format!("{path} is not a legal path"));
        let (device, _) = path.split_last().ok_or_else(malformed)?;
        if !device.is_absolute() || device.nodes().len() < 2 {
            return Err(malformed());
        }
        let count = device.nodes().len();
        let last = TreePath::from_nodes(path.nodes()[count..].to_vec());
        let column = format!("{last} {}", IotDbType::from_number(*number)?);
        match devices.last_mut() {
            Some((known, columns)) if *known == device => {
                columns.push_str(", ");
                columns.push_str(&column);
            }
            _ => devices.push((device, column)),
        }
    }
    let statements = devices.into_iter();
    let texts = statements
        .map(|(device, columns)| format!("CREATE ALIGNED TIMESERIES {device}({columns})"));
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{TreeExpr, TreeSqlContext, TreeStatement, parse_statement};

    fn parsed(text: &str) -> TreeStatement {
        parse_statement(text, &TreeSqlContext::for_utc(0))
            .unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }

    #[test]
    fn requests_are_statements_that_can_be_read() {
        let raw = RawDataQueryRequest {
            session_id: 1,
            paths: vec!["root.sg.d-1.s1", "root.sg.`1`.last"],
            fetch_size: None,
            start: i64::MIN,
            end: 5,
            statement_id: 1,
            timeout_ms: None,
        };
        let TreeStatement::Select(query) = parsed(&raw_data_query(&raw).expect("a query")) else {
            panic!("it is a SELECT");
        };
        let full: Vec<String> = query
            .columns
            .iter()
            .map(|column| match &column.expr {
                TreeExpr::Path(path) => query.from[0].join(path).expect("a path").to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(full, ["root.sg.`d-1`.s1", "root.sg.`1`.last"]);
        let aggregation = AggregationQueryRequest {
            session_id: 1,
            statement_id: 1,
            paths: vec!["root.sg.d.s", "root.sg.d.t"],
            aggregations: vec![0, 7],
            start: Some(0),
            end: Some(100),
            interval: Some(10),
            sliding_step: None,
            fetch_size: None,
            timeout_ms: None,
        };
        let text = aggregation_query(&aggregation).expect("a query");
        assert_eq!(
            text,
            "SELECT count(sg.d.s), max_value(sg.d.t) FROM root GROUP BY ([0, 100), 10ms, 10ms)"
        );
        parsed(&text);
    }

    #[test]
    fn timeseries_are_created_by_device() {
        let request = CreateMultiTimeseriesRequest {
            session_id: 1,
            paths: vec!["root.a.d.s", "root.a.d.`x y`", "root.a.e.s"],
            data_types: vec![0, 5, 4],
        };
        let texts = create_multi_timeseries(&request).expect("statements");
        assert_eq!(
            texts,
            [
                "CREATE ALIGNED TIMESERIES root.a.d(s BOOLEAN, `x y` TEXT)",
                "CREATE ALIGNED TIMESERIES root.a.e(s DOUBLE)"
            ]
        );
        for text in &texts {
            parsed(text);
        }
        for (paths, data_types) in [
            (vec!["root.a"], vec![0]),
            (vec!["root.a.b.c"], vec![77]),
            (vec![], vec![]),
        ] {
            let request = CreateMultiTimeseriesRequest {
                session_id: 1,
                paths,
                data_types,
            };
            assert!(create_multi_timeseries(&request).is_err());
        }
    }
}
