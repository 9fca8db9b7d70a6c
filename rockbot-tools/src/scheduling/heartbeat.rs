//! The heartbeat patrol of the original: a task that looks after work that waits for the user.

use std::sync::Arc;

use rockbot_core::config::Config;
use rockbot_core::{BoxError, Principal};

use super::define::Definition;
use super::scheduler::Scheduler;
use super::times::Times;

/// Name of the task, as in the original; its instructions are in `heartbeat-patrol.md`.
const NAME: &str = "heartbeat-patrol";

/// Times of the patrol by default: every half hour.
const CRON: &str = "*/30 * * * *";

const DESCRIPTION: &str = "Run the heartbeat patrol: check calendar, email, active plans, and scheduled task health.";

/// The settings of the section `HeartbeatPatrol`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeartbeatPatrol {
    is_enabled: bool,
    cron: String,
}

impl HeartbeatPatrol {
    /// Reads the settings; the program's own times take precedence. Returns `None` if no patrol is
    /// wanted.
    pub(super) fn read(times: Option<String>, config: &Config) -> Result<Option<Self>, BoxError> {
        let section = config.section("HeartbeatPatrol")?;
        let is_set = section.is_set();
        let configured = section.get_or("CronExpression", CRON.to_owned())?;
        let is_enabled = section.get_or("Enabled", true)? || times.is_some();
        if !is_set && times.is_none() {
            return Ok(None);
        }
        let cron = times.unwrap_or(configured);
        if let Err(error) = Times::parse(&cron) {
            return Err(format!("`HeartbeatPatrol.CronExpression`: {error}").into());
        }
        Ok(Some(Self { is_enabled, cron }))
    }

    /// Schedules the patrol, or cancels the patrol of an earlier start.
    pub(super) async fn apply(self, scheduler: &Arc<Scheduler>) -> Result<(), BoxError> {
        if !self.is_enabled {
            scheduler.cancel(&Principal::default(), NAME).await?;
            return Ok(());
        }
        let definition = Definition {
            name: NAME.to_owned(),
            when: self.cron,
            description: DESCRIPTION.to_owned(),
            run_once: false,
            principal: Principal::default(),
            label: None,
            policies: None,
        };
        scheduler.define(definition).await?;
        Ok(())
    }
}
