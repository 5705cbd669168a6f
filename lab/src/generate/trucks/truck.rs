//! One truck: its tags, and the random walks of its measurements (TSBS's `truck.go`, `readings.go`,
//! `diagnostics.go`, `distribution.go`).

use super::random::{Random, RandomPurpose};
use rand_distr::{Distribution, StandardNormal};

/// Fields of both tables that never change. They are tags in TSBS, but numbers, so line protocol
/// has them as fields.
pub(super) const FIXED_FIELDS: [&str; 3] =
    ["load_capacity", "fuel_capacity", "nominal_fuel_consumption"];

/// Fields of the readings.
pub(super) const READINGS_FIELDS: [&str; 7] = [
    "latitude",
    "longitude",
    "elevation",
    "velocity",
    "heading",
    "grade",
    "fuel_consumption",
];

/// Fields of the diagnostics.
pub(super) const DIAGNOSTICS_FIELDS: [&str; 3] = ["fuel_state", "current_load", "status"];

/// The largest number of fields of a row.
pub(super) const FIELDS_MAX: usize = FIXED_FIELDS.len() + READINGS_FIELDS.len();

const FLEETS: [&str; 4] = ["East", "West", "North", "South"];
const DRIVERS: [&str; 6] = ["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"];
const VERSIONS: [&str; 4] = ["v1.0", "v1.5", "v2.0", "v2.3"];

/// Models with their [`FIXED_FIELDS`].
const MODELS: [(&str, [f64; 3]); 3] = [
    ("F-150", [2000.0, 200.0, 15.0]),
    ("G-2000", [5000.0, 300.0, 19.0]),
    ("H-2", [1500.0, 150.0, 12.0]),
];

/// A random walk with uniform steps that stops at its bounds.
struct RandomWalk {
    step: (f64, f64),
    bounds: (f64, f64),
    /// Where it begins: uniform between these.
    start: (f64, f64),
    /// Sent values are truncated (not rounded) to multiples of one over this.
    precision: f64,
}

const fn walk(
    step: (f64, f64),
    bounds: (f64, f64),
    start: (f64, f64),
    precision: f64,
) -> RandomWalk {
    RandomWalk {
        step,
        bounds,
        start,
        precision,
    }
}

/// Step of latitude and longitude, degrees.
const GEO: (f64, f64) = (-0.005, 0.005);
const BIG: (f64, f64) = (-10.0, 10.0);
const SMALL: (f64, f64) = (-5.0, 5.0);

/// The walks of the readings, in their order, and of the fuel state.
const WALKS: [RandomWalk; 8] = [
    walk(GEO, (-90.0, 90.0), (0.0, 90.0), 1e5),
    walk(GEO, (-180.0, 180.0), (0.0, 180.0), 1e5),
    walk(BIG, (0.0, 5000.0), (0.0, 500.0), 1.0),
    walk(BIG, (0.0, 100.0), (0.0, 0.0), 1.0),
    walk(SMALL, (0.0, 360.0), (0.0, 360.0), 1.0),
    walk(SMALL, (0.0, 100.0), (0.0, 0.0), 1.0),
    walk(SMALL, (0.0, 50.0), (25.0, 25.0), 10.0),
    walk((-0.001, 0.0), (0.0, 1.0), (1.0, 1.0), 10.0),
];
const FUEL_STATE: usize = 7;

/// The status walks in steps of N(0, 1) from 0 up to this.
const STATUS_MAX: f64 = 5.0;

/// Loads are uniform in 0 to this, kg.
const LOAD_MAX: f64 = 5000.0;

/// Probability that a truck is loaded again in a step.
const LOAD_CHANGE_CHANCE: f64 = 0.05;

/// The state of a truck at one time.
pub(super) struct Truck {
    /// Its number.
    pub(super) number: usize,
    model: u8,
    walks: [f64; WALKS.len()],
    status: f64,
    random: Random,
}

fn model(random: &mut Random) -> usize {
    random.below(MODELS.len())
}

/// Tags of truck `number`.
pub(super) fn tags(seed: u64, number: usize) -> [Option<String>; 5] {
    let mut random = Random::new(seed, RandomPurpose::Tags, number as u64, 0);
    let model = MODELS[model(&mut random)].0;
    let mut choose = |choices: &[&str]| Some(choices[random.below(choices.len())].to_owned());
    [
        Some(format!("truck_{number}")),
        choose(&FLEETS),
        choose(&DRIVERS),
        Some(model.to_owned()),
        choose(&VERSIONS),
    ]
}

impl Truck {
    /// Truck `number` at the first time.
    pub(super) fn new(seed: u64, number: usize) -> Self {
        let mut random = Random::new(seed, RandomPurpose::Walk, number as u64, 0);
        Self {
            number,
            model: model(&mut Random::new(
                seed,
                RandomPurpose::Tags,
                number as u64,
                0,
            )) as u8,
            walks: WALKS.map(|walk| {
                let (low, high) = walk.start;
                low + random.unit() * (high - low)
            }),
            status: 0.0,
            random,
        }
    }

    /// One step of time later.
    pub(super) fn advance(&mut self) {
        for (state, walk) in self.walks.iter_mut().zip(&WALKS) {
            let step = walk.step.0 + self.random.unit() * (walk.step.1 - walk.step.0);
            *state = (*state + step).clamp(walk.bounds.0, walk.bounds.1);
        }
        // An empty truck is refuelled.
        if self.walks[FUEL_STATE] == WALKS[FUEL_STATE].bounds.0 {
            self.walks[FUEL_STATE] = WALKS[FUEL_STATE].bounds.1;
        }
        let step: f64 = StandardNormal.sample(&mut self.random);
        self.status = (self.status + step).clamp(0.0, STATUS_MAX);
    }

    fn sent(&self, walk: usize) -> f64 {
        let precision = WALKS[walk].precision;
        (self.walks[walk] * precision).trunc() / precision
    }

    /// Fields of the readings.
    pub(super) fn readings(&self) -> [f64; FIELDS_MAX] {
        let fixed = MODELS[self.model as usize].1;
        std::array::from_fn(|field| match fixed.get(field) {
            Some(value) => *value,
            None => self.sent(field - fixed.len()),
        })
    }

    /// Fields of the diagnostics, padded; `load` is that of [`Load`].
    pub(super) fn diagnostics(&self, load: f64) -> [f64; FIELDS_MAX] {
        let mut values = [0.0; FIELDS_MAX];
        values[..FIXED_FIELDS.len()].copy_from_slice(&MODELS[self.model as usize].1);
        values[FIXED_FIELDS.len()..][..DIAGNOSTICS_FIELDS.len()].copy_from_slice(&[
            self.sent(FUEL_STATE),
            load.trunc(),
            self.status.trunc(),
        ]);
        values
    }
}

/// The load, which all trucks share: each of TSBS's trucks decides for itself whether it is loaded
/// again, but all hold the same distribution, so the last one that was loaded decides for all.
pub(super) struct Load {
    /// Kilograms.
    pub(super) value: f64,
    change_chance: f64,
    random: Random,
}

impl Load {
    /// The load of `trucks` trucks at the first time: none.
    pub(super) fn new(seed: u64, trucks: usize) -> Self {
        Self {
            value: 0.0,
            change_chance: 1.0 - power(1.0 - LOAD_CHANGE_CHANCE, trucks),
            random: Random::new(seed, RandomPurpose::Load, 0, 0),
        }
    }

    /// One step of time later.
    pub(super) fn advance(&mut self) {
        if self.random.chance(self.change_chance) {
            self.value = self.random.unit() * LOAD_MAX;
        }
    }
}

/// `base` to the power `exponent`, by products only: the library's function may round differently
/// on another machine.
fn power(mut base: f64, mut exponent: usize) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    power
}
