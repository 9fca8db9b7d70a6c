//! What a transport reports of the tasks that it follows: it is kept, and told.

use async_trait::async_trait;
use rockbot_core::support::loggable;
use rockbot_core::tool::ToolError;
use rockbot_core::{Digest, MessageId};
use tokio::time::sleep;

use super::clockwork::RETRY_PAUSE;
use super::ends::EndWords;
use super::host::Caller;
use super::tasks::RemoteIds;
use super::tell::NotTold;
use super::transport::Reports;

#[async_trait]
impl Reports for Caller {
    async fn keep_message(&self, task: &str, message: String) -> Result<(), ToolError> {
        let mut tasks = self.tasks.lock().await;
        let kept = tasks.change_remote(task, |remote| remote.message = Some(message));
        kept.map_err(|error| ToolError::execution_failed("the task cannot be kept").with_source(error))
    }

    async fn sending(&self, task: &str) {
        self.tasks.lock().await.sent(task);
    }

    async fn reached(&self, task: &str, ids: RemoteIds) {
        let mut tasks = self.tasks.lock().await;
        let kept = tasks.change_remote(task, |remote| (remote.message, remote.ids) = (None, Some(ids)));
        if let Err(error) = kept {
            tracing::error!(%error, "the id of a task of another agent is not written");
        }
    }

    async fn status(&self, task: &str, text: &str) {
        let known = self.tasks.lock().await.get(task).cloned();
        if let Some(task) = known.filter(|task| task.end.is_none()) {
            let id = MessageId::from(Digest::of([text]).short());
            self.tell_status(&task, &id, text).await;
        }
    }

    async fn end(&self, task: &str, words: EndWords) {
        loop {
            let known = self.tasks.lock().await.get(task).cloned();
            let Some(known) = known.filter(|task| task.end.is_none()) else {
                return;
            };
            let Err(NotTold(error)) = self.end_in(&known, words.clone()).await else {
                return;
            };
            tracing::warn!(task, error = %loggable(&error), "the end of a task of another agent is not told yet; it is tried again");
            sleep(RETRY_PAUSE).await;
        }
    }
}
