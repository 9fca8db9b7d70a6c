//! The list of a caller's tasks, page by page.

use rockbot_core::Timestamp;

use super::caller::A2aCaller;
use super::operations::Operations;
use super::tasks::TaskRecord;
use crate::a2a_wire::{A2aError, ListTasks, ListedTasks, TaskState};

/// Number of tasks of a page by default, and the maximum.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;

impl Operations {
    /// Answers `ListTasks`.
    pub(super) async fn list(&self, caller: &A2aCaller, query: &ListTasks) -> Result<ListedTasks, A2aError> {
        let page_size = query.size()?;
        let mut found = self.matching(caller, query).await?;
        let total_size = found.len();
        if let Some(token) = query.page_token.as_deref().filter(|token| !token.is_empty()) {
            let wrong = || A2aError::params("`pageToken` is not one of this server");
            let (at, id) = token_parts(token).ok_or_else(wrong)?;
            found.retain(|record| (record.updated.as_millis(), &*record.id) < (at, id));
        }
        let has_more = found.len() > page_size;
        found.truncate(page_size);
        let next_page_token = match found.last().filter(|_| has_more) {
            Some(last) => format!("{}.{}", last.updated.as_millis(), last.id),
            None => String::new(),
        };
        let mut tasks = Vec::with_capacity(found.len());
        let with_artifacts = query.include_artifacts == Some(true);
        for record in found {
            // A task whose turns are not known any more is gone.
            if let Ok(standing) = self.standing(&record).await {
                let task = self.view(&record, standing, query.history_length, with_artifacts);
                tasks.push(task.await?);
            }
        }
        Ok(ListedTasks {
            tasks,
            next_page_token,
            page_size,
            total_size,
        })
    }

    /// Returns the tasks that a query matches, the most recently changed task first.
    async fn matching(&self, caller: &A2aCaller, query: &ListTasks) -> Result<Vec<TaskRecord>, A2aError> {
        let principal = caller.principal();
        let after = query.after()?;
        let context = query.context_id.as_deref().filter(|id| !id.is_empty());
        let found = self.tasks.all(|record| {
            record.principal == principal
                && context.is_none_or(|id| id == record.context)
                && after.is_none_or(|after| record.updated >= after)
        });
        let Some(state) = query.status.filter(|state| *state != TaskState::Unspecified) else {
            return Ok(found);
        };
        let mut matching = Vec::new();
        for record in found {
            if self.state(&record).await == Some(state) {
                matching.push(record);
            }
        }
        Ok(matching)
    }
}

impl ListTasks {
    fn size(&self) -> Result<usize, A2aError> {
        let wrong = || A2aError::params(format!("`pageSize` is between 1 and {MAX_PAGE}"));
        match self.page_size {
            None | Some(0) => Ok(PAGE),
            Some(size) => usize::try_from(size)
                .ok()
                .filter(|size| *size <= MAX_PAGE)
                .ok_or_else(wrong),
        }
    }

    fn after(&self) -> Result<Option<Timestamp>, A2aError> {
        let Some(text) = self.status_timestamp_after.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let read = rockbot_core::rfc3339::deserialize(serde_json::Value::from(text));
        let wrong = |_| A2aError::params("`statusTimestampAfter` is not a time such as `2026-05-26T10:30:00.000Z`");
        read.map(Some).map_err(wrong)
    }
}

fn token_parts(token: &str) -> Option<(u64, &str)> {
    let (at, id) = token.split_once('.')?;
    Some((at.parse().ok()?, id))
}
