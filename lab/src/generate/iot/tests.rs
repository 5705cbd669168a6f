//! The source as a whole.

use super::*;
use crate::data::FieldKind;
use crate::generate::{Delay, Late, check};
use std::collections::{HashMap, HashSet};

fn spec(kind: FieldKind, late: Late) -> IotSpec {
    IotSpec {
        devices: 10,
        sensors: 6,
        rows: 40,
        step_ms: 400,
        kind,
        late,
        fresh_values: false,
    }
}

const POISSON: Late = Late::Poisson {
    ratio: 0.4,
    lambda: 6.0,
};

const DELAYED: Late = Late::Delayed(Delay {
    ratio: 0.5,
    steps_max: 20,
});

#[test]
fn paths_change_nothing_but_the_tags() {
    let spec = spec(FieldKind::F64, Late::Never);
    let (plain, paths) = (
        Iot::new(&spec, 1),
        Iot::new(&spec, 1).with_paths(Path::Deep),
    );
    assert_eq!(check::sent(&plain, 1, 9), check::sent(&paths, 1, 9));
    let table = &paths.tables()[0];
    assert_eq!(table.tags[table.key].name, "device");
    assert_eq!(table.series[7], [Some(Path::Deep.name(7))]);
}

#[test]
fn any_number_of_clients_sends_the_same() {
    for late in [Late::Never, POISSON, Late::Batch { ratio: 0.3 }, DELAYED] {
        for fresh_values in [false, true] {
            let mut spec = spec(FieldKind::F64, late);
            spec.fresh_values = fresh_values;
            check::same_for_any_clients(&Iot::new(&spec, 1));
        }
    }
}

#[test]
fn the_rows_of_a_seed_are_pinned() {
    let kinds = [
        (FieldKind::Bool, 974_795_937_036_899_140),
        (FieldKind::I32, 475_139_855_852_380_665),
        (FieldKind::I64, 475_139_855_852_380_665),
        (FieldKind::F32, 2_276_370_501_498_902_648),
        (FieldKind::F64, 7_173_166_848_185_106_033),
        (FieldKind::Text, 4_068_574_380_984_595_614),
    ];
    let found = kinds.map(|(kind, _)| {
        let mut spec = spec(kind, POISSON);
        spec.fresh_values = true;
        (kind, check::checksum(&Iot::new(&spec, 7)))
    });
    assert_eq!(found, kinds);
    let cycled = Iot::new(&spec(FieldKind::F64, Late::Batch { ratio: 0.5 }), 7);
    assert_eq!(check::checksum(&cycled), 16_418_727_067_126_482_060);
}

#[test]
fn batches_are_of_one_device_each_in_turn() {
    let iot = Iot::new(&spec(FieldKind::F64, Late::Never), 1);
    let batches: Vec<Rows> = iot.stream(1, 4, 25).collect();
    let shape: Vec<(u32, usize)> = batches.iter().map(|b| (b.series[0], b.len())).collect();
    assert_eq!(
        shape,
        [(1, 25), (5, 25), (9, 25), (1, 15), (5, 15), (9, 15)]
    );
    for batch in &batches {
        assert!(batch.series.iter().all(|series| *series == batch.series[0]));
        assert!(batch.times.is_sorted());
    }
    assert_eq!(iot.span_ns().1 - iot.span_ns().0, 40 * 400 * MS_NS);
    assert_eq!(iot.stream(10, 11, 25).count(), 0);
    let table = &iot.tables()[0];
    assert_eq!(table.series[7][0].as_deref(), Some("d_7"));
    assert_eq!(table.fields[5].name, "s_5");
}

#[test]
fn late_rows_repeat_what_was_sent() {
    let mut spec = spec(FieldKind::F64, POISSON);
    (spec.rows, spec.fresh_values) = (2_000, true);
    let iot = Iot::new(&spec, 3);
    assert!(iot.repeats());
    let mut seen: HashMap<(u32, i64), String> = HashMap::new();
    let (mut late, mut newest) = (0, HashMap::new());
    for rows in iot.stream(0, 1, 100) {
        for (row, line) in check::lines(&rows).into_iter().enumerate() {
            let (series, time) = (rows.series[row], rows.times[row]);
            let clock = newest.entry(series).or_insert(time);
            if let Some(before) = seen.insert((series, time), line.clone()) {
                late += 1;
                assert_eq!(before, line);
                assert!(time <= *clock);
            } else {
                let step = i64::from(time > iot.span_ns().0) * 400 * MS_NS;
                assert!(time == *clock + step || time == iot.span_ns().0);
                *clock = time;
            }
        }
    }
    // 40 % of 20 000 rows; the standard error is 69.
    assert!((7_650..8_350).contains(&late), "{late}");
    let end = newest.values().max().unwrap() + 400 * MS_NS;
    assert_eq!(
        iot.span_ns().1,
        end,
        "the end is that of the fastest device"
    );
}

#[test]
fn changed_places_repeat_nothing() {
    let iot = Iot::new(&spec(FieldKind::I32, Late::Batch { ratio: 0.5 }), 3);
    assert!(!iot.repeats());
    let mut seen = HashSet::new();
    let mut disordered = 0;
    for rows in iot.stream(0, 1, 20) {
        disordered += usize::from(!rows.times.is_sorted());
        let least = rows.times.iter().min().unwrap();
        for (place, time) in rows.times.iter().enumerate() {
            assert!(seen.insert((rows.series[place], *time)));
            assert!(time - least < 20 * 400 * MS_NS, "within the batch");
        }
    }
    assert_eq!((seen.len(), disordered), (400, 20));
}

#[test]
fn very_many_devices_cost_little() {
    let mut spec = spec(FieldKind::F64, Late::Never);
    (spec.devices, spec.rows) = (20_000, 1_000_000);
    let iot = Iot::new(&spec, 3);
    assert_eq!(iot.rows(), 20_000_000_000);
    let mut stream = iot.stream(1, 2, 1);
    assert_eq!(stream.next().map(|rows| rows.series), Some(vec![1]));
    assert_eq!(stream.next().map(|rows| rows.series), Some(vec![3]));
}
