//! Everyday words: the English content words that most messages have, whatever they are about.

use std::collections::HashSet;
use std::sync::LazyLock;

use rockbot_core::search::{Analyzer as _, UnicodeAnalyzer};

/// Words of greetings, requests, time, quantity and opinion. A description of a service may have
/// such a word, too, and the word says nothing about the service.
const WORDS: &str = "able add advice afternoon again ago answer anything ask back bad best better big bit book bring \
    bye call can cat change check clear close cold come complete cool correct could create day days detail do easy \
    end enough evening ever everything example explain fact far fast favorite favourite feel few file find fine \
    first follow forget friend fun funny general get give go good great guess happen hard hear hello help here hey \
    hi high hold home hour idea important information interest interesting item job joke keep kind know last late \
    later learn leave left let life like line list little live long look lot love main make many maybe mean message \
    mind minute moment month morning much name need never new next nice night note nothing number ok okay old one \
    open order part people perhaps person place plan play please possible problem put question quick quickly read \
    ready real really reason remember right say second see set short show simple simply something soon sorry sort \
    sound start step still stop story sure system take talk task tell test text thank thanks thing think thought \
    time times title today together tomorrow tonight topic try turn two understand use used user useful using want \
    way week well word work world would write wrong year yes yesterday yet";

static EVERYDAY: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut words = HashSet::new();
    UnicodeAnalyzer.words(WORDS, &mut |word, _| {
        words.insert(word.to_owned());
    });
    words
});

/// Returns `true` if most messages may have `term`, which is analyzed.
pub(super) fn is_everyday(term: &str) -> bool {
    EVERYDAY.contains(term)
}
