//! A page as a browser's parser sees it, independent of the converter: its words, headings, links, code, tables and items.

use std::collections::HashSet;
use std::error::Error;

use ego_tree::NodeId;
use ego_tree::iter::Edge;
use scraper::{ElementRef, Html, Node, Selector};
use url::Url;

use crate::marks::Mark;
use crate::score::{Parts, Words};

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
    html: Html,
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
        Self {
            html: Html::parse_document(html),
            base: base.clone(),
        }
    }

    /// Returns the whole page.
    pub(crate) fn whole(&self) -> Content {
        self.content(&[self.html.root_element()], &HashSet::new(), &HashSet::new())
    }

    /// Returns the marked part of the page.
    pub(crate) fn marked(&self, mark: &Mark) -> Result<Content, Box<dyn Error>> {
        let main = mark.main.as_deref().ok_or("the page has no mark")?;
        let roots = self.selected(main)?;
        if roots.is_empty() {
            return Err(format!("{}: `{main}` selects nothing", mark.page).into());
        }
        let ids = |selector: &str| -> Result<HashSet<NodeId>, Box<dyn Error>> {
            Ok(self.selected(selector)?.iter().map(|element| element.id()).collect())
        };
        Ok(self.content(&roots, &ids(&mark.without)?, &ids(&mark.either)?))
    }

    fn selected(&self, selector: &str) -> Result<Vec<ElementRef<'_>>, Box<dyn Error>> {
        if selector.is_empty() {
            return Ok(Vec::new());
        }
        let parsed = Selector::parse(selector).map_err(|error| format!("`{selector}`: {error}"))?;
        Ok(self.html.select(&parsed).collect())
    }

    fn content(&self, roots: &[ElementRef<'_>], without: &HashSet<NodeId>, either: &HashSet<NodeId>) -> Content {
        let (mut content, mut text, mut free) = (Content::default(), String::new(), String::new());
        for root in roots {
            let (mut left_out, mut optional) = (None, None);
            for edge in root.traverse() {
                match edge {
                    Edge::Open(node) if left_out.is_none() => match node.value() {
                        Node::Text(own) if optional.is_some() => free.push_str(own),
                        Node::Text(own) => text.push_str(own),
                        Node::Element(element) => {
                            let name = element.name();
                            if SILENT.contains(&name) || without.contains(&node.id()) {
                                left_out = Some(node.id());
                            } else if optional.is_none() && either.contains(&node.id()) {
                                optional = Some(node.id());
                            } else if optional.is_none()
                                && let Some(element) = ElementRef::wrap(node)
                            {
                                content.parts.take(element, &self.base);
                            }
                            if !INLINE.contains(&name) {
                                text.push(' ');
                                free.push(' ');
                            }
                        }
                        _ => {}
                    },
                    Edge::Close(node) => {
                        left_out = left_out.filter(|id| *id != node.id());
                        optional = optional.filter(|id| *id != node.id());
                        if !INLINE.contains(&ElementRef::wrap(node).map_or("", |element| element.value().name())) {
                            text.push(if node.value().is_element() { ' ' } else { '\u{200b}' });
                        }
                    }
                    Edge::Open(_) => {}
                }
            }
        }
        content.words = Words::of(&text);
        content.either = Words::of(&free);
        content
    }
}
