//! Detects repeated values: how many are distinct, and whether they form a cycle. It samples, in a
//! small part of the time that encoding takes.

/// Number of values sampled to estimate how many are distinct.
const SAMPLE: usize = 256;
/// Slots of the table that finds equal values among them.
const SLOTS: usize = 1024;
/// Values that must occur twice before a conclusion is drawn.
const REPEATED_MIN: usize = 4;
/// Positions that must match those one cycle later.
const CHECKS: usize = 64;
/// Consecutive values that must recur at the start of a cycle.
const HEAD: usize = 8;

/// Estimates how many of `count` values are distinct; `None` if hardly any occurs twice. `key`
/// returns the bits of the value at a position.
pub(crate) fn distinct(count: usize, key: impl Fn(usize) -> u64) -> Option<usize> {
    let seen = count.min(SAMPLE);
    let step = count / seen.max(1);
    let mut slots = [0u16; SLOTS];
    let mut keys = [0u64; SAMPLE];
    let mut kinds = 0;
    for sample in 0..seen {
        let key = key(jittered(sample, step));
        let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize;
        while slots[at] != 0 && keys[usize::from(slots[at]) - 1] != key {
            at = (at + 1) % SLOTS;
        }
        if slots[at] == 0 {
            keys[kinds] = key;
            kinds += 1;
            slots[at] = kinds as u16;
        }
    }
    if seen - kinds < REPEATED_MIN {
        return None;
    }
    // If `d` values are equally frequent, a sample of `s` contains d · (1 - e^(-s/d)) distinct
    // ones.
    let mut guess = kinds as f64;
    while guess * (1.0 - (-(seen as f64) / guess).exp()) < kinds as f64 - 0.5 {
        guess *= 1.1;
    }
    Some(guess as usize)
}

/// The `sample`th of positions that are `step` apart, moved at random within the step, so that a
/// period in the values does not mislead.
fn jittered(sample: usize, step: usize) -> usize {
    let jitter = u64::from((sample as u32).wrapping_mul(0x9E37_79B1)) * step as u64;
    sample * step + (jitter >> 32) as usize
}

/// The length of the values' cycle, up to `longest`.
pub(crate) fn cycle(count: usize, longest: usize, key: impl Fn(usize) -> u64) -> Option<usize> {
    if count < 4 * HEAD {
        return None;
    }
    let longest = longest.min(count - HEAD);
    let first = key(0);
    let repeats = |period: &usize| (1..HEAD).all(|at| key(period + at) == key(at));
    let is_cycle = |period: &usize| {
        let room = count - period;
        let checks = CHECKS.min(room);
        let agree = |check: usize| {
            let at = jittered(check, room / checks);
            usize::from(key(at) == key(at + period))
        };
        // Tolerate a few wrong readings.
        (0..checks).map(agree).sum::<usize>() * 16 >= checks * 15
    };
    (1..=longest)
        .filter(|period| key(*period) == first)
        .filter(repeats)
        .take(3)
        .find(is_cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(at: usize) -> u64 {
        let state = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    #[test]
    fn the_number_of_distinct_values_is_guessed() {
        assert_eq!(distinct(8192, noise), None);
        assert_eq!(distinct(8192, |_| 7), Some(1));
        for kinds in [2, 10, 100, 1000] {
            let guess = distinct(8192, |at| noise((noise(at) >> 9) as usize % kinds)).unwrap();
            assert!(
                guess * 2 >= kinds && guess <= kinds * 2,
                "{guess} of {kinds}"
            );
        }
        assert_eq!(distinct(0, noise), None);
        assert_eq!(distinct(3, |_| 1), None);
    }

    #[test]
    fn cycles_are_found_where_there_are_some() {
        for period in [2, 3, 16, 60, 1000, 4000] {
            let cyclic = |at: usize| noise(at % period);
            assert_eq!(cycle(8192, 4096, cyclic), Some(period));
            let failing = |at: usize| if at % 97 == 50 { at as u64 } else { cyclic(at) };
            assert_eq!(
                cycle(8192, 4096, failing),
                Some(period),
                "{period} with failures"
            );
        }
        assert_eq!(cycle(8192, 4096, |at| noise(at) % 3), None);
        assert_eq!(cycle(8192, 100, |at| noise(at % 1000)), None);
        assert_eq!(cycle(5, 5, |_| 1), None);
    }
}
