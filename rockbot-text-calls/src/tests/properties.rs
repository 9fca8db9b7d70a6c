//! Properties that hold for any text.

use proptest::prelude::*;

use super::corpus::samples;
use crate::{TextAnswer, dialect};

/// Pieces of which calls, results and prose consist, in any order; now and then anything at all.
pub(super) fn mixture() -> impl Strategy<Value = String> {
    let samples: Vec<String> = samples().into_iter().map(|(_, sample)| sample.text).collect();
    let openers: Vec<String> = dialect::openers().map(str::to_owned).collect();
    let lines: Vec<String> = samples
        .iter()
        .flat_map(|text| text.split_inclusive('\n'))
        .map(str::to_owned)
        .collect();
    let fragments = [
        "{\"name\": \"now\", \"arguments\": {}}",
        "</tool_call>",
        "</function>",
        "```",
        "```\n",
        "~~~\n",
        "\n",
        "\n\n",
        " ",
        "  ",
        "`",
        "\"",
        "'",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        ": ",
        ".",
        ". ",
        "now",
        "get_weather",
        "get_weather(",
        "now()",
        "functions.",
        "math.hypot",
        "to=now",
        "to=self",
        "to=user",
        "<|sep|>",
        "<|open|>call tool=\"now\"",
        "<|open|>argument key=\"a\"",
        "<|eom|>",
        "function call",
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "<|message|>",
        "<|end|>",
        "Observation:",
        "</s>",
        "[Tool result for now]: ",
        "<tool_response>",
        "<parameter=a>",
        "</parameter>",
        "<arg_key>",
        "ä",
        "😀",
        "\u{a0}",
        "\t",
    ];
    let fragments: Vec<String> = fragments.into_iter().map(str::to_owned).collect();
    let piece = prop_oneof![
        4 => prop::sample::select(fragments),
        3 => prop::sample::select(openers),
        3 => prop::sample::select(lines),
        2 => prop::sample::select(samples),
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn check(text: &str, answer: &TextAnswer) -> Result<(), TestCaseError> {
    let calls = answer.calls.iter().map(|call| call.span.clone());
    let mut spans: Vec<_> = calls
        .clone()
        .chain(answer.malformed.iter().map(|flaw| flaw.span.clone()))
        .collect();
    prop_assert!(
        calls
            .clone()
            .zip(calls.skip(1))
            .all(|(left, right)| left.end <= right.start)
    );
    spans.sort_by_key(|span| span.start);
    for span in &spans {
        prop_assert!(text.get(span.clone()).is_some_and(|call| !call.is_empty()), "{span:?}");
    }
    for pair in spans.windows(2) {
        prop_assert!(pair[0].end <= pair[1].start, "{spans:?}");
    }
    for call in &answer.calls {
        let arguments = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&call.arguments);
        prop_assert!(arguments.is_ok(), "{}", call.arguments);
        prop_assert!(
            answer
                .hallucinated_from
                .is_none_or(|hallucinated| call.span.end <= hallucinated)
        );
    }
    prop_assert_eq!(answer.correction.is_some(), !answer.malformed.is_empty());
    if spans.is_empty() && answer.hallucinated_from.is_none() {
        prop_assert_eq!(&answer.text, text);
    } else {
        // Nothing but what stands outside of the calls is shown.
        let mut outside = String::new();
        let mut from = 0;
        for span in &spans {
            outside.push_str(&text[from..span.start]);
            from = span.end;
        }
        outside.push_str(&text[from..]);
        let dense = |text: &str| text.split_whitespace().collect::<String>();
        let shown = dense(&answer.text);
        let outside = dense(&outside);
        let mut left = outside.chars();
        prop_assert!(
            shown.chars().all(|char| left.any(|other| other == char)),
            "{shown:?} is not in {outside:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_text_is_taken_apart(text in any::<String>()) {
        check(&text, &super::parser().parse(&text))?;
    }

    #[test]
    fn any_mixture_of_fragments_is_taken_apart(text in mixture()) {
        check(&text, &super::parser().parse(&text))?;
    }

    #[test]
    fn a_sample_cut_anywhere_is_taken_apart(sample in 0_usize..10_000, cut in 0.0..1.0_f64) {
        let samples = samples();
        let text = &samples[sample % samples.len()].1.text;
        let cut = (0..=text.len()).rev().find(|at| text.is_char_boundary(*at) && *at as f64 <= cut * text.len() as f64);
        let text = &text[..cut.unwrap_or(0)];
        check(text, &super::parser().parse(text))?;
    }
}
