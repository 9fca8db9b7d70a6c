//! The elements that are blocks: the only table of them, for the parser and for the converter.

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// It ends a paragraph that is open.
    Flow,
    /// It stands in a structure of its own, such as a table, or around everything.
    Part,
}

fn block_of(name: &str) -> Option<Block> {
    match name {
        "address" | "article" | "aside" | "blockquote" | "center" | "dd" | "details" | "dialog" | "dir" | "div"
        | "dl" | "dt" | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5"
        | "h6" | "header" | "hgroup" | "hr" | "li" | "main" | "menu" | "nav" | "ol" | "p" | "pre" | "search"
        | "section" | "summary" | "table" | "ul" => Some(Block::Flow),
        "body" | "caption" | "html" | "legend" | "optgroup" | "option" | "tbody" | "td" | "tfoot" | "th" | "thead"
        | "tr" => Some(Block::Part),
        _ => None,
    }
}

/// Returns `true` for an element that begins and ends a block.
pub(super) fn is_block(name: &str) -> bool {
    block_of(name).is_some()
}

/// Returns `true` for an element that ends a paragraph.
pub(super) fn ends_paragraph(name: &str) -> bool {
    block_of(name) == Some(Block::Flow)
}
