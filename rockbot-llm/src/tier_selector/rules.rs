//! The numbers and words that a selector decides by.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

/// The ceilings and keywords of a [`KeywordTierSelector`](super::KeywordTierSelector).
///
/// A keyword is looked for anywhere in the lower-case text, also inside words, and counts once;
/// blanks at its end count.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TierRules {
    /// The highest score that is Low. 0.15 by default.
    pub low_ceiling: f64,
    /// The highest score that is Balanced. 0.46 by default.
    pub balanced_ceiling: f64,
    /// Lower-case words of hard questions.
    pub high_signal_keywords: Vec<String>,
    /// Lower-case words of simple questions. They only outweigh words of hard ones.
    pub low_signal_keywords: Vec<String>,
}

/// Rules that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TierRulesError {
    /// The text is no JSON object.
    #[error("it is no JSON object ({reason}): correct it, or remove it for the default rules")]
    NotAnObject {
        /// Cause.
        reason: String,
    },
    /// A member has a value that cannot be used.
    #[error("`{member}` {problem}")]
    InvalidMember {
        /// The member.
        member: &'static str,
        /// Problem of its value, and the range that is allowed.
        problem: String,
    },
}

const MAX_KEYWORDS: usize = 1000;

const MAX_KEYWORD_CHARS: usize = 100;

impl TierRules {
    /// Sets the highest score that is Low. 0.15 by default.
    #[must_use]
    pub fn with_low_ceiling(mut self, low_ceiling: f64) -> Self {
        self.low_ceiling = low_ceiling;
        self
    }

    /// Sets the highest score that is Balanced. 0.46 by default.
    #[must_use]
    pub fn with_balanced_ceiling(mut self, balanced_ceiling: f64) -> Self {
        self.balanced_ceiling = balanced_ceiling;
        self
    }

    /// Sets the lower-case words of hard questions.
    #[must_use]
    pub fn with_high_signal_keywords(mut self, high_signal_keywords: Vec<String>) -> Self {
        self.high_signal_keywords = high_signal_keywords;
        self
    }

    /// Sets the lower-case words of simple questions.
    #[must_use]
    pub fn with_low_signal_keywords(mut self, low_signal_keywords: Vec<String>) -> Self {
        self.low_signal_keywords = low_signal_keywords;
        self
    }

    /// Reads rules such as `{"lowCeiling": 0.15, "balancedCeiling": 0.46, "highSignalKeywords":
    /// ["analyze"], "lowSignalKeywords": []}`.
    ///
    /// A member that is missing or null has its default; an empty list means no keywords. Members
    /// that are not known, such as `version` and `notes`, are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if `json` is no object, a ceiling is not between 0 and 1, the low one is
    /// above the balanced one, or a list has more than 1000 keywords, or a keyword that is empty or
    /// longer than 100 characters. The error names the member.
    pub fn from_json(json: &str) -> Result<Self, TierRulesError> {
        let not_an_object = |reason: String| TierRulesError::NotAnObject { reason };
        let json = json.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(json).map_err(|error| not_an_object(error.to_string()))?;
        if !value.is_object() {
            return Err(not_an_object("it is another JSON value".into()));
        }
        let default = Self::default();
        let low_ceiling = ceiling(&value, "lowCeiling", 0.0..=1.0)?.unwrap_or(default.low_ceiling);
        let balanced_ceiling =
            ceiling(&value, "balancedCeiling", low_ceiling..=1.0)?.unwrap_or(default.balanced_ceiling.max(low_ceiling));
        Ok(Self {
            low_ceiling,
            balanced_ceiling,
            high_signal_keywords: keywords(&value, "highSignalKeywords")?.unwrap_or(default.high_signal_keywords),
            low_signal_keywords: keywords(&value, "lowSignalKeywords")?.unwrap_or(default.low_signal_keywords),
        })
    }
}

fn ceiling(rules: &Value, member: &'static str, allowed: RangeInclusive<f64>) -> Result<Option<f64>, TierRulesError> {
    let value = &rules[member];
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_f64().filter(|number| allowed.contains(number));
    number.map(Some).ok_or_else(|| TierRulesError::InvalidMember {
        member,
        problem: format!("must be a number from {} to {}", allowed.start(), allowed.end()),
    })
}

fn keywords(rules: &Value, member: &'static str) -> Result<Option<Vec<String>>, TierRulesError> {
    let invalid = |problem: String| TierRulesError::InvalidMember { member, problem };
    let list = match &rules[member] {
        Value::Null => return Ok(None),
        Value::Array(list) if list.len() <= MAX_KEYWORDS => list,
        Value::Array(_) => return Err(invalid(format!("may have at most {MAX_KEYWORDS} keywords"))),
        _ => return Err(invalid("must be a list of texts".into())),
    };
    let keyword = |value: &Value| {
        let keyword = value.as_str()?;
        let fits = !keyword.trim().is_empty() && keyword.chars().count() <= MAX_KEYWORD_CHARS;
        fits.then(|| keyword.to_lowercase())
    };
    let all = list.iter().map(keyword).collect::<Option<Vec<_>>>();
    let problem = || format!("must hold texts of 1 to {MAX_KEYWORD_CHARS} characters only");
    all.map(Some).ok_or_else(|| invalid(problem()))
}

impl Default for TierRules {
    fn default() -> Self {
        Self {
            low_ceiling: 0.15,
            balanced_ceiling: 0.46,
            high_signal_keywords: HIGH_SIGNALS.map(str::to_owned).into(),
            low_signal_keywords: LOW_SIGNALS.map(str::to_owned).into(),
        }
    }
}

const HIGH_SIGNALS: [&str; 44] = [
    "analyze",
    "analyse",
    "design",
    "architect",
    "evaluate",
    "critique",
    "trade-off",
    "tradeoff",
    "trade off",
    "compare and contrast",
    "compare",
    "prove",
    "derive",
    "demonstrate why",
    "reason through",
    "implement a system",
    "build a system",
    "step by step",
    "microservice",
    "distributed",
    "concurrent",
    "asynchronous",
    "async",
    "optimize",
    "performance bottleneck",
    "scalab",
    "security implication",
    "threat model",
    "explain in depth",
    "comprehensive",
    "thorough analysis",
    "multiple approaches",
    "pros and cons",
    "disadvantage",
    "research",
    "synthesize",
    "synthesise",
    "enterprise",
    "authentication",
    "authorization",
    "investigate",
    "technical brief",
    "technical analysis",
    "technical review",
];

const LOW_SIGNALS: [&str; 18] = [
    "what is",
    "what's",
    "who is",
    "who was",
    "when was",
    "where is",
    "define ",
    "definition of",
    "spell ",
    "translate ",
    "capital of",
    "how many",
    "list the",
    "give me a list",
    "yes or no",
    "true or false",
    "convert ",
    "format ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_are_optional() {
        let default = TierRules::default();
        for json in [
            "{}",
            "\u{feff}{}",
            r#"{"lowCeiling":null,"highSignalKeywords":null,"version":2,"new":{}}"#,
        ] {
            assert_eq!(TierRules::from_json(json).unwrap(), default, "{json}");
        }
        let json = r#"{"version":1,"notes":"tightened","lowCeiling":0.2,"highSignalKeywords":["Kernel "],"lowSignalKeywords":[]}"#;
        let expected = TierRules {
            low_ceiling: 0.2,
            high_signal_keywords: vec!["kernel ".into()],
            low_signal_keywords: Vec::new(),
            ..default
        };
        assert_eq!(TierRules::from_json(json).unwrap(), expected);
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        let rules = TierRules::default();
        let json = serde_json::to_string(&rules).unwrap();
        assert_eq!(TierRules::from_json(&json).unwrap(), rules);
    }

    #[test]
    fn a_high_low_ceiling_alone_lifts_the_balanced_one() {
        let rules = TierRules::from_json(r#"{"lowCeiling":0.5}"#).unwrap();
        assert_eq!((rules.low_ceiling, rules.balanced_ceiling), (0.5, 0.5));
    }

    #[test]
    fn an_error_names_the_member() {
        let check = |json: &str, expected: &str| {
            let error = TierRules::from_json(json).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{json}: {error}");
        };
        check("", "it is no JSON object");
        check("[]", "it is no JSON object (it is another JSON value)");
        check("null", "it is no JSON object");
        check(r#"{"lowCeiling":0.15"#, "it is no JSON object");
        check(r#"{"lowCeiling":1.5}"#, "`lowCeiling` must be a number from 0 to 1");
        check(r#"{"lowCeiling":"0.1"}"#, "`lowCeiling` must be a number from 0 to 1");
        check(
            r#"{"lowCeiling":0.5,"balancedCeiling":0.4}"#,
            "`balancedCeiling` must be a number from 0.5 to 1",
        );
        check(
            r#"{"highSignalKeywords":"a"}"#,
            "`highSignalKeywords` must be a list of texts",
        );
        for list in [
            r#"[" "]"#.to_owned(),
            "[1]".into(),
            format!(r#"["{}"]"#, "x".repeat(101)),
        ] {
            let json = format!(r#"{{"lowSignalKeywords":{list}}}"#);
            check(&json, "`lowSignalKeywords` must hold texts of 1 to 100 characters only");
        }
        let many = format!(r#"{{"lowSignalKeywords":[{}"x"]}}"#, r#""x","#.repeat(1000));
        check(&many, "`lowSignalKeywords` may have at most 1000 keywords");
    }
}
