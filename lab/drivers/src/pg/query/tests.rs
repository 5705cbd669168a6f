//! Answers that arrive byte by byte.

use super::*;
use std::net::TcpListener;
use std::thread;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut all = vec![kind];
    all.put_u32(body.len() as u32 + 4);
    all.put_slice(body);
    all
}

/// An answer of two columns and two rows.
fn answer() -> Vec<u8> {
    let mut columns = vec![0, 2];
    for (name, oid) in [("n", Type::INT4.oid()), ("text", Type::TEXT.oid())] {
        columns.put_slice(name.as_bytes());
        columns.put_slice(&[0; 7]);
        columns.put_u32(oid);
        columns.put_slice(&[0, 4, 255, 255, 255, 255, 0, 1]);
    }
    let rows: [&[u8]; 2] = [
        b"\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x02hi",
        b"\0\x02\xff\xff\xff\xff\0\0\0\0",
    ];
    [
        message(b'1', b""),
        message(b'2', b""),
        message(b'T', &columns),
        message(b'D', rows[0]),
        message(b'D', rows[1]),
        message(b'C', b"SELECT 2\0"),
        message(b'Z', b"I"),
    ]
    .concat()
}

#[test]
fn an_answer_is_whole_at_its_last_byte_and_has_all_cells() {
    let whole = answer();
    let mut coming = PartialAnswer::default();
    for byte in &whole {
        assert!(!coming.is_whole().expect("good messages"));
        coming.bytes.push(*byte);
    }
    assert!(coming.is_whole().expect("good messages"));
    let text = |text: &str| Cell::Text(text.to_owned());
    let expected = vec![
        vec![Cell::Number(7.0), text("hi")],
        vec![Cell::Null, text("")],
    ];
    assert_eq!(rows(&whole).expect("an answer"), expected);
}

#[test]
fn what_is_cut_or_wrong_is_an_error() {
    let whole = answer();
    for at in 0..whole.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[at] = byte;
            // It may still become an answer.
            let _ = rows(&changed);
        }
    }
    let row_at = whole
        .windows(2)
        .position(|pair| pair == b"hi")
        .expect("the text");
    let mut short = whole.clone();
    short[row_at - 1] = 3;
    assert!(rows(&short).is_err(), "a value longer than its row");
    assert!(
        rows(&message(b'D', b"\0\x01\0\0\0\0")).is_err(),
        "a row without columns"
    );
    let unknown = message(
        b'T',
        b"\0\x01x\0\0\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0\0\0\0\x01",
    );
    assert!(rows(&unknown).is_err(), "a type that nobody knows");
    assert!(
        rows(b"D\0\0\0\x03").is_err(),
        "a length that does not count itself"
    );
}

/// A server that accepts everybody and sends `answers`, one for each question.
fn serve(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let mut input = vec![0; 4096];
        let read = socket.read(&mut input).expect("an opening");
        assert!(read > 8);
        let ready = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        socket.write_all(&ready).expect("a client");
        for answer in answers {
            let read = socket.read(&mut input).expect("a question");
            assert_eq!(input[..read], request("SELECT 1").expect("a request"));
            for part in answer.chunks(7) {
                socket.write_all(part).expect("a client");
            }
        }
    });
    format!("host=127.0.0.1 port={port} user=lab")
}

#[test]
fn questions_follow_each_other_and_an_error_says_why() {
    let error = message(b'E', b"SERROR\0C42P01\0Mno such table\0\0");
    let failed = [error, message(b'Z', b"I")].concat();
    let mut queries =
        QueryConnection::open(&serve(vec![answer(), failed, answer()])).expect("a server");
    assert_eq!(queries.ask("SELECT 1").expect("an answer"), answer());
    let refused = queries.ask("SELECT 1").expect_err("an error");
    assert_eq!(refused.to_string(), "no such table");
    assert_eq!(queries.ask("SELECT 1").expect("an answer"), answer());
    assert!(queries.ask("SELECT 1").is_err(), "the server has gone");
}
