//! Trust: the label of a text, and the join of two labels.
//!
//! A [`Label`] says how far a text can be trusted, and which untrusted sources went into it. A
//! text that is made of several texts carries the join of their labels ([`Label::join`]): the
//! least trust, and the sources of all (taint). A model's answer, its tool calls and the data
//! that they store are made of all that the model has read. Nothing in a text raises its own
//! label; only an endorsement of a person does, for one exact call
//! ([`CallContext::is_endorsed`](crate::CallContext::is_endorsed)).
//!
//! ```
//! use rockbot_core::trust::{Label, Trust};
//!
//! let mut read = Label::USER;
//! assert!(!read.is_untrusted());
//! read.join(&Label::untrusted("tool:web_browse"));
//! assert_eq!(read.trust(), Trust::Untrusted);
//! assert_eq!(read.to_string(), "tool:web_browse");
//! ```

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::support::one_line;

/// The trust in the author of a text. Ordered: the trust of a mixture is the minimum of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The author is unknown: tool output, web pages, remote agents.
    #[default]
    Untrusted,
    /// The user of the conversation wrote it.
    User,
    /// The operator of this host wrote it: profile, rules, the framework's own texts.
    Host,
}

/// Maximum number of untrusted sources that a label names.
const MAX_SOURCES: usize = 16;

/// Maximum length of the name of a source, in bytes.
const MAX_SOURCE_LEN: usize = 100;

/// The name of the sources beyond the maximum.
const MANY: &str = "many";

/// Separates the names of several sources in one text.
const SEPARATOR: &str = ", ";

/// The label of a text: the trust in it, and the untrusted sources that went into it.
///
/// It names at most 16 sources; beyond them it has the source `many`, which is as untrusted as
/// they are. Cheap to clone, and without an allocation while no source is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredLabel", into = "StoredLabel")]
pub struct Label {
    trust: Trust,
    /// Sorted, each once; never an empty list. `Some` only if the text is untrusted.
    sources: Option<Arc<[Arc<str>]>>,
}

impl Label {
    /// The label of the operator's own text, and of a text that is made of nothing.
    pub const HOST: Self = Self::of(Trust::Host);
    /// The label of the user's own text.
    pub const USER: Self = Self::of(Trust::User);
    /// The label of a text whose origin is not recorded: untrusted. The default.
    pub const UNKNOWN: Self = Self::of(Trust::Untrusted);

    /// Creates a label that names no source.
    pub const fn of(trust: Trust) -> Self {
        Self { trust, sources: None }
    }

    /// Creates the label of text from untrusted `sources`: one name, or several separated by a comma
    /// and a space.
    pub fn untrusted(sources: &str) -> Self {
        if is_plain(sources) {
            let sources: [Arc<str>; 1] = [sources.into()];
            return Self {
                trust: Trust::Untrusted,
                sources: Some(sources.into()),
            };
        }
        Self::from_names(sources.split(SEPARATOR))
    }

    /// Returns the least trust of all that went into the text.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Returns `true` if something untrusted went into the text.
    pub fn is_untrusted(&self) -> bool {
        self.trust == Trust::Untrusted
    }

    /// Returns `true` for the label of a text whose origin is not recorded.
    pub fn is_unknown(&self) -> bool {
        *self == Self::UNKNOWN
    }

    /// Returns the names of the untrusted sources, sorted; none if the text is trusted, or its origin
    /// not recorded.
    pub fn sources(&self) -> &[Arc<str>] {
        self.sources.as_deref().unwrap_or_default()
    }

    /// Adds the sources of another text: the trust becomes the lesser trust, and the sources of
    /// both are kept.
    ///
    /// It is associative, commutative and idempotent, so texts can be read in any order.
    pub fn join(&mut self, other: &Self) {
        self.trust = self.trust.min(other.trust);
        match (&self.sources, &other.sources) {
            (_, None) => {}
            (None, Some(_)) => self.sources.clone_from(&other.sources),
            (Some(own), Some(others)) if others.iter().all(|source| own.contains(source)) => {}
            (Some(own), Some(others)) => {
                let names = own.iter().chain(others.iter()).cloned().collect();
                self.sources = bounded(names);
            }
        }
    }

    fn from_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names = names.map(name).filter(|name| !name.is_empty()).map(Arc::from);
        Self {
            trust: Trust::Untrusted,
            sources: bounded(names.collect()),
        }
    }
}

/// The names of the sources, separated by a comma and a space. For a label without sources it is
/// the trust.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.sources, self.trust) {
            (Some(sources), _) => f.write_str(&sources.join(SEPARATOR)),
            (None, Trust::Untrusted) => f.write_str("unknown"),
            (None, Trust::User) => f.write_str("user"),
            (None, Trust::Host) => f.write_str("host"),
        }
    }
}

/// Returns the sources sorted, each once, with the name `many` for the sources beyond the
/// maximum.
///
/// The smallest names stay: so the result does not depend on the order of the joins.
fn bounded(mut names: Vec<Arc<str>>) -> Option<Arc<[Arc<str>]>> {
    names.sort_unstable();
    names.dedup();
    let had_many = names.iter().any(|name| &**name == MANY);
    names.retain(|name| &**name != MANY);
    if had_many || names.len() > MAX_SOURCES {
        names.truncate(MAX_SOURCES);
        names.push(MANY.into());
        names.sort_unstable();
    }
    (!names.is_empty()).then(|| names.into())
}

/// Returns `true` for the name of one source that labels have as it is, as nearly all are.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/@".contains(&byte);
    (1..=MAX_SOURCE_LEN).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Returns the name of a source as labels have it: short, on one line, and without the separator.
fn name(source: &str) -> String {
    // Bounded before the work, and after it, which may lengthen the name.
    let short = &source[..source.floor_char_boundary(4 * MAX_SOURCE_LEN)];
    let shown = one_line(short).replace(',', ";");
    shown[..shown.floor_char_boundary(MAX_SOURCE_LEN)].trim().to_owned()
}

/// The form in journals and stores.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredLabel {
    trust: Trust,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<Arc<str>>,
}

impl From<StoredLabel> for Label {
    fn from(stored: StoredLabel) -> Self {
        match stored.sources.is_empty() {
            true => Self::of(stored.trust),
            // A text with untrusted sources is untrusted, whatever else a document claims.
            false => Self::from_names(stored.sources.iter().map(|source| &**source)),
        }
    }
}

impl From<Label> for StoredLabel {
    fn from(label: Label) -> Self {
        Self {
            trust: label.trust,
            sources: label.sources().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels() -> impl Strategy<Value = Label> {
        let untrusted =
            prop::collection::vec("[a-z]{1,2}", 0..24).prop_map(|names| Label::untrusted(&names.join(", ")));
        prop_oneof![Just(Label::HOST), Just(Label::USER), Just(Label::UNKNOWN), untrusted]
    }

    fn joined(one: &Label, other: &Label) -> Label {
        let mut label = one.clone();
        label.join(other);
        label
    }

    #[test]
    fn more_sources_than_are_named_are_many_and_never_trusted() {
        let names: Vec<_> = (0..40).map(|n| format!("tool:{n:02}")).collect();
        let mut label = Label::USER;
        names.iter().for_each(|name| label.join(&Label::untrusted(name)));
        assert_eq!(label.sources().len(), MAX_SOURCES + 1);
        assert_eq!(&*label.sources()[0], "many");
        label.join(&Label::HOST);
        assert!(label.is_untrusted());
    }

    #[test]
    fn a_document_cannot_claim_trust_for_text_with_sources() {
        let read = |json: &str| serde_json::from_str::<Label>(json).unwrap();
        let claimed = read(r#"{"trust":"host","sources":["tool:web"]}"#);
        assert_eq!(claimed, Label::untrusted("tool:web"));
        assert_eq!(read("{}"), Label::UNKNOWN);
        assert_eq!(read(r#"{"trust":"user"}"#), Label::USER);
        let json = serde_json::to_string(&Label::untrusted("b, a")).unwrap();
        assert_eq!(json, r#"{"trust":"untrusted","sources":["a","b"]}"#);
        assert_eq!(serde_json::to_string(&Label::USER).unwrap(), r#"{"trust":"user"}"#);
    }

    #[test]
    fn the_name_of_a_source_forges_no_other() {
        let label = Label::untrusted("tool:a\n## Rules,\u{200b} x");
        assert_eq!(label.sources().len(), 1);
        assert!(!label.to_string().contains(['\n', ',', '\u{200b}']), "{label}");
        assert!(Label::untrusted(&"x".repeat(5_000)).to_string().len() <= MAX_SOURCE_LEN);
    }

    proptest! {
        #[test]
        fn a_plain_name_is_kept_as_any_other_name_is(name in "[a-z_:./@-]{0,12}|.{0,12}|many|[a-z]{98,102}") {
            prop_assert_eq!(Label::untrusted(&name), Label::from_names(name.split(SEPARATOR)));
        }

        #[test]
        fn the_join_is_a_semilattice(a in labels(), b in labels(), c in labels()) {
            prop_assert_eq!(&joined(&a, &a), &a);
            prop_assert_eq!(joined(&a, &b), joined(&b, &a));
            prop_assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)));
            prop_assert!(joined(&a, &b).trust() <= a.trust());
            prop_assert_eq!(&joined(&Label::HOST, &a), &a);
            let json = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<Label>(&json).unwrap(), a);
        }
    }
}
