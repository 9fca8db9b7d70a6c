//! The text that the model reads instead of a large result.

use std::fmt::Write;

use super::LargeResult;
use super::chunker::Chunk;
use super::outline::push_title;
use super::pages::Pages;
use super::thousands::grouped;

/// Maximum number of chunks in the table.
const MAX_ROWS: usize = 100;

const TAKES_ALL: &str = "a String takes everything";

impl LargeResult<'_> {
    /// Returns the text for the model: the size of the result, how to read it, and a table of its
    /// chunks.
    pub(super) fn message(&self, chunks: &[Chunk<'_>], pages: &Pages, shown: &str) -> String {
        let tool = self.tool;
        let chars = grouped(self.chars);
        let count = pages.len();
        let mut text = format!(
            "Tool result for '{tool}' is large ({chars} chars) and has been split into {count} chunk(s) stored in working memory.\n\
             A document outline is stored at key `{shown}index` — retrieve it with get_from_working_memory to navigate the content by section heading.\n\
             Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions. Do not summarise based on this index alone.\n\
             To find something in it, call search_tool_output(query, key: `{shown}index`).\n\
             \n\
             | # | Heading | Key |\n\
             |---|---------|-----|\n"
        );
        for page in 0..count.min(MAX_ROWS) {
            write!(text, "| {page} | ").expect(TAKES_ALL);
            push_heading(&mut text, chunks, pages, page);
            writeln!(text, " | `{shown}chunk{page}` |").expect(TAKES_ALL);
        }
        if count > MAX_ROWS {
            let left = grouped(count - MAX_ROWS);
            let last = count - 1;
            writeln!(text, "\n… and {left} more, up to `{shown}chunk{last}`.").expect(TAKES_ALL);
        }
        text
    }
}

/// Appends the heading of the first chunk on a page and the number of chunks that follow on it.
fn push_heading(text: &mut String, chunks: &[Chunk<'_>], pages: &Pages, page: usize) {
    let on_page = pages.chunks_of(page);
    let first = &chunks[on_page.start];
    push_title(text, first, page);
    if on_page.len() > 1 {
        write!(text, " … and {} more", on_page.len() - 1).expect(TAKES_ALL);
    }
}
