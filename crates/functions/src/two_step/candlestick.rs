//! `candlestick_agg(time, price, volume)`: the first, highest, lowest and last price of a group, and its
//! volume.

use super::summary::{GroupSummary, Slot, SlotKind};
use SlotKind::{Float, Whole};
use datafusion::common::Result;

/// The summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candlestick {
    /// The first price and its time.
    pub open: (i64, f64),
    /// The highest price and the first time at which it was paid.
    pub high: (i64, f64),
    /// The lowest price and the first time at which it was paid.
    pub low: (i64, f64),
    /// The last price and its time.
    pub close: (i64, f64),
    /// The sum of the volumes.
    pub volume: f64,
    /// The sum of the prices times the volumes.
    pub turnover: f64,
}

impl Candlestick {
    /// The summary of one trade.
    pub(crate) fn of_trade(time: i64, price: f64, volume: f64) -> Self {
        let point = (time, price);
        Self {
            open: point,
            high: point,
            low: point,
            close: point,
            volume,
            turnover: price * volume,
        }
    }

    /// The mean price, weighted by volume.
    pub(crate) fn vwap(&self) -> Option<f64> {
        (self.volume > 0.0).then(|| self.turnover / self.volume)
    }
}

impl GroupSummary for Candlestick {
    const NAME: &'static str = "candlestick_agg";
    const SLOTS: &'static [(&'static str, SlotKind)] = &[
        ("open_time", Whole),
        ("open", Float),
        ("high_time", Whole),
        ("high", Float),
        ("low_time", Whole),
        ("low", Float),
        ("close_time", Whole),
        ("close", Float),
        ("volume", Float),
        ("turnover", Float),
    ];

    fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::with_capacity(10);
        for point in [self.open, self.high, self.low, self.close] {
            slots.extend([point.0 as u64, point.1.to_bits()]);
        }
        slots.extend([self.volume.to_bits(), self.turnover.to_bits()]);
        slots
    }

    fn from_slots(slots: &[Slot]) -> Self {
        let point = |at: usize| (slots[at] as i64, f64::from_bits(slots[at + 1]));
        Self {
            open: point(0),
            high: point(2),
            low: point(4),
            close: point(6),
            volume: f64::from_bits(slots[8]),
            turnover: f64::from_bits(slots[9]),
        }
    }

    fn join(&self, other: &Self) -> Result<Self> {
        // Points of the same time are ordered by their prices, so that the order of rows does not
        // matter.
        let earlier = |left: (i64, f64), right: (i64, f64)| {
            let by_price = || left.1.total_cmp(&right.1);
            if left.0.cmp(&right.0).then_with(by_price).is_le() {
                left
            } else {
                right
            }
        };
        let later = |left: (i64, f64), right: (i64, f64)| {
            if earlier(left, right) == left {
                right
            } else {
                left
            }
        };
        let extreme =
            |left: (i64, f64), right: (i64, f64), is_high: bool| match left.1.total_cmp(&right.1) {
                std::cmp::Ordering::Equal => earlier(left, right),
                order if order.is_gt() == is_high => left,
                _ => right,
            };
        Ok(Self {
            open: earlier(self.open, other.open),
            high: extreme(self.high, other.high, true),
            low: extreme(self.low, other.low, false),
            close: later(self.close, other.close),
            volume: self.volume + other.volume,
            turnover: self.turnover + other.turnover,
        })
    }
}
