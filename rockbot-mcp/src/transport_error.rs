//! Texts of transports' errors, without parts of their URLs that may be secret.

use rockbot_core::support::loggable;

/// Returns the text of a transport's error, safe to show: of URLs the scheme and the host alone,
/// since the rest may hold a key.
pub(crate) fn without_paths(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "()<>\"'`".contains(c));
        let (url, behind) = after.split_at(end.unwrap_or(after.len()));
        let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
        // Without a user's name and password.
        shown.push_str(authority.rsplit('@').next().unwrap_or_default());
        rest = behind;
    }
    shown.push_str(rest);
    loggable(&shown).to_string()
}

#[cfg(test)]
mod tests {
    use super::without_paths;

    #[test]
    fn of_urls_only_the_host_is_shown() {
        let text = "error sending request for url (http://u:pw@127.0.0.1:9/mcp/sesame?key=sesame#sesame), twice: https://a.b/sesame";
        let shown = "error sending request for url (http://127.0.0.1:9), twice: https://a.b";
        assert_eq!(without_paths(text), shown);
    }
}
