//! Long dialogues of many sessions with questions about them, in the format of the LoCoMo data
//! set (`locomo10.json`).
//!
//! The data set is not part of this repository: its file is given by the one who measures.

use rockbot_core::BoxError;
use serde_json::Value;

/// A dialogue with questions about it.
#[derive(Debug, Default)]
pub struct Dialogue {
    /// The turns, each with its speaker, and with the caption of a picture that was shown.
    pub turns: Vec<String>,
    /// The questions that name their evidence.
    pub questions: Vec<DialogueQuestion>,
}

/// A question about a dialogue.
#[derive(Debug)]
pub struct DialogueQuestion {
    /// The words of the question.
    pub text: String,
    /// The numbers of the turns that answer it, at least one.
    pub evidence: Vec<usize>,
}

/// Parses a file of dialogues.
///
/// # Errors
///
/// Returns an error if `json` is not a list in that format.
pub fn parse(json: &str) -> Result<Vec<Dialogue>, BoxError> {
    let samples: Vec<Value> = serde_json::from_str(json)?;
    samples.iter().map(dialogue).collect()
}

fn dialogue(sample: &Value) -> Result<Dialogue, BoxError> {
    let mut read = Dialogue::default();
    let mut ids = Vec::new();
    let sessions = (1..).map_while(
        |number| match &sample["conversation"][format!("session_{number}_date_time")] {
            Value::Null => None,
            _ => Some(&sample["conversation"][format!("session_{number}")]),
        },
    );
    for turn in sessions.filter_map(Value::as_array).flatten() {
        let part = |name: &str| turn[name].as_str().unwrap_or_default();
        let text = format!("{}: {} {}", part("speaker"), part("text"), part("blip_caption"));
        read.turns.push(text.trim_end().to_owned());
        ids.push(part("dia_id"));
    }
    for question in sample["qa"].as_array().ok_or("a dialogue has no questions")? {
        // Some list several turns in one string: `D8:6; D9:17`.
        let named = question["evidence"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let named = named.flat_map(|ids| ids.split([';', ' ', ',']));
        let mut evidence: Vec<_> = named.filter_map(|name| ids.iter().position(|id| *id == name)).collect();
        evidence.sort_unstable();
        evidence.dedup();
        let text = question["question"]
            .as_str()
            .ok_or("a question has no words")?
            .to_owned();
        if !evidence.is_empty() {
            read.questions.push(DialogueQuestion { text, evidence });
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_and_the_evidence_of_questions_are_read() {
        let json = r#"[{
            "conversation": {
                "session_1_date_time": "1 May", "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi!"}],
                "session_2_date_time": "2 May", "session_2": [
                    {"speaker": "Bo", "dia_id": "D2:1", "text": "Look.", "blip_caption": "a cat"}
                ]
            },
            "qa": [
                {"question": "Who has a cat?", "evidence": ["D2:1; D1:1", "D2:1"]},
                {"question": "Why?", "evidence": []}
            ]
        }]"#;
        let read = parse(json).unwrap();
        assert_eq!(read[0].turns, ["Ann: Hi!", "Bo: Look. a cat"]);
        assert_eq!(read[0].questions.len(), 1);
        assert_eq!(read[0].questions[0].evidence, [0, 1]);
    }
}
