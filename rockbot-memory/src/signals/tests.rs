//! Texts that count as corrections, and texts that do not.

use proptest::prelude::*;

use super::{Correction, correction};
use Correction::{Failed, Misunderstood, Replaced, Wrong};

const STATEMENT: &str = "The meeting with Ann is on Monday at 3 pm in the small room.";
const QUESTION: &str = "I can do that on Monday or on Tuesday. Which day do you **want?**";

const CORRECTIONS: &[(&str, &str, Correction)] = &[
    ("No, that's wrong.", STATEMENT, Wrong),
    ("no thats wrong", STATEMENT, Wrong),
    ("No. That is wrong!", STATEMENT, Wrong),
    ("That’s not right", STATEMENT, Wrong),
    ("That's not quite right, look again.", STATEMENT, Wrong),
    ("THAT IS INCORRECT", STATEMENT, Wrong),
    ("Sorry, but that isn't correct: Ann is away.", STATEMENT, Wrong),
    ("Hmm, it's still wrong", STATEMENT, Wrong),
    ("Actually, that's not true", STATEMENT, Wrong),
    ("Thanks. That's not what I asked.", STATEMENT, Wrong),
    ("This is not what I wanted, can you redo it?", STATEMENT, Wrong),
    ("That wasn't what I asked for", STATEMENT, Wrong),
    ("Not what I asked.", STATEMENT, Wrong),
    ("Wrong!", STATEMENT, Wrong),
    ("Wrong, it was in 1912.", STATEMENT, Wrong),
    ("Your answer is wrong", STATEMENT, Wrong),
    ("You're wrong about the room.", STATEMENT, Wrong),
    ("you misunderstood me", STATEMENT, Wrong),
    ("I think you got that wrong", STATEMENT, Wrong),
    ("You mixed up Ann and Anna.", STATEMENT, Wrong),
    ("No, you made a mistake in the second line", STATEMENT, Wrong),
    ("You didn't answer my question.", STATEMENT, Wrong),
    ("That's wrong, neither day was asked for.", QUESTION, Wrong),
    ("No, I meant Anna.", STATEMENT, Misunderstood),
    ("I meant the meeting with Anna", STATEMENT, Misunderstood),
    ("No, not that meeting!", STATEMENT, Misunderstood),
    ("no - I said Tuesday", STATEMENT, Misunderstood),
    ("Nope, the other one", STATEMENT, Misunderstood),
    ("I didn't ask for the room.", STATEMENT, Misunderstood),
    ("No, I was talking about next week", STATEMENT, Misunderstood),
    ("It's on Tuesday, not Monday.", STATEMENT, Replaced),
    ("Not Monday but Tuesday", STATEMENT, Replaced),
    ("It is not in the small room but in the large hall", STATEMENT, Replaced),
    ("At 4 pm, not at 3 pm", STATEMENT, Replaced),
    ("with Bob — not Ann", STATEMENT, Replaced),
    ("That didn't work.", "Restart the printer.", Failed),
    ("It still doesn't work", "Restart the printer.", Failed),
    (
        "No, that did not help.",
        "Restart the printer. Does it print now?",
        Failed,
    ),
    ("Please try again.", STATEMENT, Failed),
];

const OTHERS: &[(&str, &str)] = &[
    ("No problem, thanks!", STATEMENT),
    ("No, thanks.", STATEMENT),
    ("No, that's all.", STATEMENT),
    ("No worries", STATEMENT),
    ("No-one told me that", STATEMENT),
    ("No one is wrong here", STATEMENT),
    ("No, not that I know of.", STATEMENT),
    ("No, it's fine", STATEMENT),
    ("No idea", STATEMENT),
    ("no. 5 is the wrong platform, isn't it", STATEMENT),
    ("That's right!", STATEMENT),
    ("That's correct, thank you.", STATEMENT),
    ("That's wrong?", STATEMENT),
    ("Is that wrong?", STATEMENT),
    ("What's wrong with my code", STATEMENT),
    ("It's wrong to steal, isn't it?", STATEMENT),
    ("It's not right that people starve.", STATEMENT),
    ("It's not right now that I need it", STATEMENT),
    ("That's not right for me, I am vegan.", STATEMENT),
    ("Wrong number came up on my bill, why?", STATEMENT),
    ("My boss says the earth is flat. That's wrong, I said.", STATEMENT),
    ("\"That's wrong\" is what she said. What should I answer?", STATEMENT),
    ("> That's not right\nWho wrote this?", STATEMENT),
    ("I meant to ask you about the weather", STATEMENT),
    ("I meant well", STATEMENT),
    ("I didn't mean to interrupt", STATEMENT),
    ("I said hello to Ann today.", STATEMENT),
    ("Actually, let's go to Rome.", STATEMENT),
    ("Actually, can you add Bob?", STATEMENT),
    ("Try again tomorrow, please", STATEMENT),
    ("That doesn't work for me, can we move it?", STATEMENT),
    ("It doesn't work like that in Norway", STATEMENT),
    ("Not only Ann but also Bob comes.", STATEMENT),
    ("I want tea, not coffee", STATEMENT),
    ("I like Monday, not Friday", STATEMENT),
    ("Is it not Ann but Anna?", "It is Anna."),
    ("In the small room, not on Monday", STATEMENT),
    ("Tuesday, not Monday", QUESTION),
    ("No, I meant Wednesday", QUESTION),
    ("No, not that day", QUESTION),
    ("Try again", QUESTION),
    ("Monday, please.", QUESTION),
    ("No, that's wrong.", ""),
    ("Wrong!", "  \n"),
    ("", STATEMENT),
    ("?!", STATEMENT),
    ("no no no", STATEMENT),
    ("What is the right spelling of incorrect?", STATEMENT),
    ("You were wrong to trust me", STATEMENT),
];

#[test]
fn corrections_are_seen() {
    for (message, answer, expected) in CORRECTIONS {
        assert_eq!(
            correction(message, answer),
            Some(*expected),
            "{message:?} after {answer:?}"
        );
    }
}

#[test]
fn everything_else_is_left_alone() {
    for (message, answer) in OTHERS {
        assert_eq!(correction(message, answer), None, "{message:?} after {answer:?}");
    }
}

/// A text of pieces that the detector looks for, and of others.
fn talk() -> impl Strategy<Value = String> {
    let known = CORRECTIONS.iter().map(|(message, ..)| (*message).to_owned());
    let pieces: Vec<_> = known
        .chain([", not ", " but ", "?", "no ", "’", "ß", "İ"].map(str::to_owned))
        .collect();
    let piece = prop_oneof![prop::sample::select(pieces), "\\PC{0,12}"];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_can_be_asked_about(message in any::<String>(), answer in any::<String>()) {
        correction(&message, &answer);
    }

    #[test]
    fn case_does_not_matter(message in talk(), answer in talk()) {
        let found = correction(&message, &answer);
        prop_assert_eq!(correction(&message.to_ascii_uppercase(), &answer), found);
        prop_assert_eq!(correction(&message, &answer.to_ascii_uppercase()), found);
    }

    #[test]
    fn nothing_corrects_where_nothing_was_answered(message in talk()) {
        prop_assert_eq!(correction(&message, ""), None);
    }

    #[test]
    fn only_the_beginning_of_a_message_counts(beginning in "[a-z ]{300,400}", message in talk()) {
        let long = format!("{beginning}{message}");
        prop_assert_eq!(correction(&long, STATEMENT), correction(&beginning, STATEMENT));
    }
}
