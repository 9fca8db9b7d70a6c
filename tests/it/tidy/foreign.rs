//! Crates before their version 1.0 are no part of the public API, unless the crate that shows
//! them re-exports them.

use super::source::{LIBRARIES, root};

/// Crates whose types change with each of their 0.x releases.
const UNSTABLE: [&str; 10] = [
    "deadpool_postgres",
    "tokio_postgres",
    "rusqlite",
    "reqwest",
    "tower",
    "jiff",
    "secrecy",
    "metrics",
    "tokio_util",
    "futures_util",
];

#[test]
fn unstable_crates_are_re_exported_or_hidden() {
    let mut shown = Vec::new();
    for name in LIBRARIES {
        let file = root().join(format!("tests/it/tidy/public_api/{name}.txt"));
        let text = std::fs::read_to_string(file).expect("a listing");
        // `use ours = theirs` and `type Ours = theirs` are re-exports.
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("use ") && !line.starts_with("type "));
        for (line, crate_name) in lines.flat_map(|line| UNSTABLE.map(|crate_name| (line, crate_name))) {
            if line.contains(&format!("{crate_name}::")) {
                shown.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    assert!(shown.is_empty(), "wrap or re-export these:\n{}", shown.join("\n"));
}
