//! Runs the same work on several items, on as many threads as the machine runs at once.

use parking_lot::Mutex;

/// The results of `work` for each of `items`, in order. If one of them panics, the caller panics
/// after all have ended.
pub(crate) fn side_by_side<T: Send, R: Send>(
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let at_once = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let others = at_once.min(items.len()).saturating_sub(1);
    let queue = Mutex::new(items.enumerate());
    let take = || {
        let mut done = Vec::new();
        loop {
            let next = queue.lock().next();
            let Some((number, item)) = next else {
                return done;
            };
            done.push((number, work(item)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::side_by_side;

    #[test]
    fn results_stand_in_the_order_of_what_they_are_of() {
        for len in 0..40_u64 {
            let squares: Vec<_> = (0..len).map(|n| n * n).collect();
            let items: Vec<u64> = (0..len).collect();
            assert_eq!(side_by_side(items.into_iter(), |n| n * n), squares);
        }
    }
}
