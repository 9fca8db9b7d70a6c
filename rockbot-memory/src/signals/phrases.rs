//! The words of corrections, in lower case and without apostrophes.

/// Interjections before the statement of a sentence.
pub(super) const INTERJECTIONS: &[&str] = &[
    "no",
    "nope",
    "nah",
    "sorry",
    "hm",
    "hmm",
    "well",
    "oh",
    "um",
    "uh",
    "wait",
    "but",
    "ok",
    "okay",
    "actually",
    "please",
    "thanks",
    "thank you",
    "i think",
    "i believe",
    "im afraid",
];

/// The interjections that deny.
pub(super) const DENIALS: &[&str] = &["no", "nope", "nah"];

/// Phrases for "the answer is".
pub(super) const ANSWER_IS: &[&str] = &[
    "thats",
    "that is",
    "that was",
    "this is",
    "this was",
    "its",
    "it is",
    "it was",
    "your answer is",
    "your answer was",
];

/// Phrases for "the answer is not".
pub(super) const ANSWER_IS_NOT: &[&str] = &[
    "that isnt",
    "that wasnt",
    "this isnt",
    "this wasnt",
    "it isnt",
    "it wasnt",
    "your answer isnt",
    "your answer wasnt",
];

/// Adverbs before a judgement.
pub(super) const ADVERBS: &[&str] = &[
    "still",
    "just",
    "simply",
    "completely",
    "totally",
    "quite",
    "really",
    "exactly",
    "entirely",
    "also",
    "actually",
    "plain",
];

pub(super) const WRONG: &[&str] = &["wrong", "incorrect", "inaccurate"];

pub(super) const RIGHT: &[&str] = &[
    "right",
    "correct",
    "true",
    "accurate",
    "what i asked for",
    "what i asked",
    "what i meant",
    "what i said",
    "what i want",
    "what i wanted",
    "what i need",
    "what i needed",
    "what i was asking",
    "what i was looking for",
    "what im looking for",
    "what i had in mind",
    "what i requested",
];

/// Phrases for the agent's mistakes.
pub(super) const YOU_ERRED: &[&str] = &[
    "youre wrong",
    "you are wrong",
    "you were wrong",
    "you got that wrong",
    "you got this wrong",
    "you got it wrong",
    "youre mistaken",
    "you are mistaken",
    "you were mistaken",
    "you made a mistake",
    "you made an error",
    "you misunderstood",
    "youve misunderstood",
    "you have misunderstood",
    "you misread",
    "you mixed up",
    "you didnt answer my question",
    "you did not answer my question",
];

/// Continuations of [`WRONG`], [`RIGHT`] or [`YOU_ERRED`] that speak of something else than the
/// answer: "it's wrong to steal", "right away".
pub(super) const ABOUT_ELSE: &[&str] = &["of", "to", "that", "if", "when", "for", "away", "now"];

/// Phrases of a user who clarifies a misunderstood question.
pub(super) const MEANT: &[&str] = &[
    "i meant",
    "i didnt mean",
    "i did not mean",
    "i didnt ask for",
    "i did not ask for",
    "i didnt ask about",
    "i did not ask about",
    "i didnt say that",
    "i never said that",
];

/// Words after which nothing is corrected: "I meant to ask".
pub(super) const NOT_MEANT: &[&str] = &["to", "it", "what", "well", "every", "no"];

/// Phrases that correct only after a "no".
pub(super) const AFTER_NO: &[&str] = &[
    "i said",
    "i wanted",
    "i asked for",
    "i asked about",
    "i asked you",
    "i was asking",
    "i was talking about",
    "i was referring to",
    "the other one",
    "not that",
    "not this",
    "not the",
];

/// Words after which nothing is corrected: "no, not that I know".
pub(super) const NOT_AFTER_NO: &[&str] = &["i", "we", "it", "bad", "much", "many", "least"];

/// Phrases about advice that did not help.
pub(super) const FAILED: &[&str] = &[
    "that didnt work",
    "that did not work",
    "this didnt work",
    "it didnt work",
    "it did not work",
    "that doesnt work",
    "that does not work",
    "this doesnt work",
    "it doesnt work",
    "that still doesnt work",
    "this still doesnt work",
    "it still doesnt work",
    "still doesnt work",
    "still not working",
    "that still fails",
    "it still fails",
    "that didnt help",
    "that did not help",
];

pub(super) const AGAIN: &[&str] = &["try again", "try that again"];

/// Continuations after which nothing has failed: "that doesn't work for me", "try again tomorrow".
pub(super) const NOT_FAILED: &[&str] = &[
    "like", "on", "at", "in", "for", "with", "when", "until", "after", "later", "tomorrow", "next",
];

/// Words after a "not" that replaces nothing.
pub(super) const NOT_A_THING: &[&str] = &[
    "only", "just", "sure", "really", "yet", "now", "so", "too", "that", "this", "it", "much", "all",
];

pub(super) const ARTICLES: &[&str] = &["the", "a", "an", "in", "on", "at", "my", "your"];
