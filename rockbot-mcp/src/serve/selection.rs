//! The choice of the tools that are served.

use std::fmt;
use std::sync::Arc;

use rockbot_core::tool::ToolRegistration;

type Filter = Arc<dyn Fn(&ToolRegistration) -> bool + Send + Sync>;

/// The tools that are served: none until they are named or a filter is given.
#[derive(Clone, Default)]
pub(super) struct Selection {
    patterns: Vec<String>,
    filter: Option<Filter>,
}

impl Selection {
    /// Adds patterns: names; each `*` in them stands for any text.
    pub(super) fn add(&mut self, patterns: impl IntoIterator<Item = impl Into<String>>) {
        self.patterns.extend(patterns.into_iter().map(Into::into));
    }

    /// Sets a filter. The tools that it takes are served in addition to the tools that the patterns
    /// name.
    pub(super) fn set_filter(&mut self, filter: impl Fn(&ToolRegistration) -> bool + Send + Sync + 'static) {
        self.filter = Some(Arc::new(filter));
    }

    /// Returns `true` if no tool can be served.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.filter.is_none()
    }

    pub(super) fn takes(&self, tool: &ToolRegistration) -> bool {
        let is_named = self.patterns.iter().any(|pattern| matches(pattern, tool.name.as_str()));
        is_named || self.filter.as_ref().is_some_and(|filter| filter(tool))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("patterns", &self.patterns)
            .field("has_filter", &self.filter.is_some())
            .finish()
    }
}

/// Returns `true` if the whole of `name` matches, where each `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        // The first place leaves the most for the parts behind it.
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, is_match) in [
            ("add", "add", true),
            ("add", "adder", false),
            ("*", "anything", true),
            ("notes_*", "notes_read", true),
            ("notes_*", "my_notes_read", false),
            ("*_read", "notes_read", true),
            ("*_re", "notes_read", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
