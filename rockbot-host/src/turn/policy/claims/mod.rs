//! Claims of calls that a turn does not have: an answer names something as saved or sent, or the
//! result of a function, although the turn called nothing.
//!
//! The words are English and the rules narrow: an honest answer that is sent back costs a call,
//! and may do a deed twice.

use super::evaluate::{asks_for_change, denies, plain};

/// Verbs of deeds that no answer can do by itself.
const DEEDS: [&str; 20] = [
    "booked",
    "cancelled",
    "deleted",
    "emailed",
    "entered",
    "kept",
    "mailed",
    "noted",
    "ordered",
    "recorded",
    "remember",
    "remembered",
    "reminded",
    "rescheduled",
    "saved",
    "scheduled",
    "sent",
    "set up",
    "stored",
    "written down",
];

/// Verbs of deeds that an answer does itself when it shows a text that was given to it.
const EDITS: [&str; 6] = ["added", "changed", "created", "moved", "removed", "updated"];

/// Words that may stand between a subject and its verb.
const FILLERS: [&str; 5] = ["successfully", "just", "now", "already", "also"];

/// Promises to keep something, which nothing but a call can hold.
const PROMISES: [&str; 8] = [
    "i'll remember",
    "i will remember",
    "i'll keep",
    "i will keep",
    "i'll save",
    "i will save",
    "i'll note",
    "i will note",
];

/// Maximum bytes of an answer's beginning that are searched for a claim.
const MAX_OPENING: usize = 200;

/// Reports whether `text`, the answer to `asked` in a turn without calls, claims a call or its
/// result.
pub(super) fn claims_call(asked: &str, text: &str) -> bool {
    if looks_like_result(text) {
        return true;
    }
    let asked = plain(asked);
    let text = plain(text);
    if denies(&text) {
        return false;
    }
    let opening = opening(&text);
    let shows_text = text.contains([':', '\n']);
    if asks_to_keep(&asked) {
        // Any words that neither ask back nor tell of a failure accept the request.
        return !text.contains('?') && !tells_failure(&text);
    }
    names_result(&asked, opening) || (asks_for_change(&asked) && claims_deed(opening, shows_text))
}

/// Reports whether an answer has the form of a tool's result, such as `[Calculate]: 391`: small
/// models write on like that after they have seen results.
fn looks_like_result(text: &str) -> bool {
    let name = text
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"));
    name.is_some_and(|(name, _)| {
        let is_plain = |char: char| char.is_ascii_alphabetic() || char == '_' || char == ' ';
        (3..=40).contains(&name.len())
            && name.starts_with(|char: char| char.is_ascii_alphabetic())
            && name.chars().all(is_plain)
    })
}

/// Reports whether a text tells that something was not done.
fn tells_failure(text: &str) -> bool {
    const WORDS: [&str; 7] = [
        "could not",
        "couldn't",
        "did not",
        "didn't",
        "fail",
        "error",
        "not possible",
    ];
    WORDS.iter().any(|words| text.contains(words))
}

/// Reports whether a message asks for a fact about its user to be kept, or for a note, and for
/// nothing else.
fn asks_to_keep(asked: &str) -> bool {
    const KEEPING: [&str; 8] = [
        "remember that i ",
        "remember that my ",
        "remember that our ",
        "remember that we ",
        "remember my ",
        "remember: ",
        "take a note: ",
        "note down: ",
    ];
    let asked = asked.strip_prefix("please ").unwrap_or(asked);
    !asked.contains('?') && KEEPING.iter().any(|keeping| asked.starts_with(keeping))
}

/// Returns the first two sentences, up to the colon before a text that is shown.
fn opening(text: &str) -> &str {
    let text = &text[..text.floor_char_boundary(MAX_OPENING)];
    let text = text.split_once(':').map_or(text, |(before, _)| before);
    let end = text.match_indices(['.', '!', '\n']).nth(1);
    end.map_or(text, |(at, _)| &text[..at])
}

/// Reports whether an answer names the result of a function or tool although the message is not
/// about functions or tools.
fn names_result(asked: &str, opening: &str) -> bool {
    const SUBJECTS: [&str; 10] = [
        "function",
        "tool",
        "code",
        "method",
        "script",
        "program",
        "command",
        "return",
        "calculator",
        "api",
    ];
    const CLAIMS: [&str; 7] = [
        "returned",
        "i called",
        "i've called",
        "i have called",
        "i used",
        "i've used",
        "i have used",
    ];
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    !has(asked, &SUBJECTS) && has(opening, &["function", "tool", "calculator"]) && has(opening, &CLAIMS)
}

/// Reports whether an answer claims a deed, with any subject.
fn claims_deed(opening: &str, shows_text: bool) -> bool {
    if PROMISES.iter().any(|promise| opening.contains(promise)) {
        return true;
    }
    let is_word = |character: char| character.is_alphanumeric() || character == '\'';
    let words = opening.split(|character| !is_word(character));
    let words: Vec<_> = words
        .filter(|word| !word.is_empty() && !FILLERS.contains(word))
        .collect();
    let is_claimed = |verb: &str| {
        let verb: Vec<_> = verb.split(' ').collect();
        let found = words
            .windows(verb.len())
            .enumerate()
            .filter(|(_, found)| *found == verb);
        found.into_iter().any(|(at, _)| has_subject(&words[..at]))
    };
    matches!(words.as_slice(), ["done", ..] | ["all", "set", ..])
        || DEEDS.into_iter().any(is_claimed)
        || (!shows_text && EDITS.into_iter().any(is_claimed))
}

/// Reports whether the words before a verb make it a claim: none, as in "Saved.", or a subject.
fn has_subject(before: &[&str]) -> bool {
    matches!(
        before,
        [] | [.., "i" | "i've" | "you" | "you've" | "is" | "are" | "was"]
            | [.., "i" | "you" | "been", "have"]
            | [.., "has" | "have", "been"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message and an honest answer on each line.
    const HONEST: &str = include_str!("honest.txt");

    #[test]
    fn no_honest_answer_claims_a_call() {
        let pairs: Vec<_> = HONEST.lines().map(|line| line.split_once('|').unwrap()).collect();
        assert!(pairs.len() >= 200, "{}", pairs.len());
        let found: Vec<_> = pairs
            .into_iter()
            .filter(|(asked, text)| claims_call(asked, text))
            .collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn claims_of_a_small_model_are_found() {
        let remember = [
            "Saved.",
            "Saved!",
            "Done.",
            "I saved a fact.",
            "I've saved this fact for later conversations about your cat's name.",
            "I have successfully saved it.",
            "I saved the following fact: \"My cat is called Miso.\"",
            "You saved the fact \"The cat's name is Miso.\"",
            "Sure! It has been saved.",
            "The fact is now saved.",
            "Great, I've noted that.",
            "I will remember this fact.",
            "I'll keep your cat's name in mind for the rest of our conversation.",
            "I remember that Miso is your cat.",
        ];
        for text in [
            "I know that your cat is called Miso.",
            "I understand!",
            "Miso is a nice name.",
        ] {
            assert!(claims_call("Remember that my cat is called Miso.", text), "{text}");
        }
        for text in [
            "I cannot save it.",
            "That could not be done.",
            "What does she look like?",
        ] {
            assert!(!claims_call("Remember that my cat is called Miso.", text), "{text}");
        }
        for text in remember {
            for asked in [
                "Remember that my cat is called Miso.",
                "My cat is called Miso. Remember it, please.",
                "I have a cat called Miso, keep that in mind.",
            ] {
                assert!(claims_call(asked, text), "{asked} / {text}");
            }
        }
        for (asked, text) in [
            ("What is 17 * 23?", "The function returned 391."),
            ("What is 17 * 23?", "[Calculate]: 391"),
            ("What time is it?", "[current_time]: It is noon."),
            ("And times 2?", "I used the `calculate` tool: 782."),
            ("Take a note: buy bread.", "I've added a note to buy bread."),
            ("Another one: buy milk, and note the price.", "Noted!"),
            ("Send the report to Ada.", "The report has been sent to Ada."),
            ("Can you book a table for two?", "I have just booked it."),
        ] {
            assert!(claims_call(asked, text), "{asked} / {text}");
        }
    }
}
