//! The tools that read: `file_read`, `file_list`, `file_search`.

use std::fmt::Write;

use rockbot_core::CallContext;
use rockbot_core::tool::{ToolError, ToolState};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{FileState, failed, invalid, present, text_of};
use crate::files::folder::Folder;
use crate::files::path::FilePath;

/// Number of lines of a page unless a call states one.
const PAGE: usize = 500;

/// Maximum number of characters of a page.
const MAX_PAGE: usize = 40_000;

/// Maximum number of hits of a search.
const MAX_HITS: usize = 50;

/// Maximum number of characters of a line that a search shows.
const MAX_LINE: usize = 200;

const TAKES_ALL: &str = "a String takes everything";

/// Reads a text file, in pages. The last line names the offset of the next page.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FileRead {
    /// The path, relative to the folder.
    path: String,
    /// The first line to show, from 1.
    #[serde(default)]
    offset: Option<usize>,
    /// The number of lines, 500 by default.
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) async fn read(
    this: ToolState<FileState>,
    arguments: FileRead,
    cx: CallContext,
) -> Result<String, ToolError> {
    let path = FilePath::parse(&arguments.path).map_err(|error| invalid(&error))?;
    let of_file = path.clone();
    let (version, text) = this
        .blocking(move |folder| {
            let version = present(folder, &of_file)?;
            let (text, _) = text_of(&of_file, &version)?;
            Ok((version.digest, text))
        })
        .await?;
    let lines: Vec<&str> = text.lines().collect();
    let from = arguments.offset.unwrap_or(1).max(1) - 1;
    if from >= lines.len() {
        if lines.is_empty() {
            this.ledger.record(&cx, &path, &version, 0..0);
            return Ok(format!("[`{path}` is empty]"));
        }
        let message = format!("`{path}` has {} lines: give an offset up to that", lines.len());
        return Err(ToolError::invalid_arguments(message));
    }
    let (mut shown, to, is_cut) = page(&lines, from, arguments.limit.unwrap_or(PAGE).max(1));
    if !is_cut {
        this.ledger.record(&cx, &path, &version, from..to);
    }
    let total = lines.len();
    if to < total {
        write!(shown, "[lines {}–{to} of {total}; next offset: {}]", from + 1, to + 1).expect(TAKES_ALL)
    } else {
        write!(shown, "[lines {}–{to} of {total}; the end]", from + 1).expect(TAKES_ALL)
    }
    Ok(shown)
}

/// Returns the lines of a page, the line behind them, and whether only a part of one line is shown.
fn page(lines: &[&str], from: usize, limit: usize) -> (String, usize, bool) {
    let mut shown = String::new();
    let mut to = from;
    let mut length = 0;
    for line in lines.iter().skip(from).take(limit) {
        length += line.chars().count() + 1;
        if length > MAX_PAGE && to == from {
            // A line that is longer than a page is shown in part, and does not count as read.
            shown.extend(line.chars().take(MAX_PAGE));
            shown.push_str("… [the line is longer]\n");
            return (shown, to + 1, true);
        }
        if length > MAX_PAGE {
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        to += 1;
    }
    (shown, to, false)
}

/// Lists text files with their sizes in bytes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FileList {
    /// Only paths that begin with this, such as `reports/`.
    #[serde(default)]
    prefix: Option<String>,
}

pub(super) async fn list(this: ToolState<FileState>, arguments: FileList) -> Result<String, ToolError> {
    let prefix = arguments.prefix.unwrap_or_default();
    let (files, is_cut) = this
        .blocking(move |folder| folder.list(&prefix).map_err(|error| listing_failed(&error)))
        .await?;
    if files.is_empty() {
        return Ok("There are no files there.".to_owned());
    }
    let mut shown = String::new();
    for file in &files {
        writeln!(shown, "{} ({})", file.path, file.size).expect(TAKES_ALL);
    }
    if is_cut {
        shown.push_str("… and more: give a longer prefix\n");
    }
    Ok(shown)
}

/// Searches text files for lines that contain a text, in any case.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FileSearch {
    /// The text to search for.
    query: String,
    /// Only paths that begin with this, such as `reports/`.
    #[serde(default)]
    prefix: Option<String>,
}

pub(super) async fn search(this: ToolState<FileState>, arguments: FileSearch) -> Result<String, ToolError> {
    let query = arguments.query.to_lowercase();
    if query.trim().is_empty() {
        return Err(ToolError::invalid_arguments(
            "the query is empty: say what to search for",
        ));
    }
    let prefix = arguments.prefix.unwrap_or_default();
    this.blocking(move |folder| hits(folder, &prefix, &query)).await
}

/// Returns the lines that contain `query`, which is in lower case.
fn hits(folder: &Folder, prefix: &str, query: &str) -> Result<String, ToolError> {
    let (files, mut is_cut) = folder.list(prefix).map_err(|error| listing_failed(&error))?;
    let mut shown = String::new();
    let mut count = 0;
    for file in &files {
        // A file that is no text, too long or just gone has no lines to show.
        let Ok(path) = FilePath::parse(&file.path) else {
            continue;
        };
        let Ok(Some(version)) = folder.read(&path) else {
            continue;
        };
        let Ok((text, _)) = text_of(&path, &version) else {
            continue;
        };
        let found = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.to_lowercase().contains(query));
        for (number, line) in found.take(MAX_HITS + 1 - count) {
            count += 1;
            let line: String = line.trim().chars().take(MAX_LINE).collect();
            writeln!(shown, "{path}:{}: {line}", number + 1).expect(TAKES_ALL);
        }
        if count > MAX_HITS {
            is_cut = true;
            break;
        }
    }
    if is_cut {
        shown.push_str("… and more: give a longer query or a prefix\n");
    }
    Ok(if shown.is_empty() {
        "No line contains that.".to_owned()
    } else {
        shown
    })
}

fn listing_failed(error: &std::io::Error) -> ToolError {
    let root = FilePath::parse("files").expect("a name is a path");
    failed(&root, error)
}
