//! Trust in the texts that the memory tools write and show.
//!
//! A text that a call writes has the label of all that its model had read, unless a person
//! approved exactly this write. A result that shows stored texts states their origin, part by
//! part: the rest is the tools' own.

use rockbot_core::CallContext;
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::tool::{ToolError, ToolErrorCode};
use rockbot_core::trust::Trust;

/// Source of a text without a recorded origin: a file edited by hand, or a text of another
/// program that names no source.
const UNKNOWN: &str = "unknown";

/// Returns the origin of a text that the model of `cx` saves now.
pub(super) fn origin(cx: &CallContext) -> Provenance {
    match (cx.is_endorsed(), cx.content_trust()) {
        (true, _) => Provenance::USER,
        (false, Trust::Host) => Provenance::HOST,
        (false, Trust::User | Trust::Untrusted) => Provenance::labelled("user", &cx.label()),
    }
}

/// Returns `true` if the text may come from an untrusted source. Files edited by hand have no
/// recorded origin either, and count as the operator's.
pub(crate) fn is_untrusted_source(from: &Provenance) -> bool {
    from.trust == Trust::Untrusted && from.source != UNKNOWN
}

/// Returns the origin that a stored text is shown with. Files edited by hand come from the
/// operator.
pub(crate) fn shown_origin(from: &Provenance) -> Provenance {
    if from.source == UNKNOWN {
        Provenance::new(UNKNOWN, Trust::User)
    } else {
        from.clone()
    }
}

/// Checks that a text of `origin` may take the place of one `before`: an untrusted one only of an
/// untrusted one.
///
/// The host has asked for an endorsement before the call; this holds if the stored text changed
/// since.
pub(super) fn check_change(before: &Provenance, origin: &Provenance) -> Result<(), ToolError> {
    if is_untrusted_source(before) || origin.trust > Trust::Untrusted {
        return Ok(());
    }
    let message = format!(
        "not changed: the user trusts it, and this conversation shows text of others ({}). Only the user can approve that",
        origin.source
    );
    Err(ToolError::new(ToolErrorCode::ApprovalRequired, message))
}

/// Returns the less trusted of two origins; `a` if they are equal.
pub(super) fn least(a: Provenance, b: Provenance) -> Provenance {
    if b.trust < a.trust { b } else { a }
}

/// Lines for the model, with the origin of each that is not trusted.
#[derive(Debug, Default)]
pub(super) struct Shown(Vec<(Option<Provenance>, String)>);

impl Shown {
    /// Creates lines of one text about something of this origin.
    pub(super) fn of(text: impl Into<String>, from: &Provenance) -> Content {
        let mut shown = Self::default();
        shown.line(text, from);
        shown.into_content()
    }

    /// Appends a line about something of this origin.
    pub(super) fn line(&mut self, text: impl Into<String>, from: &Provenance) {
        self.push(is_untrusted_source(from).then(|| from.clone()), text.into());
    }

    /// Appends a line of the tool's own words.
    pub(super) fn own(&mut self, text: impl Into<String>) {
        self.push(None, text.into());
    }

    /// Returns `true` if there is no line.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Converts the lines into content: one text, if all of it is trusted.
    pub(super) fn into_content(self) -> Content {
        let part = |(from, text): (Option<Provenance>, String)| match from {
            Some(from) => ContentPart::text(text).with_provenance(from),
            None => ContentPart::text(text),
        };
        self.0.into_iter().map(part).collect()
    }

    fn push(&mut self, from: Option<Provenance>, text: String) {
        let text = if self.0.is_empty() { text } else { format!("\n{text}") };
        match self.0.last_mut().filter(|(last, _)| *last == from) {
            Some((_, last)) => last.push_str(&text),
            None => self.0.push((from, text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::trust::Label;

    use super::*;

    #[test]
    fn what_is_saved_has_the_label_of_what_was_read_unless_a_person_endorsed_it() {
        let user = CallContext::new("s").with_label(&Label::USER);
        assert_eq!(origin(&user), Provenance::USER);
        let read = user.with_label(&Label::untrusted("tool:web, tool:mail"));
        assert_eq!(origin(&read), Provenance::new("tool:mail, tool:web", Trust::Untrusted));
        assert_eq!(origin(&read.with_endorsement(true)), Provenance::USER);
        let elsewhere = CallContext::new("s").with_content_trust(Trust::Untrusted);
        assert_eq!(origin(&elsewhere), Provenance::new("user", Trust::Untrusted));
    }

    #[test]
    fn only_lines_of_others_state_their_origin() {
        let page = Provenance::new("tool:web", Trust::Untrusted);
        let mut shown = Shown::default();
        shown.line("- a", &Provenance::USER);
        shown.own("- b");
        assert_eq!(Shown::of("x", &Provenance::USER), Content::from("x"));
        shown.line("- c", &page);
        shown.line("- d", &page);
        shown.line("- e", &Provenance::new(UNKNOWN, Trust::Untrusted));
        let content = shown.into_content();
        assert_eq!(content.text(), "- a\n- b\n- c\n- d\n- e");
        let origins: Vec<_> = content.parts().iter().map(|part| part.provenance().clone()).collect();
        assert_eq!(origins, [Provenance::UNKNOWN, page, Provenance::UNKNOWN]);
    }
}
