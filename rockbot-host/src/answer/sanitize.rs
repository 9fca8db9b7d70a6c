//! Sanitizing text: removing the addresses of links, images and HTML that are not allowed.
//!
//! The scan looks for the pair of characters that every link contains, `](` or `]:`, whatever comes before it. It
//! does not parse Markdown: parsers disagree on brackets, escapes and code, and an attacker would use the
//! difference.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// The allow-list of addresses.
#[derive(Debug)]
pub(super) struct AllowedUrls {
    pub(super) hosts: Arc<[String]>,
    pub(super) named_by_user: HashSet<String>,
}

impl AllowedUrls {
    fn permits(&self, address: &str) -> bool {
        let below = |host: &str, allowed: &str| {
            let above = host.strip_suffix(allowed);
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        self.named_by_user.contains(address)
            || match host(address) {
                Some(host) => self.hosts.iter().any(|allowed| below(&host, allowed)),
                None => is_local(address),
            }
    }
}

/// Returns the text without the addresses that are not allowed.
pub(super) fn sanitize(text: &str, allowed: &AllowedUrls) -> String {
    let mut writer = Writer {
        allowed,
        out: String::with_capacity(text.len()),
        open: Vec::new(),
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let read = writer.step(rest, first);
        rest = &rest[read..];
    }
    writer.out
}

/// Returns the plain addresses in a text.
pub(super) fn urls(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().filter_map(|(at, _)| url(&text[at..]))
}

struct Writer<'a> {
    allowed: &'a AllowedUrls,
    out: String,
    /// Positions of the open brackets in `out`.
    open: Vec<usize>,
}

impl Writer<'_> {
    /// Writes the next element of `rest`, and returns its length.
    fn step(&mut self, rest: &str, first: char) -> usize {
        match first {
            '[' => self.open.push(self.out.len()),
            ']' => return self.close(rest),
            '<' => return self.tag(rest),
            'h' | 'H' | 'f' | 'F' | 'w' | 'W' => {
                if let Some(url) = url(rest).filter(|url| self.begins(url)) {
                    return self.address(url);
                }
            }
            _ => {}
        }
        self.out.push(first);
        first.len_utf8()
    }

    /// Reports whether an address can begin here; one without a scheme begins only at the start of a word.
    fn begins(&self, url: &str) -> bool {
        url.contains("://") || !self.out.ends_with(char::is_alphanumeric)
    }

    /// Writes a plain address, or its host.
    fn address(&mut self, url: &str) -> usize {
        match self.allowed.permits(url) {
            true => self.out.push_str(url),
            false => self.out.push_str(&named_host(url)),
        }
        url.len()
    }

    fn close(&mut self, rest: &str) -> usize {
        let open = self.open.pop();
        match rest.as_bytes().get(1) {
            Some(b'(') => self.link(rest, open),
            Some(b':') => self.definition(rest),
            _ => {
                self.out.push(']');
                1
            }
        }
    }

    /// Writes the address of a link or an image; its text has been written already.
    fn link(&mut self, rest: &str, open: Option<usize>) -> usize {
        let body = &rest[2..];
        let address = destination(body);
        if self.allowed.permits(&body[address.clone()]) {
            self.out.push_str(&rest[..2 + address.end]);
            return 2 + address.end;
        }
        let (Some(open), Some(end)) = (open, end_of_link(&body[address.end..])) else {
            self.out.push_str("] (");
            return 2;
        };
        let label = self.out.split_off(open);
        if self.out.ends_with('!') {
            self.out.pop();
        }
        self.out.push_str(&label[1..]);
        self.out.push_str(&format!(" ({})", named_host(&body[address.clone()])));
        2 + address.end + end
    }

    /// Writes a link definition, or breaks it apart if its address is not allowed.
    fn definition(&mut self, rest: &str) -> usize {
        let address = destination(&rest[2..]);
        match self.allowed.permits(&rest[2..][address.clone()]) {
            true => {
                self.out.push_str(&rest[..2 + address.end]);
                2 + address.end
            }
            false => {
                self.out.push_str("] :");
                2
            }
        }
    }

    /// Writes an address in angle brackets or an HTML tag. Tags with attributes could load something, and comments
    /// could hide links from this scan, so both are made text by a blank.
    fn tag(&mut self, rest: &str) -> usize {
        const RAW: [&str; 9] = [
            "iframe",
            "noembed",
            "noframes",
            "plaintext",
            "script",
            "style",
            "textarea",
            "title",
            "xmp",
        ];
        let inside = &rest[1..];
        if let Some(url) = url(inside).filter(|url| inside[url.len()..].starts_with('>')) {
            match self.allowed.permits(url) {
                true => self.out.push_str(&rest[..url.len() + 2]),
                false => self.out.push_str(&named_host(url)),
            }
            return url.len() + 2;
        }
        let inside = inside.split('>').next().unwrap_or_default();
        let name: String = inside.chars().take_while(char::is_ascii_alphanumeric).collect();
        let loads = inside.contains(['=', ':']) || RAW.contains(&name.to_ascii_lowercase().as_str());
        self.out.push('<');
        if (loads && !name.is_empty()) || inside.starts_with(['!', '?']) {
            self.out.push(' ');
        }
        1
    }
}

/// Returns the range of the address in `body`, the text after `](`.
fn destination(body: &str) -> Range<usize> {
    let start = body.len() - body.trim_start().len();
    let text = &body[start..];
    if let Some(bracketed) = text.strip_prefix('<') {
        let length = bracketed.find(['>', '\n']).unwrap_or(bracketed.len());
        return start + 1..start + 1 + length;
    }
    let length = balanced(text, char::is_whitespace);
    start..start + length
}

/// Returns the length of `text` up to an unbalanced closing bracket, or a character that `ends` it.
fn balanced(text: &str, ends: impl Fn(char) -> bool) -> usize {
    let mut depth = 0;
    let stops = |character: char| {
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => return true,
            ')' => depth -= 1,
            _ => {}
        }
        ends(character)
    };
    text.find(stops).unwrap_or(text.len())
}

/// Returns the length of the rest of a link after its address; `None` if it is not closed.
fn end_of_link(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('>').unwrap_or(text).trim_start();
    if let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '(')) {
        let closing = if quote == '(' { ')' } else { quote };
        rest = rest[1..].split_once(closing)?.1.trim_start();
    }
    let rest = rest.strip_prefix(')')?;
    Some(text.len() - rest.len())
}

/// Returns the plain address at the start of `text`.
fn url(text: &str) -> Option<&str> {
    const BEGINNINGS: [&str; 4] = ["https://", "http://", "ftp://", "www."];
    let begins = |beginning: &&&str| {
        let head = text.get(..beginning.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(beginning))
    };
    let beginning = BEGINNINGS.iter().find(begins)?;
    let length = balanced(text, |character| {
        character.is_whitespace() || "<>\"`[]".contains(character)
    });
    let url = text[..length].trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_', '~', '\'']);
    (url.len() > beginning.len()).then_some(url)
}

/// Returns the host of a plainly written address in lower case. Addresses with user info, escapes or other schemes
/// have none, and so are never allowed by host.
fn host(address: &str) -> Option<String> {
    let address = address.to_ascii_lowercase();
    let schemes = ["https://", "http://"];
    let behind = schemes.iter().find_map(|scheme| address.strip_prefix(scheme));
    let behind = behind.or_else(|| address.starts_with("www.").then_some(&*address))?;
    let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let plain = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
    let fits = !host.is_empty() && host.chars().all(plain) && port.chars().all(|digit| digit.is_ascii_digit());
    fits.then(|| host.to_owned())
}

/// Reports whether an address is relative to the interface's own server and carries no query.
fn is_local(address: &str) -> bool {
    let plain = |character: char| !character.is_whitespace() && !":\\&?%=<>()[]\"'`".contains(character);
    address.chars().all(plain) && !address.starts_with("//")
}

/// Returns the host as text that no renderer makes a link of.
fn named_host(address: &str) -> String {
    let behind = address.split_once("//").map_or(address, |(_, behind)| behind);
    let authority = behind.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let plain = |character: &char| character.is_ascii_alphanumeric() || ".-".contains(*character);
    let host: String = host.chars().take_while(plain).take(100).collect();
    let host = host.to_ascii_lowercase();
    match host.trim_start_matches("www.") {
        "" => "link".to_owned(),
        host => host.to_owned(),
    }
}
