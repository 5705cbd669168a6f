//! Blobs as files: what a put and an upload leave after a loss of power, and what they refuse.

use super::*;
use crate::OsFs;
use crate::sim::{FaultRepeat, OpKind, PlannedFault, SimBucket, SimFs};
use std::collections::BTreeSet;

const SEEDS: u64 = 300;

fn blobs(fs: &SimFs) -> FileBlobs {
    FileBlobs::new(Arc::new(fs.clone()), Path::new("/data"))
}

fn read(store: &dyn BlobStore, name: &str) -> Option<Vec<u8>> {
    let blob = store.open(name).ok()?;
    let mut bytes = vec![0; blob.len().unwrap() as usize];
    blob.read_exact_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

fn names(store: &dyn BlobStore, prefix: &str) -> Vec<String> {
    let blobs = store.list(prefix).unwrap();
    blobs.into_iter().map(|blob| blob.name).collect()
}

/// A disk whose `/data` is durable and empty.
fn disk(seed: u64) -> SimFs {
    let fs = SimFs::new(seed);
    fs.create_dir_all(Path::new("/data")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

/// What every store does alike.
fn behave(store: &dyn BlobStore) {
    assert_eq!(store.head("a/x").unwrap(), None);
    assert_eq!(names(store, "a"), [""; 0]);
    assert_eq!(
        store.open("a/x").unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    store.put("a/x", b"one", PutMode::Create).unwrap();
    let taken = store.put("a/x", b"two", PutMode::Create).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(read(store, "a/x").unwrap(), b"one");
    store.put("a/x", b"three", PutMode::Overwrite).unwrap();
    assert_eq!(read(store, "a/x").unwrap(), b"three");
    let mut upload = store.upload("a/b/y").unwrap();
    upload.write(b"fo").unwrap();
    upload.write(b"ur").unwrap();
    upload.finish().unwrap();
    store.sync_names("a/b").unwrap();
    assert_eq!(store.head("a/b/y").unwrap(), Some(4));
    assert_eq!(names(store, "a/b"), ["a/b/y"]);
    store.rename("a/b/y", "c/z").unwrap();
    assert_eq!(read(store, "c/z").unwrap(), b"four");
    assert_eq!(
        (names(store, "a/b"), names(store, "c")),
        (vec![], vec!["c/z".to_owned()])
    );
    let blob = store.open("c/z").unwrap();
    let end = blob.read_exact_at(&mut [0; 4], 1).unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    store.delete("c/z").unwrap();
    assert_eq!(store.head("c/z").unwrap(), None);
    store.put("top", b"", PutMode::Overwrite).unwrap();
    assert!(names(store, "").contains(&"top".to_owned()));
}

#[test]
fn files_on_either_disk_and_a_bucket_behave_alike() {
    behave(&blobs(&disk(1)));
    behave(&SimBucket::default());
    let dir = tempfile::tempdir().unwrap();
    behave(&FileBlobs::new(Arc::new(OsFs), dir.path()));
}

#[test]
fn a_put_that_returned_is_durable_and_an_interrupted_one_is_whole_or_nothing() {
    let mut found = BTreeSet::new();
    for seed in 0..SEEDS {
        for (mode, old) in [(PutMode::Overwrite, "old"), (PutMode::Create, "")] {
            let fs = disk(seed);
            let store = blobs(&fs);
            if !old.is_empty() {
                store.put("a/x", old.as_bytes(), mode).unwrap();
            }
            let before = fs.ops();
            fs.crash_at(before + seed % 9);
            let put = store.put("a/x", b"new", mode);
            fs.crash();
            let after = read(&store, "a/x").map(|bytes| String::from_utf8(bytes).unwrap());
            let after = after.unwrap_or_default();
            assert!(after == "new" || (put.is_err() && after == old), "{after}");
            found.insert((put.is_ok(), after));
        }
    }
    let expected = [(false, ""), (false, "new"), (false, "old"), (true, "new")];
    assert_eq!(
        found,
        expected.map(|(ok, text)| (ok, text.to_owned())).into()
    );
}

#[test]
fn an_upload_is_durable_once_its_names_are_synced_and_torn_before() {
    let mut torn = 0;
    for seed in 0..SEEDS {
        let (bytes, fs) = (vec![7; 9000], disk(seed));
        let store = blobs(&fs);
        let mut upload = store.upload("a/b/x").unwrap();
        upload.write(&bytes).unwrap();
        if seed % 2 == 0 {
            upload.finish().unwrap();
            store.sync_names("a/b").unwrap();
        }
        fs.crash();
        let after = read(&store, "a/b/x");
        if seed % 2 == 0 {
            assert_eq!(after.unwrap(), bytes);
        } else {
            torn += usize::from(after.is_some_and(|after| after != bytes));
        }
    }
    assert!(torn > 20, "the disk tears blobs in the making: {torn}");
}

#[test]
fn a_put_that_fails_leaves_the_old_blob_and_no_file() {
    for kind in [OpKind::Create, OpKind::Append, OpKind::Sync, OpKind::Rename] {
        let fs = disk(1);
        let store = blobs(&fs);
        store.put("a/x", b"old", PutMode::Create).unwrap();
        fs.fail(PlannedFault {
            kind: Some(kind),
            after: 0,
            repeat: FaultRepeat::Once,
        });
        assert!(store.put("a/x", b"new", PutMode::Overwrite).is_err());
        assert_eq!(read(&store, "a/x").unwrap(), b"old");
        assert_eq!(names(&store, "a"), ["a/x"], "{kind:?}");
    }
}

#[test]
fn one_of_several_writers_of_a_name_wins() {
    for store in [
        Arc::new(blobs(&disk(1))) as Arc<dyn BlobStore>,
        Arc::new(SimBucket::default()),
    ] {
        let writers = (0..8_u8).map(|writer| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || store.put("a/1", &[writer; 3], PutMode::Create).is_ok())
        });
        let writers: Vec<_> = writers.collect();
        let won: Vec<bool> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let winner = won.iter().position(|won| *won).unwrap() as u8;
        assert_eq!(read(&*store, "a/1").unwrap(), [winner; 3]);
        assert_eq!(names(&*store, "a"), ["a/1"]);
    }
}

#[test]
fn names_lead_nowhere_outside() {
    let store = blobs(&disk(1));
    for name in ["../x", "/x", "a/../../x", "./x"] {
        let refused = store.put(name, b"", PutMode::Create).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}");
        assert!(store.open(name).is_err() && store.delete(name).is_err());
    }
}
