//! Measures the memory of a large tool result: the peak over one turn, journal on disk included,
//! and over a search in it.
//!
//! Usage: `large_results [MEGABYTES] [FORM]` (10; `sections`, `headings`, `lines` or `one-line`).
//! Prints one JSON line, and fails when the fact in the middle is not found or a peak reaches
//! four times the result. Peaks are bytes allocated beyond the level before the turn, as
//! multiples of the result; `rss` is the same as the kernel counts it.

use rockbot_benches::allocated::{self, Counting};
use rockbot_benches::process_usage;
use rockbot_core::store::InMemoryWorkingMemory;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_host::{AgentHost, Stores};
use serde_json::json;

const FACT: &str = "The gold lies under the old oak of Lindenau.";

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Dumps everything.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Generates a text of about `bytes` bytes with the fact in its middle.
fn text(bytes: usize, form: &str) -> String {
    let mut text = String::with_capacity(bytes + 200);
    let mut line = 0;
    let mut told = false;
    while text.len() < bytes {
        if form == "sections" && line % 100 == 0 || form == "headings" {
            text.push_str(&format!("\n## Part {}\n\n", line / 100));
        }
        text.push_str(&format!(
            "Entry {line}: nothing of interest stands in row {} of table {}.",
            line % 997,
            line % 89
        ));
        if !told && text.len() > bytes / 2 {
            text.push_str(FACT);
            told = true;
        }
        text.push(if form == "one-line" { ' ' } else { '\n' });
        line += 1;
    }
    text
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let megabytes: usize = argument(1).map_or(10, |text| text.parse().expect("a number"));
    let form = argument(2).unwrap_or_else(|| "sections".to_owned());
    let bytes = megabytes * 1_000_000;
    let tool_form = form.clone();
    let model = ScriptedModel::new()
        .calls("dump", json!({}))
        .says("It is long.")
        .calls("search_tool_output", json!({ "query": "gold oak Lindenau" }))
        .says("Under the oak.");
    let data = tempfile::tempdir().expect("a temporary folder");
    let host = AgentHost::builder("bench")
        .chat(model.clone())
        .tool(tool("dump", move |_: Nothing| std::future::ready(text(bytes, &tool_form))).pure())
        .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        .data_dir(data.path())
        .build()
        .expect("the host is complete");
    let before = allocated::bytes();
    let (_, rss) = process_usage();
    let mut peaks = Vec::new();
    for question in ["Dump everything.", "Where is the gold?"] {
        allocated::reset_peak();
        host.agent().ask("session", question).await.expect("an answer");
        peaks.push((allocated::peak() - before) as f64 / bytes as f64);
    }
    let found = model
        .requests()
        .last()
        .expect("a request")
        .messages
        .last()
        .expect("a result")
        .text()
        .contains(FACT);
    let line = json!({
        "form": form, "bytes": bytes, "peak_turn": peaks[0], "peak_search": peaks[1],
        "rss": (process_usage().1 - rss) * 1048576.0 / bytes as f64, "found": found,
    });
    println!("{line}");
    assert!(found, "the fact was not found");
    assert!(peaks.iter().all(|peak| *peak < 4.0), "too much memory");
}

fn argument(index: usize) -> Option<String> {
    std::env::args().nth(index)
}
