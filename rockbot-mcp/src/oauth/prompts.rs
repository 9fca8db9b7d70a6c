//! The outcomes of asking the user: a refusal counts, and so do attempts that fail again and
//! again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Url;
use rmcp::transport::auth::OAuthClientConfig;
use rockbot_core::support::loggable;

/// Maximum number of demands of one server for a further authorization. Each demand asks the
/// user.
const MAX_DEMANDS: u32 = 3;

/// Number of attempts that may fail before the authorization counts as declined.
const MAX_FAILURES: u32 = 3;

/// Outcomes of asking the user, by the keys of servers. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Prompts(Arc<Mutex<HashMap<String, Prompt>>>);

#[derive(Default)]
struct Prompt {
    is_declined: bool,
    failures: u32,
    /// Number of demands for a further authorization.
    demands: u32,
    /// The last demand, until a connection is authorized by it.
    demand: Option<String>,
    /// The client that was registered at the authorization server of this issuer.
    client: Option<(Option<String>, OAuthClientConfig)>,
}

impl Prompts {
    /// Checks that the user may be asked.
    pub(super) fn check(&self, key: &str) -> Result<(), String> {
        if self.prompts().get(key).is_some_and(|prompt| prompt.is_declined) {
            Err("its authorization was declined; restart, or change its entry, to be asked again".to_owned())
        } else {
            Ok(())
        }
    }

    /// Records that the user refused.
    pub(super) fn decline(&self, key: &str) {
        self.prompts().entry(key.to_owned()).or_default().is_declined = true;
    }

    /// Records an attempt that failed after the user was asked.
    pub(super) fn fail(&self, key: &str) {
        let mut prompts = self.prompts();
        let prompt = prompts.entry(key.to_owned()).or_default();
        prompt.failures += 1;
        prompt.is_declined |= prompt.failures >= MAX_FAILURES;
    }

    /// Forgets the attempts of a server that is authorized.
    pub(super) fn forget(&self, key: &str) {
        let mut prompts = self.prompts();
        if let Some(prompt) = prompts.get_mut(key) {
            let demands = prompt.demands;
            *prompt = Prompt {
                demands,
                ..Prompt::default()
            };
        }
    }

    /// Notes a demand for a further authorization. Returns `false` if there were too many, or the
    /// user refuses.
    pub(super) fn demand(&self, key: &str, challenge: &str) -> bool {
        let mut prompts = self.prompts();
        let prompt = prompts.entry(key.to_owned()).or_default();
        let is_taken = prompt.demands < MAX_DEMANDS && !prompt.is_declined;
        if is_taken {
            prompt.demands += 1;
            prompt.demand = Some(challenge.to_owned());
        }
        is_taken
    }

    /// Returns the demand that no connection was authorized by, and forgets it.
    pub(super) fn take_demand(&self, key: &str) -> Option<String> {
        self.prompts().get_mut(key)?.demand.take()
    }

    /// Returns the client that an earlier attempt has registered.
    pub(super) fn client(&self, key: &str, issuer: Option<&str>) -> Option<OAuthClientConfig> {
        let prompts = self.prompts();
        let (registered_at, client) = prompts.get(key)?.client.as_ref()?;
        (registered_at.as_deref() == issuer).then(|| client.clone())
    }

    /// Keeps a client for the next attempt.
    pub(super) fn set_client(&self, key: &str, issuer: Option<String>, client: OAuthClientConfig) {
        self.prompts().entry(key.to_owned()).or_default().client = Some((issuer, client));
    }

    fn prompts(&self) -> MutexGuard<'_, HashMap<String, Prompt>> {
        // Each change is one step, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The problem with the browser's last address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Callback {
    /// The user refused on the page.
    Declined,
    /// The problem in words.
    Failed(String),
}

/// Checks that the browser was sent to `redirect_uri` in answer to the page, and without an error.
pub(super) fn check_callback(callback: &str, page: &Url, redirect_uri: &str) -> Result<(), Callback> {
    let failed = |problem: &str| Callback::Failed(format!("its authorization failed: {problem}"));
    let parsed = Url::parse(callback).and_then(|callback| Ok((callback, Url::parse(redirect_uri)?)));
    let (callback, redirect_uri) = parsed.map_err(|_| failed("the address at the end is no URL"))?;
    if plain(&callback) != plain(&redirect_uri) {
        return Err(failed("the address at the end does not begin with the redirect URI"));
    }
    if parameter(&callback, "state") != parameter(page, "state") {
        return Err(failed("the address at the end belongs to another attempt"));
    }
    match parameter(&callback, "error") {
        None => Ok(()),
        Some(error) if error == "access_denied" => Err(Callback::Declined),
        Some(error) => {
            let error: String = error.chars().take(64).collect();
            Err(failed(&format!("the page answered `{}`", loggable(&error))))
        }
    }
}

/// Returns the URL without its query and fragment.
fn plain(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}
