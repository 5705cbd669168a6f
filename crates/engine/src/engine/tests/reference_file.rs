//! The file of the reference tables: a directory does not open without it, and backups copy it.

use super::support::{DIR, World, options};
use crate::backup::{self, BackupOptions};
use crate::{Engine, EngineError};
use marigram_env::{LogStore as _, SimFs};
use std::path::{Path, PathBuf};

const BACKUPS: &str = "/backups";
const RESTORED: &str = "/restored";

fn file() -> PathBuf {
    Path::new(DIR).join("reference/tables.db")
}

fn write(fs: &SimFs, path: &Path, bytes: &[u8]) {
    fs.create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
}

fn content(fs: &SimFs, path: &Path) -> Vec<u8> {
    let file = fs.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A directory whose catalog knows of reference tables, and what stands for their file.
fn noted(world: &World) -> Engine {
    let engine = world.open_db();
    write(&world.fs, &file(), b"tables");
    engine.note_reference_tables().unwrap();
    engine
}

fn refusal(world: &World) -> String {
    let opened = Engine::open(world.env(), Path::new(DIR), options());
    opened.unwrap_err().to_string()
}

#[test]
fn a_directory_does_not_open_without_the_file_of_its_reference_tables() {
    let world = World::new(1);
    // Neither close nor sync: the note is durable when the call returns.
    drop(noted(&world));
    world.fs.kill();
    assert_eq!(world.damage(), [""; 0]);
    let removed = || world.fs.remove(&file()).unwrap();
    let emptied = || write(&world.fs, &file(), b"");
    for (damage, reason) in [
        (&removed as &dyn Fn(), "the file is missing"),
        (&emptied, "the file is empty"),
    ] {
        damage();
        let refused = refusal(&world);
        assert!(refused.contains("/data/reference/tables.db"), "{refused}");
        assert!(refused.contains(reason), "{refused}");
        assert!(refused.contains("restore a backup"), "{refused}");
        assert!(world.damage().iter().any(|place| place.contains(reason)));
        write(&world.fs, &file(), b"tables");
        world.open().close().unwrap();
    }
}

#[test]
fn without_a_file_nothing_is_noted() {
    let world = World::new(2);
    let engine = world.open_db();
    engine.note_reference_tables().unwrap();
    engine.close().unwrap();
    world.open().close().unwrap();
    // Nor does a file without a note keep the directory from opening.
    write(&world.fs, &file(), b"tables");
    world.open().close().unwrap();
    world.fs.remove(&file()).unwrap();
    world.open().close().unwrap();
}

#[test]
fn a_new_directory_is_not_made_around_reference_tables() {
    let world = World::new(3);
    write(&world.fs, &file(), b"tables");
    let refused = refusal(&world);
    assert!(refused.contains("reference/tables.db"), "{refused}");
}

#[test]
fn a_backup_has_a_copy_of_the_reference_tables() {
    let world = World::new(4);
    let engine = noted(&world);
    let folder = Path::new(BACKUPS);
    let alone = engine.backup(folder, BackupOptions::default());
    assert!(matches!(alone, Err(EngineError::Invalid(_))), "{alone:?}");
    let copy_of = |bytes: &'static [u8]| {
        let fs = world.fs.clone();
        move |path: &Path| {
            assert!(!fs.exists(path).unwrap(), "it is a new file");
            write(&fs, path, bytes);
            Ok(())
        }
    };
    let take = |bytes: &'static [u8]| {
        let copy = copy_of(bytes);
        let report = engine.backup_with(folder, BackupOptions::default(), Some(&copy));
        report.unwrap().info
    };
    let first = take(b"one");
    // The same copy is not stored again.
    assert_eq!(take(b"one").bytes_new, 0);
    assert_eq!(take(b"three").bytes_new, 5);
    let failed = |path: &Path| {
        write(&world.fs, path, b"half");
        Err("no space".to_owned())
    };
    let failed = engine.backup_with(folder, BackupOptions::default(), Some(&failed));
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("no space"), "{failed}");
    let names = world.fs.list(&Path::new(DIR).join("reference")).unwrap();
    assert_eq!(names, ["tables.db"], "no copy remains");
    for (number, bytes) in [(first.number, &b"one"[..]), (first.number + 2, b"three")] {
        let into = PathBuf::from(format!("{RESTORED}-{number}"));
        world.clock.advance(1);
        backup::restore(&world.env(), folder, Some(number), &into).unwrap();
        assert_eq!(content(&world.fs, &into.join("reference/tables.db")), bytes);
        let opened = Engine::open(world.env(), &into, options()).unwrap();
        opened.close().unwrap();
    }
}

#[test]
fn an_interrupted_restore_with_reference_tables_is_done_again() {
    let world = World::new(5);
    let engine = noted(&world);
    let (folder, into) = (Path::new(BACKUPS), Path::new(RESTORED));
    let copy = |path: &Path| {
        write(&world.fs, path, b"tables");
        Ok(())
    };
    let taken = engine.backup_with(folder, BackupOptions::default(), Some(&copy));
    taken.unwrap();
    backup::restore(&world.env(), folder, None, into).unwrap();
    write(&world.fs, &into.join("RESTORING"), b"begun");
    world.clock.advance(1);
    backup::restore(&world.env(), folder, None, into).unwrap();
    let opened = Engine::open(world.env(), into, options()).unwrap();
    opened.close().unwrap();
}
