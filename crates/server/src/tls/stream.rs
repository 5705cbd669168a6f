//! A connection of a client, encrypted or not.

use super::{ServerTls, TlsProtocol};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connection.
#[derive(Debug)]
pub(crate) struct ClientStream {
    state: StreamState,
    /// The first byte, if it was looked at and not taken.
    ahead: Option<u8>,
}

#[derive(Debug)]
enum StreamState {
    Plain(TcpStream),
    Encrypted {
        stream: Box<TlsStream<TcpStream>>,
        end_point: Option<Arc<[u8]>>,
    },
    /// The handshake failed.
    Broken,
}

impl ClientStream {
    /// A connection without TLS.
    pub(crate) fn plain(socket: TcpStream) -> Self {
        Self::new(StreamState::Plain(socket))
    }

    /// A connection after its handshake, with the certificate's hash for channel binding.
    pub(crate) fn encrypted(stream: TlsStream<TcpStream>, end_point: Option<Arc<[u8]>>) -> Self {
        Self::new(StreamState::Encrypted {
            stream: Box::new(stream),
            end_point,
        })
    }

    const fn new(state: StreamState) -> Self {
        Self { state, ahead: None }
    }

    /// The first byte that the client sends. It is read again later.
    ///
    /// # Errors
    /// If the client leaves, or the network fails.
    pub(crate) async fn first_byte(&mut self) -> io::Result<u8> {
        if let Some(byte) = self.ahead {
            return Ok(byte);
        }
        let byte = self.read_u8().await?;
        self.ahead = Some(byte);
        Ok(byte)
    }

    /// Performs the handshake on a connection that is not encrypted yet. Nothing can be read or
    /// written after an error.
    pub(crate) async fn encrypt(
        &mut self,
        tls: &ServerTls,
        protocol: TlsProtocol,
    ) -> io::Result<()> {
        match std::mem::replace(&mut self.state, StreamState::Broken) {
            StreamState::Plain(socket) => {
                *self = tls.encrypt(socket, protocol).await?;
                Ok(())
            }
            other => {
                self.state = other;
                Err(io::Error::other("the connection is encrypted already"))
            }
        }
    }

    /// Whether it is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.state, StreamState::Encrypted { .. })
    }

    /// Whether client and server agreed on a protocol by ALPN.
    pub(crate) fn has_named_protocol(&self) -> bool {
        match &self.state {
            StreamState::Encrypted { stream, .. } => stream.get_ref().1.alpn_protocol().is_some(),
            StreamState::Plain(_) | StreamState::Broken => false,
        }
    }

    /// The hash of the server's certificate for channel binding.
    pub(crate) fn end_point(&self) -> Option<Arc<[u8]>> {
        match &self.state {
            StreamState::Encrypted { end_point, .. } => end_point.clone(),
            StreamState::Plain(_) | StreamState::Broken => None,
        }
    }

    /// The socket, without what protects it.
    pub(crate) fn socket(&self) -> Option<&TcpStream> {
        match &self.state {
            StreamState::Plain(socket) => Some(socket),
            StreamState::Encrypted { stream, .. } => Some(stream.get_ref().0),
            StreamState::Broken => None,
        }
    }
}

fn broken<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() > 0
            && let Some(byte) = self.ahead.take()
        {
            into.put_slice(&[byte]);
            return Poll::Ready(Ok(()));
        }
        match &mut self.state {
            StreamState::Plain(socket) => Pin::new(socket).poll_read(context, into),
            StreamState::Encrypted { stream, .. } => Pin::new(stream).poll_read(context, into),
            StreamState::Broken => broken(),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.state {
            StreamState::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            StreamState::Encrypted { stream, .. } => Pin::new(stream).poll_write(context, bytes),
            StreamState::Broken => broken(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.state {
            StreamState::Plain(socket) => Pin::new(socket).poll_write_vectored(context, parts),
            StreamState::Encrypted { stream, .. } => {
                Pin::new(stream).poll_write_vectored(context, parts)
            }
            StreamState::Broken => broken(),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.state {
            StreamState::Plain(socket) => socket.is_write_vectored(),
            StreamState::Encrypted { stream, .. } => stream.is_write_vectored(),
            StreamState::Broken => false,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            StreamState::Plain(socket) => Pin::new(socket).poll_flush(context),
            StreamState::Encrypted { stream, .. } => Pin::new(stream).poll_flush(context),
            StreamState::Broken => broken(),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            StreamState::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            StreamState::Encrypted { stream, .. } => Pin::new(stream).poll_shutdown(context),
            StreamState::Broken => broken(),
        }
    }
}
