//! The agents that may call, and the tools and skills of each.

use std::fmt;
use std::sync::Arc;

use rockbot_core::tool::{ToolFilter, ToolRegistry, ToolSelector};
use rockbot_core::{Digest, ExposeSecret as _, Principal, Secret};

use crate::a2a_callers::CallerTrust;

/// Beginning of the principals of callers.
const PREFIX: &str = "a2a:";

/// Name of the tool that lets a model ask its caller.
pub(super) const ASK_CALLER: &str = "ask_caller";

/// Name of every caller of a server that has no list of callers.
const ANONYMOUS: &str = "anonymous";

/// An agent that may call: its name, its key, its tools and its skills.
///
/// It is the principal `a2a:NAME`, apart from all other principals: its conversations, files and
/// memories are its own. Its messages are untrusted text, never an instruction of the user.
///
/// ```
/// use rockbot_tools::a2a_server::A2aCaller;
///
/// let partner = A2aCaller::new("partner", "sesame".to_owned()).tools(["search_catalog"]).skills(["orders"]);
/// assert_eq!(partner.name(), "partner");
/// ```
#[derive(Clone)]
#[must_use]
pub struct A2aCaller {
    name: Arc<str>,
    /// The digest of the key: its comparison tells nothing of the key itself. `None`: no key is
    /// asked for.
    key: Option<Digest>,
    tools: Option<Vec<ToolSelector>>,
    skills: Option<Vec<String>>,
    trust: Option<CallerTrust>,
}

impl A2aCaller {
    /// Creates a caller that sends `key` as a bearer token or in the header `X-API-Key`.
    pub fn new(name: impl Into<Arc<str>>, key: impl Into<Secret>) -> Self {
        let key: Secret = key.into();
        Self {
            name: name.into(),
            key: Some(digest(key.expose_secret())),
            tools: None,
            skills: None,
            trust: None,
        }
    }

    pub(super) fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            key: None,
            tools: None,
            skills: None,
            trust: None,
        }
    }

    /// Sets the tools that turns of the caller have. Default: the tools of the server.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<ToolSelector>>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the ids of the card's skills that the caller may name. Default: all.
    pub fn skills(mut self, skills: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.skills = Some(skills.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the trust in the caller, which narrows its tools. Default: the trust of the server.
    pub fn trust(mut self, trust: CallerTrust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Returns the trust in the caller, else `default`.
    pub(super) fn trust_or(&self, default: CallerTrust) -> CallerTrust {
        self.trust.unwrap_or(default)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn principal(&self) -> Principal {
        Principal::from(format!("{PREFIX}{}", self.name))
    }

    pub(super) fn may_name(&self, skill: &str) -> bool {
        self.skills
            .as_ref()
            .is_none_or(|skills| skills.iter().any(|id| id == skill))
    }

    /// Returns the filter of the tools of a turn: the caller's tools, else `default`, narrowed by
    /// `trust`, and `ask_caller` if the turn may ask.
    pub(super) fn filter(
        &self,
        default: &[ToolSelector],
        (trust, registry): (CallerTrust, &dyn ToolRegistry),
        may_ask: bool,
    ) -> ToolFilter {
        let allowed = self.tools.as_deref().unwrap_or(default).iter().cloned();
        let filter = trust.narrowed(ToolFilter::only(allowed), registry);
        if may_ask {
            filter.also([ASK_CALLER])
        } else {
            filter.without([ASK_CALLER])
        }
    }
}

impl fmt::Debug for A2aCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2aCaller")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .field("skills", &self.skills)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

/// Returns `true` if a principal is a caller of the server.
pub(super) fn is_caller(principal: &Principal) -> bool {
    principal.as_str().starts_with(PREFIX)
}

/// Returns the name of the caller that is this principal.
pub(super) fn name_of(principal: &Principal) -> &str {
    principal.as_str().strip_prefix(PREFIX).unwrap_or_default()
}

/// The callers that a server knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Callers(Vec<Arc<A2aCaller>>);

impl Callers {
    pub(super) fn add(&mut self, caller: A2aCaller) {
        self.0.push(Arc::new(caller));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first problem with the callers, such as two callers of one name.
    pub(super) fn problem(&self) -> Option<String> {
        let is_unnamed = |caller: &Arc<A2aCaller>| caller.name.trim().is_empty() || caller.key == Some(digest(""));
        if let Some(caller) = self.0.iter().find(|caller| is_unnamed(caller)) {
            return Some(format!("the caller `{}` has no name or an empty key", caller.name));
        }
        let mut pairs = self
            .0
            .iter()
            .enumerate()
            .flat_map(|(at, one)| self.0[..at].iter().map(move |other| (one, other)));
        pairs.find_map(|(one, other)| {
            if one.name == other.name {
                return Some(format!("two callers are named `{}`: rename one", one.name));
            }
            let is_same = one.key == other.key;
            is_same.then(|| {
                format!(
                    "the callers `{}` and `{}` have one key: give each its own",
                    other.name, one.name
                )
            })
        })
    }

    /// Returns the caller with this key. A server without a list of callers has the anonymous
    /// caller for every key.
    pub(super) fn find(&self, key: Option<&str>) -> Option<Arc<A2aCaller>> {
        if self.is_empty() {
            return Some(Arc::new(A2aCaller::anonymous()));
        }
        let given = digest(key?);
        self.0.iter().find(|caller| caller.key == Some(given)).cloned()
    }
}

fn digest(key: &str) -> Digest {
    Digest::of([key])
}
