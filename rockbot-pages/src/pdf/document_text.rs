//! The text of a document, from the texts of its pages.

use super::layout::PageText;

/// Minimum length of the text of a document that is incomplete, in bytes, unless one page in ten
/// has text.
const MIN_TEXT: usize = 1_000;

/// The text of a document while it is put together.
#[derive(Debug)]
pub(super) struct DocumentText {
    pub(super) markdown: String,
    /// Number of pages.
    pub(super) pages: usize,
    /// `true` if a page has characters that the document does not make known.
    pub(super) has_unknown: bool,
    /// `true` if the end of the document is missing.
    is_cut: bool,
    /// Number of pages with text.
    with_text: usize,
    /// Number of bytes of text.
    size: usize,
    /// The first of the last pages of an incomplete document, if no text was found on them.
    gap: Option<usize>,
}

impl DocumentText {
    /// Creates the text of a document without pages.
    pub(super) fn new(is_cut: bool) -> Self {
        Self {
            markdown: String::new(),
            pages: 0,
            has_unknown: false,
            is_cut,
            with_text: 0,
            size: 0,
            gap: None,
        }
    }

    /// Appends a page. Of an incomplete document, pages without text become one gap: their text may
    /// be in the missing part.
    pub(super) fn add(&mut self, page: &PageText) {
        self.pages += 1;
        if self.is_cut && page.characters == 0 {
            self.gap.get_or_insert(self.pages);
            return;
        }
        self.end_gap_before(self.pages);
        self.has_unknown |= page.lost > 0;
        self.with_text += usize::from(!page.text.is_empty());
        self.size += page.text.len();
        let unknown = match page.lost {
            0 if page.characters == 0 => "(This page has no text layer.)".to_owned(),
            0 => String::new(),
            lost => {
                let all = page.characters;
                format!(
                    "({lost} of the {all} characters of this page are left out: its fonts do not say which they are.)"
                )
            }
        };
        let space = if page.text.is_empty() || unknown.is_empty() {
            ""
        } else {
            "\n\n"
        };
        let heading = self.pages;
        self.markdown
            .push_str(&format!("## Page {heading}\n\n{}{space}{unknown}\n\n", page.text));
    }

    /// Writes that the last pages have no text, if it is so.
    pub(super) fn end_gap(&mut self) {
        self.end_gap_before(self.pages + 1);
    }

    fn end_gap_before(&mut self, next: usize) {
        let Some(first) = self.gap.take() else { return };
        let last = next - 1;
        let heading = if first == last {
            format!("Page {last}")
        } else {
            format!("Pages {first} to {last}")
        };
        self.markdown.push_str(&format!(
            "## {heading}\n\n(No text was found in the part of the document that was read.)\n\n"
        ));
    }

    /// Returns `true` if there is text, and more than next to none of an incomplete document.
    pub(super) fn is_readable(&self) -> bool {
        let is_enough = !self.is_cut || self.size >= MIN_TEXT || self.with_text * 10 >= self.pages;
        self.with_text > 0 && is_enough
    }
}
