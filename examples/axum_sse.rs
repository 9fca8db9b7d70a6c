//! An agent in a program's own axum app: a message over HTTP, and its turn as server-sent events.
//!
//! `cargo run --example axum_sse --features web-server`: no key needed; the README says how to point it at a real model. With
//! `--serve 127.0.0.1:8950` it serves until Ctrl-C, with the bearer token `sesame`, OpenAI's interfaces at `/v1` included.

use std::io::{Write as _, stdout};

use axum::Router;
use axum::routing::get;
use rockbot::prelude::*;
use rockbot::web_server::{WebEndpoint, WebServer, WebUser};
use tokio::net::TcpListener;

/// Calculates the product of two numbers.
#[derive(Deserialize, JsonSchema)]
struct Multiply {
    a: i64,
    b: i64,
}

fn host() -> Result<AgentHost, BoxError> {
    let multiply = tool(
        "multiply",
        |Multiply { a, b }: Multiply| async move { (a * b).to_string() },
    );
    // Each user is a principal of its own, and sees its own sessions, turns and approvals alone.
    let server = WebServer::new()
        .mounted()
        .user(WebUser::new("ann", "sesame".to_owned()));
    Ok(AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(multiply.pure())
        .add(server)
        .build()?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1);
    let served = match words.next().as_deref() {
        Some("--serve") => words.next(),
        Some(word) => return Err(format!("`{word}` is unknown: the one option is `--serve ADDRESS`").into()),
        None => None,
    };
    let host = host()?;
    host.start().await?;
    let endpoint = host.parts().require::<WebEndpoint>()?;
    // The agent's routes stand beside the program's own.
    let app = Router::new()
        .route("/", get(|| async { "a shop" }))
        .merge(endpoint.router());
    let listener = TcpListener::bind(served.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(axum::serve(listener, app).into_future());
    if served.is_some() {
        eprintln!("serving at http://{address}/ until Ctrl-C");
        tokio::signal::ctrl_c().await?;
    } else {
        ask(&format!("http://{address}/api/sessions/main/messages")).await?;
    }
    serving.abort();
    Ok(())
}

/// Posts a message, and prints the events of its turn as they come.
async fn ask(url: &str) -> Result<(), BoxError> {
    let request = reqwest::Client::builder().no_proxy().build()?.post(url);
    let request = request.bearer_auth("sesame").header("accept", "text/event-stream");
    let request = request.header("content-type", "application/json");
    let mut answer = request.body(r#"{"content": "Multiply 6 and 7."}"#).send().await?;
    let mut out = stdout();
    let mut text = String::new();
    while let Some(chunk) = answer.chunk().await? {
        text.push_str(std::str::from_utf8(&chunk)?);
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data {
                let event: serde_json::Value = serde_json::from_str(data)?;
                let members = ["text", "tool", "arguments", "content"].map(|name| event[name].as_str());
                let shown: Vec<_> = members.into_iter().flatten().collect();
                let end = event["outcome"]["text"].as_str().unwrap_or_default();
                writeln!(
                    out,
                    "{} {}{end}",
                    event["type"].as_str().unwrap_or_default(),
                    shown.join(" ")
                )?;
            }
            text = rest.to_owned();
        }
    }
    Ok(())
}
