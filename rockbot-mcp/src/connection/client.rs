//! The client's side of a connection: the requests that a server may make, and the way of
//! progress reports.
#![expect(
    deprecated,
    reason = "today's protocol deprecates sampling; servers of both eras use it"
)]

use std::sync::Arc;

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, Implementation,
    ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use rockbot_core::support::loggable;

use crate::requests::{Answers, RunningCalls, declined};

/// The client of one connection. It offers a server the answers of the host, and no folders.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    server: Arc<str>,
    answers: Answers,
    running: RunningCalls,
    knows_sessions_only: bool,
}

impl Client {
    pub(super) fn new(server: &str, answers: &Answers) -> Self {
        Self {
            server: server.into(),
            answers: answers.clone(),
            running: RunningCalls::default(),
            knows_sessions_only: false,
        }
    }

    /// Returns a client that speaks the older versions alone.
    pub(super) fn of_sessions(mut self) -> Self {
        self.knows_sessions_only = true;
        self
    }

    pub(super) fn knows_sessions_only(&self) -> bool {
        self.knows_sessions_only
    }

    #[cfg(feature = "oauth")]
    pub(super) fn authorizer(&self) -> Option<&crate::oauth::Authorizer> {
        self.answers.authorizer.as_ref()
    }

    pub(super) fn server(&self) -> &Arc<str> {
        &self.server
    }

    pub(crate) fn running(&self) -> &RunningCalls {
        &self.running
    }
}

impl ClientHandler for Client {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let unknown = || ErrorData::invalid_request("no call is known that the request belongs to", None);
        let call = self.running.of_request(&context.extensions).ok_or_else(unknown)?;
        let answering = self.answers.sample(&self.server, params, &call);
        let answered = context.ct.run_until_cancelled(answering).await;
        answered.unwrap_or_else(|| Err(ErrorData::invalid_request("the request was cancelled", None)))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(call) = self.running.of_request(&context.extensions) else {
            return Ok(declined());
        };
        let answering = self.answers.elicit(&self.server, params, &call);
        let answered = context.ct.run_until_cancelled(answering).await;
        Ok(answered.unwrap_or_else(declined))
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let Some(call) = self.running.of_token(&report.progress_token) else {
            return;
        };
        let text = report.message.as_deref().map(loggable);
        let done = match report.total {
            Some(total) => format!("{} of {total}", report.progress),
            None => report.progress.to_string(),
        };
        call.cx.progress().report(match text {
            Some(text) => format!("{text} ({done})"),
            None => done,
        });
    }

    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("rockbot", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(self.answers.capabilities(), implementation)
    }
}
