//! The words and parts of a page, and of its marked content.

use std::error::Error;

use url::Url;

use crate::marks::Mark;
use crate::score::{Parts, Words};
use crate::tree::{self, Node};

/// Elements whose text belongs to the line around them.
const INLINE: [&str; 28] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "kbd", "mark", "q",
    "s", "samp", "small", "span", "strong", "sub", "sup", "tt", "u", "var", "wbr", "del",
];

/// Elements without text for a reader.
const SILENT: [&str; 9] = [
    "script", "style", "template", "head", "noscript", "svg", "select", "textarea", "iframe",
];

/// A parsed page.
pub(crate) struct Source {
    nodes: Vec<Node>,
    base: Url,
}

/// A part of a page.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) words: Words,
    /// Words that may be kept and may be dropped.
    pub(crate) either: Words,
    pub(crate) parts: Parts,
}

impl Source {
    pub(crate) fn parse(html: &str, base: &Url) -> Self {
        let nodes = tree::parse(html);
        let base = base.clone();
        Self { nodes, base }
    }

    /// Returns the whole page.
    pub(crate) fn whole(&self) -> Content {
        self.content(&[0], "", "")
    }

    /// Returns the marked part of the page.
    pub(crate) fn marked(&self, mark: &Mark) -> Result<Content, Box<dyn Error>> {
        let main = mark.main.as_deref().ok_or("the page has no mark")?;
        let mut roots: Vec<usize> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            if node.is(main) && roots.last().is_none_or(|last| self.nodes[*last].end <= number) {
                roots.push(number);
            }
        }
        if roots.is_empty() {
            return Err(format!("{}: `{main}` selects nothing", mark.page).into());
        }
        Ok(self.content(&roots, &mark.without, &mark.either))
    }

    fn content(&self, roots: &[usize], without: &str, either: &str) -> Content {
        let mut content = Content::default();
        let mut text = String::new();
        let mut free = String::new();
        for root in roots {
            let mut at = *root;
            let mut optional = 0;
            while at < self.nodes[*root].end {
                let node = &self.nodes[at];
                let is_optional = at < optional;
                if SILENT.contains(&node.name.as_str()) || node.is(without) {
                    at = node.end;
                    continue;
                }
                if !is_optional && node.is(either) {
                    optional = node.end;
                } else if !is_optional && !node.name.is_empty() {
                    content.parts.take(&self.nodes, at, &self.base);
                }
                // A text in a block begins a word, also behind one that ended; one in a line does not.
                if !node.name.is_empty() && !INLINE.contains(&node.name.as_str()) || self.ends_block(at) {
                    text.push(' ');
                    free.push(' ');
                }
                let out = if at < optional { &mut free } else { &mut text };
                out.push_str(&node.text);
                at += 1;
            }
        }
        content.words = Words::of(&text);
        content.either = Words::of(&free);
        content
    }

    /// Returns `true` if a block ends before the node.
    fn ends_block(&self, at: usize) -> bool {
        let mut before = at.saturating_sub(1);
        while before > 0 && self.nodes[before].end <= at {
            let name = self.nodes[before].name.as_str();
            if !name.is_empty() && !INLINE.contains(&name) {
                return true;
            }
            before = self.nodes[before].parent;
        }
        false
    }
}
