//! How much the accountant grants to each holder.

use super::*;
use std::sync::Arc;

/// 32 parts of 10 bytes.
const LIMIT: usize = 320;

#[test]
fn the_ceiling_holds_for_those_who_ask_and_counts_those_who_do_not() {
    let memory = MemoryAccountant::new(LIMIT);
    assert!(memory.try_grow(Holder::Memtable, 160));
    assert!(
        !memory.try_grow(Holder::Memtable, 1),
        "half of the ceiling is its share"
    );
    // 320 minus 160, and minus the reserves of requests, scans and compaction.
    assert_eq!(memory.available(Holder::Query), 120);
    assert!(!memory.try_grow(Holder::Query, 121));
    assert!(memory.try_grow(Holder::Query, 120));
    memory.grow(Holder::SeriesIndex, 500);
    assert_eq!((memory.used(), memory.peak()), (780, 780));
    memory.shrink(Holder::Memtable, 160);
    assert_eq!((memory.used(), memory.used_by(Holder::Memtable)), (620, 0));
    assert!(!memory.try_grow(Holder::Query, usize::MAX));
    let usage = memory.usage(Holder::Query);
    assert_eq!(
        (usage.bytes, usage.peak_bytes, usage.refusals),
        (120, 120, 2)
    );
}

#[test]
fn nothing_is_given_even_where_all_is_taken() {
    let memory = MemoryAccountant::new(LIMIT);
    for holder in Holder::ALL {
        memory.grow(holder, LIMIT);
    }
    for holder in Holder::ALL {
        assert!(memory.try_grow(holder, 0), "{}", holder.name());
        assert!(memory.wait_grow(holder, 0, Duration::ZERO));
        assert!(!memory.try_grow(holder, 1));
        assert_eq!(memory.usage(holder).refusals, 1);
    }
}

#[test]
fn what_can_be_had_depends_on_what_does_not_come_back() {
    let memory = MemoryAccountant::new(LIMIT);
    assert_eq!(memory.attainable(Holder::Requests), 80);
    for holder in [
        Holder::Memtable,
        Holder::Scan,
        Holder::Query,
        Holder::LastValues,
    ] {
        memory.grow(holder, LIMIT);
    }
    assert_eq!(
        memory.attainable(Holder::Requests),
        80,
        "all of them give back"
    );
    // 320 minus the reserves of memtables, scans, queries and compaction.
    memory.grow(Holder::SeriesIndex, 150);
    assert_eq!(memory.attainable(Holder::Requests), 40);
    memory.grow(Holder::SegmentIndex, LIMIT);
    assert_eq!(memory.attainable(Holder::Requests), 10, "its reserve");
}

#[test]
fn a_process_that_works_is_larger_than_one_that_begins() {
    let memory = MemoryAccountant::new(1 << 20);
    memory.measured(1 << 18);
    let at_first = memory.attainable(Holder::Requests);
    assert!(at_first < memory.share(Holder::Requests));
    // The process now uses an additional eighth of the ceiling itself.
    memory.measured((1 << 18) + (1 << 17));
    assert_eq!(memory.attainable(Holder::Requests), at_first);
    assert!(memory.try_grow(Holder::Requests, at_first));
}

#[test]
fn a_reserve_is_there_whatever_the_others_hold() {
    let memory = MemoryAccountant::new(LIMIT);
    memory.grow(Holder::SeriesIndex, 2 * LIMIT);
    assert!(memory.try_grow(Holder::Memtable, 40) && !memory.try_grow(Holder::Memtable, 1));
    assert!(memory.try_grow(Holder::Query, 60) && !memory.try_grow(Holder::Query, 1));
    assert!(memory.try_grow(Holder::Scan, 20) && !memory.try_grow(Holder::Scan, 1));
    assert!(!memory.try_grow(Holder::LastValues, 1), "a cache has none");
}

#[test]
fn reserves_are_parts_of_what_the_process_leaves() {
    let memory = MemoryAccountant::new(1 << 20);
    memory.measured(1 << 19);
    // The process uses half of it, and a 32nd is left for what nothing counts.
    let room = (1 << 19) - (1 << 15);
    assert_eq!(memory.share(Holder::Memtable), room / 2);
    let all = Holder::ALL.map(|holder| {
        let mut taken = 0;
        while memory.try_grow(holder, 1 << 10) {
            taken += 1 << 10;
        }
        taken
    });
    assert!(all.iter().sum::<usize>() <= room, "{all:?}");
    memory.measured(2 << 20);
    assert!(memory.is_over());
    assert!(
        Holder::ALL
            .iter()
            .all(|holder| !memory.try_grow(*holder, 1 << 10))
    );
    // Work that frees memory gets some, once it has released what it had.
    memory.shrink(Holder::Memtable, memory.used_by(Holder::Memtable));
    assert!(memory.try_grow(Holder::Memtable, 4 << 10));
}

#[test]
fn the_reserves_leave_half_of_the_ceiling_to_whoever_asks() {
    let reserved: usize = Holder::ALL.iter().map(|holder| holder.parts().0).sum();
    assert!(2 * reserved <= PARTS, "{reserved} of {PARTS}");
    assert!(
        Holder::ALL
            .iter()
            .all(|holder| holder.parts().0 <= holder.parts().1)
    );
}

#[test]
fn what_is_measured_beyond_the_holders_counts_as_the_process() {
    let memory = MemoryAccountant::new(32_000);
    memory.measured(5_000);
    memory.grow(Holder::Query, 10_000);
    // Memory that was reserved and not written to yet hides nothing of the process.
    memory.measured(6_000);
    assert_eq!(memory.used_by(Holder::Process), 5_000);
    let measured = memory.measured(25_000);
    assert_eq!(
        (memory.used(), memory.used_by(Holder::Process)),
        (25_000, 15_000)
    );
    assert_eq!((measured.retained_bytes, measured.refused), (10_000, false));
    // A decrease is only accepted step by step.
    assert!(!memory.try_grow(Holder::Query, 20_000));
    let measured = memory.measured(15_000);
    assert!(measured.refused && !memory.measured(15_000).refused);
    let falling = memory.used_by(Holder::Process);
    assert!(falling > 5_000 && falling < 15_000, "{falling}");
    for _ in 0..100 {
        memory.measured(15_000);
    }
    let fallen = memory.used_by(Holder::Process);
    assert!((5_000..5_100).contains(&fallen), "{fallen}");
    assert!(memory.try_grow(Holder::Query, 6_000));
}

#[test]
fn who_waits_gets_what_another_gives_back_and_refusals_are_told() {
    let memory = Arc::new(MemoryAccountant::new(LIMIT));
    let told = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = told.clone();
    memory.on_refusal(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let mut first = MemoryReservation::empty(&memory, Holder::Scan);
    assert!(first.try_grow(120));
    let mut second = MemoryReservation::empty(&memory, Holder::Scan);
    assert!(!second.wait_grow(1, Duration::from_millis(5)));
    let waiting = std::thread::spawn(move || second.wait_grow(100, Duration::from_mins(1)));
    while memory.usage(Holder::Scan).waits < 2 {
        std::thread::yield_now();
    }
    drop(first);
    assert!(waiting.join().unwrap());
    let usage = memory.usage(Holder::Scan);
    assert_eq!((usage.bytes, usage.waits, usage.refusals), (0, 2, 1));
    assert_eq!(told.load(Ordering::Relaxed), 2);
    drop(MemoryReservation::counted(&memory, Holder::Recovery, 1000));
    assert_eq!(
        (memory.used(), memory.usage(Holder::Recovery).peak_bytes),
        (0, 1000)
    );
}
