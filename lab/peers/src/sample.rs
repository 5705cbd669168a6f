//! A table and a folder of peers for tests.

use marigram_lab::data::{FieldKind, Table, TagKind};

/// Devices `a`, `b`, … at sites `0`, `1`, …: tags `dev` (the key) and `site`, fields `celsius`, `ok`,
/// `note`.
pub(crate) fn table(devices: u8) -> Table {
    let series = |device: u8| {
        let name = char::from(b'a' + device).to_string();
        vec![Some(name), Some(device.to_string())]
    };
    Table::new(
        "t",
        &[("dev", TagKind::Text), ("site", TagKind::Integer)],
        0,
        &[
            ("celsius", FieldKind::F64),
            ("ok", FieldKind::Bool),
            ("note", FieldKind::Text),
        ],
        (0..devices).map(series).collect(),
    )
}

/// A folder in which the peer `name` is installed, as far as its version says so.
pub(crate) fn folder_with(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join(name)).expect("a folder");
    std::fs::write(folder.path().join(name).join("version"), "1").expect("a file");
    folder
}
