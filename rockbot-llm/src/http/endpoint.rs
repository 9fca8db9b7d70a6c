//! Endpoints: base URLs of servers, and the providers behind them.

use reqwest::Url;

/// Returns the base URL that `endpoint` means, without a slash at its end and without a pasted
/// path of `call_paths`.
///
/// Returns `None` if it is no http(s) URL, or holds a user name or a password, which messages would show.
pub(crate) fn base_url(endpoint: &str, call_paths: &[&str]) -> Option<Url> {
    let mut url = Url::parse(endpoint.trim()).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_http || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let path = url.path().trim_end_matches('/');
    let pasted = call_paths
        .iter()
        .find_map(|call| path.strip_suffix(call)?.strip_suffix('/'));
    let path = pasted.unwrap_or(path).trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.set_fragment(None);
    Some(url)
}

/// Returns `true` if the server is this machine: no proxy stands between, and no key is needed.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// Returns `true` if `text` can be a key: servers hand out keys without blanks, but copying by
/// hand adds them.
pub(crate) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the provider that serves `base`, as OpenTelemetry names it, if its host is a known one.
pub(crate) fn provider_of(base: &Url) -> Option<&'static str> {
    const PROVIDERS: [(&str, &str); 10] = [
        ("openai.azure.com", "azure.ai.openai"),
        ("services.ai.azure.com", "azure.ai.inference"),
        ("openrouter.ai", "openrouter"),
        ("deepseek.com", "deepseek"),
        ("groq.com", "groq"),
        ("mistral.ai", "mistral_ai"),
        ("perplexity.ai", "perplexity"),
        ("x.ai", "x_ai"),
        ("anthropic.com", "anthropic"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
    ];
    let host = base.host_str().unwrap_or_default();
    let is_of = |domain: &str| {
        let rest = host.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let known = PROVIDERS.into_iter().find(|(domain, _)| is_of(domain));
    known.map(|(_, provider)| provider)
}

/// Returns an endpoint that was not checked as `Debug` shows it: without user, password and query.
pub(crate) fn shown_unchecked(endpoint: &str) -> String {
    let Ok(mut url) = Url::parse(endpoint.trim()) else {
        return "(no URL)".to_owned();
    };
    // Fails for URLs that cannot have them.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_fragment(None);
    shown(&url)
}

/// Returns the endpoint as messages show it: without the query, which may hold a key.
pub(super) fn shown(base: &Url) -> String {
    let mut url = base.clone();
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
}
