//! English words with a part of their own in searches: stop words, function words and irregular
//! forms.
//!
//! Chosen by measured retrieval quality (`cargo run -p rockbot-benches --bin recall_quality`).

use std::sync::LazyLock;

/// Stop words: articles, prepositions and conjunctions. No text is found by them.
const STOP_WORDS: &str = "a about also an and any as at because but by for from here if in into just of on or so some \
    than the then there to too very with";

/// Function words: pronouns, auxiliaries, question words, negations and the rest of their
/// contractions. A query that has other words is searched without them; texts keep them, since
/// `who am I` has nothing else.
const FUNCTION_WORDS: &str = "above after again against all am are arent be been before being below between both can \
    cannot cant could couldnt d did didnt do does doesnt doing dont down during each few further had hadnt has hasnt \
    have havent having he her hers herself hes him himself his how hows i id im is isnt it its itself ive let lets ll m \
    may me might more most must my myself no nor not now off once only other our ours ourselves out over own re s same \
    shall she shes should shouldnt such t that thats their theirs them themselves these they theyd theyll theyre \
    theyve this those through under until up us ve was wasnt we werent were weve what whats when where wheres which \
    while who whom whos whose why will wont would wouldnt you youd youll your youre yours yourself yourselves youve";

/// Irregular forms, each group after the word that stands for all of it.
const FORMS: &str = "begin began begun;break broke broken;bring brought;build built;buy bought;catch caught;choose \
    chose chosen;come came;deal dealt;draw drew drawn;drink drank drunk;drive drove driven;eat ate eaten;fall fell \
    fallen;feel felt;fight fought;find found;fly flew flown;forget forgot forgotten;freeze froze frozen;get got \
    gotten;give gave given;go goes going went gone;grow grew grown;hear heard;hide hid hidden;hold held;keep kept;know knew \
    known;lead led;learn learnt;lend lent;lose lost;make made;mean meant;meet met;pay paid;ride rode ridden;ring rang \
    rung;rise rose risen;run ran;say said;see saw seen;sell sold;send sent;shoot shot;sing sang sung;sit sat;sleep \
    slept;speak spoke spoken;spend spent;stand stood;steal stole stolen;swim swam swum;take took taken;teach \
    taught;tell told;think thought;throw threw thrown;understand understood;wake woke woken;wear wore worn;win \
    won;write wrote written;child children;foot feet;knife knives;man men;mouse mice;person people;tooth teeth;wife \
    wives;woman women";

/// The part that a word plays in searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A word that tells the subject of a text.
    Content,
    /// A form of the word that is given.
    FormOf(&'static str),
    /// A word that a query of several others does without.
    Function,
    /// A word that is never searched for.
    Stop,
}

/// The words above, sorted, with the place where the words of each first letter begin.
struct Words {
    words: Vec<(&'static str, Role)>,
    first: [usize; 27],
    /// The last letters, as bits, of the words of each first letter and length. Most words of texts
    /// have none of these last letters, and are not looked for.
    last: [[u32; MAX_LEN + 1]; 26],
}

/// Length of the longest word.
const MAX_LEN: usize = 10;

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let stop = STOP_WORDS.split_ascii_whitespace().map(|word| (word, Role::Stop));
    let function = FUNCTION_WORDS
        .split_ascii_whitespace()
        .map(|word| (word, Role::Function));
    let forms = FORMS.split(';').flat_map(|group| {
        let mut words = group.split_ascii_whitespace();
        let base = words.next().unwrap_or_default();
        words.map(move |form| (form, Role::FormOf(base)))
    });
    let mut words: Vec<_> = stop.chain(function).chain(forms).collect();
    words.sort_unstable_by_key(|(word, _)| *word);
    let before = |letter: usize| words.partition_point(|(word, _)| word.as_bytes()[0] < b'a' + letter as u8);
    let mut last = [[0; MAX_LEN + 1]; 26];
    for (word, _) in &words {
        let from = word.as_bytes()[0] - b'a';
        let to = word.as_bytes()[word.len() - 1] - b'a';
        last[usize::from(from)][word.len()] |= 1 << to;
    }
    Words {
        first: std::array::from_fn(before),
        last,
        words,
    }
});

/// Returns the role of `word`, which is in lower case.
pub(super) fn role(word: &str) -> Role {
    let known = &*WORDS;
    let (Some(first), Some(last)) = (word.bytes().next(), word.bytes().last()) else {
        return Role::Content;
    };
    let letter = usize::from(first.wrapping_sub(b'a'));
    let last = last.wrapping_sub(b'a');
    let ends = known.last.get(letter).and_then(|ends| ends.get(word.len()));
    if last > 25 || ends.is_none_or(|ends| ends & (1 << last) == 0) {
        return Role::Content;
    }
    let words = &known.words[known.first[letter]..known.first[letter + 1]];
    let found = words.binary_search_by_key(&word, |(word, _)| word);
    found.map_or(Role::Content, |at| words[at].1)
}

/// Returns `true` if `word`, an English word in lower case, tells the subject of a text: it is
/// neither a stop word nor one of the words that only carry a sentence.
///
/// ```
/// use rockbot_search::is_content_word;
///
/// assert!(is_content_word("harbour") && !is_content_word("whose"));
/// ```
pub fn is_content_word(word: &str) -> bool {
    matches!(role(word), Role::Content | Role::FormOf(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_one_role() {
        for pair in WORDS.words.windows(2) {
            assert_ne!(pair[0].0, pair[1].0);
        }
        assert!(WORDS.words.iter().all(|(word, its)| role(word) == *its));
        let roles = [
            "the",
            "whose",
            "went",
            "yourselves",
            "zebra",
            "",
            "éa",
            "yourselvesandmore",
        ]
        .map(role);
        let content = Role::Content;
        let form = Role::FormOf("go");
        assert_eq!(
            roles,
            [
                Role::Stop,
                Role::Function,
                form,
                Role::Function,
                content,
                content,
                content,
                content
            ]
        );
    }
}
