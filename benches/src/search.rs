//! A long tool result in working memory, and searches in it with the tool that a model has.

use std::sync::Arc;

use rockbot_core::CallContext;
use rockbot_core::store::{InMemoryWorkingMemory, Namespace};
use rockbot_core::tool::{ToolExecutor, ToolInvokeRequest};
use rockbot_host::large_result::{LargeResult, LargeResultPolicy, result_readers};
use serde_json::json;

/// A long tool result that was stored as a host stores it.
#[derive(Debug)]
pub struct Searched {
    tool: Arc<dyn ToolExecutor>,
    cx: CallContext,
}

impl Searched {
    /// Stores `content` in chunks.
    pub async fn keep(content: &str) -> Self {
        let memory = Arc::new(InMemoryWorkingMemory::new());
        let cx = CallContext::new("session");
        let name = "dump".into();
        let policy = LargeResultPolicy::default();
        let large = LargeResult::of(&name, content, &policy).expect("a long result");
        let keys = large.keys(Namespace::of(&cx).path(), "run").expect("a short namespace");
        large.keep_in(&*memory, cx.principal(), &keys).await;
        let [_, search] = result_readers(memory);
        Self {
            tool: search.executor,
            cx,
        }
    }

    /// Returns what the model reads after it has searched by `query` for page number `page`, from 1.
    pub async fn search(&self, query: &str, page: usize) -> String {
        let arguments = json!({ "query": query, "page": page }).to_string();
        let request =
            ToolInvokeRequest::new("call", "search_tool_output", arguments).with_session_id(self.cx.session().clone());
        let result = self.tool.execute(request, &self.cx).await;
        result.expect("a search of stored chunks").content.into_words()
    }
}
