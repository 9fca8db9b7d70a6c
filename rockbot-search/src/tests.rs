use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn words(analyzer: &dyn Analyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer.words(text, &mut |term, _| words.push(term.to_owned()));
    words
}

fn query_words(analyzer: &dyn Analyzer, query: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer.query_words(query, &mut |term, _| words.push(term.to_owned()));
    words
}

/// The formula written down once more, in the plainest way.
fn plain_scores(analyzer: &dyn Analyzer, texts: &[String], query: &str) -> Vec<f64> {
    let texts: Vec<_> = texts.iter().map(|text| words(analyzer, text)).collect();
    let query = query_words(analyzer, query);
    let pairs: BTreeSet<_> = query.windows(2).map(<[String]>::to_vec).collect();
    let singles: BTreeSet<_> = query.iter().map(|word| vec![word.clone()]).collect();
    let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len() as f64;
    let count = |text: &[String], term: &[String]| text.windows(term.len()).filter(|found| *found == term).count();
    let score = |text: &Vec<String>| {
        let terms = singles
            .iter()
            .map(|term| (term, 1.0))
            .chain(pairs.iter().map(|term| (term, 0.25)));
        terms
            .map(|(term, factor)| {
                let having = texts.iter().filter(|text| count(text, term) > 0).count() as f64;
                let idf = ((texts.len() as f64 - having + 0.5) / (having + 0.5) + 1.0).ln();
                let count = count(text, term) as f64;
                factor * idf * count * 1.9 / (count + 0.9 * (0.6 + 0.4 * text.len() as f64 / average))
            })
            .filter(|score| score.is_finite())
            .sum()
    };
    texts.iter().map(score).collect()
}

/// Ranks as the original does, in the plainest way: words of the query by words, pairs of them by
/// raw text.
fn seed_scores(texts: &[String], query: &str) -> Vec<f64> {
    let words = |text: &str| {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !matches!(c, 'a'..='z' | '0'..='9'));
        words
            .filter(|word| word.len() >= 3)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let query = words(query);
    let singles: BTreeSet<_> = query.iter().cloned().collect();
    let pairs: BTreeSet<_> = query.windows(2).map(|pair| pair.join(" ")).collect();
    let lengths: Vec<_> = texts.iter().map(|text| words(text).len() as f64).collect();
    let average = lengths.iter().sum::<f64>() / texts.len() as f64;
    let average = if average > 0.0 { average } else { 1.0 };
    let in_words = |text: &String, term: &String| words(text).iter().filter(|word| *word == term).count();
    let in_text = |text: &String, term: &String| text.to_lowercase().matches(term.as_str()).count();
    let score = |factor: f64, term: &String, count: &dyn Fn(&String, &String) -> usize, number: usize| {
        let having = texts.iter().filter(|text| count(text, term) > 0).count() as f64;
        let idf = ((texts.len() as f64 - having + 0.5) / (having + 0.5) + 1.0).ln();
        let count = count(&texts[number], term) as f64;
        factor * idf * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * lengths[number] / average))
    };
    let all = |number| {
        let singles = singles.iter().map(|term| score(1.0, term, &in_words, number));
        let pairs = pairs.iter().map(|term| score(2.0, term, &in_text, number));
        singles.chain(pairs).sum()
    };
    (0..texts.len()).map(all).collect()
}

proptest! {
    /// An apostrophe inside a word is dropped and keeps the word from being read as a run.
    #[test]
    fn words_read_as_runs_are_those_read_by_characters(text in "([A-Za-z][a-z]{4,70}|the|What|over|[ .!?\"é\u{301}4-]){0,12}") {
        let mut by_characters = String::new();
        for word in text.split_inclusive(|c: char| !c.is_ascii_alphabetic()) {
            if word.len() > 5 && word.as_bytes()[..5].iter().all(u8::is_ascii_alphabetic) { by_characters.extend([&word[..3], "'", &word[3..]]) } else { by_characters.push_str(word) }
        }
        prop_assert_eq!(words(&UnicodeAnalyzer, &by_characters), words(&UnicodeAnalyzer, &text));
        prop_assert_eq!(query_words(&UnicodeAnalyzer, &by_characters), query_words(&UnicodeAnalyzer, &text));
    }
}

fn index_of(analyzer: Arc<dyn Analyzer>, texts: &[String]) -> Bm25Index<usize> {
    let mut index = Bm25Index::new(analyzer);
    texts
        .iter()
        .enumerate()
        .for_each(|(number, text)| index.insert(number, text));
    index
}

/// Checks that hits are in order and have the expected scores, up to rounding.
fn check(hits: &[Ranked<usize>], expected: &[f64]) -> Result<(), TestCaseError> {
    let found: BTreeMap<_, _> = hits.iter().map(|hit| (hit.item, hit.score)).collect();
    for (number, expected) in expected.iter().enumerate() {
        let score = found.get(&number).copied().unwrap_or_default();
        prop_assert!(
            (score - expected).abs() <= 1e-4 * expected.max(1.0),
            "{number}: {score}, not {expected}"
        );
        prop_assert!(score.is_finite() && (score > 0.0) == found.contains_key(&number));
    }
    for pair in hits.windows(2) {
        let in_order = pair[0].score > pair[1].score || pair[0].score == pair[1].score && pair[0].item < pair[1].item;
        prop_assert!(in_order, "{pair:?}");
    }
    Ok(())
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec("(state|of|art|works|Gate|garden|iron|C#|été|東京|🚀|x)[ ,-]", 0..12)
        .prop_map(|words| words.concat())
}

fn seed_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        "(State|of|art|ART|smart|work|works|workers|C#|été|東京|🚀|x)( |  |, |-|\n)",
        0..12,
    )
    .prop_map(|words| words.concat())
}

fn analyzer() -> impl Strategy<Value = Arc<dyn Analyzer>> {
    let seed: Arc<dyn Analyzer> = Arc::new(SeedAnalyzer);
    let unicode: Arc<dyn Analyzer> = Arc::new(UnicodeAnalyzer);
    prop_oneof![Just(seed), Just(unicode)]
}

proptest! {
    #[test]
    fn ranker_and_index_follow_the_formula(
        texts in proptest::collection::vec(text(), 1..20),
        query in text(),
        analyzer in analyzer(),
    ) {
        let expected = plain_scores(&*analyzer, &texts, &query);
        let ranker = Bm25Ranker::new(analyzer.clone());
        let hits = ranker.rank_with_scores(texts.iter().enumerate(), |(_, text)| text.as_str().into(), &query);
        let hits: Vec<_> = hits.iter().map(|hit| Ranked { item: hit.item.0, score: hit.score }).collect();
        check(&hits, &expected)?;
        check(&index_of(analyzer, &texts).search(&query, 100), &expected)?;
    }

    #[test]
    fn the_seed_ranker_is_the_original(texts in proptest::collection::vec(seed_text(), 1..12), query in seed_text()) {
        let expected = seed_scores(&texts, &query);
        let ranker = Bm25Ranker::seed();
        let candidates = || texts.iter().map(String::as_str).enumerate();
        let hits = ranker.rank_with_scores(candidates(), |(_, text)| (*text).into(), &query);
        let ranked = ranker.rank(candidates(), |(_, text)| (*text).into(), &query);
        prop_assert_eq!(ranked, hits.iter().map(|hit| hit.item).collect::<Vec<_>>());
        for hit in &hits {
            let expected = expected[hit.item.0];
            prop_assert!((hit.score - expected).abs() <= 1e-9 * expected, "{hit:?}, not {expected}");
        }
        prop_assert_eq!(hits.len(), expected.iter().filter(|score| **score > 0.0).count());
        for pair in hits.windows(2) {
            prop_assert!(pair[0].score > pair[1].score || pair[0].score == pair[1].score && pair[0].item.0 < pair[1].item.0);
        }
    }

    #[test]
    fn an_index_forgets_what_it_was_before(
        changes in proptest::collection::vec((0_usize..20, proptest::option::of(text())), 0..200),
        query in text(),
        limit in 0_usize..12,
    ) {
        let mut index = Bm25Index::default();
        let mut texts = BTreeMap::new();
        for (key, text) in changes {
            let known = match &text {
                Some(text) => {
                    index.insert(key, text);
                    texts.insert(key, text.clone()).is_some()
                }
                None => {
                    let removed = index.remove(&key);
                    prop_assert_eq!(removed, texts.contains_key(&key));
                    texts.remove(&key).is_some()
                }
            };
            prop_assert!(known || index.len() <= 20);
        }
        let mut fresh = Bm25Index::default();
        texts.iter().for_each(|(key, text)| fresh.insert(*key, text));
        prop_assert_eq!(index.len(), texts.len());
        prop_assert_eq!(index.search(&query, limit), fresh.search(&query, limit));
        let mut all = fresh.search(&query, 100);
        all.truncate(limit);
        prop_assert_eq!(index.search(&query, limit), all);
    }

    #[test]
    fn anything_can_be_read(text in "(?s).{0,200}") {
        for analyzer in [&SeedAnalyzer as &dyn Analyzer, &UnicodeAnalyzer] {
            prop_assert!(words(analyzer, &text).iter().all(|word| !word.is_empty() && word.len() <= 600));
        }
    }
}

#[test]
fn what_the_original_reads() {
    assert_eq!(
        words(&SeedAnalyzer, "The C# état-of ART 42 123 東京"),
        ["the", "tat", "art", "123"]
    );
}

#[test]
fn what_the_default_reads() {
    let long = "x".repeat(100);
    for (text, expected) in [
        ("", vec![]),
        ("Go, AI & C#/F# (C++)", vec!["go", "ai", "c#", "f#", "c++"]),
        ("issue#4 a+b C#x 1+", vec!["issu", "4", "b", "c", "x", "1+"]),
        ("get_from-working memory", vec!["get", "work", "memor"]),
        (
            "ÉTÉ e\u{301}te Straße Łódź İ Ёлка",
            vec!["ete", "ete", "strass", "lodz", "i", "елка"],
        ),
        (
            "l'eau 'quoted' users’ don't o'clock",
            vec!["l", "eau", "quot", "user", "dont", "o", "clock"],
        ),
        ("the thé of the tea", vec!["the", "tea"]),
        ("東京tower 한국", vec!["東", "京", "tower", "한", "국"]),
        ("ship 🚀🚀", vec!["ship", "🚀", "🚀"]),
        (&long, vec![&long[..61]]),
    ] {
        assert_eq!(words(&UnicodeAnalyzer, text), expected, "{text:?}");
    }
}

#[test]
fn forms_of_one_word_are_one_word() {
    for forms in [
        "move moves moved moving",
        "run runs running",
        "allergy allergies",
        "stop stopped stopping stops",
        "fall falls falling",
        "Küche Küchen",
        "Sohn Söhne Söhnen",
        "hermana hermanas hermano",
        "balcón balcones",
        "sedia sedie",
        "jardin jardins",
        "adopt adopts adopted adopting adoption adoptions",
        "quick quickly",
        "family families",
        "anomaly anomalies",
        "document documents",
        "agree agreement",
        "go goes going gone went",
        "buy buys bought",
        "child child's children",
        "Marienau Marienau's Marienau’s",
        "AI AI's",
    ] {
        let stems: BTreeSet<_> = words(&UnicodeAnalyzer, forms).into_iter().collect();
        assert_eq!(stems.len(), 1, "{forms}: {stems:?}");
    }
    for others in [
        "bus bush",
        "this thesis",
        "bed bee",
        "car cart",
        "king kind",
        "AI a.i",
        "station state",
        "mission miss",
        "it it's",
    ] {
        let stems: BTreeSet<_> = words(&UnicodeAnalyzer, others).into_iter().collect();
        assert!(stems.len() > 1, "{others}: {stems:?}");
    }
}

#[test]
fn names_of_code_are_found_whole_and_in_parts() {
    for (text, expected) in [
        ("maxRetryCount", vec!["maxretrycount", "max", "retr", "count"]),
        ("maxRetryKönigssee", vec!["maxretrykonigss", "max", "retr", "konigss"]),
        ("ÉtatÀJour", vec!["etatajour", "etat", "jour"]),
        ("МаксСчёт", vec!["макссчет", "макс", "счет"]),
        (
            "HTTPServer2 getURL",
            vec!["httpserver2", "http", "serv", "2", "geturl", "get", "url"],
        ),
        (
            "ERR4021 utf8 5th x1",
            vec![
                "err4021", "err", "4021", "utf8", "utf", "8", "5th", "5", "th", "x1", "1",
            ],
        ),
        ("max_retry-count.v2", vec!["max", "retr", "count", "v2", "2"]),
        ("iPhone isReady OK", vec!["iphon", "phon", "isread", "is", "read", "ok"]),
        ("a1b2c3d4e5f60718", vec!["a1b2c3d4e5f60718"]),
    ] {
        assert_eq!(words(&UnicodeAnalyzer, text), expected, "{text:?}");
    }
    let texts = ["the maximum", "let maxRetryCount = 7;", "retry the count"].map(str::to_owned);
    let index = index_of(Arc::new(UnicodeAnalyzer), &texts);
    for query in ["what is the max retry count", "maxRetryCount", "max_retry_count"] {
        assert_eq!(index.search(query, 1)[0].item, 1, "{query}");
    }
}

#[test]
fn a_query_loses_its_function_words_if_others_are_left() {
    for (query, expected) in [
        ("What is my cat called?", vec!["cat", "call"]),
        ("Who am I?", vec!["who", "am", "i"]),
        ("who is Will", vec!["who", "is", "will"]),
        ("When did Will and I move to the US?", vec!["will", "mov", "us"]),
        ("Did you have tea? Will it rain on Monday", vec!["tea", "rain", "mond"]),
        ("what didn't they've eaten for lunch", vec!["eat", "lunch"]),
        ("où est la thé", vec!["ou", "est", "la", "the"]),
    ] {
        assert_eq!(query_words(&UnicodeAnalyzer, query), expected, "{query:?}");
    }
    assert_eq!(query_words(&SeedAnalyzer, "what is my cat"), ["what", "cat"]);
}

/// An analyzer that counts the bytes that it reads.
#[derive(Debug, Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl Analyzer for Counting {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str, &str)) {
        self.0.fetch_add(text.len(), std::sync::atomic::Ordering::Relaxed);
        SeedAnalyzer.words(text, each);
    }
}

/// `customs` and `customer` have one term: the text that has the word as the query has it comes
/// first.
#[test]
fn a_word_as_written_weighs_more_than_its_stem() {
    let mut texts: Vec<_> = (0..20)
        .map(|number| format!("order {number} of a customer, status sent"))
        .collect();
    texts.push("an order that has been waiting at the gate of the harbour for a long time, status customs".to_owned());
    let query = "order status customs";
    let ranked = Bm25Ranker::default().rank(&texts, |text| text.as_str().into(), query);
    let index = index_of(Arc::new(UnicodeAnalyzer), &texts);
    assert_eq!((ranked[0], index.search(query, 1)[0].item), (&texts[20], 20));
    // The term itself is a form, too.
    let texts = ["the county", "counts, he counted", "the count"].map(str::to_owned);
    let index = index_of(Arc::new(UnicodeAnalyzer), &texts);
    assert_eq!(
        (index.search("count", 1)[0].item, index.search("count", 9).len()),
        (2, 3)
    );
}

#[test]
fn the_work_of_a_long_query_has_a_bound() {
    let mut vocabulary = postings::Vocabulary::default();
    for word in 0..1_000 {
        for text in 0..=word / 2 {
            let word = format!("word{word}");
            vocabulary.add(&word, &word, text, postings::NO_TERM);
        }
    }
    // Each word once, the most frequent first, with much else in between.
    let filler = "ä".repeat(500);
    let query: String = (0..1_000).rev().map(|word| format!("{filler} word{word} ")).collect();
    assert!(query.len() > 1_000_000);
    let counting = Counting::default();
    let terms = query_terms::query_terms(&counting, &vocabulary, &query);
    let read = counting.0.into_inner();
    assert!((31_000..=32 * 1024).contains(&read), "{read} bytes read");
    let frequencies: Vec<_> = terms.iter().map(|term| term.postings.texts().len()).collect();
    assert_eq!((frequencies.len(), frequencies[0], frequencies[32]), (33, 500, 1));

    let query: String = (0..1_000).rev().map(|word| format!("word{word} word999 ")).collect();
    let terms = query_terms::query_terms(&SeedAnalyzer, &vocabulary, &query);
    let frequencies: Vec<_> = terms.iter().map(|term| term.postings.texts().len()).collect();
    let rarest: Vec<_> = (0..64).rev().map(|word| word / 2 + 1).collect();
    assert_eq!(frequencies, rarest);
    assert!(terms.iter().all(|term| term.bigrams().is_empty()));
}

#[test]
fn ranker_and_index_choose_the_same_terms_of_a_long_query() {
    let texts: Vec<_> = (0..300).map(|n| format!("t{n} t{} t{} common", n / 2, n / 3)).collect();
    let query: String = (0..300).map(|n| format!("t{n} common ")).collect();
    let index = index_of(Arc::new(UnicodeAnalyzer), &texts);
    let hits =
        Bm25Ranker::default().rank_with_scores(texts.iter().enumerate(), |(_, text)| text.as_str().into(), &query);
    let found: BTreeMap<_, _> = hits.iter().map(|hit| (hit.item.0, hit.score)).collect();
    let indexed = index.search(&query, 1_000);
    assert_eq!(indexed.len(), found.len());
    assert!(indexed.len() < 300, "{}", indexed.len());
    for hit in indexed {
        assert!((hit.score - found[&hit.item]).abs() < 1e-4, "{hit:?}");
    }
}

#[test]
fn adjacent_words_count_more() {
    let texts = ["iron thing, garden gate", "garden iron gate thing"].map(str::to_owned);
    let index = index_of(Arc::new(UnicodeAnalyzer), &texts);
    let found: Vec<_> = index.search("garden gate", 9).iter().map(|hit| hit.item).collect();
    assert_eq!(found, [0, 1]);
    let scores = |query| index.search(query, 9).iter().map(|hit| hit.score).collect::<Vec<_>>();
    assert_eq!(
        scores("gate garden")[0],
        scores("gate garden")[1],
        "no text has this pair"
    );
}

#[test]
fn edges() {
    let empty = Bm25Index::<u32>::default();
    assert_eq!(empty.search("anything", 10), []);
    assert_eq!(Bm25Ranker::default().rank([""; 0], |text| (*text).into(), "x"), [""; 0]);

    let one = index_of(Arc::new(UnicodeAnalyzer), &["the one".to_owned()]);
    assert!(one.search("one", 1)[0].score > 0.0);
    for (query, limit) in [("", 1), ("!?", 1), ("one", 0), ("of the", 9)] {
        assert_eq!(one.search(query, limit), [], "{query:?}");
    }
    let nothing = index_of(
        Arc::new(UnicodeAnalyzer),
        &[String::new(), "?".to_owned(), "of the".to_owned()],
    );
    assert_eq!(nothing.search("the one", 9), []);

    let same: Vec<_> = (0..40).map(|_| "the and".to_owned()).collect();
    let found: Vec<_> = index_of(Arc::new(SeedAnalyzer), &same)
        .search("the and", 3)
        .iter()
        .map(|hit| hit.item)
        .collect();
    assert_eq!(found, [0, 1, 2]);
}

#[test]
fn many_texts_and_a_long_query() {
    let texts: Vec<_> = (0_usize..50_000)
        .map(|number| {
            format!(
                "note {number} on topic{} and 東京🚀 {}",
                number % 700,
                "word ".repeat(number % 13)
            )
        })
        .collect();
    let index = index_of(Arc::new(UnicodeAnalyzer), &texts);
    // Every word of the texts stands before each other one.
    let pairs: String = (0..5_000)
        .map(|number| format!("word topic{} ", number % 700))
        .collect();
    let once = "x ".repeat(50_000);
    for query in [format!("{pairs} {once}"), "東京🚀".repeat(10_000), pairs] {
        let mut hits = index.search(&query, 1_000);
        assert_eq!(hits, index.search(&query, 1_000));
        normalize(&mut hits);
        assert_eq!((hits.len(), hits[0].score), (1_000, 1.0));
        assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    }
}
