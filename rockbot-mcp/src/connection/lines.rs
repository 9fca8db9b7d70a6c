//! A reader that notices lines which are too long for the client library, and answers in the
//! place of the server.
//!
//! The library drops a line that exceeds its limit, and whatever waits for it waits to its time
//! limit. So the line's id is found while its bytes go past, and a short line with an error under
//! this id follows it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::{ErrorCode, RequestId};
use serde_json::json;
use tokio::io::{AsyncRead, ReadBuf};

/// The code of the error that takes the place of an answer which was too long. No server sends
/// it: JSON-RPC reserves none like it.
pub(crate) const TOO_LONG: ErrorCode = ErrorCode(i32::MIN);

/// Maximum length of a name and of an id, in bytes.
const MAX_TOKEN: usize = 128;

/// Number of bytes that are read at a time.
const CHUNK: usize = 8 * 1024;

/// The reader.
#[derive(Debug)]
pub(super) struct WatchedLines<R> {
    inner: R,
    max_line: usize,
    /// Bytes that were read; the bytes before `next` are passed on.
    chunk: Vec<u8>,
    next: usize,
    /// The line in place of an answer that was too long, still to be passed on.
    answer: VecDeque<u8>,
    line: LineScan,
}

impl<R> WatchedLines<R> {
    /// Watches the lines of `inner` that are longer than `max_line` bytes.
    pub(super) fn new(inner: R, max_line: usize) -> Self {
        Self {
            inner,
            max_line,
            chunk: Vec::new(),
            next: 0,
            answer: VecDeque::new(),
            line: LineScan::default(),
        }
    }

    /// Passes on bytes of the chunk, up to the end of a line that is too long.
    fn pass(&mut self, buf: &mut ReadBuf<'_>) {
        let end = self.chunk.len().min(self.next + buf.remaining());
        let start = self.next;
        while self.next < end && self.answer.is_empty() {
            let byte = self.chunk[self.next];
            self.next += 1;
            if byte == b'\n' {
                self.end_line();
            } else {
                self.line.push(byte);
            }
        }
        buf.put_slice(&self.chunk[start..self.next]);
    }

    /// Ends a line, and answers in its place if it is too long and an answer.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.length >= self.max_line
            && let Some(id) = line.answered()
        {
            tracing::warn!(
                length = line.length,
                "an answer of an MCP server is too long and is dropped"
            );
            let error = json!({"code": TOO_LONG, "message": "the answer is too long"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.answer.extend(format!("{answer}\n").into_bytes());
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for WatchedLines<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        if !this.answer.is_empty() {
            let count = this.answer.len().min(buf.remaining());
            let bytes: Vec<u8> = this.answer.drain(..count).collect();
            buf.put_slice(&bytes);
            return Poll::Ready(Ok(()));
        }
        if this.next == this.chunk.len() {
            this.chunk.resize(CHUNK, 0);
            let mut chunk = ReadBuf::new(&mut this.chunk);
            let read = Pin::new(&mut this.inner).poll_read(cx, &mut chunk);
            let length = if read.is_ready() { chunk.filled().len() } else { 0 };
            this.chunk.truncate(length);
            this.next = 0;
            ready!(read)?;
        }
        this.pass(buf);
        Poll::Ready(Ok(()))
    }
}

/// A scan of a line of JSON, byte by byte and in bounded memory, for the members of its outermost
/// object.
#[derive(Debug, Default)]
struct LineScan {
    length: usize,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    /// The name of the member whose value comes.
    name: Vec<u8>,
    /// The text or number of the outermost object that is being read, as it is written.
    token: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl LineScan {
    fn push(&mut self, byte: u8) {
        self.length += 1;
        if self.is_in_text {
            self.keep(byte);
            if self.is_escaped {
                self.is_escaped = false;
            } else {
                self.is_escaped = byte == b'\\';
                self.is_in_text = byte != b'"';
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_member(),
            b':' if self.depth == 1 => {
                self.name = std::mem::take(&mut self.token);
                self.has_method |= self.name == b"\"method\"";
            }
            b' ' | b'\t' | b'\r' | b':' => {}
            byte => self.keep(byte),
        }
    }

    /// Keeps a byte of a text or a number of the outermost object, as far as it may be a name or an id.
    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_TOKEN {
            self.token.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.depth == 1 {
            let token = std::mem::take(&mut self.token);
            if self.name == b"\"id\"" {
                self.id = token;
            }
            self.name.clear();
        }
    }

    /// Returns the id of the request that the line answers, or `None` if it is no answer.
    fn answered(&self) -> Option<RequestId> {
        if self.has_method {
            return None;
        }
        serde_json::from_slice(&self.id).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn read(text: &str, max_line: usize) -> String {
        let mut read = String::new();
        let mut lines = WatchedLines::new(text.as_bytes(), max_line);
        lines.read_to_string(&mut read).await.unwrap();
        read
    }

    fn answer(id: &str) -> String {
        let code = i32::MIN;
        format!(r#"{{"error":{{"code":{code},"message":"the answer is too long"}},"id":{id},"jsonrpc":"2.0"}}"#)
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_followed_by_an_error_under_its_id() {
        let filler = "x\\\"}{[\\\\".repeat(4_000);
        for (line, id) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"id":8,"text":"{filler}"}}}}"#),
                "7",
            ),
            (
                format!(r#"{{ "result" : {{"a":["{filler}"],"id":[1]}} , "id" : "a b" , "jsonrpc":"2.0"}}"#),
                r#""a b""#,
            ),
        ] {
            let text = format!("{{}}\n{line}\n{{\"id\":9}}\n");
            let expected = format!("{{}}\n{line}\n{}\n{{\"id\":9}}\n", answer(id));
            assert_eq!(read(&text, 1_000).await, expected);
            assert_eq!(read(&text, 1_000_000).await, text);
        }
    }

    #[tokio::test]
    async fn requests_notifications_and_nonsense_are_followed_by_nothing() {
        let filler = "x".repeat(2_000);
        for line in [
            format!(r#"{{"id":7,"method":"sampling/createMessage","params":"{filler}"}}"#),
            format!(r#"{{"method":"notifications/message","params":"{filler}"}}"#),
            format!(r#"[{{"id":7,"result":"{filler}"}}]"#),
            format!(r#"{{"id":{filler}}}"#),
            format!(r#"{{"id":null,"result":"{filler}"}}"#),
            filler.clone(),
        ] {
            let text = format!("{line}\n");
            assert_eq!(read(&text, 1_000).await, text);
        }
    }

    proptest! {
        #[test]
        fn bytes_pass_unchanged(text in "[\\[\\]{}\":,a\\\\\n ]{0,200}") {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert_eq!(runtime.block_on(read(&text, 1_000)), text);
        }
    }
}
