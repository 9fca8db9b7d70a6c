//! The main content of a page: its articles without the parts around them.
//!
//! Parts that are hidden, or whose names say that they are no content (navigation, footers,
//! banners), are dropped first. The rest is weighed: text in paragraphs, lists, tables and code
//! counts, text of links does not. The root of the content is the deepest element that still
//! holds most of that weight. Inside of it, blocks that are mostly links are dropped. If too
//! little would be left of a page, the page keeps everything that is shown.

use super::blocks::is_block;
use super::dom::{DOCUMENT, Dom, NodeId};
use super::lead::with_lead;
use super::noise::{self, Kind, kind_of};
use super::promotion::drop_promotions;
use super::weight::{Weight, weigh};

/// Share of the weight that the root of the content holds.
const MOST: f64 = 0.85;

/// Share of the weight that an element holds which says that it is the content.
const MARKED: f64 = 0.5;

/// Share of a page's text that a suspect part may hold. A larger part is the content, whatever it
/// is called.
const SUSPECT_SHARE: f64 = 0.4;

/// Share of text in links above which a block is navigation.
const LINKS: f64 = 0.6;

/// Mean length of the links that are words and not titles, in bytes without white space.
const WORDS: usize = 24;

/// Maximum number of links of a block that text around it explains.
const FEW: usize = 4;

/// Minimum length of the content, in bytes. If less would be left of a page, the page keeps
/// everything that is shown.
const MIN_CONTENT: usize = 140;

/// Drops everything that is not the main content, and returns its root.
pub(super) fn find(dom: &mut Dom) -> NodeId {
    noise::drop_hidden(dom);
    let body = dom.find("body").unwrap_or(DOCUMENT);
    let all = weigh(dom)[body.index()];
    let dropped = drop_frames(dom, all.text);
    let weights = weigh(dom);
    let left = weights[body.index()];
    if left.text < MIN_CONTENT && left.text < all.text / 2 {
        restore(dom, &dropped);
        return body;
    }
    let root = root_of(dom, &weights, body);
    let mut dropped = drop_link_blocks(dom, &weights, root);
    dropped.extend(drop_promotions(dom, &weights, root));
    let kept = weigh(dom)[root.index()].text;
    if kept < MIN_CONTENT && kept < left.text / 2 {
        restore(dom, &dropped);
        return body;
    }
    if root == body {
        root
    } else {
        with_lead(dom, &weights, root)
    }
}

fn restore(dom: &mut Dom, dropped: &[NodeId]) {
    for id in dropped {
        dom[*id].is_dropped = false;
    }
}

/// Drops the parts that say that they are no content. Returns them.
fn drop_frames(dom: &mut Dom, all: usize) -> Vec<NodeId> {
    let weights = weigh(dom);
    let mut dropped = Vec::new();
    for id in dom.ids().collect::<Vec<_>>() {
        if dom[id].is_dropped || dom.ancestors(id).take(2).any(|parent| dom[parent].is_dropped) {
            continue;
        }
        let share = weights[id.index()].text as f64 / all.max(1) as f64;
        let good = weights[id.index()].good as f64 / weights[DOCUMENT.index()].good.max(1) as f64;
        let is_dropped = match kind_of(dom, id) {
            Kind::Frame => good < 0.8,
            Kind::Suspect => share < SUSPECT_SHARE && good < SUSPECT_SHARE,
            Kind::Content | Kind::Plain => false,
        };
        if is_dropped {
            dom[id].is_dropped = true;
            dropped.push(id);
        }
    }
    dropped
}

/// Returns the deepest element that holds most of the content.
fn root_of(dom: &Dom, weights: &[Weight], body: NodeId) -> NodeId {
    let total = weights[body.index()].good as f64;
    let mut marked = dom.ids().filter(|id| is_shown(dom, *id)).filter(|id| {
        let is_marked = kind_of(dom, *id) == Kind::Content || matches!(dom.name(*id), "article" | "main");
        is_marked && weights[id.index()].good as f64 >= MARKED * total
    });
    // The last marked element is the innermost. Half of the weight is enough for it: an introduction
    // may stand apart from the text.
    let marked = marked.next_back();
    if let Some(root) = marked.filter(|root| dom.name(*root) != "main") {
        return root;
    }
    let mut root = marked.unwrap_or(body);
    let enough = weights[root.index()].good as f64 * MOST;
    loop {
        let heaviest = dom.children(root).max_by_key(|child| weights[child.index()].good);
        let Some(child) = heaviest.filter(|child| weights[child.index()].good as f64 >= enough) else {
            break;
        };
        let is_container = matches!(
            dom.name(child),
            "div"
                | "section"
                | "article"
                | "main"
                | "body"
                | "table"
                | "tbody"
                | "tr"
                | "td"
                | "center"
                | "form"
                | "html"
                | "font"
                | "span"
        );
        if !is_container || !holds_blocks(dom, child) {
            break;
        }
        root = child;
    }
    root
}

fn is_shown(dom: &Dom, id: NodeId) -> bool {
    !dom[id].is_dropped && !dom.ancestors(id).any(|parent| dom[parent].is_dropped)
}

fn holds_blocks(dom: &Dom, id: NodeId) -> bool {
    dom.children(id).any(|child| is_block(dom.name(child)))
}

/// Drops the blocks below `root` that are mostly links, such as lists of other articles.
fn drop_link_blocks(dom: &mut Dom, weights: &[Weight], root: NodeId) -> Vec<NodeId> {
    let total = weights[root.index()].text.max(1);
    let mut dropped = Vec::new();
    for id in dom.ids().collect::<Vec<_>>() {
        let is_candidate = matches!(
            dom.name(id),
            "div" | "section" | "ul" | "ol" | "table" | "p" | "dl" | "form"
        );
        if !is_candidate || id == root || id.index() < root.index() || dom[id].is_dropped {
            continue;
        }
        let weight = weights[id.index()];
        let density = weight.links as f64 / weight.text.max(1) as f64;
        let limit = match dom.name(id) {
            "p" => 0.95,
            "table" => 0.85,
            _ => LINKS,
        };
        let is_small = weight.text < total / 3;
        if weight.text > 0 && density > limit && is_small && !is_of_article(dom, weights, id) {
            dom[id].is_dropped = true;
            dropped.push(id);
            dropped.extend(drop_heading_of(dom, id));
        }
    }
    dropped
}

/// Drops the heading of a dropped block, unless something else follows under it.
fn drop_heading_of(dom: &mut Dom, id: NodeId) -> Option<NodeId> {
    let is_heading = |id: &NodeId| matches!(dom.name(*id), "h2" | "h3" | "h4" | "h5" | "h6");
    let heading = dom.element_before(id).filter(is_heading)?;
    let mut after = std::iter::successors(dom[id].next, |id| dom[*id].next).take(16);
    let follower = after.find(|id| !dom[*id].is_dropped && dom.element(*id).is_some());
    if follower.is_some_and(|follower| !is_heading(&follower)) {
        return None;
    }
    dom[heading].is_dropped = true;
    Some(heading)
}

/// Returns `true` for a list that an article's own text introduces, for a list of references, and
/// for words with links, such as "See also: `open`, `close`", in the middle of text: titles of
/// other articles are longer.
fn is_of_article(dom: &Dom, weights: &[Weight], id: NodeId) -> bool {
    let weight = weights[id.index()];
    let is_words = weight.links <= WORDS * weight.anchors;
    let parent = dom[id].parent;
    if is_words && matches!(dom.name(parent), "li" | "dd" | "td") {
        return true;
    }
    let siblings = weights[parent.index()];
    let rest = siblings.good.saturating_sub(weight.good);
    if is_words && weight.anchors <= FEW && rest > 2 * weight.text && dom.element_before(id).is_some() {
        return true;
    }
    let is_in_text = siblings.good > 3 * weight.text && siblings.text > 2 * weight.text;
    let is_introduced = dom
        .element_before(id)
        .is_some_and(|before| matches!(dom.name(before), "p" | "h2" | "h3" | "h4"));
    let is_list = matches!(dom.name(id), "ul" | "ol" | "table" | "dl" | "p");
    is_in_text && (is_introduced && is_list || is_words && is_between(dom, weights, id))
}

/// Returns `true` if there is text in the elements before and behind the node.
fn is_between(dom: &Dom, weights: &[Weight], id: NodeId) -> bool {
    let has_text = |id: NodeId| weights[id.index()].text > weights[id.index()].links;
    let mut after = std::iter::successors(dom[id].next, |id| dom[*id].next).take(16);
    dom.element_before(id).is_some_and(has_text) && after.any(|id| !dom[id].is_dropped && has_text(id))
}
