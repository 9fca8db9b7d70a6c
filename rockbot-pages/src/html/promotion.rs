//! Lines and sections inside an article that lead to other articles: "Read also", "Lea también",
//! "Ähnliche Beiträge".

use super::dom::{Dom, NodeData, NodeId, Step};
use super::weight::Weight;

/// Maximum length of such a heading, and of such a line, in bytes without white space.
const HEADING: usize = 80;
const LINE: usize = 250;

/// Share of a section that is links.
const LINKS: f64 = 0.4;

/// The beginnings of such texts, in lower case.
const LABELS: [&str; 79] = [
    "about the author",
    "aktuelle news",
    "also read",
    "articles liés",
    "articoli correlati",
    "artikel teilen",
    "artículos relacionados",
    "auch interessant",
    "auch lesen",
    "czytaj także",
    "czytaj też",
    "czytaj więcej",
    "das könnte",
    "diesen artikel teilen",
    "et vidéos sur le sujet",
    "follow us",
    "gerelateerd",
    "join our",
    "keep reading",
    "kommentierte artikel",
    "le puede interesar",
    "lea además",
    "lea más",
    "lea también",
    "lea:",
    "leave a comment",
    "leave a reply",
    "leer más",
    "lees meer",
    "lees ook",
    "leggi anche",
    "leia mais",
    "leia também",
    "lesen sie auch",
    "lesen sie hier",
    "lesen sie mehr",
    "lire aussi",
    "mehr aus",
    "mehr themen",
    "mehr zum thema",
    "mira también",
    "mira:",
    "mire también",
    "more from",
    "more on this",
    "more stories",
    "most read",
    "más noticias",
    "newsletter",
    "noticias relacionadas",
    "puede interesar",
    "read also",
    "read more",
    "read next",
    "recommended",
    "related articles",
    "related content",
    "related posts",
    "related stories",
    "related:",
    "share this",
    "sie könnten auch",
    "sign up",
    "subscribe",
    "sur le même sujet",
    "también te puede",
    "te puede interesar",
    "temas relacionados",
    "themen im artikel",
    "ti potrebbe interessare",
    "vea también",
    "veja também",
    "verwandte",
    "weitere aktuelle",
    "weitere artikel",
    "weitere beiträge",
    "you may also",
    "you might also",
    "ähnliche",
];

/// Drops such lines, and such headings with the content below them. Returns the dropped nodes.
pub(super) fn drop_promotions(dom: &mut Dom, weights: &[Weight], root: NodeId) -> Vec<NodeId> {
    let mut dropped = Vec::new();
    let are_links = |links: usize, text: usize| links as f64 >= LINKS * text as f64;
    for id in dom.ids().skip(root.index() + 1) {
        let weight = weights[id.index()];
        let is_short = 0 < weight.text && weight.text < LINE;
        if !is_short || dom[id].is_dropped || !is_line(dom, id) || !has_label(&start_of(dom, id)) {
            continue;
        }
        let section = if weight.text < HEADING {
            section_of(dom, id)
        } else {
            Vec::new()
        };
        let sum = |count: fn(&Weight) -> usize| section.iter().map(|id| count(&weights[id.index()])).sum();
        let links = sum(|weight| weight.links);
        let text = sum(|weight| weight.text);
        let is_promotion = match text {
            0 => are_links(weight.links, weight.text),
            text => are_links(links, text),
        };
        if is_promotion {
            dropped.extend(section);
            dropped.push(id);
        }
    }
    dropped.iter().for_each(|id| dom[*id].is_dropped = true);
    dropped
}

fn is_line(dom: &Dom, id: NodeId) -> bool {
    matches!(dom.name(id), "p" | "div" | "li" | "h2" | "h3" | "h4" | "h5" | "h6")
}

/// Returns the beginning of the text of a node. It looks at little of it, since white space may
/// be long.
fn start_of(dom: &Dom, id: NodeId) -> String {
    let texts = dom.walk(id).take(16).filter_map(|step| match step {
        Step::Enter(id) => match &dom[id].data {
            NodeData::Text(text) => Some(text),
            NodeData::Element(_) => None,
        },
        Step::Leave(_) => None,
    });
    let start = texts.flat_map(|text| text.chars().take(200));
    start.skip_while(|c| !c.is_alphabetic()).take(40).collect()
}

fn has_label(start: &str) -> bool {
    let start = start.to_lowercase();
    LABELS.iter().any(|label| start.starts_with(label))
}

/// Returns the siblings behind a heading, up to the next heading. Only headings have a section.
fn section_of(dom: &Dom, heading: NodeId) -> Vec<NodeId> {
    let level = |id: NodeId| match dom.name(id).as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(*digit),
        _ => None,
    };
    let Some(own) = level(heading) else { return Vec::new() };
    let after = std::iter::successors(dom[heading].next, |id| dom[*id].next);
    after
        .take_while(|id| level(*id).is_none_or(|other| other > own))
        .take(64)
        .collect()
}
