//! Issues and pull requests of GitHub, through its REST API.

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use rockbot_core::{ExposeSecret, Secret};
use serde::Deserialize;
use url::Url;

use super::page::Page;
use crate::egress::{EgressClient, EgressRequest};

/// The API.
const API: &str = "https://api.github.com/";

/// Number of comments that are read.
const COMMENTS: usize = 50;

/// The client of the API.
#[derive(Debug)]
pub(super) struct GitHub {
    pub(super) api: Url,
    pub(super) token: Option<Secret>,
}

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    owner: String,
    repository: String,
    number: u64,
    is_pull: bool,
}

#[derive(Debug, Deserialize)]
struct Issue {
    title: String,
    state: String,
    #[serde(default)]
    state_reason: Option<String>,
    #[serde(default)]
    merged: bool,
    #[serde(default)]
    draft: bool,
    user: Option<User>,
    #[serde(default)]
    labels: Vec<Label>,
    body: Option<String>,
    #[serde(default)]
    created_at: String,
    #[serde(default)]
    comments: u64,
    #[serde(default)]
    pull_request: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct User {
    login: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Label {
    Named { name: Option<String> },
    Name(String),
}

#[derive(Debug, Deserialize)]
struct Comment {
    user: Option<User>,
    body: Option<String>,
    #[serde(default)]
    created_at: String,
}

impl Thread {
    /// Returns the thread that a URL of the web site shows, or `None` for every other URL.
    pub(super) fn of(url: &Url) -> Option<Self> {
        if !matches!(url.host_str(), Some("github.com" | "www.github.com")) {
            return None;
        }
        let mut segments = url.path_segments()?;
        let owner = segments.next()?;
        let repository = segments.next()?;
        let kind = segments.next()?;
        let number = segments.next()?;
        let is_name = |name: &str, length: usize, signs: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
            !name.is_empty() && name.len() <= length && name.chars().all(is_plain) && !matches!(name, "." | "..")
        };
        if !is_name(owner, 39, "-") || !is_name(repository, 100, "-_.") || !matches!(kind, "issues" | "pull") {
            return None;
        }
        let number = Some(number)
            .filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?
            .parse()
            .ok()?;
        Some(Self {
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            number,
            is_pull: kind == "pull",
        })
    }
}

impl GitHub {
    pub(super) fn new(token: Option<Secret>) -> Self {
        let api = Url::parse(API).expect("a constant URL");
        Self { api, token }
    }

    /// Returns the thread with its comments, or `None` if the API does not answer with it.
    pub(super) async fn read(&self, client: &EgressClient, thread: &Thread) -> Option<Page> {
        let Thread {
            owner,
            repository,
            number,
            is_pull,
        } = thread;
        let kind = if *is_pull { "pulls" } else { "issues" };
        let issue: Issue = self
            .get(client, &format!("repos/{owner}/{repository}/{kind}/{number}"))
            .await?;
        let path = format!("repos/{owner}/{repository}/issues/{number}/comments?per_page={COMMENTS}");
        // The thread itself is worth more than nothing.
        let comments: Vec<Comment> = self.get(client, &path).await.unwrap_or_default();
        Some(issue.page(thread, &comments))
    }

    async fn get<T: for<'de> Deserialize<'de>>(&self, client: &EgressClient, path: &str) -> Option<T> {
        let mut request = EgressRequest::get(self.api.join(path).ok()?);
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("application/vnd.github+json"));
        request
            .headers
            .insert("x-github-api-version", HeaderValue::from_static("2022-11-28"));
        request
            .headers
            .insert("user-agent", HeaderValue::from_static(crate::egress::USER_AGENT));
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()?;
            request.origin_headers.insert(AUTHORIZATION, value);
        }
        let response = match client.fetch(request).await {
            Ok(response) if response.status.is_success() && !response.is_cut => response,
            Ok(response) => {
                tracing::debug!(
                    status = response.status.as_u16(),
                    "no answer of GitHub's API; reading the page instead"
                );
                return None;
            }
            Err(error) => {
                tracing::debug!(%error, "no answer of GitHub's API; reading the page instead");
                return None;
            }
        };
        serde_json::from_slice(&response.body).ok()
    }
}

impl Issue {
    fn page(&self, thread: &Thread, comments: &[Comment]) -> Page {
        let Thread {
            owner,
            repository,
            number,
            ..
        } = thread;
        let kind = if thread.is_pull || self.pull_request.is_some() {
            "PR"
        } else {
            "Issue"
        };
        let labels: Vec<_> = self.labels.iter().filter_map(Label::name).collect();
        let mut text = format!("State: {}\nAuthor: {}\n", self.status(), login(self.user.as_ref()));
        if !labels.is_empty() {
            text.push_str(&format!("Labels: {}\n", labels.join(", ")));
        }
        text.push_str(&format!(
            "Created: {}\n\n{}\n",
            self.created_at,
            body(self.body.as_deref())
        ));
        for comment in comments {
            let author = login(comment.user.as_ref());
            let written = body(comment.body.as_deref());
            text.push_str(&format!(
                "\n## Comment by {author}, {}\n\n{written}\n",
                comment.created_at
            ));
        }
        let more = self.comments.saturating_sub(comments.len() as u64);
        if more > 0 {
            text.push_str(&format!("\n({more} more comments are not shown.)\n"));
        }
        let title = format!("{kind} #{number}: {} [{owner}/{repository}]", self.title);
        Page {
            title,
            text,
            is_cut: false,
        }
    }

    fn status(&self) -> String {
        match (&*self.state, self.merged, self.draft, &self.state_reason) {
            (_, true, _, _) => "merged".to_owned(),
            (state, _, true, _) => format!("{state}, draft"),
            (state, _, _, Some(reason)) => format!("{state} ({reason})"),
            (state, _, _, None) => state.to_owned(),
        }
    }
}

impl Label {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Named { name } => name.as_deref(),
            Self::Name(name) => Some(name),
        }
    }
}

fn login(user: Option<&User>) -> &str {
    user.map_or("unknown", |user| &user.login)
}

fn body(text: Option<&str>) -> &str {
    match text.map(str::trim) {
        None | Some("") => "(no text)",
        Some(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_urls_of_threads_are_routed() {
        let of = |url: &str| Thread::of(&url.parse().unwrap()).map(|thread| (thread.number, thread.is_pull));
        assert_eq!(of("https://github.com/tokio-rs/tokio/issues/7"), Some((7, false)));
        assert_eq!(
            of("http://www.github.com/a/b.c_d/pull/8/files?x=1#issuecomment-9"),
            Some((8, true))
        );
        // As browsers read them.
        assert_eq!(of("https://github.com/x/../a/./b/issues/7"), Some((7, false)));
        assert_eq!(of(r"https://github.com\a\b\issues\7"), Some((7, false)));
        for url in [
            "https://github.com/a/b/../issues/1",
            "https://github.com/a/b/issues/../1",
            "https://github.com/a/b/issues/..%2f1",
            "https://github.com/a/b/issues/1%2f..",
            "https://github.com/a//b/issues/1",
            "https://github.com//a/b/issues/1",
            "https://github.com/a/b/issues/1%00",
            "https://github.com/a/b/issues/\u{ff11}",
            "https://github.com/a/b/issues/99999999999999999999",
            "https://github.com/a/b/issues/+7",
            "https://github.com/a/b/issues/",
            "https://github.com/a/b/issues",
            "https://github.com/a/..%2f/issues/1",
            "https://github.com/a/%2e%2e/issues/1/x",
            "https://github.com/a%2fb/c/issues/1",
            "https://github.com.evil.test/a/b/issues/1",
            "https://github.com@evil.test/a/b/issues/1",
            "https://gist.github.com/a/b/issues/1",
            "https://github.com/a/b/pulls/1",
        ] {
            assert_eq!(of(url), None, "{url}");
        }
    }
}
