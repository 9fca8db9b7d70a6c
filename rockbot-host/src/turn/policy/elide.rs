//! Elision of a long tool result: the head and the tail, which carry most of its meaning, stay.

use rockbot_core::CallId;

/// Shortens `text` to about `keep` bytes, `head_percent` of these from its beginning, with a
/// marker in between.
///
/// A text that was shortened before is shortened further around its only marker. No character is
/// cut in two.
pub(in crate::turn) fn elide(text: &str, keep: usize, head_percent: u8, call: &CallId) -> String {
    let marker = format!("\n[content elided to fit context window — id={call}]\n");
    // A text that never had the marker has no tail apart from its head.
    let (head, tail) = text.split_once(&marker).unwrap_or((text, text));
    let head_len = keep * usize::from(head_percent.min(100)) / 100;
    let head_end = head.floor_char_boundary(head_len);
    let tail_start = tail.ceil_char_boundary(tail.len().saturating_sub(keep - head_len));
    format!("{}{marker}{}", &head[..head_end], &tail[tail_start..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, keep: usize, expected: &str) {
        assert_eq!(elide(text, keep, 60, &"c1".into()), expected);
    }

    #[test]
    fn head_and_tail_stay() {
        check(
            "0123456789abcdefghij",
            10,
            "012345\n[content elided to fit context window — id=c1]\nghij",
        );
    }

    #[test]
    fn a_text_shortened_twice_has_one_marker() {
        let once = elide(&"0123456789".repeat(10), 50, 60, &"c1".into());
        check(
            &once,
            10,
            "012345\n[content elided to fit context window — id=c1]\n6789",
        );
    }

    #[test]
    fn no_character_is_cut() {
        check("ééééééé", 5, "é\n[content elided to fit context window — id=c1]\né");
    }

    proptest! {
        #[test]
        fn what_stays_is_the_beginning_and_the_end(text in "\\PC{0,200}", keep in 0..100_usize, percent in 0..=100_u8) {
            let elided = elide(&text, keep, percent, &"c1".into());
            let (head, tail) = elided.split_once("\n[content elided to fit context window — id=c1]\n").unwrap();
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(head.len() + tail.len() <= keep);
        }
    }
}
