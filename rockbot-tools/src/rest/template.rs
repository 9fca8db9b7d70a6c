//! URL templates: `https://api.example.org/users/{id}?fields={fields}`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

/// The characters of a value that are percent-encoded: all but the unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A template of a URL. Its scheme and host are fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    path: Vec<Piece>,
    query: Vec<(String, Vec<Piece>)>,
    /// The scheme and the host.
    origin: Url,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Parameter(String),
}

/// The reason why a template is none, or has no URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("`{0}` is not a URL template: write an absolute URL such as `https://example.org/users/{{id}}`")]
    NotAUrl(String),
    #[error("a placeholder in scheme or host of `{0}`: a model must not choose the server")]
    InOrigin(String),
    #[error("the argument `{0}` is missing: it is a part of the URL")]
    Missing(String),
    #[error("the argument `{0}` does not fit into a URL: it must not be empty, `.` or `..`")]
    Unfit(String),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let not_a_url = || TemplateError::NotAUrl(text.to_owned());
        let host_at = text.find("://").ok_or_else(not_a_url)? + 3;
        let path_at = text[host_at..]
            .find(['/', '?', '#'])
            .map_or(text.len(), |at| host_at + at);
        if text[..path_at].contains(['{', '}']) {
            return Err(TemplateError::InOrigin(text.to_owned()));
        }
        let origin = Url::parse(&text[..path_at]).map_err(|_| not_a_url())?;
        let rest = text[path_at..].split('#').next().unwrap_or_default();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Ok(Self {
            path: pieces(path),
            query: pairs.map(|(name, value)| (name.to_owned(), pieces(value))).collect(),
            origin,
        })
    }

    /// Returns the scheme and the host.
    pub(super) fn origin(&self) -> &Url {
        &self.origin
    }

    /// Returns the names of the parameters in the path.
    pub(super) fn path_parameters(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(Piece::parameter)
    }

    /// Returns the URL with the values of `arguments`, which it takes out. A parameter of the query
    /// may be missing.
    pub(super) fn expand(&self, arguments: &mut Map<String, Value>) -> Result<Url, TemplateError> {
        let mut used = Vec::new();
        let mut path = String::new();
        for piece in &self.path {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Parameter(name) => {
                    let value = arguments.get(name).and_then(text_of);
                    let value = value.ok_or_else(|| TemplateError::Missing(name.clone()))?;
                    if matches!(&*value, "" | "." | "..") {
                        return Err(TemplateError::Unfit(name.clone()));
                    }
                    path.extend(utf8_percent_encode(&value, RESERVED));
                    used.push(name.clone());
                }
            }
        }
        let mut url = self.origin.clone();
        url.set_path(&path);
        let query = self.expanded_query(arguments, &mut used);
        url.set_query(Some(&*query).filter(|query| !query.is_empty()));
        for name in used {
            arguments.remove(&name);
        }
        Ok(url)
    }

    fn expanded_query(&self, arguments: &Map<String, Value>, used: &mut Vec<String>) -> String {
        let mut query = Vec::new();
        for (name, pieces) in &self.query {
            let mut pair = format!("{name}=");
            let mut is_complete = true;
            for piece in pieces {
                match piece {
                    Piece::Text(text) => pair.push_str(text),
                    Piece::Parameter(name) => {
                        used.push(name.clone());
                        match arguments.get(name).and_then(text_of) {
                            Some(value) => pair.extend(utf8_percent_encode(&value, RESERVED)),
                            None => is_complete = false,
                        }
                    }
                }
            }
            if is_complete {
                query.push(pair);
            }
        }
        query.join("&")
    }
}

impl Piece {
    fn parameter(&self) -> Option<&str> {
        match self {
            Self::Parameter(name) => Some(name),
            Self::Text(_) => None,
        }
    }
}

/// Returns the text of an argument in a URL, or `None` for `null`. The items of a list are
/// separated by commas.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(items.iter().filter_map(text_of).collect::<Vec<_>>().join(",")),
        other => Some(other.to_string()),
    }
}

/// Splits a part of a template. Braces without a partner are text.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{')
        && let Some((name, end)) = after.split_once('}')
    {
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(Piece::Parameter(name.trim().to_owned()));
        rest = end;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(template: &str, arguments: Value, expected: Result<(&str, Value), TemplateError>) {
        let Value::Object(mut arguments) = arguments else {
            panic!()
        };
        let url = Template::parse(template).and_then(|template| template.expand(&mut arguments));
        let found = url.map(|url| (url.to_string(), Value::from(arguments)));
        assert_eq!(found, expected.map(|(url, rest)| (url.to_owned(), rest)), "{template}");
    }

    #[test]
    fn values_are_encoded_and_stay_in_their_place() {
        let users = "https://api.example.org/users/{id}";
        check(
            users,
            json!({"id": 7, "x": 1}),
            Ok(("https://api.example.org/users/7", json!({"x": 1}))),
        );
        check(
            users,
            json!({"id": "a/b?c#d&e=f g%ü"}),
            Ok((
                "https://api.example.org/users/a%2Fb%3Fc%23d%26e%3Df%20g%25%C3%BC",
                json!({}),
            )),
        );
        check(
            "https://e.org/a?q={q}&l={l}&k=v",
            json!({"q": "x&y=1", "l": ["a", 2]}),
            Ok(("https://e.org/a?q=x%26y%3D1&l=a%2C2&k=v", json!({}))),
        );
        check(
            "https://e.org/a?q={q}&l={l}",
            json!({"l": true, "q": null}),
            Ok(("https://e.org/a?l=true", json!({}))),
        );
        check(
            "https://e.org/{a}.json",
            json!({"a": "x"}),
            Ok(("https://e.org/x.json", json!({}))),
        );
    }

    #[test]
    fn no_value_leaves_its_place() {
        let missing = || Err(TemplateError::Missing("id".into()));
        let unfit = || Err(TemplateError::Unfit("id".into()));
        let users = "https://api.example.org/users/{id}/mails";
        check(users, json!({}), missing());
        check(users, json!({"id": null}), missing());
        for value in ["", ".", ".."] {
            check(users, json!({ "id": value }), unfit());
        }
        check("https://e.org/a/.{id}/b", json!({"id": "."}), unfit());
        check(
            users,
            json!({"id": "%2e%2e"}),
            Ok(("https://api.example.org/users/%252e%252e/mails", json!({}))),
        );
    }

    #[test]
    fn a_template_names_its_server() {
        for template in [
            "https://{host}/a",
            "{url}",
            "https://e.org{x}/a",
            "https://e.org:{port}/a",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
