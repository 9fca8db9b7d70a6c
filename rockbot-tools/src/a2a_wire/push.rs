//! Push notifications: the address to which an agent tells the changes of a task.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An address for the changes of a task, as the client chose it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PushConfig {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) task_id: String,
    pub(crate) url: String,
    /// A text that the notifications repeat, so that the client knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) authentication: Option<PushAuthentication>,
}

/// The value of the header `Authorization` of notifications.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PushAuthentication {
    pub(crate) scheme: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<String>,
}

/// The parameters that name an address of a task.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PushQuery {
    pub(crate) task_id: String,
    #[serde(default)]
    pub(crate) id: String,
}

/// The addresses of a task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedPushes {
    pub(crate) configs: Vec<PushConfig>,
    pub(crate) next_page_token: String,
}

impl PushConfig {
    /// Returns the address without its credentials, which no answer repeats.
    pub(crate) fn shown(mut self) -> Self {
        if let Some(authentication) = &mut self.authentication {
            authentication.credentials = None;
        }
        self
    }
}

impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may have a key in its query, too.
        f.debug_struct("PushConfig")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .finish_non_exhaustive()
    }
}

/// An address as version 0.3 writes it.
#[derive(Deserialize)]
pub(crate) struct OldPush {
    #[serde(default)]
    id: Option<String>,
    url: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    authentication: Option<OldAuthentication>,
}

#[derive(Deserialize)]
struct OldAuthentication {
    #[serde(default)]
    schemes: Vec<String>,
    #[serde(default)]
    credentials: Option<String>,
}

/// The parameters of `tasks/pushNotificationConfig/set`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OldPushParams {
    task_id: String,
    push_notification_config: OldPush,
}

/// The parameters of the other methods of 0.3 about addresses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OldPushQuery {
    id: String,
    #[serde(default)]
    push_notification_config_id: Option<String>,
}

impl fmt::Debug for OldPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OldPush").field("id", &self.id).finish_non_exhaustive()
    }
}

impl From<OldPush> for PushConfig {
    fn from(old: OldPush) -> Self {
        let authentication = old.authentication.and_then(|old| {
            Some(PushAuthentication {
                scheme: old.schemes.into_iter().next()?,
                credentials: old.credentials,
            })
        });
        Self {
            id: old.id.unwrap_or_default(),
            task_id: String::new(),
            url: old.url,
            token: old.token,
            authentication,
        }
    }
}

impl From<OldPushParams> for PushConfig {
    fn from(old: OldPushParams) -> Self {
        Self {
            task_id: old.task_id,
            ..old.push_notification_config.into()
        }
    }
}

impl From<OldPushQuery> for PushQuery {
    fn from(old: OldPushQuery) -> Self {
        Self {
            task_id: old.id,
            id: old.push_notification_config_id.unwrap_or_default(),
        }
    }
}

/// Writes an address as version 0.3 does.
pub(crate) fn old_push(config: &PushConfig) -> Value {
    let mut written = json!({"id": config.id, "url": config.url});
    if let Some(token) = &config.token {
        written["token"] = json!(token);
    }
    if let Some(authentication) = &config.authentication {
        written["authentication"] = json!({"schemes": [authentication.scheme]});
    }
    json!({"taskId": config.task_id, "pushNotificationConfig": written})
}
