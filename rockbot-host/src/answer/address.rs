//! Addresses in text: where they begin and end, their hosts, and which are allowed.

use std::collections::HashSet;
use std::sync::Arc;

/// Maximum length of an address, in bytes.
const MAX_ADDRESS: usize = 2_048;

/// Maximum number of addresses of the user's message that are allowed.
const MAX_NAMED: usize = 1_000;

const BEGINNINGS: [&str; 4] = ["https://", "http://", "ftp://", "www."];

/// The allow-list of addresses.
#[derive(Debug)]
pub(super) struct AllowedUrls {
    hosts: Arc<[String]>,
    named_by_user: HashSet<String>,
}

impl AllowedUrls {
    /// Creates the list of `hosts` and of the addresses in the user's message.
    pub(super) fn new(hosts: Arc<[String]>, user_text: &str) -> Self {
        let named_by_user = urls(user_text).take(MAX_NAMED).map(str::to_owned).collect();
        Self { hosts, named_by_user }
    }

    pub(super) fn permits(&self, address: &str) -> bool {
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

/// Returns the plain addresses in a text. An address that stands within another is not among
/// them.
fn urls(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(at) = rest.find(['h', 'H', 'f', 'F', 'w', 'W']) {
            let found = url(&rest[at..]);
            rest = &rest[at + found.map_or(1, str::len)..];
            if found.is_some() {
                return found;
            }
        }
        None
    })
}

/// Returns the plain address at the start of `text`, cut at its maximum length.
pub(super) fn url(text: &str) -> Option<&str> {
    let text = &text[..text.floor_char_boundary(MAX_ADDRESS)];
    let beginning = BEGINNINGS.iter().find(|beginning| starts_with(text, beginning))?;
    let url = text[..length(text)].trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_', '~', '\'']);
    (url.len() > beginning.len()).then_some(url)
}

/// Returns `true` if more text could begin an address at the start of `text`, or continue the
/// address that begins there.
pub(super) fn may_become_url(text: &str) -> bool {
    let is_begun = |beginning: &&str| {
        if text.len() < beginning.len() {
            starts_with(beginning, text)
        } else {
            starts_with(text, beginning) && length(text) == text.len()
        }
    };
    BEGINNINGS.iter().any(is_begun)
}

fn starts_with(text: &str, beginning: &str) -> bool {
    let head = text.as_bytes().get(..beginning.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(beginning.as_bytes()))
}

/// Returns the length of the address that begins `text`, with the punctuation after it.
fn length(text: &str) -> usize {
    balanced(text, |character| {
        character.is_whitespace() || "<>\"`[]".contains(character)
    })
}

/// Returns the length of `text` up to an unbalanced closing bracket, or a character that `ends` it.
pub(super) fn balanced(text: &str, ends: impl Fn(char) -> bool) -> usize {
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

/// Returns the host of a plainly written address in lower case. It returns `None` for addresses
/// with user info, escapes or other schemes, so they are never allowed by host.
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

/// Returns `true` if an address is relative to the interface's own server and carries no query.
fn is_local(address: &str) -> bool {
    let plain = |character: char| !character.is_whitespace() && !":\\&?%=<>()[]\"'`".contains(character);
    address.chars().all(plain) && !address.starts_with("//")
}

/// Returns the host as text that no renderer makes a link of.
pub(super) fn named_host(address: &str) -> String {
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
