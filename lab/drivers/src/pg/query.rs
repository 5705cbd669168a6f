//! Queries over a connection of their own, whose answers are taken as bytes.
//!
//! The clock stops at the last byte of an answer, and the drivers of databases that speak HTTP read
//! only bytes until then. `tokio-postgres` creates several objects for each row meanwhile, which takes
//! longer than some databases need to answer. So `tokio-postgres` opens the connection and
//! authenticates; this module then uses the socket.

use super::ANSWER_MAX;
use super::cell::AnyCell;
use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BufMut};
use marigram_lab::question::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Builder;
use tokio_postgres::NoTls;
use tokio_postgres::config::{Config, Host};
use tokio_postgres::types::{FromSql, Type};

/// Bytes of a read.
const READ_BYTES: usize = 256 << 10;

/// The port where a configuration names none.
const PORT: u16 = 5432;

trait Socket: Read + Write + Send {}

impl<S: Read + Write + Send> Socket for S {}

/// A connection for queries.
pub(super) struct QueryConnection {
    socket: Box<dyn Socket>,
    buffer: Vec<u8>,
}

impl QueryConnection {
    /// Connects by `config`, as [`super::Connection::open`]; to the first host if it names
    /// several.
    pub(super) fn open(config: &str) -> Result<Self> {
        let config: Config = config.parse()?;
        let port = config.get_ports().first().copied().unwrap_or(PORT);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let host = config.get_hosts().first().context("no host is named")?;
        // Both handles refer to one socket, which stays open when theirs is dropped.
        let socket: Box<dyn Socket> = match host {
            Host::Tcp(name) => {
                let socket = TcpStream::connect((name.as_str(), port))?;
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(ANSWER_MAX))?;
                socket.set_nonblocking(true)?;
                let theirs = socket.try_clone()?;
                runtime.block_on(async {
                    begin(&config, tokio::net::TcpStream::from_std(theirs)?).await
                })?;
                socket.set_nonblocking(false)?;
                Box::new(socket)
            }
            Host::Unix(folder) => {
                let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}")))?;
                socket.set_read_timeout(Some(ANSWER_MAX))?;
                socket.set_nonblocking(true)?;
                let theirs = socket.try_clone()?;
                runtime.block_on(async {
                    begin(&config, tokio::net::UnixStream::from_std(theirs)?).await
                })?;
                socket.set_nonblocking(false)?;
                Box::new(socket)
            }
        };
        Ok(Self {
            socket,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Runs a query, and returns the whole answer: all messages up to the one that says that the
    /// server is ready for the next query.
    pub(super) fn ask(&mut self, statement: &str) -> Result<Vec<u8>> {
        self.socket.write_all(&request(statement)?)?;
        let mut answer = PartialAnswer::default();
        while !answer.is_whole()? {
            let read = self.socket.read(&mut self.buffer).context("no answer")?;
            ensure!(read > 0, "the server has closed the connection");
            answer.bytes.extend_from_slice(&self.buffer[..read]);
        }
        match answer.error {
            Some(at) => bail!("{}", error(&answer.bytes[at..])),
            None => Ok(answer.bytes),
        }
    }
}

/// Opens the session on a socket.
async fn begin(config: &Config, socket: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    let opened = config.connect_raw(socket, NoTls).await;
    // The connection is never polled, so it does not tell the server that it ends.
    opened.map(drop).context("PostgreSQL")
}

/// An answer that is being received.
#[derive(Default)]
struct PartialAnswer {
    bytes: Vec<u8>,
    /// Where the first incomplete message begins.
    next: usize,
    /// Where the body of an error begins.
    error: Option<usize>,
}

impl PartialAnswer {
    fn is_whole(&mut self) -> Result<bool> {
        while let Some((kind, length)) = head(&self.bytes[self.next..])? {
            let end = self.next + 5 + length;
            if self.bytes.len() < end {
                break;
            }
            if kind == b'E' {
                self.error.get_or_insert(self.next + 5);
            }
            self.next = end;
            if kind == b'Z' {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Type of the message that begins here, and bytes of its body; `None` if more bytes are needed.
fn head(mut bytes: &[u8]) -> Result<Option<(u8, usize)>> {
    if bytes.len() < 5 {
        return Ok(None);
    }
    let kind = bytes.get_u8();
    let length = bytes.get_u32() as usize;
    let length = length
        .checked_sub(4)
        .context("a message without a length")?;
    Ok(Some((kind, length)))
}

/// A statement without parameters and with a binary answer, in one packet.
fn request(statement: &str) -> Result<Vec<u8>> {
    let mut all = Vec::with_capacity(statement.len() + 64);
    let mut message = |kind: u8, body: &[&[u8]]| {
        let length: usize = 4 + body.iter().map(|part| part.len()).sum::<usize>();
        all.put_u8(kind);
        all.put_u32(u32::try_from(length)?);
        for part in body {
            all.put_slice(part);
        }
        anyhow::Ok(())
    };
    // Names are empty; there are no types and no parameters; all columns have one format.
    message(b'P', &[b"\0", statement.as_bytes(), b"\0\0\0"])?;
    message(b'B', &[b"\0\0", b"\0\0", b"\0\0", b"\0\x01\0\x01"])?;
    message(b'D', &[b"P\0"])?;
    message(b'E', &[b"\0", b"\0\0\0\0"])?;
    message(b'S', &[])?;
    Ok(all)
}

/// The message of an error.
fn error(body: &[u8]) -> String {
    let mut fields = body.split(|byte| *byte == 0);
    let text = fields.find_map(|field| field.strip_prefix(b"M"));
    String::from_utf8_lossy(text.unwrap_or(b"an error without a text")).into_owned()
}

/// The rows of an answer.
pub(super) fn rows(mut answer: &[u8]) -> Result<Vec<Vec<Cell>>> {
    let (mut kinds, mut rows) = (Vec::new(), Vec::new());
    while let Some((kind, length)) = head(answer)? {
        answer.advance(5);
        let body = answer.get(..length).context("a message that is cut")?;
        match kind {
            b'T' => kinds = types(body)?,
            b'D' => rows.push(cells(body, &kinds)?),
            _ => {}
        }
        answer.advance(length);
    }
    Ok(rows)
}

/// Types of the columns.
fn types(mut body: &[u8]) -> Result<Vec<Type>> {
    let columns = body.try_get_u16()?;
    let mut kinds = Vec::new();
    for _ in 0..columns {
        let name = body.iter().position(|byte| *byte == 0);
        body.advance(name.context("a name without an end")? + 1);
        // The table, and the number of the column in it.
        body.try_get_u32()?;
        body.try_get_u16()?;
        let oid = body.try_get_u32()?;
        let kind = Type::from_oid(oid).with_context(|| format!("the type {oid} is unknown"))?;
        ensure!(AnyCell::accepts(&kind), "the type {kind} is in no answer");
        kinds.push(kind);
        // Size, modifier, format.
        body.try_get_u64()?;
    }
    Ok(kinds)
}

/// The cells of a row.
fn cells(mut body: &[u8], kinds: &[Type]) -> Result<Vec<Cell>> {
    let columns = usize::from(body.try_get_u16()?);
    ensure!(columns == kinds.len(), "a row of {columns} columns");
    let cell = |kind: &Type| {
        let cell = match usize::try_from(body.try_get_i32()?) {
            Err(_) => AnyCell::from_sql_null(kind),
            Ok(length) => {
                let value = body.get(..length).context("a value that is cut")?;
                body.advance(length);
                AnyCell::from_sql(kind, value)
            }
        };
        let AnyCell(cell) = cell.map_err(anyhow::Error::from_boxed)?;
        Ok(cell)
    };
    kinds.iter().map(cell).collect()
}

#[cfg(test)]
mod tests;
