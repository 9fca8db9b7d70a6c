//! A model server on the loopback, whose answers a test writes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A running server that notes the requests.
pub(crate) struct ModelServer {
    /// Its address, without a path.
    pub(crate) endpoint: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl ModelServer {
    /// Starts a server that gives each request the status and the text that `answer` makes of its
    /// head and body, as they came, and of the body as JSON. A text of events is a stream.
    pub(crate) fn start(answer: impl FnMut(&str, &Value) -> (u16, String) + Send + 'static) -> Self {
        Self::advising(1, answer)
    }

    /// Starts a server like [`ModelServer::start`] that asks for this wait before a retry, in
    /// milliseconds.
    pub(crate) fn advising(
        retry_after: u64,
        mut answer: impl FnMut(&str, &Value) -> (u16, String) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(socket);
                let Ok((head, body)) = read(&mut reader) else { continue };
                let request: Value = serde_json::from_str(&body).unwrap();
                seen.lock().unwrap().push(request.clone());
                let (status, text) = answer(&format!("{head}{body}"), &request);
                // The client may have had enough already.
                let _ = write(reader.get_mut(), status, retry_after, &text);
            }
        });
        Self { endpoint, requests }
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads a request; an error if its client went away.
fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<(String, String)> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let begin = head.len();
        match reader.read_line(&mut head)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            1 | 2 => break,
            _ => {}
        }
        let count = head[begin..].strip_prefix("content-length: ");
        length = count.map_or(length, |count| count.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).unwrap()))
}

fn write(socket: &mut TcpStream, status: u16, retry_after: u64, text: &str) -> std::io::Result<()> {
    let kind = if text.starts_with("event: ") || text.starts_with("data: ") {
        "text/event-stream"
    } else {
        "application/json"
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nretry-after-ms: {retry_after}\r\nconnection: close\r\n\r\n"
    );
    socket.write_all((head + text).as_bytes())
}
