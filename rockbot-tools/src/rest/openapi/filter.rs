//! Filters of operations.

use super::operation::Operation;

/// A pattern that names operations.
#[derive(Debug)]
pub(super) enum Filter {
    Tag(String),
    /// A method, or `*`, and a path.
    Path(String, String),
    Id(String),
}

impl Filter {
    pub(super) fn new(pattern: &str) -> Self {
        let pattern = pattern.trim();
        if let Some(tag) = pattern.strip_prefix("tag:") {
            return Self::Tag(tag.trim().to_owned());
        }
        match pattern.split_once(' ') {
            Some((method, path)) => Self::Path(method.to_ascii_lowercase(), path.trim().to_owned()),
            None if pattern.starts_with('/') => Self::Path("*".to_owned(), pattern.to_owned()),
            None => Self::Id(pattern.to_owned()),
        }
    }

    pub(super) fn includes(&self, operation: &Operation<'_>) -> bool {
        match self {
            Self::Tag(tag) => operation.tags().any(|own| matches(tag, own)),
            Self::Path(method, path) => matches(method, operation.method) && matches(path, operation.path),
            Self::Id(id) => operation.id().is_some_and(|own| matches(id, own)),
        }
    }
}

/// Returns `true` if `text` fits `pattern`; each `*` in it stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text) in [
            ("", ""),
            ("a", "a"),
            ("*", ""),
            ("*", "x"),
            ("a*", "a"),
            ("*b*", "abc"),
            ("a*c*e", "abcde"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("a*b", "a"), ("ab*b", "ab"), ("*a", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
