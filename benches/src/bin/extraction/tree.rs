//! A page as a browser's parser sees it, in one vector: the standard's tree builder, independent
//! of the converter.

use html5ever::tendril::TendrilSink;
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// An element or a text.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: usize,
    /// Number of the first node behind this one and everything below it.
    pub(crate) end: usize,
    /// Empty for a text.
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Node {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let own = self.attributes.iter().find(|(own, _)| own == name);
        own.map(|(_, value)| value.as_str())
    }

    /// Returns `true` if one of the alternatives of `selector`, such as `div.body, #top,
    /// [role=main]`, is this element.
    pub(crate) fn is(&self, selector: &str) -> bool {
        !self.name.is_empty() && selector.split(',').any(|one| self.is_one(one.trim()))
    }

    fn is_one(&self, selector: &str) -> bool {
        let starts = |c: char| matches!(c, '#' | '.' | '[');
        let (tag, mut rest) = selector.split_at(selector.find(starts).unwrap_or(selector.len()));
        let mut fits = !selector.is_empty() && (tag.is_empty() || tag == self.name);
        while let Some(kind) = rest.chars().next() {
            let part = &rest[1..];
            let end = part.find(starts).unwrap_or(part.len());
            let value = &part[..end];
            fits &= match kind {
                '#' => self.attribute("id") == Some(value),
                '.' => self
                    .attribute("class")
                    .is_some_and(|all| all.split_ascii_whitespace().any(|one| one == value)),
                _ => value
                    .trim_end_matches(']')
                    .split_once('=')
                    .is_some_and(|(name, set)| self.attribute(name) == Some(set)),
            };
            rest = &part[end..];
        }
        fits
    }
}

/// Parses a page. Parents stand before their children.
pub(crate) fn parse(html: &str) -> Vec<Node> {
    let dom = html5ever::parse_document(RcDom::default(), Default::default()).one(html);
    let mut nodes = Vec::new();
    append(&mut nodes, &dom.document, 0);
    nodes
}

/// The recursion is as deep as the page, and pages of documentation are not deep.
fn append(nodes: &mut Vec<Node>, handle: &Handle, parent: usize) {
    let number = nodes.len();
    let (name, attributes, text) = match &handle.data {
        NodeData::Text { contents } => (String::new(), Vec::new(), contents.borrow().to_string()),
        NodeData::Element { name, attrs, .. } => {
            let attributes = attrs
                .borrow()
                .iter()
                .map(|one| (one.name.local.to_string(), one.value.to_string()))
                .collect();
            (name.local.to_string(), attributes, String::new())
        }
        NodeData::Document => ("#document".to_owned(), Vec::new(), String::new()),
        _ => return,
    };
    nodes.push(Node {
        parent,
        end: 0,
        name,
        attributes,
        text,
    });
    for child in handle.children.borrow().iter() {
        append(nodes, child, number);
    }
    nodes[number].end = nodes.len();
}
