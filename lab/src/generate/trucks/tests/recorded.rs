//! The source compared with the output of TSBS itself: 20 trucks, two days, one row per minute.

use super::*;
use std::io::Read;
use std::path::PathBuf;

const STEP_S: i64 = 60;
const STEPS: usize = 2880;

/// The rows that TSBS wrote, in its order, without those that lost their name, and the number of
/// all rows. `None` if the folder of shared files is not known.
fn recorded() -> Option<(Vec<TruckRow>, usize)> {
    let folder = PathBuf::from(std::env::var_os("MARIGRAM_SHARED")?);
    let file = std::fs::File::open(folder.join("tsbs/iot.influx.gz")).expect("the recorded data");
    let mut text = String::new();
    let mut file = flate2::read::GzDecoder::new(file);
    file.read_to_string(&mut text).expect("gzip");
    let lines: Vec<&str> = text.lines().collect();
    let rows = lines.iter().filter_map(|line| parse(line)).collect();
    Some((rows, lines.len()))
}

fn parse(line: &str) -> Option<TruckRow> {
    let parts: Vec<&str> = line.split(' ').collect();
    let [head, fields, time] = parts[..] else {
        panic!("three parts in {line}");
    };
    let mut head = head.split(',');
    let table = TABLES[usize::from(head.next()? == "diagnostics")];
    let pairs = |part: &str| {
        part.split_once('=')
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
    };
    let tags: BTreeMap<String, String> = head.filter_map(pairs).collect();
    let fields: BTreeMap<String, String> = fields.split(',').filter_map(pairs).collect();
    let own: &[&str] = if table == READINGS {
        &READINGS_FIELDS
    } else {
        &DIAGNOSTICS_FIELDS
    };
    let value = |field: &&str| {
        let text = fields.get(*field)?.trim_end_matches('i');
        Some(text.parse().expect("a number"))
    };
    let time_ns: i64 = time.parse().expect("a time");
    Some(TruckRow {
        table,
        truck: tags.get("name")?.clone(),
        at_s: (time_ns - START_NS) / SECOND_NS,
        lost: (0..TAGS.len())
            .filter(|tag| !tags.contains_key(TAGS[*tag]))
            .collect(),
        values: FIXED_FIELDS.iter().chain(own).map(value).collect(),
    })
}

fn values(rows: &[TruckRow], table: usize, field: usize) -> Vec<f64> {
    let rows = rows.iter().filter(|row| row.table == table);
    let mut values: Vec<f64> = rows.filter_map(|row| row.values[field]).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Quantiles and means of the fields.
fn values_are_distributed_alike(ours: &[TruckRow], theirs: &[TruckRow]) {
    // Tolerances are about three standard deviations of 20 trucks' walks. The walks forget their
    // position after 300 steps (velocity) or never (latitude).
    let fields = [
        (READINGS, 3, 30.0),
        (READINGS, 4, 60.0),
        (READINGS, 5, 300.0),
        (READINGS, 6, 9.0),
        (READINGS, 7, 80.0),
        (READINGS, 8, 15.0),
        (READINGS, 9, 5.0),
        (DIAGNOSTICS, 3, 0.11),
        (DIAGNOSTICS, 4, 300.0),
        (DIAGNOSTICS, 5, 1.0),
    ];
    let tables = Trucks::new(1, 1, 10, 0).tables;
    for (table, field, tolerance) in fields {
        let name = &tables[table].fields[field].name;
        let (ours, theirs) = (values(ours, table, field), values(theirs, table, field));
        for percent in [10, 25, 50, 75, 90] {
            let at = |values: &[f64]| values[values.len() * percent / 100];
            let what = format!("{percent} % of {name}");
            near(&what, at(&ours), at(&theirs), tolerance);
        }
        near(
            &format!("mean {name}"),
            mean(&ours),
            mean(&theirs),
            tolerance * 0.7,
        );
    }
    near(
        "mean status",
        mean(&values(ours, DIAGNOSTICS, 5)),
        mean(&values(theirs, DIAGNOSTICS, 5)),
        0.1,
    );
    near(
        "mean fuel state",
        mean(&values(ours, DIAGNOSTICS, 3)),
        mean(&values(theirs, DIAGNOSTICS, 3)),
        0.01,
    );
}

#[test]
fn the_rows_are_distributed_as_those_of_tsbs() {
    let Some((theirs, lines)) = recorded() else {
        eprintln!("MARIGRAM_SHARED is not set: nothing to compare with");
        return;
    };
    // Three runs of the source: their mean varies less than the single run of TSBS.
    let run = |seed| all(&Trucks::new(20, STEPS, STEP_S as u32, seed));
    let runs = [1, 2, 3].map(run);
    let ours = runs.concat();
    let ours_count = ours.len() as f64 / 3.0;
    near("rows", ours_count / lines as f64, 1.0, 0.005);
    let late = mean(&runs.each_ref().map(|run| late_share(run)));
    near("late rows", late, late_share(&theirs), 0.006);

    values_are_distributed_alike(&ours, &theirs);
    let tables = Trucks::new(1, 1, 10, 0).tables;

    for (table, tag) in [
        (READINGS, 1),
        (READINGS, 4),
        (DIAGNOSTICS, 2),
        (DIAGNOSTICS, 3),
    ] {
        let part = |rows: &[TruckRow]| {
            let rows = rows.iter().filter(|row| row.table == table);
            let lost: Vec<f64> = rows.map(|row| f64::from(row.lost.contains(&tag))).collect();
            mean(&lost)
        };
        near(TAGS[tag], part(&ours), part(&theirs), 0.0006);
    }
    for table in TABLES {
        for (field, described) in tables[table].fields.iter().enumerate() {
            let part = |rows: &[TruckRow]| {
                let rows = rows.iter().filter(|row| row.table == table);
                let null = |row: &TruckRow| f64::from(row.values[field].is_none());
                mean(&rows.map(null).collect::<Vec<_>>())
            };
            near(&described.name, part(&ours), part(&theirs), 0.0025);
        }
    }

    // Single steps; comparing them needs no long run.
    for (field, low, high, step, _) in WALKS {
        let name = &tables[READINGS].fields[field].name;
        let of = |rows: &[TruckRow]| differences(rows, READINGS, field, STEP_S, (low, high, step));
        let (ours, theirs) = (of(&runs[0]), of(&theirs));
        near(name, mean(&ours) / step, mean(&theirs) / step, 0.02);
        near(name, deviation(&ours) / deviation(&theirs), 1.0, 0.02);
    }
    let changes = |rows: &[TruckRow]| {
        let mut loads = BTreeMap::new();
        for row in rows.iter().filter(|row| row.table == DIAGNOSTICS) {
            if let Some(load) = row.values[4] {
                let at: &mut f64 = loads.entry(row.at_s).or_insert(load);
                assert_eq!(*at, load, "all trucks share a load");
            }
        }
        let changed = loads.values().zip(loads.values().skip(1));
        changed.filter(|(a, b)| a != b).count() as f64 / loads.len() as f64
    };
    near("load changes", changes(&runs[0]), changes(&theirs), 0.04);
}
