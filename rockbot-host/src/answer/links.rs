//! The link filter: which parts of an answer are sanitized, and which are code.

use std::sync::Arc;

use super::address::AllowedUrls;
use super::sanitize::Sanitizer;
use super::{AnswerFilter, FilteredAnswer};

/// An [`AnswerFilter`] with an allow-list of links and images.
///
/// Allowed are addresses that the user named, relative addresses on the interface's own server,
/// and allowed hosts. Other links keep their text, followed by the host in brackets.
///
/// The filter reads Markdown: links, images, their definitions, plain addresses, and HTML that
/// could load something. Fenced code stays unchanged byte for byte. Where renderers could
/// disagree whether a text is code (after HTML, in fences that leave their list, in indented
/// code), it counts as text. An answer is streamed as it comes, but for the end that may be part
/// of a link: up to 1 KiB of its text and 2 KiB of its address, and a longer link is not allowed.
/// Line ends become `\n`.
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
    /// Creates a filter that allows relative addresses and the addresses that the user named.
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
        Box::new(SanitizedAnswer {
            text: Sanitizer::new(AllowedUrls::new(self.hosts.clone(), user_text)),
            line: String::new(),
            taken: 0,
            after_return: false,
            undecided: String::new(),
            fence: None,
            trusts_fences: true,
        })
    }
}

/// The state of one answer.
struct SanitizedAnswer {
    /// The sanitizer of all that is not code.
    text: Sanitizer,
    /// The incomplete line.
    line: String,
    /// Length of the part of `line` that is shown, or is with the sanitizer.
    taken: usize,
    /// `true` if the last character was `\r`, which ends a line alone or together with `\n`.
    after_return: bool,
    /// Lines of an indented fence that may turn out to be text.
    undecided: String,
    fence: Option<Fence>,
    /// `true` while all renderers agree that a fence opens a code block here.
    trusts_fences: bool,
}

/// Maximum length of a line that opens a fence, in bytes.
const MAX_OPENING: usize = 1_024;

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
        for part in piece.split_inclusive(['\n', '\r']) {
            let after_return = std::mem::replace(&mut self.after_return, part.ends_with('\r'));
            match part {
                "\n" if after_return => continue,
                _ => self.line.push_str(part.trim_end_matches(['\n', '\r'])),
            }
            if part.ends_with(['\n', '\r']) {
                self.line.push('\n');
                self.end_line(&mut shown);
            } else {
                self.take_part(&mut shown)
            }
        }
        shown
    }

    fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.end_line(&mut shown);
        let undecided = std::mem::take(&mut self.undecided);
        self.text.push(&undecided, &mut shown);
        self.text.flush(&mut shown);
        shown
    }
}

impl SanitizedAnswer {
    /// Takes the certain part of an incomplete line: code, or text that opens no fence.
    fn take_part(&mut self, shown: &mut String) {
        let new = &self.line[self.taken..];
        match self.fence {
            Some(fence) if fence.indent == 0 => shown.push_str(new),
            Some(_) => return,
            // Decided once: a continuation of text is text, and a line that begins with a megabyte
            // of spaces is read once.
            None if self.taken == 0 && self.trusts_fences && Fence::may_open(&self.line) => return,
            None => self.text.push(new, shown),
        }
        self.taken = self.line.len();
    }

    /// Takes the rest of the line, which is complete.
    fn end_line(&mut self, shown: &mut String) {
        let line = std::mem::take(&mut self.line);
        let taken = std::mem::take(&mut self.taken);
        match self.fence {
            Some(fence) if fence.indent == 0 => {
                shown.push_str(&line[taken..]);
                self.fence = (!fence.is_closed_by(&line)).then_some(fence);
            }
            Some(fence) => self.take_indented(fence, &line, shown),
            None => match Fence::opened_by(&line).filter(|_| self.trusts_fences) {
                Some(fence) => {
                    self.text.flush(shown);
                    self.fence = Some(fence);
                    match fence.indent {
                        0 => shown.push_str(&line),
                        _ => self.hold_indented(&line, shown),
                    }
                }
                None => self.take_text(&line, taken, shown),
            },
        }
    }

    /// Takes a line of an indented fence, which ends with its list item. It is code only if it is
    /// closed within the item.
    fn take_indented(&mut self, fence: Fence, line: &str, shown: &mut String) {
        let leaves = !line.trim().is_empty() && spaces(line) < fence.indent;
        let unclear = spaces(line) > 3 && Fence::opened_by(line.trim_start()).is_some();
        self.hold_indented(line, shown);
        if leaves || unclear {
            (self.fence, self.trusts_fences) = (None, false);
            self.text.push(&std::mem::take(&mut self.undecided), shown);
        } else if fence.is_closed_by(line) {
            self.fence = None;
            shown.push_str(&std::mem::take(&mut self.undecided));
        }
    }

    /// Holds back a line that may be code or text. One without an address is the same as both, and is
    /// shown.
    fn hold_indented(&mut self, line: &str, shown: &mut String) {
        if self.undecided.is_empty() && is_plain(line) {
            shown.push_str(line)
        } else {
            self.undecided.push_str(line)
        }
    }

    /// Takes the rest of a line of text. No link spans a blank line.
    fn take_text(&mut self, line: &str, taken: usize, shown: &mut String) {
        self.trusts_fences &= !may_begin_html(line) && !Fence::is_too_long(line);
        self.text.push(&line[taken..], shown);
        if line.trim().is_empty() {
            self.text.flush(shown);
        }
    }
}

/// Returns `true` if a line has nothing that the sanitizer could change.
fn is_plain(line: &str) -> bool {
    let has_www = || {
        line.as_bytes()
            .windows(4)
            .any(|word| word.eq_ignore_ascii_case(b"www."))
    };
    !line.contains(['[', ']', '<']) && !line.contains("://") && !has_www()
}

impl Fence {
    /// Parses the opening of a fence, as CommonMark defines it.
    fn opened_by(line: &str) -> Option<Self> {
        let indent = spaces(line);
        let marked = &line[indent..];
        let mark = marked.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = marked.chars().take_while(|character| *character == mark).count();
        let info_fits = mark == '~' || !marked[length..].contains('`');
        let fits = indent <= 3 && length >= 3 && info_fits && line.len() <= MAX_OPENING;
        fits.then_some(Self { mark, length, indent })
    }

    /// Returns `true` if a line that begins like this may open a fence.
    fn may_open(line: &str) -> bool {
        let marked = line.trim_start_matches(' ');
        marked.starts_with(['`', '~']) && line.len() <= MAX_OPENING || marked.is_empty() && line.len() <= 3
    }

    /// Returns `true` if a line may open a fence for renderers, but is too long to be held back.
    fn is_too_long(line: &str) -> bool {
        line.len() > MAX_OPENING && line.trim_start_matches(' ').starts_with(['`', '~'])
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

/// Returns `true` if an HTML block may begin here, within which fences are not code.
fn may_begin_html(line: &str) -> bool {
    let markers =
        |character: char| character.is_whitespace() || character.is_ascii_digit() || ">-*+.)".contains(character);
    let mut characters = line.trim_start_matches(markers).chars();
    characters.next() == Some('<')
        && characters
            .next()
            .is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next))
}
