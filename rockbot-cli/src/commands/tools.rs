//! `rockbot tools`: lists the tools of the agent.

use rockbot::BoxError;

use crate::agent::Setup;
use crate::chat::{questions, shut_down, terminal};

/// Starts the agent and prints a line for each of its tools.
pub(crate) async fn list(setup: &Setup<'_>) -> Result<(), BoxError> {
    let host = setup.open(questions().0).await?;
    host.start().await?;
    terminal::list_tools(&host);
    shut_down(&host).await;
    Ok(())
}
