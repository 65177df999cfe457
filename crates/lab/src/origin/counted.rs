//! A server's socket whose bytes are counted, below anything that encrypts or frames them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::log::Conversation;

/// A TCP stream that tells its [`Conversation`] how many bytes went each way.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    conversation: Arc<Conversation>,
}

impl Counted {
    pub(super) fn new(stream: TcpStream, conversation: Arc<Conversation>) -> Self {
        Self { stream, conversation }
    }

    fn wrote(&self, outcome: &io::Result<usize>) {
        if let Ok(bytes) = outcome {
            self.conversation.count_written(*bytes);
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.conversation.count_read(buffer.filled().len() - before);
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.wrote(&outcome);
        Poll::Ready(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, bytes));
        self.wrote(&outcome);
        Poll::Ready(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
