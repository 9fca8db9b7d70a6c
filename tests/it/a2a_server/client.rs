//! A client of raw HTTP: what is sent is what a test says, byte for byte.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Returns what it comes to: the status; the code and reason of an error, the state of a task,
    /// or the items of a list.
    pub(crate) fn summary(&self) -> String {
        let status = self.status;
        let Ok(json) = serde_json::from_str::<Value>(&self.body) else {
            return status.to_string();
        };
        let error = &json["error"];
        let details = error.get("data").or_else(|| error.get("details"));
        let reason = details.and_then(|details| details[0]["reason"].as_str()).unwrap_or("-");
        let result = json.get("result").unwrap_or(&json);
        let task = result.get("task").unwrap_or(result);
        match (
            error["code"].as_i64(),
            task["status"]["state"].as_str(),
            result["tasks"].as_array(),
        ) {
            (Some(code), ..) => format!("{status} {code} {reason}"),
            (_, Some(state), _) => format!("{status} {state}"),
            (_, _, Some(tasks)) => format!("{status} {} tasks", tasks.len()),
            _ => status.to_string(),
        }
    }
}

/// Sends a request, with the headers of a caller of version 1.0 unless others are given, and reads
/// the answer to its end.
pub(crate) async fn send(address: SocketAddr, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let mut stream = open(address, method, path, headers, body).await;
    let mut bytes = Vec::new();
    // A server that has not read all resets the connection behind its answer.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// Sends a request, and returns the connection.
pub(crate) async fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let given = |name: &str| {
        headers
            .iter()
            .any(|header| header.to_ascii_lowercase().starts_with(name))
    };
    // Version 1.0 of HTTP: no chunks, and the end of the connection is the end of the answer.
    let mut request = format!("{method} {path} HTTP/1.0\r\n");
    let length = format!("Content-Length: {}", body.len());
    for (name, default) in [
        ("host:", "Host: localhost"),
        ("content-type:", "Content-Type: application/json"),
        ("a2a-version:", "A2A-Version: 1.0"),
        ("authorization:", "Authorization: Bearer sesame"),
        ("content-length:", &*length),
    ] {
        if !given(name) {
            request.push_str(&format!("{default}\r\n"));
        }
    }
    // A header without a value is left out.
    for header in headers.iter().filter(|header| !header.ends_with(':')) {
        request.push_str(&format!("{header}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    // The server may answer before it has read all, and close.
    let _ = stream.write_all(body.as_bytes()).await;
    BufReader::new(stream)
}

/// Reads the next event of a stream; `None` at its end.
pub(crate) async fn event(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.unwrap() == 0 {
            return None;
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}
