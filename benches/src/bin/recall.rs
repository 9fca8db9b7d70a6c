//! Measures recall by words, for a harness that compares engines.
//!
//! Usage: `recall ours N`. Reads the first N lines of `mem_100000.txt` and the queries in
//! `queries.txt` of the folder `PB_DATA`: each of these is `S` or `L` (short, long), a tab, and
//! the query. Prints one JSON line; the index and its changes are measured in CPU time.
//!
//! `recall changes` adds and deletes blocks of texts in indexes of three sizes that alternate.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rockbot_benches::thread_seconds;
use rockbot_core::search::{Analyzer, Bm25Index, Bm25Weights, SeedAnalyzer, UnicodeAnalyzer};

/// The number of the first text that is added to a complete index.
const FIRST_NEW: usize = 1_000_000;

/// Number of rounds over all queries.
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(std::env::var_os("PB_DATA").ok_or("PB_DATA names the folder of the texts")?);
    let all = std::fs::read_to_string(data.join("mem_100000.txt"))?;
    if std::env::args().nth(1).as_deref() == Some("changes") {
        changes_by_size("seed", Arc::new(SeedAnalyzer), &all);
        changes_by_size("default", Arc::new(UnicodeAnalyzer), &all);
        return Ok(());
    }
    let count: usize = std::env::args()
        .nth(2)
        .ok_or("usage: recall ours N | recall changes")?
        .parse()?;
    let texts: Vec<_> = all.lines().take(count).collect();
    let queries = std::fs::read_to_string(data.join("queries.txt"))?;
    let queries: Vec<_> = queries.lines().filter_map(|line| line.split_once('\t')).collect();

    let memory = resident_mib();
    let mut index = Bm25Index::new(Arc::new(SeedAnalyzer)).with_weights(Bm25Weights::ORIGINAL);
    let start = thread_seconds();
    for (number, text) in texts.iter().enumerate() {
        index.insert(number, text);
    }
    let index_ms = (thread_seconds() - start) * 1e3;
    let memory = resident_mib() - memory;
    write_tops(&index, &queries, count)?;
    let short = latencies(&index, &queries, "S");
    let long = latencies(&index, &queries, "L");
    let (add, delete) = changes(&mut index, &texts);
    println!(
        "{}",
        serde_json::json!({
            "engine": "ours", "n": count, "index_ms": index_ms, "rss_mib_over_docs": memory,
            "short_p50_us": short[short.len() / 2], "short_p99_us": short[short.len() * 99 / 100],
            "long_p50_us": long[long.len() / 2], "long_p99_us": long[long.len() * 99 / 100],
            "queries": short.len() + long.len(), "extra": { "add_us": add, "delete_us": delete },
        })
    );
    Ok(())
}

/// Writes the hits of each query, for a comparison with other engines.
fn write_tops(index: &Bm25Index<usize>, queries: &[(&str, &str)], count: usize) -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::var_os("PB_OUT") else {
        return Ok(());
    };
    let top = |query| {
        index
            .search(query, 10)
            .into_iter()
            .map(|hit| hit.item)
            .collect::<Vec<_>>()
    };
    let tops: Vec<_> = queries.iter().map(|(_, query)| top(query)).enumerate().collect();
    let file = Path::new(&folder).join(format!("w4_top_ours_{count}.json"));
    Ok(std::fs::write(file, serde_json::to_string(&tops)?)?)
}

/// Measures each query of `kind`, in microseconds, sorted.
fn latencies(index: &Bm25Index<usize>, queries: &[(&str, &str)], kind: &str) -> Vec<f64> {
    let asked = queries.iter().filter(|(of, _)| *of == kind).cycle();
    let asked = asked.take(queries.len() * ROUNDS);
    let mut latencies: Vec<_> = asked
        .map(|(_, query)| microseconds(|| index.search(query, 10)))
        .collect();
    latencies.sort_by(f64::total_cmp);
    latencies
}

/// Measures adding a text and deleting it again, in microseconds of CPU time.
fn changes(index: &mut Bm25Index<usize>, texts: &[&str]) -> (f64, f64) {
    let count = texts.len().min(1_000);
    let mut all = |change: &mut dyn FnMut(&mut Bm25Index<usize>, usize)| {
        let start = thread_seconds();
        (0..count).for_each(|number| change(index, number));
        (thread_seconds() - start) * 1e6 / count as f64
    };
    let add = all(&mut |index, number| index.insert(FIRST_NEW + number, texts[number]));
    let delete = all(&mut |index, number| {
        index.remove(&(FIRST_NEW + number));
    });
    (add, delete)
}

/// Prints the cost of adding a text and deleting it again beside 1 000, 10 000 and 98 000 others:
/// medians of blocks.
fn changes_by_size(name: &str, analyzer: Arc<dyn Analyzer>, all: &str) {
    let texts: Vec<_> = all.lines().collect();
    let (known, new) = texts.split_at(98_000);
    let mut sizes = [1_000, 10_000, 98_000].map(|size| {
        let mut index = Bm25Index::new(analyzer.clone());
        (0..size).for_each(|number| index.insert(number, known[number]));
        (size, index, Vec::new(), Vec::new())
    });
    for block in new.chunks(50) {
        for (_, index, adds, deletes) in &mut sizes {
            let (add, delete) = changes(index, block);
            adds.push(add);
            deletes.push(delete);
        }
    }
    for (size, _, adds, deletes) in &mut sizes {
        adds.sort_by(f64::total_cmp);
        deletes.sort_by(f64::total_cmp);
        let add = adds[adds.len() / 2];
        let delete = deletes[deletes.len() / 2];
        println!("{name} {size}: add {add:.2} us, delete {delete:.2} us");
    }
}

fn microseconds<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(run());
    start.elapsed().as_secs_f64() * 1e6
}

fn resident_mib() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or_default() * 4_096.0 / 1_048_576.0
}
