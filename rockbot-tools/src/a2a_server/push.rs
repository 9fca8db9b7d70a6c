//! Push notifications: the addresses that clients register for a task, and the requests that tell
//! them its changes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use rockbot_core::Digest;
use rockbot_core::support::loggable;
use serde_json::json;
use tokio::time::sleep;

use super::caller::A2aCaller;
use super::operations::Operations;
use super::tasks::{TaskPush, TaskRecord};
use crate::a2a_wire::{A2aError, ErrorKind, ListedPushes, PushConfig, PushQuery, StreamItem, TaskState, v03};
use crate::egress::{self, EgressRequest};

/// Maximum number of addresses of a task.
const MAX_PUSHES: usize = 4;

/// Maximum length of a URL, of a token, of credentials, in bytes.
const MAX_TEXT: usize = 2 << 10;

/// Pauses before further attempts to tell a change.
const ATTEMPTS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// Time limit of a notification.
const NOTICE_TIME: Duration = Duration::from_secs(10);

/// Number of notifications, by their outcome: delivered, given_up.
const NOTIFICATIONS: &str = "rockbot.a2a.push.notifications";

/// Header with the client's token.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");

impl Operations {
    /// Answers `CreateTaskPushNotificationConfig`. An address of the same id is replaced.
    pub(super) fn create_push(
        self: &Arc<Self>,
        caller: &A2aCaller,
        config: PushConfig,
        is_old: bool,
    ) -> Result<PushConfig, A2aError> {
        let record = self.tasks.find(&caller.principal(), &config.task_id)?;
        let config = self.checked(config, &record)?;
        let is_full =
            record.pushes.len() >= MAX_PUSHES && !record.pushes.iter().any(|push| push.config.id == config.id);
        if is_full {
            return Err(A2aError::params(format!(
                "a task has at most {MAX_PUSHES} addresses: delete one"
            )));
        }
        let added = TaskPush {
            config: config.clone(),
            is_old,
            told: Some(record.state),
        };
        self.tasks.change(&record.id, |record| {
            record.pushes.retain(|push| push.config.id != added.config.id);
            record.pushes.push(added);
        })?;
        // The task may have changed meanwhile.
        self.notify(&record.id);
        Ok(config.shown())
    }

    /// Answers `GetTaskPushNotificationConfig`.
    pub(super) fn find_push(&self, caller: &A2aCaller, query: &PushQuery) -> Result<PushConfig, A2aError> {
        let record = self.tasks.find(&caller.principal(), &query.task_id)?;
        let mut pushes = record.pushes.into_iter().map(|push| push.config);
        // A client of 0.3 may leave the id out.
        let found = pushes.find(|config| query.id.is_empty() || config.id == query.id);
        let missing = || A2aError::new(ErrorKind::TaskNotFound, "the task has no such address");
        found.map(PushConfig::shown).ok_or_else(missing)
    }

    /// Answers `ListTaskPushNotificationConfigs`.
    pub(super) fn list_pushes(&self, caller: &A2aCaller, task: &str) -> Result<ListedPushes, A2aError> {
        let record = self.tasks.find(&caller.principal(), task)?;
        Ok(ListedPushes {
            configs: record.pushes.into_iter().map(|push| push.config.shown()).collect(),
            next_page_token: String::new(),
        })
    }

    /// Answers `DeleteTaskPushNotificationConfig`. An address that is gone is no error.
    pub(super) fn delete_push(&self, caller: &A2aCaller, query: &PushQuery) -> Result<(), A2aError> {
        let record = self.tasks.find(&caller.principal(), &query.task_id)?;
        let changed = self.tasks.change(&record.id, |record| {
            record.pushes.retain(|push| push.config.id != query.id);
        });
        changed.map(drop)
    }

    /// Checks an address: it is outside of this network, unless the operator allows it.
    pub(super) fn check_push(&self, config: &PushConfig) -> Result<(), A2aError> {
        let secrets = [
            config.token.as_deref(),
            config
                .authentication
                .as_ref()
                .and_then(|one| one.credentials.as_deref()),
        ];
        let texts = secrets.into_iter().flatten().chain([&*config.url, &*config.id]);
        let is_wrong = |text: &str| text.len() > MAX_TEXT || text.chars().any(char::is_control);
        if texts.into_iter().any(is_wrong) {
            return Err(A2aError::params(
                "a member of the address has control characters, or more than 2 KiB",
            ));
        }
        let checked = self.egress.policy().check(&config.url);
        checked.map_err(|error| A2aError::params(format!("the `url` of the address is not gone to: {error}")))
    }

    fn checked(&self, mut config: PushConfig, record: &TaskRecord) -> Result<PushConfig, A2aError> {
        self.check_push(&config)?;
        config.task_id.clone_from(&record.id);
        if config.id.is_empty() {
            config.id = Digest::of([&*record.id, &*config.url]).short();
        }
        Ok(config)
    }

    /// Tells the state of a task to its addresses that do not know it, one notification after the
    /// other. While an address is slow, states that pass are left out.
    pub(super) fn notify(self: &Arc<Self>, task: &str) {
        let is_pending = self
            .tasks
            .find_any(task)
            .is_some_and(|record| record.pending_push().is_some());
        if !is_pending
            || !self
                .notifying
                .lock()
                .is_ok_and(|mut tasks| tasks.insert(task.to_owned()))
        {
            return;
        }
        let operations = self.clone();
        let task = task.to_owned();
        let stop = self.stop.clone();
        self.running.spawn(async move {
            stop.run_until_cancelled(operations.tell_all(&task)).await;
            if let Ok(mut tasks) = operations.notifying.lock() {
                tasks.remove(&task);
            }
        });
    }

    async fn tell_all(self: &Arc<Self>, task: &str) {
        while let Some(record) = self.tasks.find_any(task) {
            let Some(push) = record.pending_push().cloned() else {
                return;
            };
            // A task whose state cannot be known has nothing to tell.
            let state = self.tell(&record, &push).await.unwrap_or(record.state);
            let told = self.tasks.change(task, |changed| {
                let same = changed
                    .pushes
                    .iter_mut()
                    .filter(|known| known.config.id == push.config.id);
                same.for_each(|known| known.told = Some(state));
            });
            if told.is_err() {
                return;
            }
        }
    }

    /// Tells one address, and returns the state that was told. After the last attempt the state is
    /// not told.
    async fn tell(&self, record: &TaskRecord, push: &TaskPush) -> Option<TaskState> {
        let (request, state) = self.notice(record, push).await?;
        let mut pauses = ATTEMPTS.into_iter();
        loop {
            let (problem, pause) = match self.egress.open(request.clone(), NOTICE_TIME).await {
                Ok(answer) if answer.status().is_success() => {
                    count("delivered");
                    return Some(state);
                }
                Ok(answer) => (
                    format!("it answers with the status {} of HTTP", answer.status().as_u16()),
                    pauses.next(),
                ),
                Err(error) if error.is_refusal() => (error.to_string(), None),
                Err(error) => (error.to_string(), pauses.next()),
            };
            let Some(pause) = pause else {
                count("given_up");
                tracing::warn!(task = record.id, error = %loggable(&problem), "a push notification is given up");
                return Some(state);
            };
            sleep(pause).await;
        }
    }

    /// Returns the notification of a task as it is now.
    async fn notice(&self, record: &TaskRecord, push: &TaskPush) -> Option<(EgressRequest, TaskState)> {
        let standing = self.standing(record).await.ok()?;
        let state = standing.state;
        let task = self.view(record, standing, Some(0), true).await.ok()?;
        let body = if push.is_old {
            v03::result(json!({"task": task}))
        } else {
            json!(StreamItem::Task(task))
        };
        let url = self.egress.policy().parse(&push.config.url).ok()?;
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(egress::USER_AGENT));
        let kind = if push.is_old {
            "application/json"
        } else {
            "application/a2a+json"
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let request = EgressRequest {
            method: Method::POST,
            headers,
            origin_headers: secrets(&push.config),
            body: Some(Bytes::from(body.to_string())),
            ..EgressRequest::get(url)
        };
        Some((request, state))
    }
}

/// Counts a notification by what became of it.
fn count(outcome: &'static str) {
    metrics::counter!(NOTIFICATIONS, "outcome" => outcome).increment(1);
}

/// Returns the header fields by which the client knows a notification.
fn secrets(config: &PushConfig) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(Ok(token)) = config.token.as_deref().map(HeaderValue::from_str) {
        headers.insert(TOKEN, token);
    }
    if let Some(one) = &config.authentication {
        let value = format!("{} {}", one.scheme, one.credentials.as_deref().unwrap_or_default());
        if let Ok(value) = HeaderValue::from_str(value.trim()) {
            headers.insert(AUTHORIZATION, value);
        }
    }
    headers
}
