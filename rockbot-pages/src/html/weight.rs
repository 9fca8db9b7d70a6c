//! The weight of each part of a page: its text, its links, and its signs of content.

use super::dom::{Dom, NodeData, NodeId};
use super::noise;

/// The texts below each node, in bytes without white space.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    pub(super) text: usize,
    pub(super) links: usize,
    /// Number of links.
    pub(super) anchors: usize,
    /// Text that counts as content.
    pub(super) good: usize,
}

/// Returns the weights of all nodes. Children stand behind their parents, so one pass from the
/// end adds them up.
pub(super) fn weigh(dom: &Dom) -> Vec<Weight> {
    let mut weights = vec![Weight::default(); dom.len()];
    for id in dom.ids().rev() {
        if dom[id].is_dropped {
            weights[id.index()] = Weight::default();
            continue;
        }
        match &dom[id].data {
            NodeData::Text(text) => {
                let length = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
                weights[id.index()].text = length;
            }
            NodeData::Element(element) => {
                let own = &mut weights[id.index()];
                match &*element.name {
                    "a" => (own.links, own.anchors) = (own.text, usize::from(own.text > 0)),
                    "p" | "pre" | "blockquote" | "td" | "dd" | "li" | "h1" | "h2" | "h3" => {
                        own.good = own.good.max(own.text - own.links.min(own.text));
                    }
                    "div" | "section" | "article" | "main" => {
                        own.good = own.good.max(direct_text(dom, id));
                    }
                    _ => {}
                }
            }
        }
        let own = weights[id.index()];
        if !noise::is_document(id) {
            let parent = &mut weights[dom[id].parent.index()];
            parent.text += own.text;
            parent.links += own.links;
            parent.anchors += own.anchors;
            parent.good += own.good;
        }
    }
    weights
}

/// Returns the length of the text that stands in the element itself, or in inline elements of it.
fn direct_text(dom: &Dom, id: NodeId) -> usize {
    let own = dom.children(id).filter_map(|child| match &dom[child].data {
        NodeData::Text(text) => Some(text.trim().len()),
        NodeData::Element(_) => None,
    });
    own.sum()
}
