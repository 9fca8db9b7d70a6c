//! Links and images that may be shown, and where in an answer they are looked for.

use std::collections::HashSet;
use std::sync::Arc;

use super::sanitize::{AllowedUrls, sanitize, urls};
use super::{AnswerFilter, FilteredAnswer};

/// Lets links and images through that the user named, that stay on the interface's own server, or that lead to
/// allowed hosts. Of others the text is left, and the host in brackets.
///
/// It reads Markdown: links, images, their definitions, plain addresses, and HTML that could load something. Fenced code
/// stays as it is, byte for byte; where a renderer could disagree on what is code (after HTML, in fences that leave their
/// list, in code that is only indented), it counts as text. An answer is streamed line by line, and a paragraph with a
/// bracket when it is whole. Line ends become `\n`.
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
    /// Only what the user named.
    pub fn new() -> Self {
        Self::default()
    }

    /// And what leads to `host` or a host below it. Whoever can read what is asked of that host learns what an answer
    /// puts into an address.
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

/// An answer on its way.
struct SanitizedAnswer {
    allowed: AllowedUrls,
    /// The line that has not ended.
    line: String,
    /// Whether the last character was `\r`, which ends a line alone or together with `\n`.
    after_return: bool,
    /// Text that belongs together with what comes next, or a fence that is not known to be one.
    text: String,
    fence: Option<Fence>,
    /// Whether a fence is surely one to every renderer.
    trusts_fences: bool,
}

/// A fence that is open.
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

    /// A fence in a list ends with its list, too, so it is one only when it is closed within it.
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

    fn take_text(&mut self, line: &str, shown: &mut String) {
        self.trusts_fences &= !may_begin_html(line);
        self.text.push_str(line);
        // Without a bracket nothing goes on in the next line.
        if line.trim().is_empty() || !self.text.contains(['[', '<']) {
            self.show_text(shown);
        }
    }

    fn show_text(&mut self, shown: &mut String) {
        shown.push_str(&sanitize(&std::mem::take(&mut self.text), &self.allowed));
    }
}

impl Fence {
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

/// Whether a block of HTML may begin here, in which fences are none.
fn may_begin_html(line: &str) -> bool {
    let markers =
        |character: char| character.is_whitespace() || character.is_ascii_digit() || ">-*+.)".contains(character);
    let mut characters = line.trim_start_matches(markers).chars();
    characters.next() == Some('<')
        && characters
            .next()
            .is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next))
}
