//! Words of requests and of answers: the messages that ask for something to be done, and the
//! answers that sound as if it was, will be, or cannot be.
//!
//! These are guesses in English. A wrong one costs the question to a judge, or leaves an answer
//! unjudged; no answer is changed by words alone.

/// Beginnings of a message that ask for something to be done, in front of the verb or anywhere in
/// a clause.
const WISHES: [&str; 15] = [
    "please ",
    "can you ",
    "could you ",
    "you could ",
    "would you mind ",
    "would you ",
    "will you ",
    "i want you to ",
    "i need you to ",
    "i'd like you to ",
    "i would like you to ",
    "i want to ",
    "i'd like to ",
    "i need to ",
    "let's ",
];

/// Beginnings of a clause that wish for a thing.
const WANTS: [&str; 6] = ["i want", "i need", "i'd like", "we need", "we want", "we'd like"];

/// Words of a statement that asks for something to be done.
const DUTIES: [&str; 6] = [
    "has to be ",
    "have to be ",
    "needs to be ",
    "need to be ",
    "must be ",
    "should be ",
];

/// Words of any clause that asks for something to be kept.
const KEEPING: [&str; 8] = [
    "write down",
    "write it down",
    "keep in mind",
    "keep that in mind",
    "keep it in mind",
    "take a note",
    "make a note",
    "write a note",
];

/// Words that may stand in front of a verb.
const OPENERS: [&str; 17] = [
    "and", "then", "so", "also", "now", "just", "hey", "hi", "hello", "ok", "okay", "yes", "oh", "well", "kindly",
    "go", "ahead",
];

/// Verbs that ask for a change in the world.
const CHANGES: [&str; 76] = [
    "accept",
    "add",
    "alert",
    "approve",
    "archive",
    "arrange",
    "ask",
    "assign",
    "block",
    "book",
    "buy",
    "call",
    "cancel",
    "change",
    "clear",
    "close",
    "commit",
    "confirm",
    "copy",
    "create",
    "delete",
    "deploy",
    "dim",
    "don't",
    "edit",
    "email",
    "empty",
    "enable",
    "disable",
    "fix",
    "forward",
    "hire",
    "inform",
    "install",
    "invite",
    "let",
    "lock",
    "mail",
    "make",
    "mark",
    "message",
    "move",
    "note",
    "notify",
    "open",
    "order",
    "pause",
    "pay",
    "play",
    "post",
    "postpone",
    "print",
    "put",
    "record",
    "remember",
    "remind",
    "remove",
    "rename",
    "renew",
    "reply",
    "reschedule",
    "reserve",
    "restart",
    "save",
    "schedule",
    "send",
    "set",
    "start",
    "stop",
    "submit",
    "switch",
    "tell",
    "text",
    "top",
    "turn",
    "update",
];

/// Verbs, and their beginnings, that ask for words alone.
const SPEECH: [&str; 15] = [
    "tell me",
    "explain",
    "define",
    "describe",
    "spell",
    "translate",
    "say",
    "know",
    "understand",
    "speak",
    "hear",
    "see",
    "ask you",
    "let me",
    "make sense",
];

/// Verbs that ask for something to be found out.
const READING: [&str; 12] = [
    "find",
    "search",
    "look",
    "check",
    "show",
    "list",
    "read",
    "get",
    "compare",
    "summarize",
    "summarise",
    "count",
];

/// Returns `text` in lower case, with plain apostrophes.
pub(in crate::turn::policy) fn plain(text: &str) -> String {
    text.trim().to_lowercase().replace('’', "'")
}

/// Reports whether a message, in [`plain`] words, asks for something to be done.
///
/// The first verb is not the test: a message asks for something unless it is a question, a
/// statement, a request for words alone, or small talk; and any of its clauses may ask.
pub(super) fn is_instruction(asked: &str) -> bool {
    !is_smalltalk(asked) && (asks_for_change(asked) || is_other_than_talk(asked))
}

/// Reports whether a message, in [`plain`] words, asks for a change, which looking something up
/// cannot be.
pub(in crate::turn::policy) fn asks_for_change(asked: &str) -> bool {
    let words = || asked.split(|character: char| !character.is_alphanumeric());
    let is_polite = words().any(|word| word == "please");
    clauses(asked).enumerate().any(|(index, clause)| {
        let wish = WISHES.iter().find_map(|wish| Some(clause.split_once(wish)?.1));
        let begins = |text: &str, words: &[&str]| words.iter().any(|word| text.starts_with(word));
        let verb = without_openers(wish.unwrap_or(clause));
        let is_change = CHANGES.contains(&first_word(verb)) || is_gerund_of_change(first_word(verb));
        let is_kind_order = !begins(clause, &QUESTIONS) && is_polite && index == 0;
        let is_duty = !begins(clause, &QUESTIONS) && DUTIES.iter().any(|duty| clause.contains(duty));
        let is_words = begins(verb, &SPEECH) || READING.contains(&first_word(verb));
        let is_keeping = !begins(clause, &QUESTIONS) && KEEPING.iter().any(|words| clause.contains(words));
        !is_words && (is_change || is_kind_order || is_duty || is_keeping)
    })
}

/// Words that a question begins with.
const QUESTIONS: [&str; 21] = [
    "what", "who", "whom", "whose", "which", "where", "when", "why", "how", "is ", "are ", "was ", "were ", "do ",
    "does ", "did ", "am ", "has ", "have ", "isn't ", "aren't ",
];

/// Reports whether the first clause of a message is neither a question nor a statement nor a
/// request for words.
fn is_other_than_talk(asked: &str) -> bool {
    const STATEMENTS: [&str; 21] = [
        "i", "i'm", "i've", "my", "we", "we're", "our", "it", "it's", "that", "that's", "this", "there", "the", "yes",
        "no", "you", "thank", "thanks", "he", "she",
    ];
    let is_asked = WISHES.iter().any(|wish| asked.starts_with(wish));
    let verb = WISHES.iter().find_map(|wish| asked.strip_prefix(wish)).unwrap_or(asked);
    if SPEECH.iter().any(|speech| verb.starts_with(speech)) {
        return false;
    }
    let first = first_word(asked);
    let is_question = QUESTIONS.iter().any(|question| asked.starts_with(question)) || asked.ends_with('?');
    // A noun as a subject: "finding a job is hard".
    let is_remark = STATEMENTS.contains(&first) || first.ends_with("ing");
    let wants = WANTS.iter().any(|want| asked.starts_with(want));
    !first.is_empty() && (is_asked || wants || !(is_question || is_remark))
}

/// Returns the parts of a message that may ask for something each.
fn clauses(asked: &str) -> impl Iterator<Item = &str> {
    let sentences = asked.split(['.', '!', '?', ';', ':', ',', '\n']);
    sentences.flat_map(|sentence| sentence.split(" and ")).map(str::trim)
}

fn without_openers(mut clause: &str) -> &str {
    while let Some((word, rest)) = clause.split_once(' ')
        && OPENERS.contains(&word)
    {
        clause = rest.trim_start();
    }
    clause
}

fn first_word(text: &str) -> &str {
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '\'');
    words.next().unwrap_or_default()
}

/// Reports whether a word is the form in `ing` of a verb that asks for a change: "would you mind
/// moving it".
fn is_gerund_of_change(word: &str) -> bool {
    let stem = word.strip_suffix("ing").unwrap_or_default();
    let is_stem_of = |verb: &&str| *verb == stem || verb.strip_suffix('e') == Some(stem);
    stem.len() > 2 && CHANGES.iter().any(is_stem_of)
}

/// Reports whether a message is thanks or a greeting. A short answer to it is complete.
pub(in crate::turn::policy) fn is_smalltalk(asked: &str) -> bool {
    const WORDS: [&str; 9] = ["hi", "hello", "hey", "thanks", "thank", "ok", "okay", "bye", "great"];
    let asked = asked.to_lowercase();
    let mut words = asked
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    WORDS.contains(&first) && words.count() <= 2
}

/// Reports whether an answer promises work.
pub(super) fn promises(text: &str) -> bool {
    const WORDS: [&str; 15] = [
        "i'll ",
        "i will ",
        "let me ",
        "i'm going to ",
        "i am going to ",
        "one moment",
        "just a moment",
        "working on it",
        "i'm on it",
        "on it!",
        "on it.",
        "will do",
        "right away",
        "consider it ",
        "i'd be happy to",
    ];
    // A farewell, not a promise.
    let text = text.replace("let me know", "").replace("i'll be here", "");
    WORDS.iter().any(|words| text.contains(words))
}

/// Reports whether an answer claims that something was done: in its first sentence alone, or of
/// the agent itself.
pub(super) fn claims(text: &str) -> bool {
    const DONE: [&str; 6] = [
        "done",
        "finished",
        "completed",
        "all set",
        "it's done",
        "task completed",
    ];
    let first = text.split(['.', '!', '\n']).next().unwrap_or_default();
    DONE.contains(&first.trim()) || claims_action(text)
}

/// Reports whether an answer to an instruction sounds as if it was carried out. To a question,
/// such words may be the plain answer.
pub(super) fn sounds_done(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "all set",
        "taken care of",
        "good to go",
        "has been ",
        "have been ",
        "is now ",
        "are now ",
        "you're set",
        "sorted",
        "there you go",
        "as requested",
        "confirmed",
        "no problem",
        "noted",
    ];
    WORDS.iter().any(|words| text.contains(words))
}

/// Reports whether an answer denies an ability.
pub(in crate::turn::policy) fn denies(text: &str) -> bool {
    const WORDS: [&str; 13] = [
        "i can't",
        "i cannot",
        "i am not able",
        "i'm not able",
        "i'm unable",
        "i am unable",
        "don't have access",
        "do not have access",
        "don't have the ability",
        "don't have a way",
        "no way for me to",
        "as an ai",
        "something i can do",
    ];
    WORDS.iter().any(|words| text.contains(words))
}

/// Reports whether a text claims an action, in the words that models use.
fn claims_action(text: &str) -> bool {
    const DONE: [&str; 13] = [
        "cancelled",
        "scheduled",
        "created",
        "updated",
        "rescheduled",
        "deleted",
        "removed",
        "completed",
        "added",
        "saved",
        "sent",
        "booked",
        "moved",
    ];
    let text = text.to_lowercase().replace('’', "'");
    let follows = |subject: &str| {
        text.match_indices(subject).any(|(at, _)| {
            let rest = text[at + subject.len()..].trim_start();
            let rest = rest.strip_prefix("successfully ").unwrap_or(rest);
            DONE.iter().any(|done| rest.starts_with(done))
        })
    };
    follows("i've ") || follows("i have ") || text.contains("has been dispatched")
}
