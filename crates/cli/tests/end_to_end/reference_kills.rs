//! Rounds of `kill -9` under transactions over reference tables: a transaction that was acknowledged is there
//! in full, one that was refused or rolled back left nothing, and one whose answer was lost is there in full or
//! not at all.
//!
//! Each transaction moves an amount between two accounts and notes it in a second table. So the notes tell
//! what every account must have. `MARIGRAM_KILL_ROUNDS=500` runs more rounds.

use crate::server::ServeProcess;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::{Client, Error, NoTls};

const ROUNDS: u64 = 3;
const CLIENTS: u64 = 4;
const ACCOUNTS: u64 = 7;
/// What each account has at the beginning.
const START: i64 = 1_000;

/// What a client knows about its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferFate {
    Committed,
    RolledBack,
    Unknown,
}

/// The fate of each transfer, by its number.
type TransferLedger = Mutex<HashMap<u64, TransferFate>>;

/// A transfer, all of which follows from its number.
struct Transfer {
    number: u64,
    from: u64,
    to: u64,
    amount: i64,
}

impl Transfer {
    fn new(number: u64) -> Self {
        let from = number % ACCOUNTS;
        Self {
            number,
            from,
            to: (from + 1 + number / ACCOUNTS % (ACCOUNTS - 1)) % ACCOUNTS,
            amount: 1 + i64::try_from(number % 13).expect("it is small"),
        }
    }

    /// Runs it as one transaction; every third one also tries a step that a savepoint takes back, and every
    /// fifth one is rolled back.
    async fn run(&self, client: &mut Client) -> Result<TransferFate, Error> {
        let Self {
            number,
            from,
            to,
            amount,
        } = self;
        let mut transaction = client.transaction().await?;
        let note = format!("INSERT INTO transfers VALUES ({number}, {from}, {to}, {amount})");
        transaction.batch_execute(&note).await?;
        if number.is_multiple_of(3) {
            let step = transaction.transaction().await?;
            let all = "UPDATE accounts SET balance = 0";
            step.batch_execute(all).await?;
            step.rollback().await?;
        }
        for (account, change) in [(from, -amount), (to, *amount)] {
            let change =
                format!("UPDATE accounts SET balance = balance + {change} WHERE id = {account}");
            transaction.batch_execute(&change).await?;
        }
        if number.is_multiple_of(5) {
            transaction.rollback().await?;
            return Ok(TransferFate::RolledBack);
        }
        transaction.commit().await?;
        Ok(TransferFate::Committed)
    }
}

/// Makes transfers over one connection until it closes.
async fn transfer(port: u16, next: &AtomicU64, ledger: &TransferLedger, stop: &AtomicBool) {
    let config = format!("host=127.0.0.1 port={port} user=me dbname=db connect_timeout=5");
    let Ok((mut client, connection)) = tokio_postgres::connect(&config, NoTls).await else {
        tokio::time::sleep(Duration::from_millis(20)).await;
        return;
    };
    let connection = tokio::spawn(connection);
    while !stop.load(Ordering::Relaxed) && !client.is_closed() {
        let transfer = Transfer::new(next.fetch_add(1, Ordering::Relaxed));
        let fate = transfer.run(&mut client).await;
        let fate = fate.unwrap_or(TransferFate::Unknown);
        let mut ledger = ledger.lock().expect("no client panics");
        ledger.insert(transfer.number, fate);
    }
    drop(client);
    connection.abort();
}

/// Runs the clients, and kills the process meanwhile.
fn live(server: &mut ServeProcess, round: u64, next: &AtomicU64, ledger: &TransferLedger) {
    let stop = AtomicBool::new(false);
    let port = server.postgres_port;
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let runtime = runtime.expect("a runtime");
                while !stop.load(Ordering::Relaxed) {
                    runtime.block_on(transfer(port, next, ledger, &stop));
                }
            });
        }
        std::thread::sleep(Duration::from_millis(100 + round * 97 % 400));
        server.kill_and_restart();
        std::thread::sleep(Duration::from_millis(round * 31 % 50));
        stop.store(true, Ordering::Relaxed);
    });
}

/// The rows of an answer as numbers.
fn numbers(server: &ServeProcess, sql: &str) -> Vec<Vec<i64>> {
    let csv = server.csv(sql);
    let rows = csv.lines().skip(1).map(|line| {
        let cells = line.split(',');
        cells.map(|cell| cell.parse().expect("a number")).collect()
    });
    rows.collect()
}

/// Compares both tables with what the clients know.
fn compare(server: &ServeProcess, ledger: &TransferLedger) {
    let mut balances = vec![START; usize::try_from(ACCOUNTS).expect("it is small")];
    let mut noted = HashSet::new();
    for row in numbers(server, "SELECT id, payer, payee, amount FROM transfers") {
        let [number, from, to, amount] = row[..] else {
            panic!("not four columns: {row:?}");
        };
        let known = Transfer::new(u64::try_from(number).expect("it is not negative"));
        assert_eq!(
            (from, to),
            (known.from.cast_signed(), known.to.cast_signed())
        );
        assert_eq!(amount, known.amount);
        balances[usize::try_from(from).expect("an account")] -= amount;
        balances[usize::try_from(to).expect("an account")] += amount;
        assert!(noted.insert(known.number), "{number} is there twice");
    }
    let found = numbers(server, "SELECT balance FROM accounts ORDER BY id");
    assert_eq!(found.concat(), balances);
    for (number, fate) in ledger.lock().expect("no client panics").iter() {
        let is_right = match fate {
            TransferFate::Committed => noted.contains(number),
            TransferFate::RolledBack => !noted.contains(number),
            TransferFate::Unknown => true,
        };
        assert!(is_right, "transfer {number}, {fate:?}");
    }
}

#[test]
fn transactions_are_there_in_full_or_not_at_all_after_each_kill() {
    let rounds = std::env::var("MARIGRAM_KILL_ROUNDS").map_or(ROUNDS, |text| {
        text.parse().expect("MARIGRAM_KILL_ROUNDS is a number")
    });
    let dir = tempfile::tempdir().unwrap();
    let mut server = ServeProcess::start(dir.path(), &["--memory-limit", "256MB"]);
    assert_eq!(server.write("seed v=1 0").status, 204);
    for statement in [
        "CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)".to_owned(),
        "CREATE TABLE transfers (id BIGINT PRIMARY KEY, payer INT REFERENCES accounts (id), \
         payee INT REFERENCES accounts (id), amount BIGINT NOT NULL CHECK (amount > 0))"
            .to_owned(),
        format!(
            "INSERT INTO accounts SELECT value, {START} FROM generate_series(0, {})",
            ACCOUNTS - 1
        ),
    ] {
        server.csv(&statement);
    }
    let (next, ledger) = (AtomicU64::new(1), TransferLedger::default());
    for round in 1..=rounds {
        live(&mut server, round, &next, &ledger);
        compare(&server, &ledger);
    }
    let ledger = ledger.lock().expect("no client panics");
    for fate in [TransferFate::Committed, TransferFate::RolledBack] {
        assert!(ledger.values().any(|known| *known == fate), "none {fate:?}");
    }
    println!("{rounds} rounds, {} transfers", ledger.len());
}
