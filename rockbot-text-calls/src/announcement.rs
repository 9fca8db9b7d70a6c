//! Words before a call without a marker. They tell if the model makes the call, or writes about it.
//!
//! The last paragraph counts: it must state the model's next step, and must neither explain nor
//! quote nor refuse. The lists are short on purpose. A missed call is shown as text, while a call
//! that was only written about does harm when it is executed; so a word that is unknown here
//! leaves a text a text.

use crate::placement::tail;

/// Number of bytes before a call that are read.
const READ_BYTES: usize = 300;

/// Words that announce a model's next step.
const INTENDING: [&str; 40] = [
    " i'll ",
    " i will ",
    " i'm going to ",
    " i am going to ",
    " i'm now ",
    " let me ",
    " let's ",
    " let us ",
    " i need ",
    " i should ",
    " i have to ",
    " i must ",
    " i can ",
    " i'd like ",
    " i would like ",
    " i want to ",
    " we need ",
    " we should ",
    " we can ",
    " we'll ",
    " we will ",
    " i call ",
    " one moment ",
    " je vais ",
    " laissez moi ",
    " ich werde ",
    " ich schaue ",
    " ich prüfe ",
    " lass mich ",
    " voy a ",
    " déjame ",
    " vou ",
    " сейчас ",
    " давайте ",
    "我来",
    "我将",
    "我会",
    "我需要",
    "让我",
    "します ",
];

/// Words at the beginning of a sentence that announces the next step.
const BEGINNING: [&str; 8] = [
    "calling ",
    "checking ",
    "searching ",
    "looking up ",
    "fetching ",
    "retrieving ",
    "getting ",
    "now calling ",
];

/// Short answers before an action.
const AGREEING: [&str; 10] = [
    "sure",
    "okay",
    "ok",
    "certainly",
    "of course",
    "alright",
    "understood",
    "got it",
    "yes",
    "absolutely",
];

/// Words at the beginning of a short sentence that names a step of several.
const ORDERING: [&str; 5] = [" first ", " second ", " next ", " then ", " now "];

/// Maximum number of words of such a sentence.
const MAX_STEP_WORDS: usize = 6;

/// Words of texts that explain, quote or refuse a call.
const EXPLAINING: [&str; 62] = [
    " example ",
    " examples ",
    " e g ",
    " for instance ",
    " look like ",
    " looks like ",
    " looked like ",
    " like this ",
    " like so ",
    " such as ",
    " format ",
    " syntax ",
    " schema ",
    " show you ",
    " give you ",
    " json for you ",
    " write the json ",
    " you can ",
    " you could ",
    " you would ",
    " you'd ",
    " you may ",
    " you should ",
    " you write ",
    " you send ",
    " would be ",
    " would look ",
    " would send ",
    " would call ",
    " documentation ",
    " snippet ",
    " template ",
    " log ",
    " logs ",
    " logged ",
    " wrote ",
    " written ",
    " said ",
    " says ",
    " quote ",
    " the page ",
    " contains ",
    " is how ",
    " how to ",
    " explain ",
    " this is ",
    " these are ",
    " use this ",
    " try this ",
    " send this ",
    " instead of ",
    " did not ",
    " didn't ",
    " won't ",
    " will not ",
    " should not ",
    " must not ",
    " not run ",
    " not call ",
    " not execute ",
    " never ",
    " beispiel ",
];

/// Returns `true` if a call without a marker can stand after `before`: behind no words at all, or
/// behind words that announce it.
pub(super) fn announces(before: &str) -> bool {
    let last = tail(before.trim_end(), READ_BYTES);
    let paragraph = last.rsplit("\n\n").next().unwrap_or_default();
    let words = words(paragraph);
    let has = |list: &[&str]| list.iter().any(|known| words.contains(known));
    words.trim().is_empty() || !has(&EXPLAINING) && (has(&INTENDING) || begins(paragraph) || agrees(&words))
}

/// Returns `true` if the words before a call are one short sentence that names a step, such as
/// `First the time.`.
///
/// Such a sentence is enough only in front of a form with a marker of its own.
pub(super) fn names_step(before: &str) -> bool {
    let sentence = before.trim();
    let words = words(sentence);
    let is_short = words.split_whitespace().count() <= MAX_STEP_WORDS;
    let is_whole = sentence.ends_with('.') && !sentence.contains('\n');
    let begins = ORDERING.iter().any(|word| words.starts_with(word));
    is_short && is_whole && begins && !EXPLAINING.iter().any(|known| words.contains(known))
}

/// Reports whether the last sentence begins with an action.
fn begins(paragraph: &str) -> bool {
    let text = paragraph.trim_end_matches(|char: char| !char.is_alphanumeric());
    let sentence = text.rsplit(['.', '!', '?', '\n']).next().unwrap_or_default();
    let sentence = words(sentence);
    BEGINNING.iter().any(|known| sentence.trim_start().starts_with(known))
}

/// Reports whether a text is hardly more than an agreement.
fn agrees(words: &str) -> bool {
    let words = words.trim();
    words.split(' ').count() <= 4 && AGREEING.iter().any(|known| words.starts_with(known))
}

/// Returns the words in lower case, with a space before, between and behind them.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    for char in text.chars().flat_map(char::to_lowercase) {
        match char {
            '\'' | '’' => words.push('\''),
            char if char.is_alphanumeric() => words.push(char),
            _ if words.ends_with(' ') => {}
            _ => words.push(' '),
        }
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}
