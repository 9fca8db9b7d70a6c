//! Wisps: static lists of steps that run as journalled turns, without a model but where a step asks one.

#![allow(dead_code, reason = "the subsystem that runs wisps follows")]

mod assignment;
mod definition;
mod failure;
mod gateway;
mod keep;
mod memory;
mod model;
mod output;
mod problem;
mod progress;
mod question;
mod raw;
mod repair;
mod report;
mod template;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use rockbot_core::chat::ChatClient;
use rockbot_core::store::WorkingMemory;
use rockbot_core::tool::ToolRegistry;

/// Beginning of the namespaces of wisps in working memory, and of their sessions.
const NAMESPACE: &str = "wisp";

struct HostParts {
    chat: Arc<dyn ChatClient>,
    registry: Arc<dyn ToolRegistry>,
    memory: Option<Arc<dyn WorkingMemory>>,
}

impl fmt::Debug for HostParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostParts").finish_non_exhaustive()
    }
}
