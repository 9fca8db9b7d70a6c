//! The action of a call, and whether the user's words ask for it.
//!
//! The name of a tool says what kind of action it takes: it sends, pays, ends something, or changes
//! something else. The user's words ask for that kind if they have one of its verbs, in the place of
//! a verb, neither denied nor about an answer for the user alone ("tell me"). So a user who only
//! asks a question has asked for no action, and a verb that the tables lack costs a question.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::evidence::Evidence;
use crate::fast::Fast;
use crate::role::words_of;

/// A kind of action: the stems of tools' names that take it, and of the words that ask for it.
#[derive(Clone, Copy)]
struct Action {
    tools: &'static [&'static str],
    words: &'static [&'static str],
}

/// Actions that reach other people.
const SEND: Action = Action {
    tools: &[
        "send",
        "mail",
        "email",
        "messag",
        "text",
        "post",
        "publish",
        "comment",
        "reply",
        "respond",
        "notif",
        "shar",
        "invit",
        "forward",
        "tweet",
        "announc",
        "broadcast",
        "contact",
        "call",
        "submit",
        "dm",
        "answer",
        "thank",
        "invok",
        "delegat",
    ],
    words: &[
        "send",
        "sent",
        "mail",
        "email",
        "messag",
        "text",
        "dm",
        "writ",
        "reply",
        "repli",
        "respond",
        "answer",
        "forward",
        "tell",
        "notif",
        "inform",
        "contact",
        "let",
        "report",
        "submit",
        "shar",
        "post",
        "publish",
        "announc",
        "tweet",
        "comment",
        "thank",
        "ask",
        "invit",
        "confirm",
        "remind",
        "ping",
        "call",
        "say",
        "mention",
        "warn",
        "put",
        "add",
        "leav",
        "schedul",
        "bill",
        "invoic",
        "schick",
        "schreib",
        "antwort",
        "benachrichtig",
        "lad",
        "teil",
        "veröffentlich",
        "sag",
        "frag",
    ],
};

/// Actions that cost money.
const PAY: Action = Action {
    tools: &[
        "pay", "transfer", "refund", "donat", "buy", "purchas", "wir", "tip", "withdraw", "deposit", "charg",
        "reimburs",
    ],
    words: &[
        "pay",
        "paid",
        "transfer",
        "send",
        "wir",
        "refund",
        "giv",
        "return",
        "settl",
        "tip",
        "donat",
        "reimburs",
        "buy",
        "order",
        "purchas",
        "charg",
        "deposit",
        "mov",
        "bill",
        "zahl",
        "überweis",
        "kauf",
        "bestell",
        "spend",
    ],
};

/// Actions that end or take away something.
const END: Action = Action {
    tools: &[
        "delet",
        "remov",
        "cancel",
        "eras",
        "clear",
        "drop",
        "revok",
        "ban",
        "kick",
        "block",
        "clos",
        "end",
        "stop",
        "declin",
        "reject",
        "disput",
        "unsubscrib",
        "archiv",
        "disabl",
        "uninstall",
        "kill",
        "terminat",
        "purg",
        "reset",
        "wip",
        "unpublish",
        "unassign",
        "expir",
        "evict",
    ],
    words: &[
        "delet",
        "remov",
        "eras",
        "clear",
        "drop",
        "trash",
        "discard",
        "clean",
        "wip",
        "purg",
        "cancel",
        "abort",
        "revok",
        "withdraw",
        "end",
        "stop",
        "clos",
        "kick",
        "ban",
        "block",
        "hid",
        "reject",
        "declin",
        "refus",
        "disput",
        "archiv",
        "unsubscrib",
        "rid",
        "disabl",
        "kill",
        "resolv",
        "finish",
        "terminat",
        "reset",
        "shut",
        "lösch",
        "entfern",
        "storn",
        "absag",
        "kündig",
        "beend",
        "sperr",
    ],
};

/// Actions of any other kind.
const CHANGE: Action = Action {
    tools: &[],
    words: &[
        "creat",
        "add",
        "mak",
        "set",
        "put",
        "enter",
        "book",
        "reserv",
        "order",
        "mov",
        "chang",
        "updat",
        "edit",
        "renam",
        "replac",
        "rais",
        "lower",
        "increas",
        "decreas",
        "bring",
        "turn",
        "switch",
        "start",
        "stop",
        "open",
        "lock",
        "clos",
        "unlock",
        "schedul",
        "plan",
        "arrang",
        "assign",
        "tak",
        "leav",
        "record",
        "log",
        "not",
        "sav",
        "stor",
        "writ",
        "append",
        "insert",
        "regist",
        "sign",
        "approv",
        "accept",
        "merg",
        "confirm",
        "mark",
        "tag",
        "label",
        "pin",
        "extend",
        "renew",
        "roll",
        "scal",
        "deploy",
        "run",
        "restart",
        "reset",
        "upload",
        "attach",
        "copy",
        "copi",
        "import",
        "generat",
        "draft",
        "prepar",
        "invit",
        "shar",
        "submit",
        "reschedul",
        "postpon",
        "shift",
        "push",
        "enabl",
        "disabl",
        "activat",
        "configur",
        "adjust",
        "correct",
        "fix",
        "link",
        "connect",
        "join",
        "subscrib",
        "follow",
        "rat",
        "fill",
        "complet",
        "organi",
        "swap",
        "buy",
        "get",
        "giv",
        "reject",
        "declin",
        "resolv",
        "pay",
        "execut",
        "launch",
        "trigger",
        "invok",
        "perform",
        "install",
        "file",
        "dim",
        "rewrit",
        "moderat",
        "hid",
        "clean",
        "block",
        "keep",
        "grant",
        "allow",
        "releas",
        "ship",
        "pick",
        "erstell",
        "anleg",
        "leg",
        "trag",
        "notier",
        "speicher",
        "füg",
        "ergänz",
        "änder",
        "stell",
        "verschieb",
        "verleg",
        "reservier",
        "buch",
        "bestell",
        "führ",
        "schalt",
        "genehmig",
        "bestätig",
        "mach",
        "setz",
    ],
};

/// Nouns that make sending a payment.
const MONEY: [&str; 5] = ["money", "payment", "funds", "transaction", "cash"];

/// Words that are nouns as often as verbs: they count only where no article or adjective makes them
/// a noun. In the plural they are nouns.
const NOUNS: [&str; 34] = [
    "mail", "email", "message", "text", "post", "report", "book", "order", "note", "log", "record", "file", "transfer",
    "schedule", "update", "change", "share", "label", "tag", "plan", "answer", "comment", "call", "block", "lock",
    "link", "end", "sign", "fix", "draft", "contact", "rate", "release", "deposit",
];

/// Words before a noun.
const BEFORE_NOUNS: [&str; 45] = [
    "the", "a", "an", "my", "his", "her", "their", "our", "your", "its", "this", "that", "these", "those", "each",
    "every", "all", "any", "some", "no", "last", "latest", "next", "first", "new", "old", "unread", "recent", "of",
    "from", "in", "by", "on", "at", "with", "about", "which", "received", "der", "die", "das", "den", "eine", "meine",
    "open",
];

/// Verbs that end something together with one of these words soon after: "take him off the list".
const PHRASES: [(&str, &[&str]); 5] = [
    ("tak", &["off", "out", "down", "away"]),
    ("turn", &["down"]),
    ("call", &["off"]),
    ("writ", &["off"]),
    ("shut", &["down"]),
];

/// Maximum number of words between the parts of a phrase.
const PHRASE_GAP: usize = 3;

/// Words that deny what follows.
const DENIALS: [&str; 11] = [
    "not", "don't", "dont", "never", "no", "without", "cannot", "nicht", "kein", "keine", "nie",
];

/// Words after a verb that make it a request for an answer: "tell me", "write me".
const FOR_ONESELF: [&str; 5] = ["me", "us", "mir", "uns", "you"];

/// Verbs that ask for an answer where they are followed by "me".
const TELLING: [&str; 14] = [
    "tell", "let", "give", "get", "write", "say", "ask", "report", "answer", "bring", "make", "draft", "prepare",
    "remind",
];

/// Words that name nothing.
const COMMON: [&str; 60] = [
    "and", "for", "are", "was", "were", "has", "have", "had", "will", "would", "can", "could", "should", "may", "must",
    "who", "whom", "whose", "what", "when", "where", "why", "how", "please", "she", "him", "they", "them", "there",
    "here", "then", "than", "but", "also", "too", "one", "two", "three", "see", "look", "check", "find", "show",
    "read", "list", "need", "want", "know", "think", "like", "just", "now", "today", "tomorrow", "into", "out", "off",
    "over", "again", "yes",
];

/// Endings of the forms of a verb.
const ENDINGS: [&str; 25] = [
    "", "e", "es", "s", "ed", "d", "ing", "er", "en", "st", "t", "y", "ies", "ied", "ify", "n", "ize", "ise", "ion",
    "ation", "ting", "ding", "ping", "te", "ning",
];

/// Reports whether a message of the user asks for the kind of action that the tool takes.
pub(crate) fn is_asked_for(tool: &str, evidence: &Evidence<'_>) -> bool {
    let action = action_of(&words_of(tool));
    let is_wanted = |word: &str| action.words.iter().any(|stem| is_form(word, stem));
    let has_phrase = |text: &str| std::ptr::eq(action.tools, END.tools) && has_phrase(text);
    let mut messages = evidence.user.iter();
    messages.any(|message| has_verb(&message.folded, is_wanted) || has_phrase(&message.folded))
}

/// Reports whether a text in lower case has a verb of several words that ends something.
fn has_phrase(text: &str) -> bool {
    let words: Vec<&str> = words(text).collect();
    words.iter().enumerate().any(|(at, word)| {
        let ahead = words.iter().skip(at + 1).take(PHRASE_GAP);
        let phrase = PHRASES.iter().find(|(stem, _)| is_form(word, stem));
        phrase.is_some_and(|(_, ends)| ahead.into_iter().any(|next| ends.contains(next)))
    })
}

/// Returns the kind of action that a tool takes by the first verb of its name.
fn action_of(name: &[String]) -> Action {
    let known = [SEND, PAY, END, CHANGE];
    for word in name {
        let takes = |action: &Action| {
            let mut stems = action.tools.iter();
            let is_change = action.tools.is_empty() && !NOUNS.contains(&word.as_str());
            stems.any(|stem| is_form(word, stem)) || is_change && action.words.iter().any(|stem| is_form(word, stem))
        };
        if let Some(action) = known.into_iter().find(takes) {
            let is_money = name.iter().any(|word| MONEY.contains(&word.as_str()));
            return if is_money && word == "send" { PAY } else { action };
        }
    }
    CHANGE
}

/// Reports whether a message of the user has every word of the tool's name: it names the whole
/// action, so a call without values does just that.
pub(crate) fn is_named(tool: &str, evidence: &Evidence<'_>) -> bool {
    let name = words_of(tool);
    let Some((verb, nouns)) = name.split_first() else {
        return false;
    };
    evidence.user.iter().any(|message| {
        let has = |word: &String| words(&message.folded).any(|said| is_form(said, stem_of(word)));
        !nouns.is_empty() && has_verb(&message.folded, |said| is_form(said, stem_of(verb))) && nouns.iter().all(has)
    })
}

/// Reports whether a text in lower case has the word in some form.
pub(crate) fn has_form(word: &str, text: &str) -> bool {
    let stem = stem_of(word);
    words(text).any(|said| said == word || is_form(said, stem))
}

/// Returns `true` for a word that stands in messages of every kind, so that it names no record.
pub(crate) fn is_common(word: &str) -> bool {
    let actions = [SEND, PAY, END, CHANGE];
    let is_verb = actions
        .iter()
        .any(|action| action.words.iter().any(|stem| is_form(word, stem)));
    is_verb || is_filler(word)
}

/// Length of the longest word that says nothing, in bytes.
const MAX_FILLER: usize = 8;

/// Returns `true` for a word that says nothing by itself.
pub(crate) fn is_filler(word: &str) -> bool {
    static FILLERS: LazyLock<HashSet<&str, Fast>> =
        LazyLock::new(|| COMMON.iter().chain(&BEFORE_NOUNS).chain(&DENIALS).copied().collect());
    word.len() <= MAX_FILLER && FILLERS.contains(word)
}

/// Returns the words of a text in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !(char.is_alphanumeric() || char == '\''))
        .map(|word| word.strip_suffix("'s").unwrap_or(word))
        .filter(|word| !word.is_empty())
}

/// Reports whether a wanted word stands in the text as a verb that is not denied.
fn has_verb(text: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    let mut before: [&str; 3] = [""; 3];
    let mut words = words(text).peekable();
    while let Some(word) = words.next() {
        let is_plural = word.strip_suffix('s').is_some_and(|one| NOUNS.contains(&one));
        let is_noun = is_plural || (NOUNS.contains(&word) && BEFORE_NOUNS.contains(&before[2]));
        let is_denied = before.iter().any(|earlier| DENIALS.contains(earlier));
        let is_answer = TELLING.contains(&word) && words.peek().is_some_and(|next| FOR_ONESELF.contains(next));
        if !is_noun && !is_denied && !is_answer && is_wanted(word) {
            return true;
        }
        before = [before[1], before[2], word];
    }
    false
}

/// Returns `true` for a form of the stem: with at most the endings of a verb.
fn is_form(word: &str, stem: &str) -> bool {
    word.strip_prefix(stem).is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns the word without the endings of its forms.
pub(crate) fn stem_of(word: &str) -> &str {
    let shorter = ["ing", "ed", "es", "e", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending));
    shorter.filter(|stem| stem.len() > 2).unwrap_or(word)
}
