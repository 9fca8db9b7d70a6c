//! Elements by the part that they have in a text.

use crate::html::dom::{Dom, Element, NodeId};

/// Returns `true` for a link beside a heading that leads to the heading itself.
pub(super) fn is_anchor_of_heading(dom: &Dom, id: NodeId, element: &Element) -> bool {
    let classes = [
        "headerlink",
        "anchor",
        "anchorjs-link",
        "anchor-link",
        "header-anchor",
        "hash-link",
        "mw-editsection",
    ];
    let is_marked = classes.iter().any(|class| element.has_class(class));
    if !is_marked && !element.text_of("href").starts_with('#') {
        return false;
    }
    let text = dom.text(id);
    matches!(
        text.trim(),
        "" | "#" | "¶" | "§" | "🔗" | "\u{f0c1}" | "link" | "Link" | "Permalink"
    )
}

/// Returns `true` for an element that begins and ends a block.
pub(crate) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "html"
            | "legend"
            | "li"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "option"
            | "optgroup"
            | "p"
            | "pre"
            | "section"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
    )
}
