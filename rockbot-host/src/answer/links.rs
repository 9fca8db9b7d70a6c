//! The link filter: which parts of an answer are sanitized, and which are code.

use std::collections::HashSet;
use std::sync::Arc;

use super::sanitize::{AllowedUrls, sanitize, urls};
use super::{AnswerFilter, FilteredAnswer};

/// An [`AnswerFilter`] with an allow-list of links and images.
///
/// Allowed are addresses that the user named, relative addresses on the interface's own server, and allowed hosts.
/// Of other links the text is kept, followed by the host in brackets.
///
/// The filter reads Markdown: links, images, their definitions, plain addresses, and HTML that could load
/// something. Fenced code stays unchanged byte for byte. Where renderers could disagree on what is code (after
/// HTML, in fences that leave their list, in indented code), it counts as text. Answers are streamed line by line,
/// and a paragraph with a bracket once it is complete. Line ends become `\n`.
///
/// # Examples
///
/// ```
/// use rockbot_host::answer::{AnswerFilter, SafeLinks};
///
/// let links = SafeLinks::new().allow_host("docs.example");
/// let mut answer = links.begin("What does https://shop.example/7 cost?");
/// let shown = answer.push(
///     "[It](https://shop.example/7) costs 3, see [the docs](https://www.docs.example/a?b=c) \
///      and [this](https://evil.example/x).\n",
/// );
/// # let shown = shown + &answer.finish();
/// assert_eq!(
///     shown,
///     "[It](https://shop.example/7) costs 3, see [the docs](https://www.docs.example/a?b=c) \
///      and this (evil.example).\n",
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SafeLinks {
    hosts: Arc<[String]>,
}

impl SafeLinks {
    /// Creates a filter that allows relative addresses and those that the user named.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a copy that also allows `host` and its subdomains.
    ///
    /// An operator of an allowed host can read all data that an answer puts into an address there.
    #[must_use]
    pub fn allow_host(self, host: &str) -> Self {
        let host = host.to_ascii_lowercase();
        Self {
            hosts: self.hosts.iter().cloned().chain([host]).collect(),
        }
    }
}

impl AnswerFilter for SafeLinks {
    fn begin(&self, user_text: &str) -> Box<dyn FilteredAnswer> {
        let named_by_user: HashSet<_> = urls(user_text).map(str::to_owned).collect();
        Box::new(SanitizedAnswer {
            allowed: AllowedUrls {
                hosts: self.hosts.clone(),
                named_by_user,
            },
            line: String::new(),
            after_return: false,
            text: String::new(),
            fence: None,
            trusts_fences: true,
        })
    }
}

/// The state of one answer.
struct SanitizedAnswer {
    allowed: AllowedUrls,
    /// The incomplete line.
    line: String,
    /// `true` if the last character was `\r`, which ends a line alone or together with `\n`.
    after_return: bool,
    /// Text that is held back: a paragraph that may go on, or a fence that may turn out to be text.
    text: String,
    fence: Option<Fence>,
    /// `true` while all renderers agree that a fence opens a code block here.
    trusts_fences: bool,
}

/// An open code fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl FilteredAnswer for SanitizedAnswer {
    fn push(&mut self, piece: &str) -> String {
        let mut shown = String::new();
        for character in piece.chars() {
            let after_return = std::mem::replace(&mut self.after_return, character == '\r');
            match character {
                '\n' if after_return => {}
                '\n' | '\r' => {
                    let mut line = std::mem::take(&mut self.line);
                    line.push('\n');
                    self.take(&line, &mut shown);
                }
                _ => self.line.push(character),
            }
        }
        shown
    }

    fn finish(&mut self) -> String {
        let mut shown = String::new();
        let line = std::mem::take(&mut self.line);
        self.take(&line, &mut shown);
        self.show_text(&mut shown);
        shown
    }
}

impl SanitizedAnswer {
    fn take(&mut self, line: &str, shown: &mut String) {
        match self.fence {
            Some(fence) if fence.indent == 0 => {
                shown.push_str(line);
                self.fence = (!fence.is_closed_by(line)).then_some(fence);
            }
            Some(fence) => self.take_indented(fence, line, shown),
            None => match Fence::opened_by(line).filter(|_| self.trusts_fences) {
                Some(fence) => {
                    self.show_text(shown);
                    self.fence = Some(fence);
                    match fence.indent {
                        0 => shown.push_str(line),
                        _ => self.text.push_str(line),
                    }
                }
                None => self.take_text(line, shown),
            },
        }
    }

    /// Takes a line of an indented fence, which ends with its list item. It is code only if it is closed within the item.
    fn take_indented(&mut self, fence: Fence, line: &str, shown: &mut String) {
        let leaves = !line.trim().is_empty() && spaces(line) < fence.indent;
        let unclear = spaces(line) > 3 && Fence::opened_by(line.trim_start()).is_some();
        self.text.push_str(line);
        if leaves || unclear {
            (self.fence, self.trusts_fences) = (None, false);
        } else if fence.is_closed_by(line) {
            self.fence = None;
            shown.push_str(&std::mem::take(&mut self.text));
        }
    }

    /// Takes a line of text.
    fn take_text(&mut self, line: &str, shown: &mut String) {
        self.trusts_fences &= !may_begin_html(line);
        self.text.push_str(line);
        // A link or a tag can span lines; text without a bracket cannot contain one.
        if line.trim().is_empty() || !self.text.contains(['[', '<']) {
            self.show_text(shown);
        }
    }

    /// Sanitizes and shows the text that was held back.
    fn show_text(&mut self, shown: &mut String) {
        shown.push_str(&sanitize(&std::mem::take(&mut self.text), &self.allowed));
    }
}

impl Fence {
    /// Parses the opening of a fence, as CommonMark defines it.
    fn opened_by(line: &str) -> Option<Self> {
        let indent = spaces(line);
        let marked = &line[indent..];
        let mark = marked.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = marked.chars().take_while(|character| *character == mark).count();
        let info_fits = mark == '~' || !marked[length..].contains('`');
        (indent <= 3 && length >= 3 && info_fits).then_some(Self { mark, length, indent })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let marked = line.trim_start_matches(' ');
        let rest = marked.trim_start_matches(self.mark);
        let length = marked.len() - rest.len();
        spaces(line) <= 3 && length >= self.length && rest.trim_matches([' ', '\t', '\n']).is_empty()
    }
}

fn spaces(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Reports whether an HTML block may begin here, within which fences are not code.
fn may_begin_html(line: &str) -> bool {
    let markers =
        |character: char| character.is_whitespace() || character.is_ascii_digit() || ">-*+.)".contains(character);
    let mut characters = line.trim_start_matches(markers).chars();
    characters.next() == Some('<')
        && characters
            .next()
            .is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next))
}
