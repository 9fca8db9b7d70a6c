//! Turns pages into Markdown for language models: HTML, whole or its main content alone, and the
//! text layer of PDF documents (feature `pdf`).
//!
//! The functions are made for documents of strangers: they work in bounded time and memory, without
//! recursion, and say whether a document was cut.
//!
//! ```
//! use rockbot_pages::main_content;
//!
//! let html = "<title>Cats</title><nav><a href='/'>Home</a></nav><main><h1>Cats</h1>\
//!     <p>A cat sleeps for most of the day, and for most of the night as well.</p></main>";
//! assert!(main_content(html, None).markdown.starts_with("# Cats\n\nA cat sleeps"));
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod html;
#[cfg(feature = "pdf")]
#[cfg_attr(docsrs, doc(cfg(feature = "pdf")))]
pub mod pdf;

pub use html::{MainContent, html_to_markdown, main_content, plain_text};
