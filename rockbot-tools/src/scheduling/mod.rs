//! Schedules tasks of an agent.

#[allow(
    dead_code,
    unused_imports,
    reason = "the scheduler that uses the cron expressions follows"
)]
mod cron;
