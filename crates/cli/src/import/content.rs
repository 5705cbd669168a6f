//! What a file holds, by its first bytes: names and options may say something else.
//!
//! A file of a binary format is read as what it is, whatever its name says, and the plan says so. One that no
//! import reads is refused by name, because it would otherwise be refused line by line as a damaged text.

use super::option_check::name as format_name;
use super::source::RereadableInput;
use super::{ImportFormat, ending, form_of, is_spreadsheet};
use anyhow::{Context, Result, bail};
use marigram_protocol::lines::{self, LineLimits};
use std::io::Read;
use std::path::Path;

/// Bytes that are examined; a tar archive says what it is behind its first name.
const HEAD_BYTES: u64 = 512;

/// Bytes of a `.txt` that are parsed to see whether it is line protocol.
const SAMPLE_BYTES: u64 = 16 << 10;

/// A file, and the format in which it is read.
pub(super) struct FileContent {
    pub(super) input: RereadableInput,
    pub(super) form: ImportFormat,
    /// What the user should know: that its name says something else.
    pub(super) note: Option<String>,
}

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadBytes {
    Parquet,
    TsFile,
    /// A format that no import reads: what it is, and what helps.
    Other(&'static str),
    /// UTF-16 text.
    Wide,
    /// Text that begins as an object of JSON.
    Object,
    /// Nothing.
    Empty,
    /// Text, or bytes that say nothing.
    Text,
}

const UNPACK: &str = "an archive of files; unpack it, and import the files in it";
const SHEET: &str =
    "a zip archive or a spreadsheet (.xlsx, .ods); unpack it, or save the sheet as CSV UTF-8";

/// Formats by their first bytes, and whether these could also begin a text.
const SIGNATURES: [(&[u8], bool, &str); 16] = [
    (b"PK\x03\x04", false, SHEET),
    (b"PK\x05\x06", false, "an empty zip archive"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        false,
        "a workbook of old versions of Excel (.xls); save the sheet as CSV UTF-8",
    ),
    (
        b"\xfd7zXZ\x00",
        false,
        "compressed with xz; unpack it with: xz -dk FILE",
    ),
    (
        b"\x04\x22\x4d\x18",
        false,
        "compressed with lz4; unpack it with: lz4 -dk FILE",
    ),
    (
        b"\x1f\x9d",
        false,
        "compressed with compress; unpack it with: uncompress FILE",
    ),
    (
        b"\x1f\x8b",
        false,
        "compressed twice; unpack it once with: gzip -dk FILE",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        false,
        "compressed twice; unpack it once with: zstd -dk FILE",
    ),
    (b"7z\xbc\xaf\x27\x1c", false, UNPACK),
    (b"Rar!\x1a\x07", false, UNPACK),
    (
        b"SQLite format 3\x00",
        false,
        "an SQLite database; export its table with: sqlite3 -header -csv FILE 'SELECT * FROM …'",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        false,
        "HDF5; convert it to Parquet or CSV",
    ),
    (
        b"ARROW1\x00\x00",
        false,
        "an Arrow file (Feather); convert it to Parquet",
    ),
    (b"Obj\x01", false, "Avro; convert it to Parquet"),
    (b"ORC", true, "ORC; convert it to Parquet"),
    (b"PARE", true, "an encrypted Parquet file; decrypt it first"),
];

/// Documents by the text with which they begin, in lower case.
const DOCUMENTS: [(&str, &str); 5] = [
    (
        "<!doctype html",
        "a page of HTML, as servers send it instead of a file that needs a login",
    ),
    (
        "<html",
        "a page of HTML, as servers send it instead of a file that needs a login",
    ),
    ("<?xml", "XML; convert it to CSV or JSON lines"),
    ("%pdf-", "a PDF document; its tables are not read"),
    ("{\\rtf", "a document in RTF; save it as plain text"),
];

/// What the first bytes of a file, unpacked, say.
fn examine(head: &[u8]) -> HeadBytes {
    if head.is_empty() {
        return HeadBytes::Empty;
    }
    // A text has no control characters but those of lines, tabs and the end of old files.
    let is_binary = head
        .iter()
        .take(64)
        .any(|byte| matches!(byte, 0..=8 | 0x0e..=0x19 | 0x1c..=0x1f));
    if head.starts_with(b"PAR1") && is_binary {
        return HeadBytes::Parquet;
    }
    if matches!(head.strip_prefix(b"TsFile"), Some([0..=8, ..])) {
        return HeadBytes::TsFile;
    }
    let known = SIGNATURES
        .iter()
        .find(|(begin, may_be_text, _)| head.starts_with(begin) && (is_binary || !may_be_text));
    if let Some((_, _, what)) = known {
        return HeadBytes::Other(what);
    }
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return HeadBytes::Other("compressed with bzip2; unpack it with: bzip2 -dk FILE");
    }
    if head.get(257..262) == Some(b"ustar") {
        return HeadBytes::Other(UNPACK);
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return HeadBytes::Wide;
    }
    let begin = String::from_utf8_lossy(head);
    let begin = begin.trim_start_matches('\u{feff}').trim_start();
    let is = |(text, _): &&(&str, &str)| {
        let found = begin.get(..text.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(text))
    };
    match DOCUMENTS.iter().find(is) {
        Some((_, what)) => HeadBytes::Other(what),
        None if is_object(begin) => HeadBytes::Object,
        None => HeadBytes::Text,
    }
}

/// Whether a text begins as an object of JSON, or as a list of them.
fn is_object(text: &str) -> bool {
    let text = text.strip_prefix('[').map_or(text, str::trim_start);
    let inner = text.strip_prefix('{');
    inner.is_some_and(|inner| inner.trim_start().starts_with('"'))
}

/// Opens a file, and says in which format it is read: `told` by the options, or by its content and name.
///
/// # Errors
/// If it cannot be opened, nothing says its format, or its content is not what the options or its name
/// say.
pub(super) fn open(path: &Path, told: Option<ImportFormat>) -> Result<FileContent> {
    let named = form_of(path, told);
    if path.as_os_str() == "-"
        && let Err(error) = named
    {
        // Reading stdin first would look like a program that hangs.
        return Err(error);
    }
    let input = RereadableInput::open(path)?;
    let mut head = Vec::new();
    let mut begin = input.source()?.take(HEAD_BYTES);
    begin.read_to_end(&mut head).context("cannot be read")?;
    let found = examine(&head);
    let (form, note) = match (found, told) {
        (HeadBytes::Other(_), _) if is_spreadsheet(path) && told.is_none() => (named?, None),
        (HeadBytes::Other(what), _) => bail!("it is {what}"),
        (HeadBytes::Parquet, _) => decided(ImportFormat::Parquet, told, named.ok())?,
        (HeadBytes::TsFile, _) => decided(ImportFormat::Tsfile, told, named.ok())?,
        _ => (named?, None),
    };
    match (form, found) {
        (ImportFormat::Parquet | ImportFormat::Tsfile, HeadBytes::Empty) => bail!("it is empty"),
        (ImportFormat::Parquet, HeadBytes::Text | HeadBytes::Object | HeadBytes::Wide) => {
            bail!("{}", not_binary(form, told, "PAR1"))
        }
        // Versions of TsFile before 3 begin in another way, and their reader names them.
        (ImportFormat::Tsfile, HeadBytes::Text | HeadBytes::Object | HeadBytes::Wide)
            if !head.starts_with(b"TsFile") =>
        {
            bail!("{}", not_binary(form, told, "TsFile"))
        }
        (ImportFormat::Csv | ImportFormat::Lines, HeadBytes::Object) if told.is_none() => bail!(
            "its name says {}, but it begins with an object of JSON; give --format jsonl if each line is one",
            format_name(form)
        ),
        (ImportFormat::Lines | ImportFormat::Jsonl, HeadBytes::Wide) => bail!(
            "it is UTF-16, and {} is UTF-8; convert it with: iconv -f UTF-16 -t UTF-8 FILE > NEW",
            format_name(form)
        ),
        _ => {}
    }
    if form == ImportFormat::Lines && told.is_none() && ending(path).0.as_deref() == Some("txt") {
        refuse_cells(&input)?;
    }
    Ok(FileContent { input, form, note })
}

/// A format that the content shows, and what it contradicts.
fn decided(
    found: ImportFormat,
    told: Option<ImportFormat>,
    named: Option<ImportFormat>,
) -> Result<(ImportFormat, Option<String>)> {
    let name = format_name(found);
    if let Some(told) = told.filter(|told| *told != found) {
        bail!(
            "--format says {}, but its first bytes are those of {name}; leave the option out",
            format_name(told)
        );
    }
    let note = named.filter(|named| *named != found).map(|named| {
        format!(
            "the file's name says {}, but its first bytes are those of {name}: it is read as {name}",
            format_name(named)
        )
    });
    Ok((found, note))
}

/// Why a file that should be of a binary format is none.
fn not_binary(form: ImportFormat, told: Option<ImportFormat>, magic: &str) -> String {
    let who = match told {
        Some(_) => "--format",
        None => "its name",
    };
    format!(
        "{who} says {}, but it does not begin with {magic}; if it is a text, give --format csv, jsonl or \
         lines",
        format_name(form)
    )
}

/// Refuses a `.txt` whose first lines are no line protocol: such files of loggers have cells.
fn refuse_cells(input: &RereadableInput) -> Result<()> {
    let mut sample = Vec::new();
    let read = input
        .source()?
        .take(SAMPLE_BYTES)
        .read_to_end(&mut sample)?;
    if read as u64 == SAMPLE_BYTES
        && let Some(end) = sample.iter().rposition(|byte| *byte == b'\n')
    {
        sample.truncate(end + 1);
    }
    let parsed = lines::parse(
        &sample,
        lines::Precision::Nanoseconds,
        0,
        LineLimits::default(),
    );
    let has_rows = parsed.batches.iter().any(|batch| !batch.is_empty());
    let Some(bad) = parsed.errors.first().filter(|_| !has_rows) else {
        return Ok(());
    };
    bail!(
        "a .txt is taken for line protocol, but its first lines are none (line {}: {}); if it has cells with \
         a delimiter, give --format csv",
        bad.line,
        bad.reason
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_a_file_is() {
        for (head, expected) in [
            (&b"PAR1\x15\x04\x15\x10"[..], HeadBytes::Parquet),
            (b"PAR1,value\n1,2\n", HeadBytes::Text),
            (b"TsFile\x04\x00", HeadBytes::TsFile),
            (b"TsFile;value\n", HeadBytes::Text),
            (b"TsFile", HeadBytes::Text),
            (b"time,v\n2026-01-01,1\n", HeadBytes::Text),
            (b"ORC,v\n1,2\n", HeadBytes::Text),
            (b"BZh,v\n1,2\n", HeadBytes::Text),
            (b"ORC,gr\xf6\xdfe\n1,2\n", HeadBytes::Text),
            ("größe,v\n".as_bytes(), HeadBytes::Text),
            (b"\xff\xfet\x00", HeadBytes::Wide),
            (b"\xef\xbb\xbf {\"time\":1}\n", HeadBytes::Object),
            (b"", HeadBytes::Empty),
        ] {
            assert_eq!(examine(head), expected, "{head:?}");
        }
        for head in [
            &b"PK\x03\x04\x14\x00"[..],
            b"BZh91AY&SY\x00",
            b"\x1f\x8b\x08\x00",
            b"\n <!DOCTYPE html>\n",
            b"\xef\xbb\xbf<?xml version=\"1.0\"?>",
            b"ORC\x00\x01",
        ] {
            assert!(matches!(examine(head), HeadBytes::Other(_)), "{head:?}");
        }
        let mut tar = vec![b'a'; 257];
        tar.extend(b"ustar\x0000");
        assert_eq!(examine(&tar), HeadBytes::Other(UNPACK));
    }
}
