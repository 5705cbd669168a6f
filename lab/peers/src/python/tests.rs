//! Tests of the drivers that need no package.

use super::*;
use crate::{chdb, duckdb};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

#[test]
fn an_error_of_the_child_says_what_was_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let child = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut lengths = [0; 12];
        stream.read_exact(&mut lengths).expect("lengths");
        let mut header = vec![0; lengths[0] as usize];
        stream.read_exact(&mut header).expect("a header");
        let reply = link::frame(&json!({"error": "no such table"}), &[]);
        stream.write_all(&reply).expect("a reply");
    });
    let mut link = Link::open(&socket).expect("a child");
    let error = link.run("SELECT nothing").expect_err("an error");
    let error = format!("{error:#}");
    assert!(
        error.contains("SELECT nothing") && error.contains("no such table"),
        "{error}"
    );
    child.join().expect("the child ends");
    assert!(link.run("SELECT 1").is_err(), "the child went away");
}

#[test]
fn a_package_that_is_missing_is_said_and_an_address_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in [duckdb::KIND, chdb::KIND] {
        let settings = Settings {
            peers: folder.path().to_owned(),
            ..Settings::default()
        };
        let error = (kind.make)(&settings).err().expect("not installed");
        let advice = format!("lab peers install {}", kind.name);
        assert!(error.to_string().contains(&advice), "{error}");
        let settings = Settings {
            url: Some("http://127.0.0.1:1".to_owned()),
            ..settings
        };
        let error = (kind.make)(&settings).err().expect("refused");
        assert!(error.to_string().contains("no address"), "{error}");
    }
}
