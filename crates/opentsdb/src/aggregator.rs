//! Aggregation functions: the same ones combine the values of a bucket and those of several series.
//!
//! NaN stands for a missing value, which a fill policy makes. Most functions leave it out, and their result
//! without other values is NaN. As in OpenTSDB, `first`, `last`, `mult` and the second value of `diff` take
//! it as it is, and `count` is 0 where nothing else is there.

/// How a series without a point at a time takes part in an aggregate over series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// With the value on the line between its points before and after.
    Linear,
    /// With zero.
    Zero,
    /// With the value of its point before.
    Previous,
    /// Not at all.
    Absent,
}

/// How a percentile lies between two values (commons-math names them so).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PercentileEstimate {
    /// At `p (n + 1)`.
    Legacy,
    /// The value nearest to `p n`.
    R3,
    /// At `1 + p (n - 1)`.
    R7,
}

/// An aggregation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregator {
    /// Every series by itself.
    None,
    /// The sum.
    Sum,
    /// The sum, where a missing value is zero.
    ZeroSum,
    /// The sum, where a missing value is the one before.
    PreviousSum,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The smallest value, without those between points.
    MinOfPoints,
    /// The largest value, without those between points.
    MaxOfPoints,
    /// The mean.
    Avg,
    /// The standard deviation of the population.
    Dev,
    /// The number of values.
    Count,
    /// The first value.
    First,
    /// The last value.
    Last,
    /// The product.
    Multiply,
    /// The middle value; of two middle ones the larger.
    Median,
    /// The last value less the first.
    Diff,
    /// The sum of squares.
    SquareSum,
    /// A percentile, in thousandths.
    Percentile(u16, PercentileEstimate),
}

const fn legacy(thousandths: u16) -> Aggregator {
    Aggregator::Percentile(thousandths, PercentileEstimate::Legacy)
}

const fn r3(thousandths: u16) -> Aggregator {
    Aggregator::Percentile(thousandths, PercentileEstimate::R3)
}

const fn r7(thousandths: u16) -> Aggregator {
    Aggregator::Percentile(thousandths, PercentileEstimate::R7)
}

/// Every aggregation function by its name.
const NAMES: &[(&str, Aggregator)] = &[
    ("avg", Aggregator::Avg),
    ("count", Aggregator::Count),
    ("dev", Aggregator::Dev),
    ("diff", Aggregator::Diff),
    ("ep50r3", r3(500)),
    ("ep50r7", r7(500)),
    ("ep75r3", r3(750)),
    ("ep75r7", r7(750)),
    ("ep90r3", r3(900)),
    ("ep90r7", r7(900)),
    ("ep95r3", r3(950)),
    ("ep95r7", r7(950)),
    ("ep999r3", r3(999)),
    ("ep999r7", r7(999)),
    ("ep99r3", r3(990)),
    ("ep99r7", r7(990)),
    ("first", Aggregator::First),
    ("last", Aggregator::Last),
    ("max", Aggregator::Max),
    ("median", Aggregator::Median),
    ("mimmax", Aggregator::MaxOfPoints),
    ("mimmin", Aggregator::MinOfPoints),
    ("min", Aggregator::Min),
    ("mult", Aggregator::Multiply),
    ("none", Aggregator::None),
    ("p50", legacy(500)),
    ("p75", legacy(750)),
    ("p90", legacy(900)),
    ("p95", legacy(950)),
    ("p99", legacy(990)),
    ("p999", legacy(999)),
    ("pfsum", Aggregator::PreviousSum),
    ("squareSum", Aggregator::SquareSum),
    ("sum", Aggregator::Sum),
    ("zimsum", Aggregator::ZeroSum),
];

impl Aggregator {
    /// The names of all functions, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The function of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = NAMES.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, aggregator)| *aggregator)
    }

    /// How series without a point take part.
    pub const fn interpolation(self) -> Interpolation {
        match self {
            Self::ZeroSum
            | Self::Count
            | Self::First
            | Self::Last
            | Self::SquareSum
            | Self::None => Interpolation::Zero,
            Self::MinOfPoints | Self::MaxOfPoints => Interpolation::Absent,
            Self::PreviousSum => Interpolation::Previous,
            _ => Interpolation::Linear,
        }
    }

    /// Whether every value must be kept until the end.
    const fn keeps_values(self) -> bool {
        matches!(self, Self::Median | Self::Percentile(..))
    }
}

/// The state of an aggregate.
#[derive(Clone, Debug)]
pub struct AggregatorState {
    aggregator: Aggregator,
    /// The values, without missing ones.
    count: u64,
    /// The missing values.
    missing: u64,
    first: f64,
    last: f64,
    /// The sum, product, extreme or mean.
    main: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    values: Vec<f64>,
}

impl AggregatorState {
    /// The state without values.
    pub const fn new(aggregator: Aggregator) -> Self {
        Self {
            aggregator,
            count: 0,
            missing: 0,
            first: f64::NAN,
            last: f64::NAN,
            main: 0.0,
            squares: 0.0,
            values: Vec::new(),
        }
    }

    /// Takes all values out.
    pub fn clear(&mut self) {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        *self = Self {
            values,
            ..Self::new(self.aggregator)
        };
    }

    /// Whether it has no values.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that it holds beside itself.
    pub const fn held_bytes(&self) -> usize {
        self.values.capacity() * size_of::<f64>()
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        if value.is_nan() {
            self.push_missing();
            return;
        }
        self.count += 1;
        if self.count == 1 {
            self.first = value;
        }
        self.last = value;
        match self.aggregator {
            Aggregator::Sum | Aggregator::ZeroSum | Aggregator::PreviousSum | Aggregator::Avg => {
                self.main += value;
            }
            Aggregator::SquareSum => self.main += value * value,
            Aggregator::Min
            | Aggregator::MinOfPoints
            | Aggregator::Max
            | Aggregator::MaxOfPoints
            | Aggregator::Multiply
                if self.count == 1 =>
            {
                self.main = value;
            }
            Aggregator::Min | Aggregator::MinOfPoints => self.main = self.main.min(value),
            Aggregator::Max | Aggregator::MaxOfPoints => self.main = self.main.max(value),
            Aggregator::Multiply => self.main *= value,
            Aggregator::Dev => {
                // Welford's method: one pass, without large sums.
                let distance = value - self.main;
                self.main += distance / self.count as f64;
                self.squares += distance * (value - self.main);
            }
            _ if self.aggregator.keeps_values() => self.values.push(value),
            _ => {}
        }
    }

    fn push_missing(&mut self) {
        self.missing += 1;
        match self.aggregator {
            Aggregator::First if self.count == 0 && self.missing == 1 => {
                // What comes later is not the first value.
                self.count = 1;
            }
            Aggregator::Last | Aggregator::None => self.last = f64::NAN,
            Aggregator::Diff if self.count > 0 => self.last = f64::NAN,
            Aggregator::Multiply => {
                self.count += 1;
                self.main = f64::NAN;
            }
            _ => {}
        }
    }

    /// The result; NaN without values. The values may change their order.
    pub fn result(&mut self) -> f64 {
        if self.count == 0 {
            return if self.aggregator == Aggregator::Count && self.missing > 0 {
                0.0
            } else {
                f64::NAN
            };
        }
        match self.aggregator {
            Aggregator::None | Aggregator::Last => self.last,
            Aggregator::First => self.first,
            Aggregator::Count => self.count as f64,
            Aggregator::Avg => self.main / self.count as f64,
            Aggregator::Dev => (self.squares / self.count as f64).sqrt(),
            Aggregator::Diff => self.last - self.first,
            Aggregator::Median => {
                self.values.sort_unstable_by(f64::total_cmp);
                let middle = self.values.get(self.values.len() / 2);
                middle.copied().unwrap_or(f64::NAN)
            }
            Aggregator::Percentile(thousandths, estimate) => {
                self.values.sort_unstable_by(f64::total_cmp);
                percentile(&self.values, f64::from(thousandths) / 1000.0, estimate)
            }
            _ => self.main,
        }
    }
}

/// A percentile of sorted values.
fn percentile(sorted: &[f64], part: f64, estimate: PercentileEstimate) -> f64 {
    let count = sorted.len() as f64;
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return f64::NAN;
    };
    let position = match estimate {
        PercentileEstimate::Legacy => part * (count + 1.0),
        PercentileEstimate::R3 => (count * part).round_ties_even(),
        PercentileEstimate::R7 => 1.0 + (count - 1.0) * part,
    };
    if position < 1.0 {
        return *first;
    }
    if position >= count {
        return *last;
    }
    let below = position.floor();
    let place = below as usize;
    match (sorted.get(place - 1), sorted.get(place)) {
        (Some(lower), Some(upper)) => lower + (position - below) * (upper - lower),
        _ => *last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aggregated(name: &str, values: &[f64]) -> f64 {
        let aggregator = Aggregator::from_name(name).expect("there is such a function");
        let mut state = AggregatorState::new(aggregator);
        for value in values {
            state.push(*value);
        }
        state.result()
    }

    #[test]
    fn every_function_computes() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        for (name, expected) in [
            ("sum", 40.0),
            ("zimsum", 40.0),
            ("pfsum", 40.0),
            ("min", 2.0),
            ("mimmin", 2.0),
            ("max", 9.0),
            ("mimmax", 9.0),
            ("avg", 5.0),
            // The textbook's example: the deviation of the population is 2.
            ("dev", 2.0),
            ("count", 8.0),
            ("first", 2.0),
            ("last", 9.0),
            ("mult", 201_600.0),
            ("median", 5.0),
            ("diff", 7.0),
            ("squareSum", 232.0),
        ] {
            assert_eq!(aggregated(name, &values), expected, "{name}");
            assert!(aggregated(name, &[]).is_nan(), "{name}");
            let of_missing = aggregated(name, &[f64::NAN]);
            if name == "count" {
                assert_eq!(of_missing, 0.0);
            } else {
                assert!(of_missing.is_nan(), "{name}");
            }
        }
        assert_eq!(aggregated("dev", &[3.0]), 0.0);
        assert_eq!(aggregated("max", &[-3.0, f64::NAN, -5.0]), -3.0);
    }

    /// OpenTSDB 2.4.1 answers so over series of which one has no point in a bucket of `1m-sum-nan`.
    #[test]
    fn missing_values_are_those_of_opentsdb() {
        let nan = f64::NAN;
        for (name, of_first, of_last) in [
            ("sum", 12.0, 12.0),
            ("min", 5.0, 5.0),
            ("max", 7.0, 7.0),
            ("avg", 6.0, 6.0),
            ("dev", 1.0, 1.0),
            ("count", 2.0, 2.0),
            ("median", 7.0, 7.0),
            ("squareSum", 74.0, 74.0),
            ("mult", nan, nan),
            ("first", nan, 5.0),
            ("last", 7.0, nan),
            ("diff", 2.0, nan),
        ] {
            let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
            let first = aggregated(name, &[nan, 5.0, 7.0]);
            assert!(same(first, of_first), "{name} {first}");
            let last = aggregated(name, &[5.0, 7.0, nan]);
            assert!(same(last, of_last), "{name} {last}");
        }
    }

    #[test]
    fn percentiles_lie_where_their_estimate_says() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        // 0.95 * 101 = 95.95; 0.95 * 100 = 95; 1 + 0.95 * 99 = 95.05.
        assert!((aggregated("p95", &hundred) - 95.95).abs() < 1e-9);
        assert_eq!(aggregated("ep95r3", &hundred), 95.0);
        assert!((aggregated("ep95r7", &hundred) - 95.05).abs() < 1e-9);
        assert_eq!(aggregated("p999", &hundred), 100.0);
        assert_eq!(aggregated("p50", &[1.0, 2.0]), 1.5);
        // 2.5 rounds to the even 2.
        assert_eq!(aggregated("ep50r3", &[1.0, 2.0, 3.0, 4.0, 5.0]), 2.0);
        assert_eq!(aggregated("p99", &[7.0]), 7.0);
    }

    #[test]
    fn names_are_sorted_and_lead_back() {
        assert!(Aggregator::names().is_sorted());
        assert!(Aggregator::names().all(|name| Aggregator::from_name(name).is_some()));
        assert_eq!(Aggregator::from_name("mean"), None);
    }

    proptest! {
        #[test]
        fn results_lie_within_the_values(values in proptest::collection::vec(-1e6_f64..1e6, 1..50)) {
            let (low, high) = (aggregated("min", &values), aggregated("max", &values));
            for name in ["avg", "median", "p50", "p90", "p999", "ep99r3", "ep99r7", "first", "last"] {
                let result = aggregated(name, &values);
                prop_assert!(result >= low - 1e-6 && result <= high + 1e-6, "{} {}", name, result);
            }
            let mut state = AggregatorState::new(Aggregator::Median);
            for value in &values {
                state.push(*value);
            }
            state.clear();
            prop_assert!(state.is_empty() && state.result().is_nan());
        }
    }
}
