//! The tasks at set times: `/schedule`.

use rockbot::prelude::*;

#[cfg(feature = "scheduling")]
pub(crate) use tasks::{command, run};

/// Says that this chat was built without schedules.
#[cfg(not(feature = "scheduling"))]
pub(crate) async fn command(_: &AgentHost, _: &str) {
    eprintln!("this chat was built without the feature `scheduling`");
}

#[cfg(feature = "scheduling")]
mod tasks {
    use rockbot::tools::scheduling::{Schedules, TaskInfo};
    use rockbot::{Clock as _, SystemClock, Timestamp};

    use super::super::questions::questions;
    use super::super::shut_down;
    use super::super::terminal::{self, clean, cut, spoken};
    use super::*;
    use crate::agent::Setup;

    const USAGE: &str = "use it like this: schedule, schedule cancel NAME, schedule run NAME";

    /// Lists, cancels or runs tasks, as the words say.
    pub(crate) async fn command(host: &AgentHost, words: &str) {
        match told(host, words).await {
            Ok(text) => terminal::print(&format!("{text}\n")),
            Err(problem) => eprintln!("{problem}"),
        }
    }

    /// Does the same for an agent of the command line. A run ends before the program does.
    pub(crate) async fn run(setup: &Setup<'_>, words: &str) -> Result<(), BoxError> {
        let host = setup.open(questions().0).await?;
        host.start().await?;
        let told = told(&host, words).await;
        shut_down(&host).await;
        terminal::print(&format!("{}\n", told?));
        Ok(())
    }

    async fn told(host: &AgentHost, words: &str) -> Result<String, BoxError> {
        let schedules = host.parts().get::<Schedules>();
        let schedules = schedules.ok_or("this agent has no schedule: add --schedule, or the section Scheduling")?;
        let schedules = schedules.of(host.agent().principal().clone());
        match words.split_once(' ').unwrap_or((words, "")) {
            ("", _) => Ok(listed(&schedules.tasks().await?)),
            ("cancel", name) if schedules.cancel(name.trim()).await? => Ok(format!("cancelled {}", name.trim())),
            ("cancel", name) => Err(format!("there is no task `{}`", name.trim()).into()),
            ("run", name) => {
                let turn = schedules.run_now(name.trim()).await?;
                Ok(clean(&host.agent().outcome(&turn).await?.text))
            }
            _ => Err(USAGE.into()),
        }
    }

    fn listed(tasks: &[TaskInfo]) -> String {
        if tasks.is_empty() {
            return "there is no task yet".to_owned();
        }
        let now = SystemClock.now();
        let lines: Vec<_> = tasks.iter().map(|task| line(task, now)).collect();
        lines.join("\n")
    }

    fn line(task: &TaskInfo, now: Timestamp) -> String {
        let next = match task.next {
            _ if task.is_paused => "paused after failures".to_owned(),
            Some(next) => format!("next in {}", spoken(next.since(now))),
            None => "no further run".to_owned(),
        };
        let last = task.last.as_ref();
        let last = last.map(|last| format!(", last {} {} ago", last.state, spoken(now.since(last.due))));
        let (name, when, prompt) = (clean(&task.name), &task.when, cut(&task.prompt));
        format!("{name}  {when}  {next}{}  {prompt}", last.unwrap_or_default())
    }
}
