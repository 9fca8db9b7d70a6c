//! Chunking of Markdown, for a harness that measures frameworks side by side.
//!
//! Usage: `w6 FILE [MAX]`. Prints one JSON line for the same rules by hand and one for ours, outline included.

use rockbot_benches::chunking::{Chunked, floor, ours};

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let text = std::fs::read_to_string(&arguments[1]).expect("a Markdown file");
    let max_len = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(4_000);
    print("rockbot: by hand", &text, floor(&text, max_len, 15));
    print("rockbot: chunker and outline", &text, ours(&text, max_len, 15));
}

fn print(engine: &str, text: &str, chunked: Chunked) {
    let megabytes = text.len() as f64 / 1e6;
    let line = serde_json::json!({
        "engine": engine,
        "mb": megabytes,
        "mb_s": megabytes / chunked.seconds,
        "ms": chunked.seconds * 1e3,
        "chunks": chunked.chunks,
        "largest_chars": chunked.largest,
    });
    println!("{line}");
}
