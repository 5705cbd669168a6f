//! Clients that send requests and never read: what they may hold, and for how long.

use crate::fake::{Fake, serve};
use crate::http::ask;
use marigram_server::RunningServers;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Clients of each protocol; in some of the tests more than `requests_max` allows.
const CLIENTS: usize = 20;

/// A bound against hangs; no test takes a tenth of it.
const SOON: Duration = Duration::from_mins(1);

/// Longer than a client waits for memory, and than a client may take nothing while others need it.
const DECIDED: Duration = Duration::from_secs(4);

/// Sends `select flood` over HTTP and never reads.
async fn http_client(running: &RunningServers) -> TcpStream {
    let mut socket = TcpStream::connect(running.http_addr().unwrap())
        .await
        .unwrap();
    let request = "GET /api/v1/sql?q=select%20flood HTTP/1.1\r\nHost: localhost\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

/// The same over PostgreSQL's protocol.
async fn postgres_client(running: &RunningServers) -> TcpStream {
    let address = running.postgres_addr().unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let startup = b"\0\0\0\0\0\x03\0\0user\0me\0database\0main\0\0";
    let mut startup = startup.to_vec();
    startup[3] = u8::try_from(startup.len()).unwrap();
    socket.write_all(&startup).await.unwrap();
    let query = b"Q\0\0\0\x11select flood\0";
    socket.write_all(query).await.unwrap();
    socket
}

/// Waits until `is` holds.
async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let waits = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, waits).await.is_ok(), "{what}");
}

/// Waits until no more rows are produced: all buffers on the way are full.
async fn until_still(fake: &Fake) -> usize {
    let mut before = usize::MAX;
    loop {
        let now = fake.made.load(Ordering::SeqCst);
        if now == before {
            return now;
        }
        before = now;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test]
async fn what_a_client_that_never_reads_may_hold_is_bounded_and_others_go_on() {
    let (running, fake) = serve(|_| {}).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(http_client(&running).await);
        clients.push(postgres_client(&running).await);
    }
    until("all run", || {
        fake.alive.load(Ordering::SeqCst) == 2 * CLIENTS
    })
    .await;
    let made = until_still(&fake).await;
    // A batch of 8 MiB exceeds the buffers of a connection and both its sockets.
    assert!(made <= 2 * CLIENTS * 2, "{made} batches were asked for");
    // The server's own buffers hold little, and all of it is counted.
    let taken = fake.memory_taken.load(Ordering::SeqCst);
    assert!(
        taken > 0 && taken <= 2 * CLIENTS * (1 << 20),
        "{taken} bytes"
    );
    let http = running.http_addr().unwrap();
    let asks = ask(http, "POST /api/v1/sql", &[], b"select types");
    let reply = tokio::time::timeout(SOON, asks).await.unwrap();
    assert_eq!(reply.status, 200);
    let asks = ask(http, "POST /write?db=main", &[], b"m v=1 1");
    assert_eq!(tokio::time::timeout(SOON, asks).await.unwrap().status, 204);
    // The clients disconnect, and everything is released.
    drop(clients);
    until("all stop", || fake.alive.load(Ordering::SeqCst) == 0).await;
    until("all is given back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_for_too_long_is_gone_and_its_query_stops() {
    let (running, fake) = serve(|config| {
        // All four must begin before the first is stopped, on a busy machine as well.
        config.write_timeout_ms = 3_000;
        config.requests_max = 4;
    })
    .await;
    let mut http_clients = Vec::new();
    let mut postgres_clients = Vec::new();
    for _ in 0..2 {
        http_clients.push(http_client(&running).await);
        postgres_clients.push(postgres_client(&running).await);
    }
    until("all run", || fake.alive.load(Ordering::SeqCst) == 4).await;
    // All slots are taken: other clients must retry, and can.
    let http = running.http_addr().unwrap();
    let reply = ask(http, "POST /api/v1/sql", &[], b"select types").await;
    let wait = reply.header("Retry-After").map(str::to_owned);
    assert_eq!((reply.status, wait.as_deref()), (503, Some("1")));
    until("all stop", || fake.alive.load(Ordering::SeqCst) == 0).await;
    until("all is given back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
    let reply = ask(http, "POST /api/v1/sql", &[], b"select types").await;
    assert_eq!(reply.status, 200);
    // The answers break off where the buffers were full, rather than ending as if complete.
    for mut client in http_clients {
        let mut bytes = Vec::new();
        let _ = client.read_to_end(&mut bytes).await;
        assert!(!bytes.ends_with(b"0\r\n\r\n"));
    }
}

#[tokio::test]
async fn who_reads_gets_the_memory_of_those_who_do_not() {
    // Room for the parts of two answers.
    let (running, fake) = serve(|config| config.buffered_bytes_max = 1 << 20).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(postgres_client(&running).await);
        clients.push(http_client(&running).await);
    }
    until("the memory is taken", || {
        fake.memory_taken.load(Ordering::SeqCst) > 700 << 10
    })
    .await;
    until_still(&fake).await;
    // The clients that found no memory are refused, or the reader would have to share with them what comes back;
    // and those that hold some have waited long enough to be ended.
    tokio::time::sleep(DECIDED).await;
    let mut reader = postgres_client(&running).await;
    let mut answer = vec![0; 12 << 20];
    let reads = reader.read_exact(&mut answer);
    let read = tokio::time::timeout(SOON, reads).await;
    read.expect("it goes on").expect("all of it arrives");
    let refused = answer.windows(5).any(|five| five == b"53200");
    assert!(!refused, "there was no memory");
    drop((clients, reader));
    until("all is given back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_is_not_gone() {
    let (running, fake) = serve(|config| config.write_timeout_ms = 2_000).await;
    let mut clients = [http_client(&running).await, postgres_client(&running).await];
    until("all run", || fake.alive.load(Ordering::SeqCst) == 2).await;
    // For longer than the timeout, with a read now and then.
    let mut bytes = vec![0; 4 << 20];
    for _ in 0..12 {
        for client in &mut clients {
            client.read_exact(&mut bytes).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(fake.alive.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_for_which_there_is_no_memory_comes_later() {
    let (running, fake) = serve(|_| {}).await;
    fake.memory_full.store(true, Ordering::SeqCst);
    let http = running.http_addr().unwrap();
    let flood = "GET /api/v1/sql?q=select%20flood";
    let reply = ask(http, flood, &[], b"").await;
    let wait = reply.header("Retry-After").map(str::to_owned);
    assert_eq!((reply.status, wait.as_deref()), (503, Some("1")));
    // A small answer needs no memory.
    let small = "GET /api/v1/sql?q=select%20types";
    assert_eq!(ask(http, small, &[], b"").await.status, 200);
    let mut client = postgres_client(&running).await;
    let mut answer = Vec::new();
    let mut part = vec![0; 1 << 16];
    while !answer.windows(5).any(|five| five == b"53200") {
        let read = client.read(&mut part).await.unwrap();
        assert!(read > 0, "the connection ended");
        answer.extend_from_slice(&part[..read]);
    }
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}
