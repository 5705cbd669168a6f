//! Tests of where statements run, how they end, and what they leave to others.

use super::*;
use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use futures::executor::block_on;
use marigram_functions::interrupt;
use marigram_service::{WriteStep, write_blocking};
use parking_lot::Mutex;
use std::thread;

fn batch(number: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![number]));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn answer<F: Future<Output = SqlResult<()>> + Send + 'static>(
    workers: &StatementThreadPool,
    begin: StatementStart,
    work: impl FnOnce(StatementOutput) -> F + Send + 'static,
) -> Result<Vec<RecordBatch>, ServiceError> {
    block_on(async {
        match workers.answer(begin, None, "", work).await? {
            Answer::Rows(rows) => rows.batches.collect::<Vec<_>>().await.into_iter().collect(),
            Answer::Done { .. } => Ok(Vec::new()),
        }
    })
}

#[test]
fn what_begins_here_ends_here_unless_it_waits_or_moves_on() {
    let workers = StatementThreadPool::new(1).unwrap();
    let here = thread::current().id();
    let where_is = |begin, moves: bool, waits: bool| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&told);
        let work = move |out: StatementOutput| async move {
            seen.lock().push(thread::current().id());
            if moves {
                out.move_on().await;
            }
            if waits {
                let slow = || thread::sleep(Duration::from_millis(20));
                tokio::task::spawn_blocking(slow).await.unwrap();
            }
            seen.lock().push(thread::current().id());
            out.done("DONE".to_owned(), 0);
            Ok(())
        };
        assert!(answer(&workers, begin, work).unwrap().is_empty());
        let told = told.lock();
        (told[0] == here, told[1] == here)
    };
    assert_eq!(where_is(StatementStart::Inline, false, false), (true, true));
    assert_eq!(where_is(StatementStart::Inline, true, false), (true, false));
    assert_eq!(where_is(StatementStart::Inline, false, true), (true, false));
    assert_eq!(where_is(StatementStart::There, true, true), (false, false));
    assert_eq!(workers.inline_statements(), 1);
}

#[test]
fn more_batches_than_wait_for_a_reader_go_on_elsewhere() {
    let workers = StatementThreadPool::new(1).unwrap();
    let work = |out: StatementOutput| async move {
        let batches = futures::stream::iter((0..10).map(|at| SqlResult::Ok(batch(at))));
        out.rows(batch(0).schema(), batches).await
    };
    let expected: Vec<RecordBatch> = (0..10).map(batch).collect();
    for begin in [StatementStart::Inline, StatementStart::There] {
        assert_eq!(answer(&workers, begin, work).unwrap(), expected);
    }
    assert_eq!(workers.inline_statements(), 0);
}

#[test]
fn a_panic_here_is_an_error_of_the_statement() {
    let workers = StatementThreadPool::new(1).unwrap();
    for begin in [StatementStart::Inline, StatementStart::There] {
        let work = |_: StatementOutput| async { panic!("a bug") };
        assert!(matches!(
            answer(&workers, begin, work),
            Err(ServiceError::Internal(_))
        ));
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

#[test]
fn work_that_ignores_its_end_is_answered_and_counts_until_it_stops() {
    let workers = StatementThreadPool::new(1).unwrap();
    let (begun, may_end) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (tell, wait) = (Arc::clone(&begun), Arc::clone(&may_end));
    let deaf = async move {
        tell.store(true, Ordering::Relaxed);
        while !wait.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    let timeout = Some(Duration::from_millis(50));
    let ended = block_on(workers.run(timeout, deaf)).unwrap_err();
    assert!(ended.to_string().contains("50 ms"), "{ended}");
    assert!(begun.load(Ordering::Relaxed));
    // Its thread still exists, and other statements have threads of their own.
    assert_eq!(workers.lanes.in_use(), 1);
    assert_eq!(block_on(workers.run(None, async { Ok(7) })).unwrap(), 7);
    may_end.store(true, Ordering::Relaxed);
    wait_until("its lane is free", || workers.lanes.in_use() == 0);
}

#[test]
fn a_timeout_ends_no_statement_that_commits() {
    let workers = StatementThreadPool::new(1).unwrap();
    let timeout = Some(Duration::from_millis(20));
    let slow = || {
        thread::sleep(Duration::from_millis(200));
        7
    };
    let write = move |is_last| async move {
        let commit = CommitPoint::of_task();
        let work = move || {
            let mut step = commit.begin_write(is_last)?;
            step.stored(3);
            Ok(slow())
        };
        marigram_service::run_blocking(work).await?
    };
    assert_eq!(block_on(workers.run(timeout, write(true))).unwrap(), 7);
    let more = async move {
        write(false).await?;
        std::future::pending::<SqlResult<()>>().await
    };
    let error = block_on(workers.run(timeout, more))
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("was stopped; 3 rows were stored before, and stay"),
        "{error}"
    );
    // Work that changes the database at once, for a statement that was stopped before.
    let commit = CommitPoint::default();
    assert_eq!(commit.stop("enough"), Some(0));
    let late = commit.scope(workers.commit(move || Ok(slow())));
    let error = block_on(late).unwrap_err().to_string();
    assert_eq!(error, "enough");
}

#[test]
fn a_write_on_an_express_lane_is_told_to_come_again() {
    let workers = StatementThreadPool::new(1).unwrap();
    let mut regular = Vec::new();
    while let Some(admission) = workers.lanes.try_admit_regular() {
        regular.push(admission);
    }
    // The watchdog's stop comes during the first step, and the second does not begin.
    let two_steps = |rows| async move {
        for _ in 0..2 {
            let step = move |step: &mut WriteStep| {
                thread::sleep(Duration::from_millis(1_200));
                step.stored(rows);
                Ok::<_, ServiceError>(())
            };
            write_blocking(false, step).await?;
        }
        Ok(())
    };
    let error = block_on(workers.run(None, two_steps(0))).unwrap_err();
    let error = error.into_service("");
    assert!(matches!(error, ServiceError::Busy { .. }), "{error:?}");
    // Whoever came again would store the rows of the first step twice.
    let error = block_on(workers.run(None, two_steps(2))).unwrap_err();
    let error = error.into_service("");
    assert!(matches!(error, ServiceError::Cancelled(_)), "{error:?}");
}

#[test]
fn whoever_asks_whether_it_is_wanted_stops_when_nobody_waits() {
    let workers = StatementThreadPool::new(1).unwrap();
    let stopped = Arc::<AtomicBool>::default();
    let tell = Arc::clone(&stopped);
    let asking = async move {
        while interrupt::check().is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        tell.store(true, Ordering::Relaxed);
        Ok(())
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let running = workers.run(None, asking);
        let gone = tokio::time::timeout(Duration::from_millis(50), running);
        assert!(gone.await.is_err());
    });
    wait_until("it stops", || stopped.load(Ordering::Relaxed));
    wait_until("its lane is free", || workers.lanes.in_use() == 0);
}

#[test]
fn short_work_gets_through_beside_any_number_of_long_ones() {
    let workers = Arc::new(StatementThreadPool::new(1).unwrap());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let long = |_| {
        let workers = Arc::clone(&workers);
        let never = async move {
            workers
                .run(None, std::future::pending::<SqlResult<()>>())
                .await
        };
        runtime.spawn(never)
    };
    let all: Vec<_> = (0..60).map(long).collect();
    runtime.block_on(async {
        for number in 0..20 {
            let done = workers.run(None, async move { Ok(number) }).await;
            assert_eq!(done.unwrap(), number);
        }
        // Statements on express lanes were stopped.
        let (refused, ..) = futures::future::select_all(all).await;
        let error = refused.unwrap().unwrap_err().to_string();
        assert!(error.contains("try again later"), "{error}");
    });
    drop(runtime);
    wait_until("all lanes are free", || workers.lanes.in_use() == 0);
}

#[test]
fn readers_that_do_not_read_give_up_their_place() {
    let workers = StatementThreadPool::new(1).unwrap();
    let work = |out: StatementOutput| async move {
        let batches = futures::stream::iter((0..100).map(|at| SqlResult::Ok(batch(at))));
        out.rows(batch(0).schema(), batches).await
    };
    let unread: Vec<_> = (0..60)
        .map(|_| block_on(workers.answer(StatementStart::There, None, "", work)).unwrap())
        .collect();
    wait_until("nobody has a place", || workers.lanes.in_use() == 0);
    for answer in unread {
        let Answer::Rows(rows) = answer else {
            panic!("it has rows")
        };
        let rows: Vec<_> = block_on(rows.batches.collect());
        assert_eq!(rows.into_iter().flatten().count(), 100);
    }
    wait_until("all lanes are free", || workers.lanes.in_use() == 0);
}

#[test]
fn answers_that_nobody_reads_are_bounded() {
    let workers = StatementThreadPool::new(1).unwrap();
    let mut unread = Vec::new();
    while let Some(admission) = workers.lanes.admit_unread() {
        unread.push(admission);
    }
    let work = |out: StatementOutput| async move {
        let batches = futures::stream::iter((0..100).map(|at| SqlResult::Ok(batch(at))));
        out.rows(batch(0).schema(), batches).await
    };
    let answer = block_on(workers.answer(StatementStart::There, None, "", work)).unwrap();
    // It learns the reason when it reads, and its admission is released.
    wait_until("its lane is free", || workers.lanes.in_use() == 0);
    let Answer::Rows(rows) = answer else {
        panic!("it has rows")
    };
    let mut rows: Vec<_> = block_on(rows.batches.collect());
    let last = rows.pop().unwrap().unwrap_err();
    assert!(matches!(last, ServiceError::Busy { .. }), "{last}");
    assert!(rows.len() < 100 && rows.iter().all(Result::is_ok));
}
