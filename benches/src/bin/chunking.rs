//! Measures the chunking of Markdown, for a harness that compares frameworks.
//!
//! Usage: `chunking FILE [MAX]`. Prints one JSON line each for the same rules by hand, for the
//! chunker alone, and for chunker and outline.

use rockbot_benches::chunking::{Chunked, by_hand, measure, ours, without_outline};

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let text = std::fs::read_to_string(&arguments[1]).expect("a Markdown file");
    let max_len = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let [floor, chunker, whole] = measure(
        31,
        [
            &|| by_hand(&text, max_len),
            &|| without_outline(&text, max_len),
            &|| ours(&text, max_len),
        ],
    );
    print("rockbot: by hand", &text, floor);
    print("rockbot: chunker alone", &text, chunker);
    print("rockbot: chunker and outline", &text, whole);
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
