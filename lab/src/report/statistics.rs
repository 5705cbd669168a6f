//! Statistics of repetitions: a median, its interval, and whether two targets differ by more than
//! noise.
//!
//! Nothing here assumes a distribution, because times on a computer are skewed and have outliers.
//!
//! - *Interval*: order statistics. Whatever the distribution, the number of samples below the true
//!   median is binomial with ½, so the k-th smallest and k-th largest of n samples enclose it with
//!   probability 1 − 2·P(Bin(n, ½) < k) (W. J. Conover, *Practical Nonparametric Statistics*, 3rd
//!   ed., § 3.2; J.-Y. Le Boudec, *Performance Evaluation of Computer and Communication Systems*,
//!   § 2.2). The narrowest such interval of at least 95 % is taken; fewer than six samples cannot
//!   give 95 %, so they give least and greatest, and the probability that these really have (93.75 %
//!   for five, 75 % for three) is reported.
//! - *More than noise*: the intervals do not overlap, and, from four repetitions a side, the exact
//!   two-sided Mann–Whitney test (H. B. Mann, D. R. Whitney, *Ann. Math. Statist.* 18, 1947) gives
//!   p < 0.05. Three against three cannot give less than p = 0.1, so there disjoint intervals decide
//!   alone: one in ten of such claims would come from noise. Fewer than three repetitions decide
//!   nothing.

/// The required probability of an interval.
const CONFIDENCE: f64 = 0.95;
/// A difference is noise if chance produces one as large with this probability.
const P_MAX: f64 = 0.05;
/// Fewer repetitions than this decide nothing.
pub(super) const JUDGED_MIN: usize = 3;
/// The fewest repetitions for which the test is used.
const TESTED_MIN: usize = 4;

/// A summary of the repetitions of one figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    /// The samples, ascending; at least one.
    pub samples: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Lower end of the interval of the median.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that the interval holds the true median; 0 for one sample.
    pub coverage: f64,
}

/// Median of `values`; `None` if there are none.
#[must_use]
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[sorted.len() / 2 - 1], upper)
    } else {
        upper
    })
}

/// For `n` samples: how many to exclude at each end, and the probability that the rest encloses the
/// median.
fn interval(n: usize) -> (usize, f64) {
    let mut probability = 0.5_f64.powi(n as i32);
    let mut below = probability;
    let mut chosen = (0, (1.0 - 2.0 * below).max(0.0));
    for out in 1..n / 2 {
        probability *= (n + 1 - out) as f64 / out as f64;
        below += probability;
        let coverage = 1.0 - 2.0 * below;
        if coverage < CONFIDENCE {
            break;
        }
        chosen = (out, coverage);
    }
    chosen
}

impl Summary {
    /// The summary of `samples`; `None` if there are none, or if one is not a number.
    #[must_use]
    pub(super) fn new(mut samples: Vec<f64>) -> Option<Self> {
        if samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let median = median(&samples)?;
        samples.sort_by(f64::total_cmp);
        let (out, coverage) = interval(samples.len());
        Some(Self {
            median,
            low: samples[out],
            high: samples[samples.len() - 1 - out],
            coverage,
            samples,
        })
    }

    /// Number of samples.
    #[must_use]
    pub(super) fn n(&self) -> usize {
        self.samples.len()
    }
}

/// Whether one target differs from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Judgement {
    /// It has more, beyond noise; the p of the test.
    More(f64),
    /// It has less, beyond noise; the p of the test.
    Less(f64),
    /// Noise would explain the difference.
    Noise,
    /// Too few repetitions to tell; the smaller number of them.
    Untold(usize),
}

/// Judges the difference of `a` to `b`.
#[must_use]
pub(super) fn judge(a: &Summary, b: &Summary) -> Judgement {
    let fewest = a.n().min(b.n());
    if fewest < JUDGED_MIN {
        return Judgement::Untold(fewest);
    }
    let apart = a.low > b.high || a.high < b.low;
    let p = mann_whitney(&a.samples, &b.samples);
    if !apart || (fewest >= TESTED_MIN && p >= P_MAX) {
        Judgement::Noise
    } else if a.median > b.median {
        Judgement::More(p)
    } else {
        Judgement::Less(p)
    }
}

/// Exact two-sided p of the Mann–Whitney test: the fraction of all ways to divide the pooled
/// samples into two groups of these sizes whose sum of ranks is at least as far from the expected
/// one. Equal samples share their mean rank, and are also counted exactly.
#[must_use]
pub(super) fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let mut pool: Vec<(f64, bool)> = a.iter().map(|value| (*value, true)).collect();
    pool.extend(b.iter().map(|value| (*value, false)));
    pool.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the rank, so that shared ranks are integers.
    let mut ranks = Vec::with_capacity(pool.len());
    while ranks.len() < pool.len() {
        let first = ranks.len();
        let same = pool[first..]
            .iter()
            .take_while(|(value, _)| *value == pool[first].0);
        let count = same.count();
        ranks.extend(std::iter::repeat_n(2 * first + count + 1, count));
    }
    let total: usize = ranks.iter().sum();
    let ours = ranks.iter().zip(&pool).filter(|(_, (_, ours))| *ours);
    let observed: usize = ours.map(|(rank, _)| rank).sum();

    // ways[k][s]: number of ways to choose k samples whose doubled ranks add up to s.
    let mut ways = vec![vec![0.0_f64; total + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for &rank in &ranks {
        for chosen in (1..=a.len()).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            for sum in rank..=total {
                more[0][sum] += fewer[chosen - 1][sum - rank];
            }
        }
    }
    // Multiplied by the number of samples, the expected sum is also an integer.
    let far = |sum: usize| (sum * ranks.len()).abs_diff(total * a.len());
    let all: f64 = ways[a.len()].iter().sum();
    let extreme = ways[a.len()]
        .iter()
        .enumerate()
        .filter(|(sum, _)| far(*sum) >= far(observed));
    extreme.map(|(_, ways)| ways).sum::<f64>() / all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(samples: &[f64]) -> Summary {
        Summary::new(samples.to_vec()).expect("samples are numbers")
    }

    #[test]
    fn medians_of_odd_even_and_no_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(Summary::new(vec![1.0, f64::NAN]), None);
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Le Boudec, table A.1: n = 6 → (1, 6), 9 → (2, 8), 20 → (6, 15); the coverages follow
        // from the binomial distribution.
        let tabled = [
            (1, 0, 0.0),
            (2, 0, 0.5),
            (3, 0, 0.75),
            (5, 0, 0.9375),
            (6, 0, 0.96875),
            (9, 1, 0.9609),
            (20, 5, 0.9586),
        ];
        for (n, out, coverage) in tabled {
            let (found_out, found) = interval(n);
            assert_eq!(found_out, out, "n = {n}");
            assert!((found - coverage).abs() < 1e-4, "n = {n}: {found}");
        }
        let nine = summary(&[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!((nine.low, nine.median, nine.high), (2.0, 5.0, 8.0));
    }

    #[test]
    fn mann_whitney_gives_the_published_probabilities() {
        // Complete separation: 2 / C(n + m, n).
        let close = |found: f64, right: f64| assert!((found - right).abs() < 1e-12, "{found}");
        close(mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 2.0 / 20.0);
        close(
            mann_whitney(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]),
            2.0 / 70.0,
        );
        close(mann_whitney(&[1.0; 5], &[2.0; 5]), 2.0 / 252.0);
        // Mann and Whitney's table for n = m = 4: P(U ≤ 1) = 2/70, so two-sided 4/70.
        close(
            mann_whitney(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0]),
            4.0 / 70.0,
        );
        close(mann_whitney(&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0]), 1.0);
        close(mann_whitney(&[], &[1.0]), 1.0);
    }

    #[test]
    fn a_difference_counts_only_beyond_noise() {
        let slow = summary(&[10.0, 11.0, 10.5, 10.2, 10.8]);
        let fast = summary(&[20.0, 21.0, 19.0, 20.5, 20.2]);
        assert!(matches!(judge(&fast, &slow), Judgement::More(p) if p < 0.01));
        assert!(matches!(judge(&slow, &fast), Judgement::Less(_)));
        let noisy = summary(&[9.0, 12.0, 10.0, 25.0, 11.0]);
        assert_eq!(judge(&noisy, &slow), Judgement::Noise);
        assert_eq!(judge(&slow, &slow), Judgement::Noise);
        let twice = summary(&[20.0, 21.0]);
        assert_eq!(judge(&twice, &slow), Judgement::Untold(2));
        let thrice = summary(&[20.0, 21.0, 22.0]);
        assert!(matches!(judge(&thrice, &slow), Judgement::More(_)));
    }
}
