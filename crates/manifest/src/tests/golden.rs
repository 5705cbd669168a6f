//! Files of every version of the formats are read for ever. `MARIGRAM_BLESS=1` writes those of this
//! version.

#![expect(
    clippy::disallowed_methods,
    reason = "golden files are on the real disk"
)]

use super::catalog::edits;
use super::{disk, edit};
use crate::{Catalog, CatalogState, LogOptions, Manifest, State};
use std::path::PathBuf;
use std::sync::Arc;

fn path(format: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../testing/golden/{format}/v1-log.bin"))
}

fn golden(format: &str, current: &[u8]) -> Vec<u8> {
    let path = path(format);
    if std::env::var_os("MARIGRAM_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, current).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    assert!(
        golden == current,
        "the format has changed: give it a new version and golden file"
    );
    golden
}

#[test]
fn version_1_of_the_manifest_is_read() {
    let (_, fs, dir) = disk(1);
    let options = LogOptions {
        rewrite_bytes_min: 1500,
    };
    let (mut manifest, _) = Manifest::open_with(Arc::clone(&fs), &dir, options).unwrap();
    (1..=12).for_each(|nth| manifest.commit(&edit(nth)).unwrap());
    let bytes = crate::log::read_file(&*fs.open(&dir.join("MANIFEST")).unwrap()).unwrap();
    let bytes = golden("manifest", &bytes);
    assert_eq!(
        &State::from_log(&path("manifest"), &bytes).unwrap(),
        manifest.state()
    );
}

#[test]
fn version_1_of_the_catalog_is_read() {
    let (_, fs, dir) = disk(1);
    let options = LogOptions {
        rewrite_bytes_min: 600,
    };
    let mut catalog = Catalog::open_with(Arc::clone(&fs), &dir, options).unwrap();
    for edit in &edits() {
        catalog.commit(edit).unwrap();
    }
    let bytes = crate::log::read_file(&*fs.open(&dir.join("CATALOG")).unwrap()).unwrap();
    let bytes = golden("catalog", &bytes);
    assert_eq!(
        &CatalogState::from_log(&path("catalog"), &bytes).unwrap(),
        catalog.state()
    );
}
