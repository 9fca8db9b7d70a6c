//! The server probe: asks a server for its models, to check the settings of a tier.

use std::fmt;
use std::time::Duration;

use reqwest::{Method, Request, Response};
use rockbot_core::chat::ChatError;
use serde::Deserialize;
use tokio::time::timeout;

use super::connection::{Connection, has_type};
use crate::error::LlmConfigError;

/// Time limit of the probe.
const LIMIT: Duration = Duration::from_secs(5);

/// A longer list of models is not read.
const MAX_LIST_BYTES: usize = 8 << 20;

/// The result of probing a model server with the settings of a tier.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerCheck {
    /// The server answers, and it has the model.
    Ready,
    /// The server answers, and its list of models lacks the configured model. Some servers answer for
    /// models that they do not list.
    ModelNotListed {
        /// The model that is set.
        model: String,
        /// Name of its setting.
        setting: String,
        /// Number of models that are listed.
        listed: usize,
    },
    /// The server answers, and has no list of models that could be read.
    NoList,
    /// The server cannot be reached, refuses the key, or fails. The error names the problem and the
    /// remedy.
    Failed(ChatError),
    /// The settings cannot be used at all.
    Unusable(LlmConfigError),
    /// There is no server: the settings name the built-in [`OfflineModel`](crate::OfflineModel).
    Offline,
}

impl ServerCheck {
    /// Returns `true` if no model call can succeed with these settings.
    pub fn is_problem(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Unusable(_))
    }

    /// Returns `true` if model calls may fail with these settings, or are answered without a model.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::ModelNotListed { .. } | Self::NoList | Self::Offline)
    }
}

impl fmt::Display for ServerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("it answers and has the model"),
            Self::ModelNotListed { model, setting, listed } => {
                let models = if *listed == 1 { "model" } else { "models" };
                write!(
                    f,
                    "it answers and lists {listed} {models}, but not `{model}`; check {setting}"
                )
            }
            Self::NoList => f.write_str("it answers, but has no list of models to look into; ask it something"),
            Self::Failed(error) => error.fmt(f),
            Self::Unusable(error) => error.fmt(f),
            Self::Offline => f.write_str("it is the built-in offline model, which is not an LLM"),
        }
    }
}

/// Asks the server of `connection` for its models, within 5 seconds, and looks for the model that
/// is set.
pub(crate) async fn check_server(connection: &Connection) -> ServerCheck {
    let answer = timeout(LIMIT, connection.models()).await;
    let model = &*connection.report.model;
    match answer.unwrap_or_else(|_| Err(connection.report.timed_out(Some(LIMIT)))) {
        Err(error) => ServerCheck::Failed(error),
        Ok(None) => ServerCheck::NoList,
        Ok(Some(models)) if models.iter().any(|listed| is_same(listed, model)) => ServerCheck::Ready,
        Ok(Some(models)) => ServerCheck::ModelNotListed {
            model: model.to_owned(),
            setting: connection.report.names.model.clone().into_owned(),
            listed: models.len(),
        },
    }
}

/// Returns `true` if the names mean the same model: Ollama lists `llama3.2:latest` and answers to
/// `llama3.2`, Anthropic lists a model with its date, such as `claude-haiku-4-5-20251001`, and
/// answers to the name without it.
fn is_same(listed: &str, model: &str) -> bool {
    let is_date = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit());
    let dated = listed.strip_prefix(model).and_then(|rest| rest.strip_prefix('-'));
    listed == model || listed.strip_suffix(":latest") == Some(model) || dated.is_some_and(is_date)
}

impl Connection {
    /// Returns the models that the server lists, if it has such a list.
    async fn models(&self) -> Result<Option<Vec<String>>, ChatError> {
        let mut url = self.url(self.report.dialect.models_path);
        if let Some(query) = self.report.dialect.models_query {
            url.set_query(Some(query));
        }
        let response = self.send(Request::new(Method::GET, url)).await?;
        match response.status().as_u16() {
            200..300 if has_type(&response, b"text/html") => Ok(None),
            200..300 => self.read_models(response).await,
            // Not every server has such a list.
            404 | 405 | 501 => Ok(None),
            _ => Err(self.refusal(response).await),
        }
    }

    async fn read_models(&self, mut response: Response) -> Result<Option<Vec<String>>, ChatError> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.report.unreachable(error))? {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_LIST_BYTES {
                return Ok(None);
            }
        }
        let list = serde_json::from_slice::<ModelList>(&body).ok();
        Ok(list.map(|list| list.data.into_iter().map(|model| model.id).collect()))
    }
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Reply, Server};
    use crate::model_client::probe;
    use crate::settings::LlmSettings;

    const KEY: &str = "canary-key-1234";

    /// Probes for a model `small` at `endpoint`.
    async fn check(endpoint: &str) -> ServerCheck {
        let variables = [
            ("OPENAI_BASE_URL", endpoint),
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_MODEL", "small"),
        ];
        let settings = LlmSettings::read(None, variables).unwrap();
        let check = probe(&settings.balanced).await;
        assert!(!format!("{check} {check:?}").contains(KEY), "{check}");
        check
    }

    async fn check_reply(reply: Reply) -> (bool, bool, String) {
        let server = Server::start([reply]).await;
        let check = check(&server.endpoint()).await;
        let request = server.requests().remove(0);
        assert!(request.starts_with("GET /v1/models HTTP/1.1\r\n"), "{request}");
        assert!(
            request.contains(&format!("authorization: Bearer {KEY}\r\n")),
            "{request}"
        );
        let text = check.to_string().replace(&server.endpoint(), "SERVER");
        (check.is_problem(), check.is_warning(), text)
    }

    const READY: &str = "it answers and has the model";

    #[tokio::test]
    async fn a_server_that_has_the_model_is_ready() {
        for id in ["small", "small:latest"] {
            let list = format!(r#"{{"object":"list","data":[{{"id":"large"}},{{"id":"{id}","object":"model"}}]}}"#);
            assert_eq!(check_reply(Reply::json(200, &list)).await, (false, false, READY.into()));
        }
    }

    #[tokio::test]
    async fn a_model_that_is_not_listed_is_a_warning() {
        let text = "it answers and lists 1 model, but not `small`; check OPENAI_MODEL";
        let reply = Reply::json(200, r#"{"data":[{"id":"large"}]}"#);
        assert_eq!(check_reply(reply).await, (false, true, text.into()));
    }

    #[tokio::test]
    async fn a_server_without_a_list_is_a_warning() {
        let text = "it answers, but has no list of models to look into; ask it something";
        for reply in [
            Reply::json(404, "{}"),
            Reply::json(200, "not JSON"),
            Reply::json(200, r#"{"models":[]}"#),
            Reply::new(200, "content-type: text/html\r\n", "<html>"),
        ] {
            assert_eq!(check_reply(reply).await, (false, true, text.into()));
        }
    }

    #[tokio::test]
    async fn a_server_of_anthropic_is_asked_in_its_own_dialect() {
        let list = r#"{"data":[{"type":"model","id":"claude-small-4-20260101"}],"has_more":false}"#;
        let refused = r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#;
        let server = Server::start([Reply::json(200, list), Reply::json(401, refused)]).await;
        let endpoint = server.endpoint();
        let variables = [
            ("ANTHROPIC_BASE_URL", endpoint.as_str()),
            ("ANTHROPIC_API_KEY", KEY),
            ("ANTHROPIC_MODEL", "claude-small-4"),
        ];
        let settings = LlmSettings::read(None, variables).unwrap();
        assert_eq!(probe(&settings.balanced).await.to_string(), READY);
        let check = probe(&settings.balanced).await.to_string();
        assert!(
            check.ends_with("refused the key (status 401): no; check ANTHROPIC_API_KEY"),
            "{check}"
        );
        let request = server.requests().remove(0);
        assert!(
            request.starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n"),
            "{request}"
        );
        for line in [&format!("x-api-key: {KEY}"), "anthropic-version: 2023-06-01"] {
            assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
        }
    }

    #[tokio::test]
    async fn a_refused_key_is_a_problem() {
        let body = format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#);
        let text = "`SERVER` refused the key (status 401): wrong key [redacted]; check OPENAI_API_KEY";
        assert_eq!(check_reply(Reply::json(401, &body)).await, (true, false, text.into()));
        let text = "`SERVER` refused the key (status 403); check OPENAI_API_KEY";
        assert_eq!(check_reply(Reply::json(403, "")).await, (true, false, text.into()));
    }

    #[tokio::test]
    async fn a_closed_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let check = check(&format!("http://{address}/v1")).await;
        let text = check.to_string();
        assert!(check.is_problem(), "{text}");
        assert!(
            text.starts_with(&format!("cannot reach `http://{address}/v1`: ")),
            "{text}"
        );
        assert!(
            text.ends_with("check that the server runs and that OPENAI_BASE_URL names it"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_server_that_hangs_times_out() {
        let mut server = Server::start([Reply::Hang(Vec::new())]).await;
        let endpoint = server.endpoint();
        let checked = tokio::spawn(async move { check(&endpoint).await });
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(LIMIT).await;
        let text = checked.await.unwrap().to_string();
        assert!(text.ends_with("none within the client's time limit of 5s"), "{text}");
        server.client_gone().await;
    }
}
