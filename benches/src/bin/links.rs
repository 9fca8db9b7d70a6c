//! Measures the link filter on hostile answers and messages of users.
//!
//! Usage: `links [KIB]`. Filters KIB (default 1 024) of each pattern, whole and in pieces of 5
//! bytes, and prints for each the nanoseconds of CPU time for a byte, and its ratio to plain
//! prose.

use rockbot_benches::process_usage;
use rockbot_host::answer::{AnswerFilter, SafeLinks};

const PATTERNS: [&str; 12] = [
    "Plain prose is what most answers are. ",
    "](",
    "<",
    "[",
    "[x](",
    "[x](https://a.example ",
    "![x](//a.example/?q=1)",
    "www.a",
    "https://a.example/(",
    "<a ",
    "`",
    "h",
];

/// Returns the nanoseconds of CPU time for a byte of `answer` in pieces of `size` bytes, after
/// the user's message `user`.
fn nanoseconds(user: &str, answer: &str, size: usize) -> f64 {
    let (before, _) = process_usage();
    let mut filter = SafeLinks::new().begin(user);
    let mut length = 0;
    for piece in answer.as_bytes().chunks(size) {
        length += filter
            .push(str::from_utf8(piece).expect("the patterns are ASCII"))
            .len();
    }
    std::hint::black_box(length + filter.finish().len());
    (process_usage().0 - before) * 1e9 / (user.len() + answer.len()) as f64
}

fn main() {
    let kib: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_024);
    let text = |pattern: &str| pattern.repeat(kib * 1_024 / pattern.len());
    let measure = |pattern: &str| {
        let text = text(pattern);
        [
            nanoseconds("", &text, text.len()),
            nanoseconds("", &text, 5),
            nanoseconds(&text, "", 1),
        ]
    };
    let prose = measure(PATTERNS[0]);
    for pattern in PATTERNS {
        let [whole, pieces, user] = measure(pattern);
        let ratio = |figure: f64, prose: f64| (figure / prose * 10.0).round() / 10.0;
        println!(
            "{}",
            serde_json::json!({
                "pattern": pattern, "whole_ns_per_byte": whole.round(), "ratio": ratio(whole, prose[0]),
                "pieces_ns_per_byte": pieces.round(), "pieces_ratio": ratio(pieces, prose[1]),
                "user_ns_per_byte": user.round(), "user_ratio": ratio(user, prose[2]),
            })
        );
    }
}
