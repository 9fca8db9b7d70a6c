//! Measures a streamed answer of many small deltas over parsing their JSON.
//!
//! Usage: `sse [DELTAS] [ROUNDS]` (100 000 and 15). Prints one JSON line: CPU time of the reading
//! thread in milliseconds, medians of rounds in which the three alternate. `parse` is the floor:
//! the JSON of each line into a minimal struct. `receive` is the answer read from the socket and
//! dropped. `client` is the whole call through the OpenAI client, socket included, with a
//! listener to the deltas; `ratio` is that without receiving, over the floor.

use rockbot_benches::stream::{ask, client, events, parse, receive};
use rockbot_benches::{median, mock, thread_seconds};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let deltas = arguments.next().unwrap_or(100_000);
    let rounds = arguments.next().unwrap_or(15);
    let body = events(deltas);
    let base = format!("http://{}/v1", mock::start_with(&body));
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let client = client(&base);
    let mut times = [(); 3].map(|()| Vec::new());
    // The first round warms up.
    for round in 0..=rounds {
        let starts = [
            (thread_seconds(), parse(&body)).0,
            (thread_seconds(), receive(&http, &base).await).0,
            (thread_seconds(), ask(&client).await).0,
            thread_seconds(),
        ];
        for (index, times) in times.iter_mut().enumerate().filter(|_| round > 0) {
            times.push((starts[index + 1] - starts[index]) * 1e3);
        }
    }
    let [parse, receive, client] = times.map(median);
    let line = serde_json::json!({
        "deltas": deltas,
        "parse_ms": parse,
        "receive_ms": receive,
        "client_ms": client,
        "ratio": (client - receive) / parse,
        "ratio_with_socket": client / parse,
    });
    println!("{line}");
}
