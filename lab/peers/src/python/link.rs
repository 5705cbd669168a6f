//! A connection to the child, with the frames that `child.py` describes.

use anyhow::{Context, Result, bail, ensure};
use marigram_lab::question::{Answer, Cell};
use marigram_lab_drivers::cells::CellKind;
use serde::Deserialize;
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Bytes of a frame's lengths.
const LENGTHS: usize = 12;

/// A connection.
pub(super) struct Link {
    stream: UnixStream,
}

/// The header of a reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReplyHeader {
    error: Option<String>,
    version: Option<String>,
    value: Option<u64>,
    rows: usize,
    buffers: Vec<usize>,
}

/// A frame of `header` and `body`.
pub(super) fn frame(header: &serde_json::Value, body: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let mut out = Vec::with_capacity(LENGTHS + header.len() + body.len());
    out.extend((header.len() as u32).to_le_bytes());
    out.extend((body.len() as u64).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(body);
    out
}

impl Link {
    /// Connects to the child at `socket`.
    pub(super) fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)
            .with_context(|| format!("connecting to {}", socket.display()))?;
        Ok(Self { stream })
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.stream.write_all(frame).context("sending to the child")
    }

    /// Receives a reply. Fails with the child's error.
    pub(super) fn receive(&mut self) -> Result<(ReplyHeader, Vec<u8>)> {
        let lost = "the child went away";
        let mut lengths = [0; LENGTHS];
        self.stream.read_exact(&mut lengths).context(lost)?;
        let (header, body) = lengths.split_at(4);
        let header = u32::from_le_bytes(header.try_into()?);
        let body = u64::from_le_bytes(body.try_into()?);
        let mut text = vec![0; header as usize];
        self.stream.read_exact(&mut text).context(lost)?;
        let mut bytes = vec![0; usize::try_from(body)?];
        self.stream.read_exact(&mut bytes).context(lost)?;
        let header: ReplyHeader = serde_json::from_slice(&text).context("the child's reply")?;
        match header.error {
            Some(error) => bail!("{error}"),
            None => Ok((header, bytes)),
        }
    }

    /// Sends a request without a body, and receives its reply. An error contains the request.
    pub(super) fn call(&mut self, request: &serde_json::Value) -> Result<(ReplyHeader, Vec<u8>)> {
        self.send(&frame(request, &[]))?;
        self.receive().with_context(|| request.to_string())
    }

    /// The package's version.
    pub(super) fn version(&mut self) -> Result<String> {
        let (reply, _) = self.call(&json!({"op": "version"}))?;
        reply.version.context("no version")
    }

    /// Runs a statement that returns nothing.
    pub(super) fn run(&mut self, sql: &str) -> Result<()> {
        self.call(&json!({"op": "run", "sql": sql}))?;
        Ok(())
    }

    /// Runs a query for one integer.
    pub(super) fn value(&mut self, sql: &str) -> Result<u64> {
        let (reply, _) = self.call(&json!({"op": "value", "sql": sql}))?;
        reply.value.context("no value")
    }

    /// The answer to the last question.
    pub(super) fn fetch(&mut self, kinds: &[CellKind]) -> Result<Answer> {
        let (reply, body) = self.call(&json!({"op": "fetch", "kinds": kinds}))?;
        decode(&reply, &body, kinds)
    }
}

/// The rows in `body`, which is column by column.
fn decode(reply: &ReplyHeader, body: &[u8], kinds: &[CellKind]) -> Result<Answer> {
    let mut lengths = reply.buffers.iter();
    let mut rest = body;
    let mut buffer = |bytes_min: usize| -> Result<&[u8]> {
        let length = *lengths.next().context("a buffer is missing")?;
        let (buffer, after) = rest.split_at_checked(length).context("a body too short")?;
        rest = after;
        ensure!(
            length >= bytes_min,
            "a buffer of {length} bytes for {bytes_min}"
        );
        Ok(buffer)
    };
    let mut rows = vec![Vec::with_capacity(kinds.len()); reply.rows];
    for kind in kinds {
        let present = buffer(reply.rows)?;
        let is_text = *kind == CellKind::Text;
        let (words, _) = buffer((reply.rows + usize::from(is_text)) * 8)?.as_chunks::<8>();
        let text = if is_text { buffer(0)? } else { &[] };
        for (row, cells) in rows.iter_mut().enumerate() {
            cells.push(match kind {
                _ if present[row] == 0 => Cell::Null,
                CellKind::Number => Cell::Number(f64::from_le_bytes(words[row])),
                CellKind::Time => Cell::Time(i64::from_le_bytes(words[row])),
                CellKind::Text => {
                    let at = |word: [u8; 8]| usize::try_from(i64::from_le_bytes(word));
                    let bytes = text.get(at(words[row])?..at(words[row + 1])?);
                    let bytes = bytes.context("text outside its buffer")?;
                    Cell::Text(std::str::from_utf8(bytes)?.to_owned())
                }
            });
        }
    }
    Ok(Answer { rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        let mut body = vec![1, 0];
        for offset in [0_i64, 2, 2] {
            body.extend(offset.to_le_bytes());
        }
        body.extend(b"ab");
        body.extend([1, 1]);
        body.extend([7_i64.to_le_bytes(), 8_i64.to_le_bytes()].concat());
        let reply = ReplyHeader {
            rows: 2,
            buffers: vec![2, 24, 2, 2, 16],
            ..ReplyHeader::default()
        };
        let kinds = [CellKind::Text, CellKind::Time];
        let answer = decode(&reply, &body, &kinds).expect("whole columns");
        assert_eq!(
            answer.rows,
            [
                [Cell::Text("ab".to_owned()), Cell::Time(7)],
                [Cell::Null, Cell::Time(8)]
            ]
        );
        decode(&reply, &body[1..], &kinds).expect_err("a body too short");
        decode(&reply, &body, &[CellKind::Number; 3]).expect_err("other columns");
    }
}
