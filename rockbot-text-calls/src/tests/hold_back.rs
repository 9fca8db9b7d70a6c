//! The text that is shown while an answer is streamed.

use proptest::prelude::*;

use super::corpus::samples;
use super::properties::mixture;
use crate::TextAnswer;

/// Shows `text` in pieces of these lengths, then checks that it stayed whole and hid what must be
/// hidden.
#[track_caller]
fn check(text: &str, lengths: &[usize]) -> String {
    let parser = super::parser();
    let mut hold_back = parser.hold_back();
    let mut shown = String::new();
    let mut rest = text;
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let wanted = lengths.next().copied().unwrap_or(1).max(1);
        let length = rest
            .char_indices()
            .map(|(at, char)| at + char.len_utf8())
            .find(|end| *end >= wanted);
        let (piece, behind) = rest.split_at(length.unwrap_or(rest.len()));
        shown.push_str(&hold_back.push(piece));
        assert_eq!(format!("{shown}{}{behind}", hold_back.held()), text);
        rest = behind;
    }
    let answer = parser.parse(text);
    let hidden = first_hidden(&answer);
    assert!(
        shown.len() <= hidden.unwrap_or(text.len()),
        "{shown:?} was shown of {text:?}"
    );
    let all = format!("{shown}{}", hold_back.rest_of(&answer));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&all), words(&answer.text), "{text:?}");
    assert!(hidden.is_some() || all == text, "{all:?} is not {text:?}");
    shown
}

/// Returns the offset of the first text that a person should not see.
fn first_hidden(answer: &TextAnswer) -> Option<usize> {
    let calls = answer.calls.iter().map(|call| call.span.start);
    let malformed = answer.malformed.iter().map(|flaw| flaw.span.start);
    calls.chain(malformed).chain(answer.hallucinated_from).min()
}

#[test]
fn no_sample_shows_a_byte_of_a_call() {
    for (_, sample) in samples() {
        check(&sample.text, &[1]);
        check(&sample.text, &[7, 2, 30]);
        check(&sample.text, &[usize::MAX]);
    }
}

#[test]
fn whole_answers_are_held_from_their_first_word() {
    for text in [
        " \t```tool_code\nnow()\n```",
        "\n\nlist_tasks\n",
        "now()\n",
        "get_weather<|end|>",
        "get_weather\n[Tool result for get_weather]: rain",
        "math.hypot(x=3, y=4)",
        "functions.math.hypot\n{\"x\": 3, \"y\": 4}",
        " to=functions.now<|channel|>analysis<|message|>{}",
        "to=now <|message|>{}",
        "analysisNoon?assistantcommentary to=functions.now json{}",
        "function call\n{\"name\": \"now\", \"arguments\": {}}",
        "` {\"name\": \"now\", \"arguments\": {}}`",
        "<think>```\n</think>\n<tool_call>{\"name\": \"now\"}",
        "<think>```</THINK>\n```\n</think>tool_call_name: now",
    ] {
        let shown = check(text, &[1]);
        assert!(!super::parser().parse(text).calls.is_empty(), "{text:?}");
        assert!(shown.trim().is_empty() || shown.starts_with("<think>"), "{shown:?}");
    }
}

#[test]
fn what_is_left_to_show_follows_what_was_shown() {
    let parser = super::parser();
    let text = "  Let me see. \n\ntool_call_name: now\n\nThat was all.";
    let mut hold_back = parser.hold_back();
    assert_eq!(hold_back.push(text), "  Let me see. \n\n");
    assert_eq!(hold_back.rest_of(&parser.parse(text)), "That was all.");
}

#[test]
fn prose_and_code_are_shown_at_once() {
    let mut answer = super::parser().hold_back();
    for piece in [
        "Hello <b>you</b>, ",
        "see [1].\n",
        "```python\n>>> now()\n",
        "<tool_call>\n```\n",
        "Action items\n",
        "- a",
    ] {
        assert_eq!(answer.push(piece), piece);
    }
    assert_eq!((answer.held(), answer.may_be_call()), ("", false));
}

#[test]
fn a_doubt_is_held_until_it_is_resolved() {
    let mut answer = super::parser().hold_back();
    assert_eq!(answer.push("a <tool"), "a ");
    assert_eq!(answer.push("box>,"), "<toolbox>,");
    assert_eq!(answer.push("\nget_"), "\n");
    assert_eq!(answer.push("weather is"), "get_weather is");
}

proptest! {
    #[test]
    fn shown_and_held_are_the_answer_and_calls_are_held(
        text in mixture(),
        lengths in prop::collection::vec(1_usize..40, 1..5),
    ) {
        check(&text, &lengths);
    }
}

#[test]
fn a_held_call_is_not_copied_with_each_piece() {
    let mut hold_back = super::parser().hold_back();
    assert_eq!(
        hold_back.push("<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"place\": \""),
        ""
    );
    let mut buffer = hold_back.held().as_ptr();
    let mut moves = 0;
    for _ in 0..100_000 {
        assert_eq!(hold_back.push("word "), "");
        moves += usize::from(hold_back.held().as_ptr() != buffer);
        buffer = hold_back.held().as_ptr();
    }
    // A buffer that doubles moves at most once for each doubling.
    assert!(moves < 20, "{moves} copies");
}
