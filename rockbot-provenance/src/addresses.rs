//! Addresses: of mail and of the web, found as a whole.

use memchr::memmem;

use crate::words::has_hidden;

/// Returns `true` for an address of mail.
pub(crate) fn is_mail(value: &str) -> bool {
    let Some((name, domain)) = value.split_once('@') else {
        return false;
    };
    !name.is_empty() && domain.contains('.') && !value.contains(char::is_whitespace) && !domain.contains('@')
}

/// Returns `true` if the text in lower case has the address of mail as a whole.
pub(crate) fn has_mail(value: &str, folded: &str) -> bool {
    let value = value.trim().trim_start_matches("mailto:").to_ascii_lowercase();
    if has_hidden(&value) {
        return false;
    }
    let mut places = memmem::find_iter(folded.as_bytes(), value.as_bytes());
    places.any(|start| {
        let is_inner = |char: char| char.is_alphanumeric() || "._%+-@".contains(char);
        let mut ahead = folded[start + value.len()..].chars();
        let goes_on = match ahead.next() {
            Some('.') => ahead.next().is_some_and(|char| char.is_alphanumeric() || char == '-'),
            Some(char) => is_inner(char),
            None => false,
        };
        !goes_on && !folded[..start].chars().next_back().is_some_and(is_inner)
    })
}

/// Returns `true` for an address of the web: with a scheme, or a host with a known ending.
pub(crate) fn is_web(value: &str) -> bool {
    if value.contains(char::is_whitespace) || value.contains('@') && !value.contains("://") {
        return false;
    }
    value.contains("://") || is_host(host_of(value))
}

/// Endings of hosts that people write without a scheme.
const ENDINGS: [&str; 24] = [
    "com", "org", "net", "io", "dev", "app", "edu", "gov", "info", "biz", "co", "uk", "de", "fr", "eu", "ch", "at",
    "us", "ru", "cn", "xyz", "ai", "me", "tv",
];

fn host_of(value: &str) -> &str {
    let end = value.find(['/', '?', '#', ':']).unwrap_or(value.len());
    &value[..end]
}

fn is_host(host: &str) -> bool {
    let mut labels = host.rsplit('.');
    let ending = labels.next().unwrap_or_default().to_ascii_lowercase();
    let has_name = labels.next().is_some_and(|name| !name.is_empty());
    has_name
        && ENDINGS.contains(&ending.as_str())
        && host.chars().all(|char| char.is_alphanumeric() || ".-".contains(char))
}

/// Returns the addresses of the web in a text, without the signs around them.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    let is_edge = |char: char| char.is_whitespace() || "<>\"'`()[]{}|,;“”‘’«»".contains(char);
    text.split(is_edge)
        .map(|word| word.trim_matches(|char: char| ".:!?*…".contains(char)))
        .filter(|word| is_web(word))
}

/// Returns `true` if the text names this address of the web. Scheme, `www.` and a final slash do
/// not matter, and neither does the case of the host.
pub(crate) fn has_web(value: &str, text: &str) -> bool {
    if has_hidden(value) {
        return false;
    }
    let wanted = comparable(value);
    links(text).any(|link| comparable(link) == wanted)
}

/// Returns the host of an address with or without a scheme, without `www.`.
pub(crate) fn host(address: &str) -> &str {
    let host = host_of(without_scheme(address.trim()));
    host.get(..4)
        .filter(|start| start.eq_ignore_ascii_case("www."))
        .map_or(host, |start| &host[start.len()..])
}

fn without_scheme(address: &str) -> &str {
    let starts = |scheme: &&str| {
        let start = address.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let scheme = ["https://", "http://"].into_iter().find(starts).unwrap_or_default();
    &address[scheme.len()..]
}

fn comparable(address: &str) -> String {
    let address = without_scheme(address.trim());
    let host = host_of(address);
    let path = address[host.len()..].trim_end_matches('/');
    let host = host.to_ascii_lowercase();
    format!("{}{path}", host.trim_start_matches("www."))
}
