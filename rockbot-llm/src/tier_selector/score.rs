//! The score of a text, in hundredths: sums of decimal fractions would miss a ceiling that they
//! should meet.

use rockbot_core::chat::ModelTier;
use rockbot_core::turn::TierDecision;

use super::TierRules;

/// Maximum part of a text that is examined for keywords and structure, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Decides the tier of `text`, with the parts of its score as reasons.
pub(super) fn decide(text: &str, rules: &TierRules) -> TierDecision {
    let words = text.split_whitespace().take(201).count();
    let text = text[..text.floor_char_boundary(MAX_BYTES)].to_lowercase();
    let pairs = Pairs::of(&text);
    let found = |keywords| found(&text, &pairs, keywords);
    let high = found(&rules.high_signal_keywords);
    let low = found(&rules.low_signal_keywords);
    let marks = marks(&text);

    let length = length_points(words);
    let keywords = keyword_points(high.len(), low.len());
    let structure = marks.iter().map(|(_, points)| points).sum::<u32>().min(25);
    let score = fraction((length + keywords + structure).min(100));
    let (tier, place) = tier_of(score, rules);

    let mut decision = TierDecision::new(tier, score).because(match words {
        201.. => format!("length {:.2}: more than 200 words", fraction(length)),
        _ => format!("length {:.2}: {words} words", fraction(length)),
    });
    if !high.is_empty() || !low.is_empty() {
        let minus = low.iter().map(|keyword| format!("not {}", keyword.trim_end()));
        let all: Vec<_> = high
            .iter()
            .map(|keyword| keyword.trim_end().to_owned())
            .chain(minus)
            .collect();
        decision = decision.because(format!("keywords {:.2}: {}", fraction(keywords), all.join(", ")));
    }
    if structure > 0 {
        let names: Vec<_> = marks.iter().map(|(name, _)| *name).collect();
        decision = decision.because(format!("structure {:.2}: {}", fraction(structure), names.join(", ")));
    }
    decision.because(format!("{score:.2} is {place}"))
}

fn fraction(hundredths: u32) -> f64 {
    f64::from(hundredths) / 100.0
}

fn tier_of(score: f64, rules: &TierRules) -> (ModelTier, String) {
    let TierRules {
        low_ceiling: low,
        balanced_ceiling: balanced,
        ..
    } = rules;
    if score <= *low {
        (ModelTier::Low, format!("at most the low ceiling of {low}"))
    } else if score <= *balanced {
        let place = format!("above the low ceiling of {low}, and at most the balanced ceiling of {balanced}");
        (ModelTier::Balanced, place)
    } else {
        (ModelTier::High, format!("above the balanced ceiling of {balanced}"))
    }
}

fn length_points(words: usize) -> u32 {
    match words {
        0..=10 => 5,
        11..=15 => 10,
        16..=20 => 15,
        21..=30 => 20,
        31..=50 => 28,
        51..=100 => 35,
        101..=200 => 38,
        _ => 40,
    }
}

fn keyword_points(high: usize, low: usize) -> u32 {
    u32::try_from((10 * high).saturating_sub(8 * low)).map_or(35, |points| points.min(35))
}

fn found<'r>(text: &str, pairs: &Pairs, keywords: &'r [String]) -> Vec<&'r str> {
    keywords
        .iter()
        .map(String::as_str)
        .filter(|keyword| pairs.may_have(keyword) && text.contains(keyword))
        .collect()
}

/// A bloom filter of the pairs of neighbouring bytes of a text. A short text lacks a pair of
/// nearly every keyword, which then need not be looked for.
struct Pairs([u64; 64]);

impl Pairs {
    fn of(text: &str) -> Self {
        let mut pairs = Self([0; 64]);
        for pair in text.as_bytes().windows(2) {
            let (word, bit) = Self::place(pair);
            pairs.0[word] |= bit;
        }
        pairs
    }

    fn may_have(&self, keyword: &str) -> bool {
        let mut pairs = keyword.as_bytes().windows(2).map(Self::place);
        pairs.all(|(word, bit)| self.0[word] & bit != 0)
    }

    fn place(pair: &[u8]) -> (usize, u64) {
        let hash = usize::from(pair[0]) * 31 + usize::from(pair[1]);
        (hash / 64 % 64, 1 << (hash % 64))
    }
}

/// Returns the structures of the lower-case text besides words, with the points for each.
fn marks(text: &str) -> Vec<(&'static str, u32)> {
    let words = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty());
    let mut code = has_code_span(text);
    let mut mathematics = has_formula(text);
    let mut steps = has_numbered_line(text);
    let mut last = "";
    for word in words {
        match word {
            "function" | "class" | "def" | "void" | "int" => code = true,
            "equation" | "formula" | "prove" | "derive" => mathematics = true,
            "first" | "then" | "next" | "finally" | "additionally" => steps = true,
            number if last == "step" && number.bytes().all(|byte| byte.is_ascii_digit()) => steps = true,
            _ => {}
        }
        last = word;
    }
    let marks = [
        (code, "code", 10),
        (mathematics, "mathematics", 12),
        (steps, "several steps", 8),
    ];
    marks
        .into_iter()
        .filter(|mark| mark.0)
        .map(|mark| (mark.1, mark.2))
        .collect()
}

/// Returns `true` for a fence, or text between two backticks.
fn has_code_span(text: &str) -> bool {
    let pieces: Vec<_> = text.split('`').collect();
    let inside = pieces.get(1..pieces.len() - 1).unwrap_or_default();
    text.contains("```") || inside.iter().any(|piece| !piece.is_empty())
}

/// Returns `true` for an operator between two digits, or a sign of higher mathematics.
fn has_formula(text: &str) -> bool {
    let mut after_digit = false;
    let mut after_operator = false;
    for c in text.chars() {
        match c {
            '∑' | '∫' | '√' | '≤' | '≥' | '∈' | '∀' | '∃' => return true,
            '0'..='9' if after_operator => return true,
            '0'..='9' => after_digit = true,
            '+' | '-' | '*' | '/' | '^' | '=' => (after_operator, after_digit) = (after_digit, false),
            c if c.is_whitespace() => {}
            _ => (after_operator, after_digit) = (false, false),
        }
    }
    false
}

/// Returns `true` for a line such as `1. Open the file` or `2) Read it`.
fn has_numbered_line(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, tier: ModelTier, score: f64) {
        let decision = decide(text, &TierRules::default());
        assert_eq!(
            (decision.tier, decision.score),
            (tier, score),
            "{text}: {:?}",
            decision.reasons
        );
    }

    #[test]
    fn questions_of_fact_are_low() {
        check("", ModelTier::Low, 0.05);
        check("What is the capital of Norway?", ModelTier::Low, 0.05);
        check("Who was Ada Lovelace?", ModelTier::Low, 0.05);
        check("Define osmosis.", ModelTier::Low, 0.05);
        check("Yes or no: is ice lighter than water?", ModelTier::Low, 0.05);
        check("How many moons does Mars have?", ModelTier::Low, 0.05);
    }

    #[test]
    fn a_score_on_a_ceiling_is_below_it() {
        check("Analyze this.", ModelTier::Low, 0.15);
        check("Analyze this design.", ModelTier::Balanced, 0.25);
        // 0.05 + 0.10 + 0.08 in fractions of a double would be above 0.23.
        let rules = TierRules {
            balanced_ceiling: 0.23,
            ..TierRules::default()
        };
        assert_eq!(decide("First analyze this.", &rules).tier, ModelTier::Balanced);
        assert_eq!(decide("First analyze `this`.", &rules).tier, ModelTier::High);
    }

    #[test]
    fn comparisons_are_balanced() {
        check(
            "What are the pros and cons of a monolith and of microservices for a start-up?",
            ModelTier::Balanced,
            0.30,
        );
        check(
            "Compare and contrast REST and GraphQL for public interfaces.",
            ModelTier::Balanced,
            0.25,
        );
        check(
            "Evaluate the security implications of tokens in a distributed application.",
            ModelTier::Balanced,
            0.35,
        );
    }

    #[test]
    fn long_briefs_are_high() {
        let brief = "Design a distributed cache for a shop with many visitors. Evaluate multiple approaches to \
                     invalidation, and say what each of them costs. Give a comprehensive recommendation.";
        check(brief, ModelTier::High, 0.55);
        check(&"analyze evaluate design architect ".repeat(60), ModelTier::High, 0.75);
    }

    #[test]
    fn length_goes_by_words() {
        let steps = [
            (10, 0.05),
            (11, 0.10),
            (16, 0.15),
            (21, 0.20),
            (31, 0.28),
            (51, 0.35),
            (101, 0.38),
            (201, 0.40),
        ];
        for (words, score) in steps {
            assert_eq!(
                decide(&"so ".repeat(words), &TierRules::default()).score,
                score,
                "{words} words"
            );
        }
    }

    #[test]
    fn simple_words_only_outweigh_hard_ones() {
        check("What is async?", ModelTier::Low, 0.07);
        check("What is the definition of it?", ModelTier::Low, 0.05);
        // The blank at the end of the keyword counts.
        check("Redefine: analyze.", ModelTier::Low, 0.15);
        check("Define analyze.", ModelTier::Low, 0.07);
    }

    #[test]
    fn structure_is_recognised() {
        let check = |text: &str, expected: &[&str]| {
            let names: Vec<_> = marks(text).into_iter().map(|mark| mark.0).collect();
            assert_eq!(names, expected, "{text}");
        };
        check("look at `x`", &["code"]);
        check("```\nx", &["code"]);
        check("`` and a lone ` tick", &["code"]);
        check("no `` code", &[]);
        check("a class of its own", &["code"]);
        check("classes and interfaces", &[]);
        check("3 * 4", &["mathematics"]);
        check("on 2026-02-01", &["mathematics"]);
        check("a-1, x = 5, 3 -", &[]);
        check("∀ x", &["mathematics"]);
        check("the formula", &["mathematics"]);
        check("do this, then that", &["several steps"]);
        check("see step 2", &["several steps"]);
        check("one step at a time", &[]);
        check("do:\n 1. this\n 2. that", &["several steps"]);
        check("it costs 1.5 or 2.", &[]);
        check("first prove `x`", &["code", "mathematics", "several steps"]);
    }

    #[test]
    fn structure_is_at_most_a_quarter() {
        check("First `x`, then 1+1", ModelTier::Balanced, 0.30);
    }

    proptest! {
        #[test]
        fn any_text_has_a_score_and_a_tier_that_fit(text in any::<String>()) {
            let rules = TierRules::default();
            let decision = decide(&text, &rules);
            prop_assert!((0.05..=1.0).contains(&decision.score));
            let expected = match decision.score {
                score if score <= rules.low_ceiling => ModelTier::Low,
                score if score <= rules.balanced_ceiling => ModelTier::Balanced,
                _ => ModelTier::High,
            };
            prop_assert_eq!(decision.tier, expected);
        }
    }
}
