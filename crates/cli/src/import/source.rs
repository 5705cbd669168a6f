//! An input file that is read once or several times, plain, compressed or from stdin; it counts the
//! bytes that were read.

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zstd::stream::read::Decoder as ZstdDecoder;

const BUFFER_BYTES: usize = 1 << 18;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How far a file has been read; shared with the progress bar.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadPosition(Arc<AtomicU64>);

impl ReadPosition {
    /// Bytes of the file (compressed, if it is) that have been read.
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file to be imported.
pub(super) struct ImportSource {
    reader: Box<dyn BufRead + Send>,
    /// The file itself, if it supports reads at any position.
    plain: Option<File>,
    bytes_total: u64,
    position: ReadPosition,
}

struct CountingReader<R> {
    inner: R,
    position: ReadPosition,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.position.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A file that can be read several times; input that cannot, such as stdin, is first copied to a
/// temporary file.
pub(super) struct RereadableInput {
    path: PathBuf,
    copy: Option<File>,
}

impl RereadableInput {
    /// Opens a file, or stdin for `-`.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let copy = if path.as_os_str() == "-" {
            Some(spool(io::stdin())?)
        } else {
            let file = File::open(&path).context("cannot be opened")?;
            let metadata = file.metadata().context("cannot be read")?;
            anyhow::ensure!(!metadata.is_dir(), "it is a directory");
            if metadata.is_file() {
                None
            } else {
                Some(spool(file)?)
            }
        };
        Ok(Self { path, copy })
    }

    /// The file, read from its beginning.
    pub(super) fn source(&self) -> Result<ImportSource> {
        let file = match &self.copy {
            Some(copy) => {
                let mut copy = copy.try_clone()?;
                copy.seek(SeekFrom::Start(0))?;
                copy
            }
            None => File::open(&self.path).context("cannot be opened")?,
        };
        ImportSource::new(file)
    }
}

fn spool(mut from: impl Read) -> Result<File> {
    let mut copy = tempfile::tempfile().context("cannot create a temporary file")?;
    io::copy(&mut from, &mut copy).context("cannot be read")?;
    copy.flush()?;
    Ok(copy)
}

fn unpacked(decoder: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
}

impl ImportSource {
    /// Wraps a file. Detects gzip and zstd by its first bytes, not by its name.
    fn new(file: File) -> Result<Self> {
        let position = ReadPosition::default();
        let bytes_total = file.metadata().map_or(0, |metadata| metadata.len());
        let counting = CountingReader {
            inner: file.try_clone()?,
            position: position.clone(),
        };
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, counting);
        let head = reader.fill_buf().context("cannot be read")?;
        let (is_gzip, is_zstd) = (head.starts_with(&GZIP_MAGIC), head.starts_with(&ZSTD_MAGIC));
        let reader: Box<dyn BufRead + Send> = if is_gzip {
            unpacked(MultiGzDecoder::new(reader))
        } else if is_zstd {
            let decoder = ZstdDecoder::with_buffer(reader).context("cannot be unpacked")?;
            unpacked(decoder)
        } else {
            Box::new(reader)
        };
        Ok(Self {
            reader,
            plain: Some(file).filter(|_| !is_gzip && !is_zstd),
            bytes_total,
            position,
        })
    }

    /// Size of the file, compressed if it is; 0 if unknown.
    pub(super) fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// How far it has been read.
    pub(super) fn position(&self) -> ReadPosition {
        self.position.clone()
    }

    /// A file that supports reads at any position: the file itself, or a temporary copy that
    /// disappears when closed.
    pub(super) fn into_file(mut self) -> Result<File> {
        if let Some(mut file) = self.plain.take() {
            file.seek(SeekFrom::Start(0))?;
            return Ok(file);
        }
        let mut copy = tempfile::tempfile().context("cannot create a temporary file")?;
        io::copy(&mut self.reader, &mut copy).context("cannot be unpacked")?;
        copy.flush()?;
        copy.seek(SeekFrom::Start(0))?;
        Ok(copy)
    }
}

impl Read for ImportSource {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buf)
    }
}

impl BufRead for ImportSource {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}
