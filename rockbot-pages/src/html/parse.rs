//! Parsing of a page into a [`Dom`], with bounds for pages that are made to be slow.
//!
//! The tokenizer is html5ever's. The tree is built here, since the builder of the standard is
//! quadratic in the depth of open elements and in the number of formatting elements: a page of a
//! megabyte can keep it busy for hours. The rules for end tags that authors leave out are kept;
//! the rules for misnested formatting elements are not, which moves no text.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::LocalName;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use super::blocks::ends_paragraph;
use super::dom::{DOCUMENT, Dom, Element, NodeData, NodeId};

/// Maximum depth of the tree. Elements below it are siblings of their parents.
const MAX_DEPTH: usize = 256;

/// Maximum number of nodes. The rest of a page with more is dropped.
const MAX_NODES: usize = 500_000;

/// Maximum time for a page. The tokenizer is quadratic in the number of attributes of one tag.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Number of bytes after which the time is checked.
const PIECE: usize = 16 << 10;

/// Elements that stop end tags: an end tag inside of them closes no element outside.
const BOUNDARIES: [&str; 7] = ["caption", "td", "th", "template", "table", "object", "iframe"];

/// Parses a page.
pub(super) fn parse(html: &str) -> Dom {
    parse_within(html, MAX_NODES)
}

/// Parses a page up to `max_nodes`.
pub(super) fn parse_within(html: &str, max_nodes: usize) -> Dom {
    let builder = Builder {
        dom: Dom::new(),
        max_nodes,
        open: vec![(DOCUMENT, LocalName::from(""))],
        paragraphs: 0,
        unopened: 0,
    };
    let tokenizer = Tokenizer::new(Sink(RefCell::new(builder)), TokenizerOpts::default());
    let queue = BufferQueue::default();
    let begin = Instant::now();
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        queue.push_back(StrTendril::from_slice(piece));
        // The tokenizer pauses at scripts, which are not run.
        while !matches!(tokenizer.feed(&queue), html5ever::TokenizerResult::Done) {}
        rest = after;
        let mut builder = tokenizer.sink.0.borrow_mut();
        if builder.dom.is_cut || begin.elapsed() > MAX_TIME {
            builder.dom.is_cut = true;
            break;
        }
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().dom
}

/// The receiver of tokens. Its trait takes a shared reference.
struct Sink(RefCell<Builder>);

struct Builder {
    dom: Dom,
    max_nodes: usize,
    /// The open elements with their names; the document is the first element.
    open: Vec<(NodeId, LocalName)>,
    /// Number of open paragraphs.
    paragraphs: usize,
    /// Number of elements that are too deep to be opened.
    unopened: usize,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut builder = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => builder.text(text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return builder.start(tag),
            Token::TagToken(tag) => builder.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Builder {
    fn current(&self) -> &(NodeId, LocalName) {
        self.open.last().expect("the document is never closed")
    }

    fn has_room(&mut self) -> bool {
        self.dom.is_cut |= self.dom.len() >= self.max_nodes;
        !self.dom.is_cut
    }

    fn text(&mut self, text: StrTendril) {
        if !self.has_room() {
            return;
        }
        if &*self.current().1 == "head" {
            if text.trim_ascii().is_empty() {
                return;
            }
            self.open.pop();
        }
        let parent = self.current().0;
        self.dom.append_text(parent, text);
    }

    fn start(&mut self, tag: Tag) -> TokenSinkResult<()> {
        let name = tag.name;
        if !self.has_room() || matches!(&*name, "html" | "body" | "head") && self.is_at_top(&name) {
            return TokenSinkResult::Continue;
        }
        self.close_implied(&name);
        let is_foreign = tag.self_closing && self.open.iter().any(|(_, name)| matches!(&**name, "svg" | "math"));
        let kept = tag.attrs.into_iter().filter(|attribute| is_kept(&attribute.name.local));
        let attributes = kept.map(|attribute| (attribute.name.local, attribute.value)).collect();
        let parent = self.current().0;
        let id = self.dom.append(
            parent,
            NodeData::Element(Element {
                name: name.clone(),
                attributes,
            }),
        );
        if is_foreign || is_void(&name) {
            return TokenSinkResult::Continue;
        }
        let content = match &*name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
            "textarea" | "title" => TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        };
        if self.open.len() < MAX_DEPTH {
            self.paragraphs += usize::from(&*name == "p");
            self.open.push((id, name));
        } else {
            self.unopened += 1;
        }
        content
    }

    /// Closes the elements whose end tags may be left out before a start tag of this name.
    fn close_implied(&mut self, name: &str) {
        const BLOCKS: [&str; 10] = [
            "div", "section", "article", "ul", "ol", "p", "td", "th", "table", "body",
        ];
        const AROUND_PARAGRAPHS: [&str; 9] = [
            "td",
            "th",
            "caption",
            "table",
            "button",
            "object",
            "blockquote",
            "li",
            "body",
        ];
        match name {
            "li" => self.close(&["li"], &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => self.close(&["dt", "dd"], &["dl"]),
            "td" | "th" => self.close(&["td", "th"], &["tr", "table"]),
            "tr" => self.close(&["tr"], &["tbody", "thead", "tfoot", "table"]),
            "tbody" | "thead" | "tfoot" => self.close(&["tbody", "thead", "tfoot", "caption"], &["table"]),
            "option" => self.close(&["option"], &["select", "optgroup"]),
            "optgroup" => self.close(&["optgroup"], &["select"]),
            "a" => self.close(&["a"], &BLOCKS),
            _ => {}
        }
        if !is_of_head(name) && self.is_at_top("head") {
            self.close(&["head"], &["body"]);
        }
        if self.paragraphs > 0 && ends_paragraph(name) {
            self.close(&["p"], &AROUND_PARAGRAPHS);
        }
    }

    /// Returns `true` if an element of this name is open, which stands at the top of a page.
    fn is_at_top(&self, name: &str) -> bool {
        self.open.iter().take(4).any(|(_, own)| &**own == name)
    }

    /// Closes the innermost open element with such a name, unless an element of `boundaries` is
    /// further inside.
    fn close(&mut self, names: &[&str], boundaries: &[&str]) {
        for at in (1..self.open.len()).rev() {
            let name = &*self.open[at].1;
            if names.contains(&name) {
                let closed = self.open.drain(at..);
                self.paragraphs -= closed.filter(|(_, name)| &**name == "p").count();
                return;
            }
            if boundaries.contains(&name) {
                return;
            }
        }
    }

    fn end(&mut self, name: &LocalName) {
        if self.unopened > 0 {
            self.unopened -= 1;
            return;
        }
        match &**name {
            "body" | "html" => {}
            // The standard makes it an empty paragraph, which separates the texts around it.
            "p" if self.paragraphs == 0 => {
                let parent = self.current().0;
                let attributes = Vec::new();
                if self.has_room() {
                    self.dom.append(
                        parent,
                        NodeData::Element(Element {
                            name: name.clone(),
                            attributes,
                        }),
                    );
                }
            }
            "table" => self.close(&["table"], &[]),
            "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption" | "template" | "object" | "iframe" => {
                self.close(&[name], &["table"]);
            }
            _ => self.close(&[name], &BOUNDARIES),
        }
    }
}

/// Returns `true` for the attributes that are kept.
fn is_kept(name: &str) -> bool {
    matches!(
        name,
        "alt"
            | "alttext"
            | "aria-hidden"
            | "charset"
            | "checked"
            | "class"
            | "colspan"
            | "content"
            | "data-lang"
            | "data-language"
            | "data-src"
            | "encoding"
            | "height"
            | "hidden"
            | "href"
            | "id"
            | "itemprop"
            | "itemtype"
            | "lang"
            | "name"
            | "property"
            | "rel"
            | "role"
            | "rowspan"
            | "src"
            | "srcset"
            | "start"
            | "style"
            | "title"
            | "type"
            | "width"
    )
}

/// Returns `true` for elements without content.
fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "track"
            | "wbr"
    )
}

/// Returns `true` for elements that belong into the head; any other element ends it.
fn is_of_head(name: &str) -> bool {
    matches!(
        name,
        "base" | "link" | "meta" | "noscript" | "script" | "style" | "template" | "title" | "basefont" | "bgsound"
    )
}
