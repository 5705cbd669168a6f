//! What a file holds decides how it is read, not what its name says.

use crate::{ImportFixture, marigram, refused_file};
use std::io::Write;

const CSV: &str = "time,device,v\n2026-01-01T00:00:00Z,a,1.5\n2026-01-01T00:00:00Z,b,2.5\n";

/// Exports a table with these rows as `name`; returns its bytes.
fn exported(name: &str) -> Vec<u8> {
    let place = ImportFixture::new();
    let csv = place.file("m.csv", CSV);
    let said = place.import(&["--tags", "device", &csv]);
    assert!(said.ok, "{}", said.err);
    let path = place.path(name);
    let said = marigram(&["export", "--data", place.data(), "--table", "m", &path]);
    assert!(said.ok, "{}", said.err);
    std::fs::read(&path).expect("it was written")
}

fn file_of(place: &ImportFixture, name: &str, bytes: &[u8]) -> String {
    let path = place.path(name);
    std::fs::write(&path, bytes).expect("it is written");
    path
}

#[test]
fn a_parquet_file_and_a_tsfile_are_known_by_their_content() {
    for (export, name, format) in [
        ("m.parquet", "p.csv", "Parquet"),
        ("m.parquet", "p.dat", "Parquet"),
        ("m.tsfile", "p.parquet", "TsFile"),
        ("m.tsfile", "p", "TsFile"),
    ] {
        let bytes = exported(export);
        let place = ImportFixture::new();
        let file = file_of(&place, name, &bytes);
        let said = place.import(&["--table", "p", &file]);
        assert!(said.ok, "{name}: {}", said.err);
        let contradicts = name.contains(".csv") || name.contains(".parquet");
        let note = format!("its first bytes are those of {format}");
        assert_eq!(said.err.contains(&note), contradicts, "{}", said.err);
        let rows = place.csv("SELECT device, v FROM p ORDER BY device");
        assert_eq!(rows, "device,v\na,1.5\nb,2.5\n", "{name}");
        // An option that says something else is an error.
        let place = ImportFixture::new();
        let file = file_of(&place, name, &bytes);
        let said = place.import(&["--table", "p", "--format", "csv", &file]);
        assert!(
            !said.ok && said.err.contains("--format says CSV"),
            "{}",
            said.err
        );
        assert!(!place.exists());
    }
}

#[test]
fn a_text_with_the_name_of_a_binary_format_is_refused() {
    for (name, words) in [
        (
            "m.parquet",
            "its name says Parquet, but it does not begin with PAR1",
        ),
        (
            "m.tsfile",
            "its name says TsFile, but it does not begin with TsFile",
        ),
    ] {
        let error = refused_file(name, CSV, &[]);
        assert!(
            error.contains(words) && error.contains("--format csv"),
            "{error}"
        );
    }
    let error = refused_file("m.parquet", "", &[]);
    assert!(error.contains("it is empty"), "{error}");
}

#[test]
fn compressed_files_are_read_or_named() {
    let place = ImportFixture::new();
    let packed = zstd::encode_all(CSV.as_bytes(), 3).expect("it is compressed");
    let file = file_of(&place, "m.csv.zst", &packed);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT device, v FROM m ORDER BY device"),
        "device,v\na,1.5\nb,2.5\n"
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CSV.as_bytes()).expect("it is compressed");
    let gzip = gzip.finish().expect("it is compressed");
    let mut twice = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    twice.write_all(&gzip).expect("it is compressed");
    let twice = twice.finish().expect("it is compressed");
    let place = ImportFixture::new();
    // Compression is known by the content, too.
    let said = place.import(&[&file_of(&place, "m.csv", &gzip)]);
    assert!(said.ok, "{}", said.err);
    for (bytes, words) in [
        (
            &b"PK\x03\x04\x14\x00\x06\x00xl/workbook.xml"[..],
            "a spreadsheet (.xlsx, .ods)",
        ),
        (b"BZh91AY&SY\x00\x01", "bzip2 -dk FILE"),
        (b"\xfd7zXZ\x00\x00\x04", "xz -dk FILE"),
        (&twice, "compressed twice"),
        (b"<!DOCTYPE html>\n<html>", "a page of HTML"),
        (b"SQLite format 3\x00\x10\x00", "an SQLite database"),
    ] {
        let place = ImportFixture::new();
        let said = place.import(&[&file_of(&place, "m.csv", bytes)]);
        assert!(
            !said.ok && said.err.contains(words),
            "{words}: {}",
            said.err
        );
        assert!(!place.exists(), "{words}");
    }
}

#[test]
fn texts_of_another_kind_are_named() {
    let json = "{\"time\":\"2026-01-01T00:00:00Z\",\"v\":1}\n";
    let error = refused_file("m.csv", json, &[]);
    assert!(error.contains("give --format jsonl"), "{error}");
    let error = refused_file("m.json", CSV, &["--table", "m"]);
    assert!(
        error.contains("none of its lines is a JSON object"),
        "{error}"
    );
    let error = refused_file("m.txt", &CSV.replace(',', ";"), &[]);
    assert!(
        error.contains("a .txt is taken for line protocol") && error.contains("--format csv"),
        "{error}"
    );
    let place = ImportFixture::new();
    let wide: Vec<u8> = format!("\u{feff}{json}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let said = place.import(&[&file_of(&place, "m.jsonl", &wide)]);
    assert!(
        !said.ok && said.err.contains("iconv -f UTF-16"),
        "{}",
        said.err
    );
    // A text whose first column has the name of a format is a text.
    let place = ImportFixture::new();
    let file = place.file("m.csv", "PAR1,time\n1,2026-01-01T00:00:00Z\n");
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
}

#[test]
fn json_that_is_none_says_why() {
    let text = "{\"time\":\"2026-01-01T00:00:00Z\",\"v\":1}\n\
                {\"time\":\"2026-01-01T00:01:00Z\",\"v\":NaN}\n{\"time\":1,}\n[1]\n";
    let place = ImportFixture::new();
    let file = place.file("m.jsonl", text);
    let said = place.import(&[&file]);
    assert!(!said.ok, "{}", said.err);
    for words in [
        "line 2: it is no JSON object: JSON has no NaN",
        "line 3: it is no JSON object: trailing comma",
        "line 4: it is no JSON object\n",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn an_export_that_became_utf_16_keeps_its_layout() {
    let place = ImportFixture::new();
    let csv = place.file("m.csv", CSV);
    let options = ["--tags", "device", "--types", "v=real"];
    let said = place.import(&[&options[..], &[&csv]].concat());
    assert!(said.ok, "{}", said.err);
    let path = place.path("out.csv");
    let export = [
        "export",
        "--data",
        place.data(),
        "--table",
        "m",
        "--layout",
        "comment",
    ];
    let said = marigram(&[&export[..], &[&path]].concat());
    assert!(said.ok, "{}", said.err);
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.starts_with("#marigram "), "{text}");
    let columns = place.columns("m");
    for (name, mark) in [("le", "\u{feff}"), ("bare", "")] {
        let wide: Vec<u8> = format!("{mark}{text}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let place = ImportFixture::new();
        let file = file_of(&place, &format!("{name}.csv"), &wide);
        let said = place.import(&[&file]);
        assert!(said.ok, "{}", said.err);
        assert_eq!(place.columns(name), columns, "{}", said.err);
    }
}
