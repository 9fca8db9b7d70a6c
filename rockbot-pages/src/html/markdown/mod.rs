//! Conversion of a tree into Markdown.
//!
//! A [`Writer`] is driven by one walk over the tree: elements that begin or end a block flush the
//! text of the line so far, and lists and quotes are a stack of prefixes in front of each line.
//! Tables and code are collected apart, in [`table`] and [`code`].

mod code;
mod elements;
mod inline;
mod lines;
mod table;

use url::Url;

use super::blocks::is_block;
use super::dom::{Dom, Element, NodeData, NodeId, Step, Walk};
use super::{noise, one_line};
use elements::is_anchor_of_heading;
use inline::{Inline, Mark};
use lines::{Lines, Prefix};
use table::Table;

/// Maximum length of a link, in bytes. Of a longer link, the text alone stays.
pub(super) const MAX_LINK: usize = 2_048;

/// Returns the Markdown of `root` and everything below it, and whether its end is missing, since
/// it would be longer than `max` bytes. Relative links are below `base`.
pub(crate) fn markdown(dom: &Dom, root: NodeId, base: Option<&Url>, max: usize) -> (String, bool) {
    let mut writer = Writer {
        dom,
        base,
        inline: Inline::default(),
        lines: Lines::new(max),
        lists: Vec::new(),
        heading: None,
        table: None,
        quotes: Vec::new(),
    };
    let mut walk = dom.walk(root);
    while writer.len() <= max
        && let Some(step) = walk.next()
    {
        match step {
            Step::Enter(id) => writer.enter(id, &mut walk),
            Step::Leave(id) => writer.leave(id),
        }
    }
    writer.finish()
}

struct Writer<'d> {
    dom: &'d Dom,
    base: Option<&'d Url>,
    inline: Inline,
    lines: Lines,
    /// The open lists: the number of the next item, or `None` for bullets.
    lists: Vec<Option<u32>>,
    /// The level of the open heading.
    heading: Option<usize>,
    /// The open table of data.
    table: Option<Table>,
    quotes: Vec<NodeId>,
}

impl Writer<'_> {
    /// Returns the size of the written text, in bytes.
    fn len(&self) -> usize {
        self.lines.len() + self.inline.len() + self.table.as_ref().map_or(0, Table::len)
    }

    fn finish(mut self) -> (String, bool) {
        if let Some(id) = self.table.as_ref().map(Table::id) {
            self.leave_table(id);
        }
        self.flush();
        self.lines.finish()
    }

    fn enter(&mut self, id: NodeId, walk: &mut Walk<'_>) {
        let element = match &self.dom[id].data {
            NodeData::Text(text) => return self.inline.text(text),
            NodeData::Element(element) => element,
        };
        let name = &*element.name;
        if noise::is_never_text(name) {
            return walk.skip_children();
        }
        match name {
            "br" => self.inline.line_break(),
            "hr" => {
                self.flush();
                self.block("* * *");
            }
            "img" => self.image(element),
            "pre" if self.table.is_none() => {
                self.flush();
                let fence = code::fenced(self.dom, id);
                if !fence.is_empty() {
                    self.lines.block(&fence);
                }
                walk.skip_children();
            }
            "math" => {
                self.inline.text(&code::math(self.dom, id));
                walk.skip_children();
            }
            "input" if element.text_of("type") == "checkbox" => {
                self.inline.text(if element.attribute("checked").is_some() {
                    "[x] "
                } else {
                    "[ ] "
                });
            }
            "table" => self.enter_table(id),
            "a" if is_anchor_of_heading(self.dom, id, element) => walk.skip_children(),
            _ => self.enter_styled(element, id),
        }
    }

    fn enter_styled(&mut self, element: &Element, id: NodeId) {
        match &*element.name {
            "a" => {
                let target = self.link_target(element);
                self.inline.open(Mark::Link(target));
            }
            "b" | "strong" => self.inline.open(Mark::Strong),
            "i" | "em" | "cite" | "dfn" => self.inline.open(Mark::Emphasis),
            "del" | "s" | "strike" => self.inline.open(Mark::Deleted),
            "code" | "kbd" | "samp" | "tt" | "pre" => self.inline.open(Mark::Code),
            "q" => self.inline.text("\""),
            "td" | "th" if self.table.is_some() => self.enter_cell(element, id),
            _ if !is_block(&element.name) => {}
            _ => self.enter_block(element, id),
        }
    }

    fn enter_block(&mut self, element: &Element, id: NodeId) {
        self.flush();
        if self.table.is_some() {
            return;
        }
        match &*element.name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading = element.name[1..].parse().ok(),
            "ul" | "menu" | "dir" => self.enter_list(None),
            "ol" => self.enter_list(Some(element.text_of("start").parse().unwrap_or(1))),
            "li" => self.enter_item(),
            "dd" => self.lines.push(Prefix::item(": ")),
            "blockquote" => {
                self.quotes.push(id);
                self.lines.push(Prefix::Quote);
            }
            _ => {}
        }
    }

    fn enter_list(&mut self, first: Option<u32>) {
        self.lists.push(first);
    }

    fn enter_item(&mut self) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        self.lines.push(Prefix::item(&marker));
    }

    fn leave(&mut self, id: NodeId) {
        let Some(element) = self.dom.element(id) else { return };
        match &*element.name {
            "a" | "b" | "strong" | "i" | "em" | "cite" | "dfn" | "del" | "s" | "strike" | "code" | "kbd" | "samp"
            | "tt" => {
                self.inline.close();
            }
            "pre" => self.inline.close(),
            "q" => self.inline.text("\""),
            "table" => self.leave_table(id),
            "tr" | "td" | "th" if self.table.is_some() => self.leave_cell(&element.name, id),
            name if is_block(name) => self.leave_block(name, id),
            _ => {}
        }
    }

    fn leave_block(&mut self, name: &str, id: NodeId) {
        self.flush();
        if self.table.is_some() {
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading = None,
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
            }
            "li" | "dd" => self.lines.pop(),
            "blockquote" if self.quotes.last() == Some(&id) => {
                self.quotes.pop();
                self.lines.pop();
            }
            _ => {}
        }
    }

    fn enter_table(&mut self, id: NodeId) {
        self.flush();
        if self.table.is_none() && table::is_data(self.dom, id) {
            self.table = Some(Table::new(id));
        }
    }

    fn enter_cell(&mut self, element: &Element, id: NodeId) {
        if let Some(table) = &mut self.table
            && table.is_own(self.dom, id)
        {
            let span = |name: &str| element.text_of(name).trim().parse().unwrap_or(1);
            let before = self.inline.take();
            table.begin_cell(&before, span("colspan"), span("rowspan"));
        }
    }

    fn leave_cell(&mut self, name: &str, id: NodeId) {
        if let Some(table) = &mut self.table
            && table.is_own(self.dom, id)
        {
            match name {
                "tr" => table.end_row(),
                _ => table.end_cell(&self.inline.take()),
            }
        } else {
            self.inline.text(" ");
        }
    }

    fn leave_table(&mut self, id: NodeId) {
        match self.table.take() {
            Some(mut table) if table.id() == id => {
                table.rest(&self.inline.take());
                let (caption, rows) = table.written();
                self.block(&caption);
                self.block(&rows);
            }
            other => {
                self.table = other;
                self.flush();
            }
        }
    }

    /// Ends the block of text so far. In a table, a block is a part of its cell.
    fn flush(&mut self) {
        if self.table.is_some() {
            return self.inline.line_break();
        }
        let text = self.inline.take();
        match self.heading {
            Some(level) if !text.is_empty() => {
                let line = text.replace('\n', " ");
                self.lines.block(&format!("{} {line}", &"######"[..level.clamp(1, 6)]));
            }
            _ => self.block(&inline::escaped_start(&text)),
        }
    }

    fn block(&mut self, text: &str) {
        if !text.is_empty() {
            self.lines.block(text);
        }
    }

    fn image(&mut self, element: &Element) {
        let is_pixel = |name: &str| matches!(element.text_of(name), "0" | "1" | "0px" | "1px");
        let alt = one_line(element.text_of("alt"));
        if is_pixel("width") || is_pixel("height") {
            return;
        }
        let source = [element.text_of("src"), element.text_of("data-src")];
        let source = source
            .into_iter()
            .filter(|source| !source.is_empty())
            .find_map(|source| self.resolved(source));
        match source {
            Some(source) => self.inline.image(&alt, &source),
            None => self.inline.text(&alt),
        }
    }

    fn link_target(&self, element: &Element) -> Option<String> {
        self.resolved(element.attribute("href")?.trim())
    }

    /// Returns an absolute URL, or `None` for a URL that is too long or leads to no other document,
    /// such as a script.
    fn resolved(&self, reference: &str) -> Option<String> {
        if reference.is_empty() {
            return None;
        }
        let url = match self.base {
            Some(base) => base.join(reference).ok(),
            None => Url::parse(reference).ok(),
        };
        let text = match url {
            Some(url) if matches!(url.scheme(), "http" | "https" | "mailto" | "tel" | "ftp") => url.to_string(),
            Some(_) => return None,
            // Without a base, a relative reference stays as it is.
            None if self.base.is_none() && !reference.contains(':') => reference.replace([' ', '\n', '\t'], "%20"),
            None => return None,
        };
        let text = text.replace('(', "%28").replace(')', "%29");
        (text.len() <= MAX_LINK).then_some(text)
    }
}
