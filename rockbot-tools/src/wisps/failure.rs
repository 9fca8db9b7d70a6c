//! The failures of steps, by category.

use std::fmt;

use serde_json::Value;

/// The category of a failure, which tells the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    /// The definition is wrong: correct it.
    Structural,
    /// A service failed: try again later.
    External,
    /// A result does not have the form that a later step needs.
    Data,
    /// A model failed, or a rule refused the step.
    Judgment,
}

impl Category {
    pub(super) const ALL: [Self; 4] = [Self::Structural, Self::External, Self::Data, Self::Judgment];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Structural => "Structural",
            Self::External => "External",
            Self::Data => "Data",
            Self::Judgment => "Judgment",
        }
    }

    /// Returns the category of an error that a tool reports in words.
    fn of(text: &str) -> Self {
        const STRUCTURAL: [&str; 9] = [
            "invalid arguments",
            "missing required parameter",
            "is required",
            "required parameter",
            "was not provided",
            "not registered",
            "unknown tool",
            "there is no tool",
            "invalid",
        ];
        const EXTERNAL: [&str; 6] = ["timed out", "timeout", "unavailable", "rate limit", "503", "429"];
        const DATA: [&str; 4] = ["unexpected format", "empty result", "parse", "schema"];
        let text = text.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if text.starts_with("not run: ") {
            Self::Judgment
        } else if has(&STRUCTURAL) {
            Self::Structural
        } else if has(&EXTERNAL) || !has(&DATA) {
            Self::External
        } else {
            Self::Data
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The failure of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) category: Category,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(category: Category, message: impl Into<String>) -> Self {
        Self {
            category,
            message: message.into(),
        }
    }

    /// Creates the failure of a call whose tool reports this error.
    pub(super) fn of_tool(text: &str) -> Self {
        Self::new(Category::of(text), text)
    }

    /// Returns the failure that a successful result states: a JSON object with a text `error`.
    pub(super) fn stated_in(result: &str) -> Option<Self> {
        if !result.trim_start().starts_with('{') {
            return None;
        }
        let result: Value = serde_json::from_str(result).ok()?;
        result.get("error")?.as_str().map(Self::of_tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_error_tell_its_category() {
        for (text, expected) in [
            ("invalid arguments for `look`:", Category::Structural),
            ("there is no tool `lok`", Category::Structural),
            ("the server timed out", Category::External),
            ("HTTP 503", Category::External),
            ("cannot parse the page", Category::Data),
            ("no idea", Category::External),
            ("Not run: `pay` would change the bank", Category::Judgment),
        ] {
            assert_eq!(Failure::of_tool(text).category, expected, "{text}");
        }
    }

    #[test]
    fn a_result_that_states_an_error_is_a_failure() {
        let stated = Failure::stated_in(r#" {"error": "rate limit"}"#).unwrap();
        assert_eq!(stated, Failure::new(Category::External, "rate limit"));
        for fine in [r#"{"error": null}"#, r#"{"errors": []}"#, r#"["error"]"#, "error", "{"] {
            assert_eq!(Failure::stated_in(fine), None, "{fine}");
        }
    }
}
