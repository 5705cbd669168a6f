//! A WebSocket client that sends what it is told, right or wrong.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A bound against a hang.
const SOON: Duration = Duration::from_mins(1);

/// Kinds of frames.
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// A connection.
pub(crate) struct WebSocketClient {
    socket: TcpStream,
}

impl WebSocketClient {
    /// Asks for a WebSocket.
    ///
    /// # Errors
    /// The head of the answer, if it is refused.
    pub(crate) async fn connect(
        address: SocketAddr,
        path: &str,
        headers: &str,
    ) -> Result<Self, String> {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            let read = tokio::time::timeout(SOON, socket.read(&mut byte)).await;
            if read.unwrap().unwrap() == 0 {
                break;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        if head.starts_with("HTTP/1.1 101") {
            assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
            return Ok(Self { socket });
        }
        Err(head)
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, kind: u8, payload: &[u8]) {
        self.send_raw(&frame(kind, payload)).await.unwrap();
    }

    /// Receives the next frame; `None` at the end of the connection.
    pub(crate) async fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let received = tokio::time::timeout(SOON, self.receive_frame()).await;
        received.expect("an answer in time")
    }

    async fn receive_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.socket.read_exact(&mut head).await.ok()?;
        let length = match head[1] & 0x7f {
            126 => u64::from(self.socket.read_u16().await.ok()?),
            127 => self.socket.read_u64().await.ok()?,
            length => u64::from(length),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.socket.read_exact(&mut payload).await.ok()?;
        Some((head[0] & 0x0f, payload))
    }

    /// Sends JSON, and receives the next JSON.
    pub(crate) async fn ask(&mut self, request: &serde_json::Value) -> serde_json::Value {
        self.send(TEXT, request.to_string().as_bytes()).await;
        self.text().await
    }

    /// Receives JSON.
    pub(crate) async fn text(&mut self) -> serde_json::Value {
        let (kind, payload) = self.receive().await.expect("an answer");
        assert_eq!(kind, TEXT, "{payload:?}");
        serde_json::from_slice(&payload).unwrap()
    }
}

/// A frame of a client.
pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![0x80 | kind];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
        length if u16::try_from(length).is_ok() => {
            frame.push(0xfe);
            frame.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        length => {
            frame.push(0xff);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    frame
}
