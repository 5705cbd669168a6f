//! A small fleet of trucks, synthetic but realistic. Each truck drives between towns, stops,
//! refuels, loses its connection (so rows arrive late, and some arrive twice), and has faults (so
//! rows and values are missing).
//!
//! Invariant: the same fleet gives the same rows, byte for byte.

use crate::client::DataClient;
use crate::terminal;
use anyhow::{Result, ensure};
use marigram_model::{BatchBuilder, FieldValueRef, TagValueRef, WriteBatch};
use std::time::Instant;

/// 2026-01-05 00:00 UTC, a Monday.
pub(super) const START_NS: i64 = 1_767_571_200_000_000_000;
const MINUTE_NS: i64 = 60_000_000_000;
const MINUTES_OF_DAY: u32 = 1440;

/// Minutes whose rows are sent together.
const SEND_MINUTES: u32 = 10;

/// Parameters of a fleet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TruckFleet {
    /// Number of trucks.
    pub trucks: u32,
    /// Number of days that they drive.
    pub days: u32,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SentRows {
    /// Rows sent for table `readings`.
    pub rows: u64,
    /// Those of them with a distinct (truck, time).
    pub distinct: u64,
    /// Rows that arrived after a later row of their truck.
    pub late: u64,
    /// Rows that arrived twice.
    pub repeated: u64,
}

/// A small generator of random numbers (splitmix64: Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.unit() * limit as f64) as usize
    }
}

/// Towns: name, latitude, longitude.
const TOWNS: [(&str, f64, f64); 8] = [
    ("Rotterdam", 51.92, 4.48),
    ("Antwerp", 51.22, 4.40),
    ("Duisburg", 51.43, 6.76),
    ("Cologne", 50.94, 6.96),
    ("Hamburg", 53.55, 9.99),
    ("Bremen", 53.08, 8.80),
    ("Hanover", 52.38, 9.73),
    ("Frankfurt", 50.11, 8.68),
];

const FLEETS: [&str; 3] = ["north", "south", "west"];
const MODELS: [&str; 2] = ["F-150", "H-2"];

/// The state of a truck.
struct Truck {
    name: String,
    fleet: &'static str,
    model: &'static str,
    random: SplitMix64,
    lat: f64,
    lon: f64,
    to: usize,
    speed: f64,
    fuel: f64,
    load: f64,
    rest_minutes: u32,
    /// Rows wait for the connection until this minute.
    offline_until: u32,
    /// Nothing is recorded until this minute.
    dead_until: u32,
    waiting: Vec<TruckRow>,
}

/// A row of a truck.
#[derive(Clone, Copy, Debug)]
struct TruckRow {
    minute: u32,
    lat: f64,
    lon: f64,
    speed: f64,
    fuel: Option<f64>,
    load: f64,
    engine_temp: f64,
}

impl Truck {
    fn new(number: u32) -> Self {
        let mut random = SplitMix64(0x6d61_7269_6772_616d ^ (u64::from(number) << 20));
        let at = random.below(TOWNS.len());
        Self {
            name: format!("truck-{number:02}"),
            fleet: FLEETS[number as usize % FLEETS.len()],
            model: MODELS[random.below(MODELS.len())],
            lat: TOWNS[at].1,
            lon: TOWNS[at].2,
            to: (at + 1 + random.below(TOWNS.len() - 1)) % TOWNS.len(),
            speed: 0.0,
            fuel: 0.3 + 0.7 * random.unit(),
            load: (random.unit() * 18_000.0).round(),
            rest_minutes: (random.unit() * 120.0) as u32,
            offline_until: 0,
            dead_until: 0,
            waiting: Vec::new(),
            random,
        }
    }

    /// Advances the truck by one minute; returns the row that it records, if any.
    fn drive(&mut self, minute: u32) -> Option<TruckRow> {
        if self.rest_minutes > 0 {
            self.rest_minutes -= 1;
            self.speed = 0.0;
        } else {
            self.move_on();
        }
        if minute < self.dead_until {
            return None;
        }
        if self.random.chance(0.0004) {
            self.dead_until = minute + 20 + self.random.below(160) as u32;
        }
        if minute >= self.offline_until && self.random.chance(0.002) {
            self.offline_until = minute + 10 + self.random.below(80) as u32;
        }
        let round = |value: f64, digits: i32| {
            let scale = 10f64.powi(digits);
            (value * scale).round() / scale
        };
        let fuel_is_known = !self.random.chance(0.01);
        Some(TruckRow {
            minute,
            lat: round(self.lat, 5),
            lon: round(self.lon, 5),
            speed: round(self.speed, 1),
            fuel: fuel_is_known.then(|| round(self.fuel, 3)),
            load: self.load,
            engine_temp: round(
                22.0 + self.speed * (0.6 + self.load / 90_000.0) + self.random.unit() * 4.0,
                1,
            ),
        })
    }

    fn move_on(&mut self) {
        let (_, lat, lon) = TOWNS[self.to];
        let wanted = 80.0 + 6.0 * self.random.unit();
        self.speed += (wanted - self.speed) * 0.4 + (self.random.unit() - 0.5) * 6.0;
        self.speed = self.speed.clamp(0.0, 95.0);
        let km = self.speed / 60.0;
        let (north, east) = (
            lat - self.lat,
            (lon - self.lon) * self.lat.to_radians().cos(),
        );
        let distance_km = (north * north + east * east).sqrt() * 111.2;
        // A truck of 18 t takes about 33 litres for 100 km; the tank holds 400.
        self.fuel = (self.fuel - km * (0.20 + self.load / 18_000.0 * 0.13) / 400.0).max(0.02);
        if distance_km <= km {
            (self.lat, self.lon) = (lat, lon);
            self.to = (self.to + 1 + self.random.below(TOWNS.len() - 1)) % TOWNS.len();
            self.load = (self.random.unit() * 18_000.0).round();
            self.rest_minutes = 30 + self.random.below(180) as u32;
            if self.fuel < 0.4 || self.random.chance(0.2) {
                self.fuel = 1.0;
            }
            return;
        }
        let step = km / distance_km;
        self.lat += (lat - self.lat) * step;
        self.lon += (lon - self.lon) * step;
    }
}

/// Rows of both tables that arrive together.
struct RowArrivals {
    readings: BatchBuilder,
    diagnostics: BatchBuilder,
}

impl RowArrivals {
    fn new() -> Self {
        Self {
            readings: BatchBuilder::new("readings"),
            diagnostics: BatchBuilder::new("diagnostics"),
        }
    }

    fn add(&mut self, truck: &Truck, rows: &[TruckRow]) {
        if rows.is_empty() {
            return;
        }
        let tags = [
            ("truck", TagValueRef::String(&truck.name)),
            ("fleet", TagValueRef::String(truck.fleet)),
            ("model", TagValueRef::String(truck.model)),
        ];
        let (reading, diagnostic) = (self.readings.slot(tags), self.diagnostics.slot(tags));
        for row in rows {
            let time = START_NS + i64::from(row.minute) * MINUTE_NS;
            self.readings.row(reading, time);
            self.readings.field("lat", FieldValueRef::F64(row.lat));
            self.readings.field("lon", FieldValueRef::F64(row.lon));
            self.readings.field("speed", FieldValueRef::F64(row.speed));
            if let Some(fuel) = row.fuel {
                self.readings.field("fuel", FieldValueRef::F64(fuel));
            }
            // Diagnostics come every ten minutes.
            if row.minute.is_multiple_of(10) {
                self.diagnostics.row(diagnostic, time);
                self.diagnostics.field("load", FieldValueRef::F64(row.load));
                self.diagnostics
                    .field("engine_temp", FieldValueRef::F64(row.engine_temp));
            }
        }
    }

    fn finish(self) -> Vec<WriteBatch> {
        let batches = [self.readings.finish(), self.diagnostics.finish()];
        batches
            .into_iter()
            .filter(|batch| !batch.is_empty())
            .collect()
    }
}

/// Makes the rows of a fleet in the order in which they arrive, and hands them on in batches.
fn arrive(
    fleet: TruckFleet,
    mut send: impl FnMut(Vec<WriteBatch>) -> Result<()>,
) -> Result<SentRows> {
    let mut sent = SentRows::default();
    let mut trucks: Vec<Truck> = (1..=fleet.trucks).map(Truck::new).collect();
    let minutes = fleet.days * MINUTES_OF_DAY;
    let mut arrivals = RowArrivals::new();
    for minute in 0..minutes {
        for truck in &mut trucks {
            let row = truck.drive(minute);
            sent.distinct += u64::from(row.is_some());
            if minute < truck.offline_until && minute + 1 < minutes {
                // Position and fuel are buffered on board; now and then a row gets through.
                match row {
                    Some(row) if truck.random.chance(0.1) => {
                        arrivals.add(truck, &[row]);
                        sent.rows += 1;
                    }
                    Some(row) => truck.waiting.push(row),
                    None => {}
                }
                continue;
            }
            let waiting = std::mem::take(&mut truck.waiting);
            sent.rows += waiting.len() as u64 + u64::from(row.is_some());
            arrivals.add(truck, row.as_slice());
            arrivals.add(truck, &waiting);
            sent.late += waiting.len() as u64;
            // A client that retries after a broken connection sends some rows twice.
            let again = &waiting[..waiting.len().min(5)];
            arrivals.add(truck, again);
            sent.repeated += again.len() as u64;
            sent.rows += again.len() as u64;
        }
        if (minute + 1).is_multiple_of(SEND_MINUTES) || minute + 1 == minutes {
            send(std::mem::replace(&mut arrivals, RowArrivals::new()).finish())?;
        }
    }
    Ok(sent)
}

/// Sends the rows of a fleet to a database.
pub(super) fn import(client: &DataClient, fleet: TruckFleet) -> Result<SentRows> {
    let begin = Instant::now();
    let expected = u64::from(fleet.trucks) * u64::from(fleet.days) * u64::from(MINUTES_OF_DAY);
    let bar = terminal::progress(expected);
    bar.set_prefix("readings");
    let mut stored = 0;
    let sent = arrive(fleet, |batches| {
        for report in client.write(batches)? {
            ensure!(
                report.rejected.is_empty(),
                "refused: {:?}",
                report.rejected.first()
            );
            stored += report.stored as u64;
        }
        bar.set_position(stored);
        bar.set_message(terminal::rate(stored, begin.elapsed()));
        Ok(())
    })?;
    bar.finish_and_clear();
    outln!(
        "  readings, diagnostics: {} of {} in {} ({}, as they would arrive: {} synced batches)",
        terminal::counted(stored, "row"),
        terminal::counted(u64::from(fleet.trucks), "truck"),
        terminal::span(begin.elapsed()),
        terminal::rate(stored, begin.elapsed()),
        terminal::count(u64::from(fleet.days * MINUTES_OF_DAY / SEND_MINUTES))
    );
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    const FLEET: TruckFleet = TruckFleet { trucks: 5, days: 2 };

    fn rows() -> (Vec<(String, i64)>, SentRows) {
        let mut rows = Vec::new();
        let sent = arrive(FLEET, |batches| {
            for batch in batches.iter().filter(|batch| batch.table == "readings") {
                batch.check()?;
                let truck = batch.tags.iter().find(|tag| tag.name == "truck").unwrap();
                for (slot, time) in batch.slots.iter().zip(batch.times.iter()) {
                    let name = truck.value(*slot as usize).unwrap().to_string();
                    rows.push((name, *time));
                }
            }
            Ok(())
        });
        (rows, sent.unwrap())
    }

    #[test]
    fn the_fleet_is_the_same_every_time() {
        assert_eq!(rows(), rows());
    }

    #[test]
    fn late_repeated_and_missing_rows_are_counted() {
        let (rows, sent) = rows();
        assert_eq!(rows.len() as u64, sent.rows);
        let distinct: HashSet<_> = rows.iter().collect();
        assert_eq!(distinct.len() as u64, sent.distinct);
        assert_eq!(
            rows.len() - distinct.len(),
            usize::try_from(sent.repeated).unwrap()
        );
        let mut newest = HashMap::new();
        let mut late = HashSet::new();
        for row in &rows {
            let newest = newest.entry(&row.0).or_insert(i64::MIN);
            if row.1 < *newest {
                late.insert(row);
            }
            *newest = row.1.max(*newest);
        }
        assert!(late.len() as u64 <= sent.late + sent.repeated && sent.late > 0);
        let all = u64::from(FLEET.trucks * FLEET.days * MINUTES_OF_DAY);
        assert!(sent.distinct < all, "some rows are missing");
        assert!(sent.distinct > all * 9 / 10, "but not many");
    }

    #[test]
    fn trucks_stay_between_the_towns() {
        let mut truck = Truck::new(3);
        for minute in 0..2 * MINUTES_OF_DAY {
            let Some(row) = truck.drive(minute) else {
                continue;
            };
            assert!((50.0..54.0).contains(&row.lat) && (4.0..10.5).contains(&row.lon));
            assert!((0.0..=95.0).contains(&row.speed));
            assert!(row.fuel.is_none_or(|fuel| (0.0..=1.0).contains(&fuel)));
        }
    }
}
