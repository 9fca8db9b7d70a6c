//! A client of the web server: requests of a user, and the events of an answer.

use std::net::SocketAddr;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// A user at a server.
#[derive(Clone)]
pub(crate) struct User {
    client: Client,
    address: SocketAddr,
    token: &'static str,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        Self {
            status: response.status().as_u16(),
            body: response.text().await.unwrap(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Returns the status, and the code of an error.
    pub(crate) fn summary(&self) -> String {
        let json: Value = serde_json::from_str(&self.body).unwrap_or_default();
        match json["error"]["code"].as_str() {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }
}

impl User {
    /// Creates the user of a token; without one no token is sent.
    pub(crate) fn new(address: SocketAddr, token: &'static str) -> Self {
        Self {
            client: Client::builder().no_proxy().build().unwrap(),
            address,
            token,
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, format!("http://{}{path}", self.address));
        match self.token {
            "" => request,
            token => request.bearer_auth(token),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request("GET", path).send().await.unwrap()).await
    }

    /// Sends a body as JSON.
    pub(crate) fn json(&self, method: &str, path: &str, body: &Value) -> RequestBuilder {
        self.request(method, path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.json("POST", path, body).send().await.unwrap()).await
    }

    /// Opens a stream of events.
    pub(crate) async fn events(&self, path: &str, last: Option<&str>) -> Events {
        let request = self.request("GET", path);
        let request = match last {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        Events::of(request.send().await.unwrap())
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// A stream of events.
pub(crate) struct Events {
    response: Response,
    text: String,
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    /// Returns the next event that is no sign of life; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = parsed(event);
                self.text = rest.to_owned();
                if event.is_some() {
                    return event;
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads until an event of this type, which is the last event of the list.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Event> {
        let mut read = Vec::new();
        while let Some(event) = self.next().await {
            let is_last = event.data["type"] == kind;
            read.push(event);
            if is_last {
                return read;
            }
        }
        panic!("no `{kind}` in {read:#?}");
    }

    /// Reads to the end.
    pub(crate) async fn all(mut self) -> Vec<Event> {
        let mut read = Vec::new();
        while let Some(event) = self.next().await {
            read.push(event);
        }
        read
    }
}

fn parsed(text: &str) -> Option<Event> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data: ")?;
    Some(Event {
        id: field("id: ").map(str::to_owned),
        data: serde_json::from_str(data).unwrap_or_else(|_| Value::from(data)),
    })
}

/// Returns the events as one line each: the type, and the text or the tool.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| {
        let data = &event.data;
        let shown = [
            &data["text"],
            &data["tool"],
            &data["outcome"]["text"],
            &data["approval"]["tool"],
        ];
        let shown = shown.into_iter().find_map(Value::as_str);
        let kind = data["type"].as_str().unwrap_or_default();
        format!("{kind} {}", shown.unwrap_or_default()).trim_end().to_owned()
    };
    events.iter().map(line).collect()
}
