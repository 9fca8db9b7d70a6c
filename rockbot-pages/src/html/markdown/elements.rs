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
