//! Grouping of chunks into pages.

use std::ops::Range;

use super::chunker::Chunk;

/// Chunks of a text, grouped into pages. A page is stored under one key.
#[derive(Debug)]
pub(super) struct Pages {
    /// Index of the first chunk of each page.
    first: Vec<usize>,
    /// Byte range of each chunk.
    chunks: Vec<Range<usize>>,
}

impl Pages {
    /// Groups each chunk into a page of its own; a heading without text joins the next chunk. If that
    /// makes more than `max_pages`, chunks share pages as long as a page stays within `max_len`
    /// characters.
    pub(super) fn of(chunks: &[Chunk<'_>], max_len: usize, max_pages: usize) -> Self {
        let pages = |is_shared: bool| Self {
            first: first_of_pages(chunks, max_len, is_shared),
            chunks: chunks.iter().map(Chunk::range).collect(),
        };
        let apart = pages(false);
        if apart.first.len() > max_pages {
            pages(true)
        } else {
            apart
        }
    }

    /// Returns the number of pages.
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns the chunks of page number `page`.
    pub(super) fn chunks_of(&self, page: usize) -> Range<usize> {
        self.first[page]..self.first.get(page + 1).copied().unwrap_or(self.chunks.len())
    }

    /// Returns the page of chunk number `chunk`.
    pub(super) fn page_of(&self, chunk: usize) -> usize {
        self.first.partition_point(|first| *first <= chunk) - 1
    }

    /// Returns the byte range of each page, in order.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.len()).map(|page| {
            let chunks = &self.chunks[self.chunks_of(page)];
            chunks[0].start..chunks[chunks.len() - 1].end
        })
    }
}

fn first_of_pages(chunks: &[Chunk<'_>], max_len: usize, is_shared: bool) -> Vec<usize> {
    let mut first = Vec::new();
    let mut length = 0;
    let mut is_open = false;
    for (index, chunk) in chunks.iter().enumerate() {
        let added = chunk.text.chars().count();
        let joins = index > 0 && (is_shared || is_open) && length + added <= max_len;
        if !joins {
            first.push(index);
            length = 0;
        }
        length += added;
        is_open = is_only_heading(chunk);
    }
    first
}

/// Returns `true` if the chunk is a heading without text.
fn is_only_heading(chunk: &Chunk<'_>) -> bool {
    chunk.level > 0 && chunk.part == 0 && chunk.text.trim_ascii().lines().count() == 1
}
