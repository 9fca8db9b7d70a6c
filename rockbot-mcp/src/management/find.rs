//! `mcp_find_tools`: a search by words over the tools of all servers. The model sees the found
//! tools from then on.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::tool::{Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};

use super::errors::running;
use crate::bridge::Bridge;
use crate::servers::McpServers;
use crate::tool_index::{ToolIndex, ToolQuery};

const NAME: &str = "mcp_find_tools";

/// The description of the tool.
const DESCRIPTION: &str =
    "Finds tools of the connected services by words, such as \"create calendar event\", and gives them to you.";

pub(super) fn tool(servers: &McpServers) -> Tool {
    let find = Find {
        servers: servers.clone(),
        index: Mutex::default(),
    };
    Tool::new(ToolRegistration::of::<ToolQuery>(NAME), find)
        .description(DESCRIPTION)
        .pure()
}

/// The executor, with the index of the present tools.
#[derive(Debug)]
struct Find {
    servers: McpServers,
    index: Mutex<Option<(u64, Arc<ToolIndex>)>>,
}

#[async_trait]
impl ToolExecutor for Find {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let runtime = running(&self.servers)?;
        self.index(&runtime.bridge).answer(request)
    }
}

impl Find {
    /// Returns the index of the tools as they are now. It is built once after each change.
    fn index(&self, bridge: &Bridge) -> Arc<ToolIndex> {
        let generation = bridge.generation();
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        match &*index {
            Some((of, index)) if *of == generation => index.clone(),
            _ => {
                let mut all = ToolIndex::default();
                for service in bridge.all() {
                    let tools = service.state.borrow().tools.clone();
                    all.add(service.server.name(), &tools);
                }
                let built = Arc::new(all);
                *index = Some((generation, built.clone()));
                built
            }
        }
    }
}
