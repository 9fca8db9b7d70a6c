//! The parts of an article before its text: the heading and the introduction.

use std::collections::BTreeSet;

use super::dom::{DOCUMENT, Dom, NodeId, Step};
use super::noise;
use super::weight::Weight;

/// Minimum and maximum length of an introduction, in bytes without white space.
const LENGTH: std::ops::Range<usize> = 40..1_500;

/// Maximum number of parts of an introduction.
const MAX_PARTS: usize = 16;

/// Share of an introduction that may be links.
const LINKS: f64 = 0.4;

/// Returns the element that holds the article with its heading and introduction. The other parts
/// of the element are dropped.
pub(super) fn with_lead(dom: &mut Dom, weights: &[Weight], root: NodeId) -> NodeId {
    let is_heading = |dom: &Dom, id: NodeId| dom.name(id) == "h1";
    let mut inside = dom.walk(root);
    if inside.any(|step| matches!(step, Step::Enter(id) if is_heading(dom, id))) {
        return root;
    }
    let before: Vec<NodeId> = shown_before(dom, root);
    let heading = before.iter().copied().rfind(|id| is_heading(dom, *id));
    let mut kept: Vec<NodeId> = heading.into_iter().collect();
    for id in before
        .into_iter()
        .filter(|id| heading.is_none_or(|heading| *id > heading))
    {
        let is_in_kept = dom.ancestors(id).any(|parent| kept.contains(&parent));
        if kept.len() < MAX_PARTS && !is_in_kept && is_lead(dom, weights, id, heading.is_some()) {
            kept.push(id);
        }
    }
    if kept.is_empty() {
        return root;
    }
    kept.push(root);
    keep_only(dom, &kept)
}

/// Returns the elements that begin before `root`, do not contain it, and are not dropped.
fn shown_before(dom: &Dom, root: NodeId) -> Vec<NodeId> {
    let around: Vec<NodeId> = dom.ancestors(root).collect();
    let top = around.last().copied().unwrap_or(root);
    let walk = dom.walk(top).map_while(|step| match step {
        Step::Enter(id) if id == root => None,
        Step::Enter(id) => Some(Some(id).filter(|id| dom.element(*id).is_some())),
        Step::Leave(_) => Some(None),
    });
    walk.flatten().filter(|id| !around.contains(id)).collect()
}

fn is_lead(dom: &Dom, weights: &[Weight], id: NodeId, is_under_heading: bool) -> bool {
    let weight = weights[id.index()];
    let is_text = LENGTH.contains(&weight.text) && (weight.links as f64) < LINKS * weight.text as f64;
    let is_paragraph = is_under_heading && matches!(dom.name(id), "p" | "h2");
    is_text && (is_paragraph || dom.element(id).is_some_and(noise::is_lead))
}

/// Drops everything but `kept` below their nearest common ancestor, and returns it.
fn keep_only(dom: &mut Dom, kept: &[NodeId]) -> NodeId {
    let path = |id: &NodeId| -> Vec<NodeId> {
        let mut path: Vec<_> = dom.ancestors(*id).collect();
        path.push(DOCUMENT);
        path.reverse();
        path
    };
    let paths: Vec<Vec<NodeId>> = kept.iter().map(path).collect();
    let shortest = paths.iter().map(Vec::len).min().unwrap_or(1);
    let common = (1..shortest).take_while(|at| paths.iter().all(|path| path[*at] == paths[0][*at]));
    let depth = common.count();
    // The common ancestor, and all elements between it and the kept elements.
    let between: BTreeSet<NodeId> = paths.iter().flat_map(|path| path[depth..].iter().copied()).collect();
    for parent in &between {
        for child in dom.children(*parent).collect::<Vec<_>>() {
            dom[child].is_dropped = !kept.contains(&child) && !between.contains(&child);
        }
    }
    paths[0][depth]
}
