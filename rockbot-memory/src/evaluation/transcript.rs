//! The transcript of a session for the evaluating model.

use std::fmt::Write as _;

use rockbot_core::chat::Role;
use rockbot_core::store::{ConversationTurn, FeedbackEntry, FeedbackSignal};

/// Maximum length of one message, and of the whole transcript, in characters.
const MESSAGE: usize = 4_000;
const TOGETHER: usize = 60_000;

/// Maximum number of signals.
const MAX_SIGNALS: usize = 50;

/// Renders the newest messages that fit, and the known signals of quality.
pub(super) fn transcript(turns: &[ConversationTurn], signals: &[FeedbackEntry]) -> String {
    let mut lines: Vec<_> = turns.iter().map(line).collect();
    let mut room = TOGETHER;
    let mut fits = |line: &String| {
        let len = line.chars().count();
        let fits = len <= room;
        room = room.saturating_sub(len);
        fits
    };
    let shown = lines.iter().rev().take_while(|line| fits(line)).count();
    let left_out = lines.len() - shown;
    let mut text = String::new();
    if left_out > 0 {
        let _ = writeln!(text, "[{left_out} earlier messages are left out]");
    }
    text.extend(lines.drain(left_out..));
    let mut signals = signals
        .iter()
        .filter(|signal| signal.signal_type != FeedbackSignal::SessionSummary);
    for signal in signals.by_ref().take(MAX_SIGNALS) {
        let _ = writeln!(text, "[signal] {}", signal.summary);
    }
    text
}

fn line(turn: &ConversationTurn) -> String {
    let who = match turn.role {
        Role::User => "User",
        Role::Assistant => "Agent",
        Role::System | Role::Tool => "Host",
    };
    format!("{who}: {}\n", shortened(&turn.content.words()))
}

/// Truncates a long text in its middle.
fn shortened(text: &str) -> String {
    let len = text.chars().count();
    if len <= MESSAGE {
        return text.to_owned();
    }
    let head: String = text.chars().take(MESSAGE * 3 / 4).collect();
    let tail: String = text.chars().skip(len - MESSAGE / 4).collect();
    format!("{head} [… {} characters …] {tail}", len - MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockbot_core::Timestamp;

    fn turn(role: Role, content: &str) -> ConversationTurn {
        ConversationTurn::new(role, content, Timestamp::default(), "t")
    }

    fn signal(signal_type: FeedbackSignal, summary: &str) -> FeedbackEntry {
        FeedbackEntry::new("f", "s", signal_type, summary, Timestamp::default())
    }

    #[test]
    fn what_was_said_and_what_is_known_besides() {
        let turns = [
            turn(Role::User, "hi"),
            turn(Role::Assistant, "hello"),
            turn(Role::System, "cancelled"),
        ];
        let signals = [
            signal(FeedbackSignal::UserThumbsUp, "liked"),
            signal(FeedbackSignal::SessionSummary, "went well"),
        ];
        let expected = "User: hi\nAgent: hello\nHost: cancelled\n[signal] liked\n";
        assert_eq!(transcript(&turns, &signals), expected);
    }

    #[test]
    fn a_long_session_loses_its_beginning_and_long_messages_their_middle() {
        let long = format!("{}{}", "é".repeat(3_000), "z".repeat(97_000));
        let turns: Vec<_> = (0..100).map(|_| turn(Role::User, &long)).collect();
        let text = transcript(&turns, &[]);
        let shown = text.lines().filter(|line| line.starts_with("User: é")).count();
        assert_eq!(
            text.lines().next(),
            Some(&*format!("[{} earlier messages are left out]", 100 - shown))
        );
        assert!(shown > 10 && text.chars().count() <= TOGETHER + 100);
        assert!(text.contains("é [… 96000 characters …] z"));
    }
}
