//! The result of an evaluation.

use rockbot_core::BoxError;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Maximum number of tools in each list.
const MAX_TOOLS: usize = 20;
/// Maximum length of a text, in characters.
const MAX_TEXT: usize = 1_000;

/// The evaluation of a session: the detail, as JSON, of a feedback entry of the kind
/// [`SessionSummary`](rockbot_core::store::FeedbackSignal::SessionSummary).
///
/// A model wrote it after it had read the conversation: it is data, not an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionSummary {
    /// The subject of the session, in a sentence.
    pub summary: String,
    /// Tools that helped.
    #[serde(default, deserialize_with = "texts")]
    pub tools_worked_well: Vec<String>,
    /// Tools that failed, or would have helped and were not used.
    #[serde(default, deserialize_with = "texts")]
    pub tools_failed_or_missed: Vec<String>,
    /// Number of corrections by the user.
    #[serde(default, deserialize_with = "count")]
    pub corrections_made: u32,
    /// Overall quality of the agent's work.
    pub overall_quality: Quality,
}

/// Quality of an agent's work in a session, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Quality {
    /// The request was not fulfilled.
    #[serde(alias = "Poor", alias = "POOR")]
    Poor,
    /// The request was fulfilled in part, or only after corrections.
    #[serde(alias = "Fair", alias = "FAIR")]
    Fair,
    /// The request was fulfilled, with small flaws.
    #[serde(alias = "Good", alias = "GOOD")]
    Good,
    /// The request was fulfilled well.
    #[serde(alias = "Excellent", alias = "EXCELLENT")]
    Excellent,
}

impl SessionSummary {
    /// Instructions on the shape of the model's answer.
    pub(super) const SHAPE: &str = "Answer with one JSON object and nothing else: \
        {\"summary\": \"one sentence\", \"toolsWorkedWell\": [\"name\"], \"toolsFailedOrMissed\": [\"name\"], \
        \"correctionsMade\": 0, \"overallQuality\": \"excellent\" or \"good\" or \"fair\" or \"poor\"}";

    /// Parses a model's answer, which may have words around the JSON.
    pub(super) fn of_answer(answer: &str) -> Result<Self, BoxError> {
        let from = answer.find('{').ok_or("the model's answer has no JSON object")?;
        let end = answer.rfind('}').map_or(answer.len(), |at| at + 1);
        let json = answer.get(from..end).ok_or("the model's answer has no JSON object")?;
        let mut summary: Self = serde_json::from_str(json)?;
        if summary.summary.trim().is_empty() {
            return Err("the model's summary is empty".into());
        }
        summary.summary = cut(&summary.summary);
        Ok(summary)
    }
}

fn cut(text: &str) -> String {
    text.trim().chars().take(MAX_TEXT).collect()
}

/// Deserializes a list of texts; models also write a single text, or nothing.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = match Value::deserialize(deserializer)? {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        item => vec![item],
    };
    let text = |item: Value| match item {
        Value::String(text) => cut(&text),
        item => cut(&item.to_string()),
    };
    Ok(texts
        .into_iter()
        .map(text)
        .filter(|text| !text.is_empty())
        .take(MAX_TOOLS)
        .collect())
}

/// Deserializes a number; models also write the list that they counted.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let count = match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_u64().unwrap_or_default(),
        Value::Array(items) => items.len() as u64,
        Value::Bool(is_any) => is_any.into(),
        _ => 0,
    };
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = concat!(
        r#"{"summary":"The user planned a trip.","toolsWorkedWell":["search"],"#,
        r#""toolsFailedOrMissed":[],"correctionsMade":2,"overallQuality":"fair"}"#,
    );

    fn summary() -> SessionSummary {
        SessionSummary {
            summary: "The user planned a trip.".to_owned(),
            tools_worked_well: vec!["search".to_owned()],
            tools_failed_or_missed: Vec::new(),
            corrections_made: 2,
            overall_quality: Quality::Fair,
        }
    }

    #[track_caller]
    fn check(answer: &str, expected: &SessionSummary) {
        assert_eq!(SessionSummary::of_answer(answer).unwrap(), *expected);
    }

    #[test]
    fn a_summary_in_json() {
        assert_eq!(serde_json::to_string(&summary()).unwrap(), JSON);
        check(JSON, &summary());
    }

    #[test]
    fn what_models_make_of_the_shape_is_read() {
        check(&format!("Here it is:\n```json\n{JSON}\n```\nDone."), &summary());
        let loose = r#"{"summary": " The user planned a trip. ", "toolsWorkedWell": "search", "toolsFailedOrMissed": null,
            "correctionsMade": ["the date", "the town"], "overallQuality": "Fair", "more": 1}"#;
        check(loose, &summary());
        let short = SessionSummary {
            tools_worked_well: Vec::new(),
            corrections_made: 0,
            ..summary()
        };
        check(
            r#"{"summary":"The user planned a trip.","overallQuality":"fair"}"#,
            &short,
        );
    }

    #[test]
    fn an_answer_without_a_verdict_is_an_error() {
        let answers = [
            "",
            "It went well.",
            "}{",
            "{}",
            r#"{"summary":" ","overallQuality":"good"}"#,
            r#"{"summary":"x","overallQuality":"so so"}"#,
        ];
        for answer in answers {
            assert!(SessionSummary::of_answer(answer).is_err(), "{answer:?}");
        }
    }
}
