//! Taking the addresses out of a text's links.
//!
//! What is looked for is the one pair of characters without which there is no link, `](` or `]:`, whatever stands
//! before it: so no doubt about brackets, escapes or code lets one through.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// The addresses that may stay.
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

/// The text with only those addresses in its links that are allowed.
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

/// The plain addresses in a text.
pub(super) fn urls(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().filter_map(|(at, _)| url(&text[at..]))
}

struct Writer<'a> {
    allowed: &'a AllowedUrls,
    out: String,
    /// Where in `out` the brackets stand that are open.
    open: Vec<usize>,
}

impl Writer<'_> {
    /// Writes what `rest` begins with; returns how much of it that was.
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

    /// Whether an address can begin here: one without a scheme only where a word begins.
    fn begins(&self, url: &str) -> bool {
        url.contains("://") || !self.out.ends_with(char::is_alphanumeric)
    }

    /// A plain address.
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

    /// A link or an image, whose text is written already.
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

    /// The address of links elsewhere.
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

    /// An address in angle brackets, or HTML: with attributes it could load something, and a comment could hide it.
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

/// Where in `body`, which follows the bracket, the address stands.
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

/// How long `text` goes on before a bracket closes that it did not open, or before a character that `ends` it.
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

/// How far a link goes on behind its address; `None` when it is not closed.
fn end_of_link(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('>').unwrap_or(text).trim_start();
    if let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '(')) {
        let closing = if quote == '(' { ')' } else { quote };
        rest = rest[1..].split_once(closing)?.1.trim_start();
    }
    let rest = rest.strip_prefix(')')?;
    Some(text.len() - rest.len())
}

/// The plain address that `text` begins with.
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

/// The host of an address that is written plainly, in small letters.
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

/// Whether an address cannot leave the server of whoever shows it, and asks nothing of it.
fn is_local(address: &str) -> bool {
    let plain = |character: char| !character.is_whitespace() && !":\\&?%=<>()[]\"'`".contains(character);
    address.chars().all(plain) && !address.starts_with("//")
}

/// The host as people read it: no address, and nothing that could be one.
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
