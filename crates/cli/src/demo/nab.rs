//! The sensor series of the Numenta Anomaly Benchmark (`data/nab`), embedded in the binary.

use crate::client::DataClient;
use crate::import::{ReadOptions, ReadPlanOptions, read_csv};
use crate::terminal;
use anyhow::{Result, ensure};
use marigram_model::FieldType;
use std::cell::RefCell;
use std::time::Instant;

/// The table that receives them.
pub(super) const TABLE: &str = "sensors";

/// A file: the name of the series, the measured quantity, and the CSV.
struct NabFile {
    series: &'static str,
    kind: &'static str,
    csv: &'static [u8],
}

macro_rules! files {
    ($($series:literal is $kind:literal in $name:literal,)*) => {
        [$(NabFile {
            series: $series,
            kind: $kind,
            csv: include_bytes!(concat!("../../../../data/nab/", $name, ".csv")),
        },)*]
    };
}

const FILES: [NabFile; 14] = files! {
    "machine" is "temperature" in "machine_temperature_system_failure",
    "office" is "temperature" in "ambient_temperature_system_failure",
    "taxi" is "passengers" in "nyc_taxi",
    "server-asg" is "cpu" in "cpu_utilization_asg_misconfiguration",
    "server-24ae8d" is "cpu" in "ec2_cpu_utilization_24ae8d",
    "database-cc0c53" is "cpu" in "rds_cpu_utilization_cc0c53",
    "server-257a54" is "network" in "ec2_network_in_257a54",
    "road-6005" is "occupancy" in "occupancy_6005",
    "road-t4013" is "occupancy" in "occupancy_t4013",
    "road-6005" is "speed" in "speed_6005",
    "road-7578" is "speed" in "speed_7578",
    "road-t4013" is "speed" in "speed_t4013",
    "road-387" is "travel_time" in "TravelTime_387",
    "road-451" is "travel_time" in "TravelTime_451",
};

/// Imports all files.
pub(super) fn import(client: &DataClient) -> Result<()> {
    let begin = Instant::now();
    let bytes: usize = FILES.iter().map(|file| file.csv.len()).sum();
    let bar = terminal::progress(bytes as u64);
    bar.set_prefix(TABLE);
    let mut stored = 0;
    for file in &FILES {
        let reading = ReadPlanOptions {
            table: TABLE.to_owned(),
            schema: None,
            known: None,
            layout: None,
            options: ReadOptions::default(),
            constant_tags: vec![
                ("sensor".to_owned(), file.series.to_owned()),
                ("kind".to_owned(), file.kind.to_owned()),
            ],
            types: vec![("value".to_owned(), FieldType::F64)],
            now_ns: 0,
        };
        let parsed = RefCell::new(Vec::new());
        read_csv(file.csv, &reading, &|item| {
            parsed.borrow_mut().push(item);
            true
        })?;
        for item in parsed.into_inner() {
            let item = item?;
            ensure!(item.bad.is_empty(), "{}: {:?}", file.series, item.bad);
            for report in client.write(item.batches)? {
                ensure!(
                    report.rejected.is_empty(),
                    "{}: {:?}",
                    file.series,
                    report.rejected
                );
                stored += report.stored as u64;
            }
        }
        bar.inc(file.csv.len() as u64);
        bar.set_message(terminal::rate(stored, begin.elapsed()));
    }
    bar.finish_and_clear();
    outln!(
        "  {TABLE}: {} of {} real sensors in {} ({})",
        terminal::counted(stored, "row"),
        FILES.len(),
        terminal::span(begin.elapsed()),
        terminal::rate(stored, begin.elapsed())
    );
    Ok(())
}
