//! Makes DataFusion's memory a part of the engine's memory ceiling.

use super::unread_memory::{LaneMemory, UNREAD_PART};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use marigram_engine::{Holder, MemoryAccountant};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Makes DataFusion's reservations with the engine's accountant. The operators that can spill share
/// evenly what is available to queries at the moment (at least the queries' reserve), so that one
/// does not starve the others. An operator that is refused memory spills if it can, and otherwise
/// fails the query. One eighth is left for operators that need little, so that short statements
/// continue while sorts take all that they can get. An operator that cannot spill may get what statements
/// hold whose answers nobody reads ([`unread_memory`](super::unread_memory)).
#[derive(Debug)]
pub(crate) struct AccountedPool {
    accountant: Arc<MemoryAccountant>,
    state: Mutex<AccountedPoolState>,
}

#[derive(Debug, Default)]
struct AccountedPoolState {
    /// The number of operators that can spill.
    spilling: usize,
    /// The bytes of operators that cannot spill.
    unspillable: usize,
    /// The lanes on which operators began, by the number of the operator.
    lanes: HashMap<usize, Arc<LaneMemory>>,
}

/// The fraction of the available memory that is left for operators that need little, and the
/// fraction of that which one such operator may use.
const LEFT_PART: usize = 8;
const LITTLE_PART: usize = 4;

/// A holder is named in an error if it has one of this many parts of the ceiling, or more.
const HOLDING_PART: usize = 64;

/// A holder of memory, in the words of an error.
fn holding(holder: Holder) -> &'static str {
    match holder {
        Holder::Memtable => "rows not yet flushed",
        Holder::SeriesIndex => "the index of series",
        Holder::SegmentIndex => "indexes of segments",
        Holder::LastValues => "newest rows",
        Holder::Requests => "requests",
        Holder::Scan => "scans",
        Holder::Query => "queries",
        Holder::Compaction => "compaction",
        Holder::Recovery => "recovery",
        Holder::Process => "the process itself",
    }
}

impl AccountedPool {
    /// Creates a pool that uses an accountant.
    pub(crate) fn new(accountant: Arc<MemoryAccountant>) -> Self {
        Self {
            accountant,
            state: Mutex::default(),
        }
    }

    /// What holds the memory at present: queries, and every other holder that has a part of it worth
    /// a word, the largest first.
    fn holdings(&self) -> String {
        let limit = self.accountant.limit();
        let used = |holder| self.accountant.used_by(holder);
        let others = Holder::ALL.into_iter().filter(|holder| {
            *holder != Holder::Query && used(*holder) >= (limit / HOLDING_PART).max(1)
        });
        let mut others: Vec<Holder> = others.collect();
        others.sort_by_key(|holder| Reverse(used(*holder)));
        let mut text = format!("queries use {}", used(Holder::Query));
        for holder in others {
            let _ = write!(text, ", {} {}", holding(holder), used(holder));
        }
        text
    }

    /// `most` is the largest size that the operator can have at the moment.
    fn refuse(
        &self,
        reservation: &MemoryReservation,
        additional: usize,
        most: usize,
    ) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "{} has {} bytes and asked for {additional} more; it can have {most} at the moment, \
             beside other operators and what is left to short queries (memory_limit is {}: {})",
            reservation.consumer().name(),
            reservation.size(),
            self.accountant.limit(),
            self.holdings(),
        ))
    }
}

impl fmt::Display for AccountedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}(limit {} bytes)",
            self.name(),
            self.accountant.limit()
        )
    }
}

impl MemoryPool for AccountedPool {
    fn name(&self) -> &'static str {
        "marigram"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let lane = LaneMemory::of_thread();
        let mut state = self.state.lock();
        if consumer.can_spill() {
            state.spilling += 1;
        }
        if let Some(lane) = lane {
            state.lanes.insert(consumer.id(), lane);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        let mut state = self.state.lock();
        if consumer.can_spill() {
            state.spilling = state.spilling.saturating_sub(1);
        }
        state.lanes.remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.state.lock().grow(reservation.consumer(), additional);
        self.accountant.grow(Holder::Query, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, bytes: usize) {
        self.state.lock().shrink(reservation.consumer(), bytes);
        self.accountant.shrink(Holder::Query, bytes);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // An operator that needs nothing is not told to spill (see `MemoryAccountant::try_grow`).
        if additional == 0 {
            return Ok(());
        }
        let refused = match self.try_reserve(reservation, additional) {
            Err(refused) if !reservation.consumer().can_spill() => refused,
            reserved_or_spills => return reserved_or_spills,
        };
        // Only threads of lanes may wait.
        let Some(own) = LaneMemory::of_thread() else {
            return Err(refused);
        };
        let keep_max = self.accountant.available(Holder::Query) / UNREAD_PART;
        own.ask_again(keep_max, refused, || {
            self.try_reserve(reservation, additional)
        })
    }

    fn reserved(&self) -> usize {
        self.accountant.used_by(Holder::Query)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.accountant.share(Holder::Query))
    }
}

impl AccountedPoolState {
    /// Notes that an operator got more.
    fn grow(&mut self, operator: &MemoryConsumer, bytes: usize) {
        if !operator.can_spill() {
            self.unspillable += bytes;
        }
        if let Some(lane) = self.lanes.get(&operator.id()) {
            lane.grow(bytes);
        }
    }

    /// Notes that an operator returned some.
    fn shrink(&mut self, operator: &MemoryConsumer, bytes: usize) {
        if !operator.can_spill() {
            self.unspillable = self.unspillable.saturating_sub(bytes);
        }
        if let Some(lane) = self.lanes.get(&operator.id()) {
            lane.shrink(bytes);
        }
    }
}

impl AccountedPool {
    /// Reserves memory with the accountant if the operator can have that much.
    fn try_reserve(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let can_spill = reservation.consumer().can_spill();
        let mut state = self.state.lock();
        let available = self.accountant.available(Holder::Query);
        let left = available / LEFT_PART;
        let wanted = reservation.size().saturating_add(additional);
        if wanted > left / LITTLE_PART {
            let room = available.saturating_sub(left);
            let used = self.accountant.used_by(Holder::Query);
            let spillable = room.saturating_sub(state.unspillable);
            let unused = reservation.size() + room.saturating_sub(used);
            let most = if can_spill {
                unused.min(spillable / state.spilling.max(1))
            } else {
                unused
            };
            if wanted > most {
                return Err(self.refuse(reservation, additional, most));
            }
        }
        if !self.accountant.try_grow(Holder::Query, additional) {
            return Err(self.refuse(reservation, additional, reservation.size()));
        }
        state.grow(reservation.consumer(), additional);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumer(pool: &Arc<dyn MemoryPool>, name: &str, can_spill: bool) -> MemoryReservation {
        MemoryConsumer::new(name)
            .with_can_spill(can_spill)
            .register(pool)
    }

    #[test]
    fn operators_that_can_spill_share_what_is_available_now() {
        let memory = Arc::new(MemoryAccountant::new(3200));
        let pool: Arc<dyn MemoryPool> = Arc::new(AccountedPool::new(memory.clone()));
        let first = consumer(&pool, "sort", true);
        // Everything except the reserves of the other holders and what is left for operators that
        // need little.
        let available = memory.available(Holder::Query);
        let (left, all) = (available / 8, available - available / 8);
        assert!(first.try_grow(all + 1).is_err());
        first.try_grow(all).unwrap();
        let second = consumer(&pool, "aggregate", true);
        assert!(second.try_grow(all / 2).is_err(), "there is little left");
        second.try_grow(left / 4).unwrap();
        assert!(second.try_grow(left / 4).is_err(), "that is not little");
        let join = consumer(&pool, "join", false);
        join.try_grow(left / 4).unwrap();
        memory.grow(Holder::Memtable, 3200);
        join.try_grow(0).unwrap();
        first.try_grow(0).unwrap();
        memory.shrink(Holder::Memtable, 3200);
        drop(join);
        second.free();
        first.shrink(all);
        assert!(first.try_grow(all / 2 + 1).is_err(), "half is the other's");
        first.try_grow(all / 2).unwrap();
        second.try_grow(all / 2).unwrap();
        assert_eq!(memory.used_by(Holder::Query), all / 2 * 2);
        drop((first, second));
        assert_eq!(memory.used_by(Holder::Query), 0);
    }

    #[test]
    fn what_nobody_reads_is_released_for_who_cannot_spill() {
        let memory = Arc::new(MemoryAccountant::new(3200));
        let pool: Arc<dyn MemoryPool> = Arc::new(AccountedPool::new(memory.clone()));
        let unread = Arc::default();
        let (paused, asks) = (LaneMemory::new(&unread), LaneMemory::new(&unread));
        // On a thread of a lane, operators are its statement's.
        let on_lane = |lane: &Arc<LaneMemory>| {
            let (lane, pool) = (Arc::clone(lane), Arc::clone(&pool));
            let work = move || {
                lane.adopt();
                consumer(&pool, "sort", false)
            };
            std::thread::spawn(work).join().unwrap()
        };
        let held = on_lane(&paused);
        let available = memory.available(Holder::Query);
        held.try_grow(available / 2).unwrap();
        let mut wait = paused.wait_for_reader();
        let ends = std::thread::spawn(move || {
            futures::executor::block_on(wait.ended());
            drop(held);
        });
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        let needs = on_lane(&asks);
        assert!(needs.try_grow(available / 2).is_err(), "no lane's thread");
        let grown = std::thread::spawn(move || {
            asks.adopt();
            needs.try_grow(available / 2)
        });
        grown.join().unwrap().unwrap();
        ends.join().unwrap();
    }

    #[test]
    fn a_refusal_tells_what_holds_the_memory() {
        let memory = Arc::new(MemoryAccountant::new(6400));
        let pool: Arc<dyn MemoryPool> = Arc::new(AccountedPool::new(memory.clone()));
        memory.grow(Holder::Memtable, 1500);
        memory.grow(Holder::SeriesIndex, 2000);
        memory.grow(Holder::Scan, 99);
        let join = consumer(&pool, "join", false);
        join.try_grow(7).unwrap();
        let error = join.try_grow(6000).unwrap_err().to_string();
        let held = "(memory_limit is 6400: queries use 7, the index of series 2000, rows not yet \
                    flushed 1500)";
        assert!(error.contains(held), "{error}");
    }

    #[test]
    fn writes_do_not_take_what_is_reserved_for_queries() {
        let memory = Arc::new(MemoryAccountant::new(3200));
        let pool: Arc<dyn MemoryPool> = Arc::new(AccountedPool::new(memory.clone()));
        memory.grow(Holder::Memtable, 3200);
        let (join, sort) = (
            consumer(&pool, "join", false),
            consumer(&pool, "sort", true),
        );
        join.try_grow(100).unwrap();
        // Of 600 bytes, 75 are left for operators that need little.
        let error = sort.try_grow(426).unwrap_err().to_string();
        assert!(
            error.contains("sort has 0 bytes and asked for 426 more; it can have 425"),
            "{error}"
        );
        sort.try_grow(425).unwrap();
        assert!(join.try_grow(76).is_err());
        sort.free();
        join.try_grow(425).unwrap();
    }
}
