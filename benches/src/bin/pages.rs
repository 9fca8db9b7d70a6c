//! Converts real pages to Markdown, as the drivers of other converters do: `pages [DUMP_DIR]`.
//!
//! The pages are the files that `$PB_DATA/pages.txt` lists. It prints one line of JSON: megabytes
//! a second by size of page, and the headings, links, fences and tables of the Markdown, to be
//! compared with those of the other converters.

use std::path::Path;
use std::time::Instant;

use rockbot_core::BoxError;
use rockbot_tools::web::html_to_markdown;
use serde_json::json;

/// Sizes of pages, in bytes, at which a class ends.
const CLASSES: [usize; 2] = [100_000, 1_000_000];

fn main() -> Result<(), BoxError> {
    let data = std::env::var("PB_DATA")?;
    let list = std::fs::read_to_string(Path::new(&data).join("pages.txt"))?;
    let dump = std::env::args().nth(1);
    let mut bytes = [0.0; 3];
    let mut seconds = [0.0; 3];
    let mut written = 0;
    let mut slowest = (0.0, String::new());
    let mut counts = [0; 4];
    for path in list.lines() {
        let page = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let (time, markdown) = timed(&page);
        let class = CLASSES.iter().filter(|end| page.len() >= **end).count();
        bytes[class] += page.len() as f64;
        seconds[class] += time;
        written += markdown.len();
        if time > slowest.0 {
            slowest = (time, path.rsplit('/').next().unwrap_or_default().to_owned());
        }
        for (sum, count) in counts.iter_mut().zip(counted(&markdown)) {
            *sum += count;
        }
        if let Some(folder) = &dump {
            std::fs::create_dir_all(folder)?;
            std::fs::write(
                Path::new(folder).join(format!("{}.md", path.replace('/', "_"))),
                &markdown,
            )?;
        }
    }
    let rate = |bytes: f64, seconds: f64| (bytes / seconds / 1e5).round() / 10.0;
    let [headings, links, fences, tables] = counts;
    let line = json!({
        "engine": "rockbot", "mb_s_small_<100K": rate(bytes[0], seconds[0]), "mb_s_mid_<1M": rate(bytes[1], seconds[1]),
        "mb_s_large_>1M": rate(bytes[2], seconds[2]), "mb_s_all": rate(bytes.iter().sum(), seconds.iter().sum()),
        "md_mb": written as f64 / 1e6, "slowest_ms": (slowest.0 * 1e4).round() / 10.0, "slowest": slowest.1,
        "headings": headings, "links": links, "fences": fences, "tables": tables, "failed": [],
    });
    println!("{line}");
    Ok(())
}

/// Returns the median time of a few conversions, in seconds, and the Markdown.
fn timed(page: &str) -> (f64, String) {
    let rounds = if page.len() < 300_000 { 5 } else { 3 };
    let mut times = Vec::new();
    let mut markdown = String::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        markdown = html_to_markdown(page, None);
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], markdown)
}

/// Returns the numbers of headings, links, fences and tables, counted as for the other converters.
fn counted(markdown: &str) -> [usize; 4] {
    let is_underline = |line: &str, sign: char| line.len() > 2 && line.chars().all(|c| c == sign);
    let is_heading =
        |line: &&str| line.trim_start().starts_with('#') || is_underline(line, '=') || is_underline(line, '-');
    let is_table = |line: &&str| line.contains("---|") || line.contains("--- |") || line.contains("|---");
    [
        markdown.lines().filter(is_heading).count(),
        markdown.matches("](").count(),
        markdown.matches("```").count() / 2,
        markdown.lines().filter(is_table).count(),
    ]
}
