//! Documents in PDF: their text layer, page by page.
//!
//! The reader is made for documents of strangers. It knows as little of PDF as text needs,
//! follows no table, and pays for each byte that it reads or decompresses from one
//! `Budget`; a document that takes more is read up to there. `file` finds the
//! objects, `pages` their order, `content` runs the program of each page, `font` knows the
//! meaning of its codes, `layout` puts the pieces of a page together, and `document_text` the
//! pages.

mod accents;
mod budget;
mod cmap;
mod collection;
mod content;
mod document_text;
mod encoding;
mod file;
mod filters;
mod font;
mod layout;
mod object;
mod pages;
mod syntax;
#[cfg(test)]
mod tests;

use budget::Budget;
use content::{Fonts, Interpreter};
use document_text::DocumentText;
use file::File;
use layout::{Layout, PageText};
use object::Object;
use pages::Page;

/// Maximum size of the text of a document, in bytes.
const MAX_TEXT: usize = 2 << 20;

/// Number of bytes at the beginning of a document that may hold its mark.
const HEAD: usize = 1024;

/// The text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdfText {
    /// The title. Empty if the document has none.
    pub title: String,
    /// The text, with a heading for each page.
    pub markdown: String,
    /// `true` if the document exceeds the bounds of the reader, and its end is missing.
    pub is_cut: bool,
}

/// The reason why a document has no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PdfError {
    /// The bytes do not begin like a PDF.
    #[error("the document is not a PDF, though the server says so")]
    NotAPdf,
    /// The document is encrypted.
    #[error("the PDF is encrypted, and cannot be read: look for its text elsewhere")]
    Encrypted,
    /// No page was found.
    #[error("the PDF is damaged: none of its pages was found")]
    NoPages,
    /// The pages are images.
    #[error("this PDF has no text layer, its pages are images: look for its text elsewhere")]
    NoText,
    /// The fonts do not say which characters their codes mean.
    #[error("the fonts of this PDF do not say which characters its text has: look for its text elsewhere")]
    UnknownCharacters,
    /// The end of the document is missing, and with it next to all of its text.
    #[error(
        "only the first {read} bytes of the PDF were read, with next to nothing of its text: look for its text elsewhere"
    )]
    Cut {
        /// Number of bytes that were read.
        read: usize,
    },
    /// The document exceeds the work that the reader does.
    #[error("the PDF takes too much work to read: look for its text elsewhere")]
    TooLarge,
}

/// Returns `true` if the bytes begin like a PDF.
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(HEAD)]
        .windows(5)
        .any(|window| window == b"%PDF-")
}

/// Reads the text of a document. It takes time: it is called on a thread for blocking work. With
/// `is_cut`, the end of the document is missing.
///
/// # Errors
///
/// Returns an error if no page has text that can be read, or next to none of an incomplete
/// document.
pub fn read(bytes: &[u8], is_cut: bool) -> Result<PdfText, PdfError> {
    read_within(bytes, is_cut, &Budget::new(budget::MAX_WORK))
}

fn read_within(bytes: &[u8], is_cut: bool, budget: &Budget) -> Result<PdfText, PdfError> {
    if !is_pdf(bytes) {
        return Err(PdfError::NotAPdf);
    }
    let file = File::new(bytes, budget);
    if file.is_encrypted {
        return Err(PdfError::Encrypted);
    }
    let pages = pages::pages(&file);
    let mut text = DocumentText::new(is_cut);
    let mut fonts = Fonts::new();
    for page in &pages {
        if budget.left() == 0 || text.markdown.len() >= MAX_TEXT {
            break;
        }
        let page = text_of(*page, &file, &mut fonts, MAX_TEXT - text.markdown.len());
        if page.characters == 0 && budget.left() == 0 {
            break;
        }
        text.add(&page);
    }
    text.end_gap();
    if text.is_readable() {
        let read = text.pages;
        return Ok(PdfText {
            title: title(&file),
            markdown: text.markdown,
            is_cut: is_cut || read < pages.len() || pages.len() == pages::MAX_PAGES || budget.is_exceeded(),
        });
    }
    Err(match text {
        _ if budget.is_exceeded() => PdfError::TooLarge,
        _ if is_cut => PdfError::Cut { read: bytes.len() },
        text if text.has_unknown => PdfError::UnknownCharacters,
        _ if pages.is_empty() => PdfError::NoPages,
        _ => PdfError::NoText,
    })
}

/// Returns up to `max` bytes of the text of a page, with what is written into its forms.
fn text_of(page: Page, file: &File<'_>, fonts: &mut Fonts, max: usize) -> PageText {
    let mut layout = Layout::new(max);
    let resources = page.resources(file);
    Interpreter::new(file, fonts, &mut layout, &resources).run(&page.content(file));
    for annotation in page.annotations(file) {
        let annotation = file.resolve(&annotation);
        if let Some(annotation) = annotation.as_deref().and_then(Object::dict) {
            Interpreter::new(file, fonts, &mut layout, &resources).annotate(annotation);
        }
    }
    if layout.is_full() {
        file.budget.exceed();
    }
    layout.finish()
}

/// Returns the title that the document states, in one line.
fn title(file: &File<'_>) -> String {
    let information = file.entry(&file.trailer, "Info");
    let title = information
        .as_deref()
        .and_then(Object::dict)
        .and_then(|own| file.entry(own, "Title"));
    let title = title
        .as_deref()
        .and_then(Object::text)
        .map(encoding::text_string)
        .unwrap_or_default();
    let title: String = title
        .chars()
        .filter(|character| !character.is_control())
        .take(300)
        .collect();
    title.trim().to_owned()
}
