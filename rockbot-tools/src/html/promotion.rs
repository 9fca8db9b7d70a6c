//! Lines and sections inside an article that lead to other articles: "Read also", "Lea también", "Ähnliche Beiträge".

use super::dom::{Dom, NodeId};
use super::main_content::Weight;

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
    "más noticias",
    "mehr aus",
    "mehr themen",
    "mehr zum thema",
    "mire también",
    "mira también",
    "mira:",
    "more from",
    "more on this",
    "more stories",
    "most read",
    "newsletter",
    "noticias relacionadas",
    "puede interesar",
    "le puede interesar",
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

/// Drops such lines, and such headings with what is below them. Returns what it dropped.
pub(super) fn drop_promotions(dom: &mut Dom, weights: &[Weight], root: NodeId) -> Vec<NodeId> {
    let mut dropped = Vec::new();
    for id in dom.ids().skip(root.index() + 1).collect::<Vec<_>>() {
        let weight = weights[id.index()];
        let is_short = 0 < weight.text && weight.text < LINE;
        if !is_short || dom[id].is_dropped || !is_line(dom, id) || !has_label(&dom.text(id)) {
            continue;
        }
        let section = if weight.text < HEADING { section_of(dom, id) } else { Vec::new() };
        let of_links: usize = section.iter().map(|id| weights[id.index()].links).sum();
        let of_text: usize = section.iter().map(|id| weights[id.index()].text).sum();
        let is_line_of_links = weight.links as f64 >= LINKS * weight.text as f64;
        if of_text > 0 && of_links as f64 >= LINKS * of_text as f64 {
            dropped.extend(section);
            dropped.push(id);
        } else if is_line_of_links && of_text == 0 {
            dropped.push(id);
        }
    }
    dropped.iter().for_each(|id| dom[*id].is_dropped = true);
    dropped
}

fn is_line(dom: &Dom, id: NodeId) -> bool {
    matches!(dom.name(id), "p" | "div" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" | "strong")
}

fn has_label(text: &str) -> bool {
    let start: String = text.trim_start_matches(|c: char| !c.is_alphabetic()).chars().take(40).collect();
    let start = start.to_lowercase();
    LABELS.iter().any(|label| start.starts_with(label))
}

/// Returns the siblings behind a heading, up to the next one. Only headings have a section.
fn section_of(dom: &Dom, heading: NodeId) -> Vec<NodeId> {
    let level = |id: NodeId| match dom.name(id).as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(*digit),
        _ => None,
    };
    let Some(own) = level(heading) else { return Vec::new() };
    let after = std::iter::successors(dom[heading].next, |id| dom[*id].next);
    after.take_while(|id| level(*id).is_none_or(|other| other > own)).take(64).collect()
}
