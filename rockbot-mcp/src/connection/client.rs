//! The client's side of a connection: what a server may ask of it, and where reports of progress go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken};
use rmcp::service::{NotificationContext, RoleClient};
use rockbot_core::context::ProgressReporter;
use rockbot_core::support::loggable;

/// The client of one connection. It offers a server nothing: requests for models, input and folders are refused.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    progress: ProgressRoutes,
}

/// The reporters of the running calls, by the token of their request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressRoutes(Arc<Mutex<HashMap<ProgressToken, ProgressReporter>>>);

/// The route of one call, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ProgressRoute {
    routes: ProgressRoutes,
    token: ProgressToken,
}

impl ProgressRoutes {
    /// Routes the reports on a request to a reporter. Returns `None` if nothing listens to it.
    pub(crate) fn route(&self, token: ProgressToken, reporter: &ProgressReporter) -> Option<ProgressRoute> {
        if !reporter.is_open() {
            return None;
        }
        self.lock().insert(token.clone(), reporter.clone());
        Some(ProgressRoute {
            routes: self.clone(),
            token,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, ProgressReporter>> {
        // An insertion either happened or did not, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgressRoute {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.token);
    }
}

impl Client {
    pub(crate) fn progress(&self) -> &ProgressRoutes {
        &self.progress
    }
}

impl ClientHandler for Client {
    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let reporter = self.progress.lock().get(&report.progress_token).cloned();
        let Some(reporter) = reporter else {
            return;
        };
        let text = report.message.as_deref().map(loggable);
        let done = match report.total {
            Some(total) => format!("{} of {total}", report.progress),
            None => report.progress.to_string(),
        };
        reporter.report(match text {
            Some(text) => format!("{text} ({done})"),
            None => done,
        });
    }

    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("rockbot", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), implementation)
    }
}
