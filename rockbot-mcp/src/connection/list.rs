//! The list of a server's tools: all pages, within bounds.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, ServiceError};
use rockbot_core::Digest;
use rockbot_core::support::one_line;
use rockbot_core::tool::{ArgumentSchema, Effect};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::Instant;

use super::{ConnectError, ask, text_of};
use crate::server::McpServer;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 64;

/// Maximum number of tools of a server.
pub(crate) const MAX_TOOLS: usize = 1_000;

/// Maximum length of the name of a tool, in bytes.
pub(crate) const MAX_NAME: usize = 256;

/// Maximum length of a description, in bytes. The rest is cut.
pub(crate) const MAX_DESCRIPTION: usize = 2_000;

/// Maximum number of tools and pages that are named as left out.
const MAX_LEFT_OUT: usize = 100;

/// Maximum length of the reason for leaving a tool or page out, in bytes.
const MAX_REASON: usize = 300;

/// A tool as its server describes it, within bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedTool {
    /// The name on the wire.
    pub(crate) name: String,
    pub(crate) description: String,
    /// The description as the server sent it, if models are shown a changed description.
    pub(crate) sent: Option<Arc<str>>,
    pub(crate) schema: Value,
    /// The effect that the server claims.
    pub(crate) claimed: Effect,
    /// The digest of the definition as the server sent it.
    pub(crate) fingerprint: Digest,
}

/// The tools of a server, and everything of its list that is left out.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ListedTool>,
    pub(crate) left_out: Vec<LeftOut>,
    /// `true` if a page failed, so that the server may have tools which are not in the list.
    pub(crate) is_partial: bool,
    /// The number of tools that were read.
    count: usize,
}

/// A tool or a page of the list that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// The name of the tool, if it has one.
    pub(crate) tool: Option<String>,
    /// The tool or the page with the reason, in words for the operator and for models.
    pub(crate) what: String,
}

/// A page of the list with its tools. A tool that cannot be read is kept as its JSON with the
/// reason.
struct Page {
    tools: Vec<Result<Tool, (Value, String)>>,
    cursor: Option<String>,
}

/// Lists the tools that the agent may have, within `limit`. A tool that cannot be used, and a
/// page that fails, are left out by name.
pub(crate) async fn list_tools(
    peer: &Peer<RoleClient>,
    server: &McpServer,
    limit: Duration,
) -> Result<ToolList, ConnectError> {
    let mut list = ToolList::default();
    let mut cursor = None;
    let began = Instant::now();
    for number in 1..=MAX_PAGES {
        let left = limit.saturating_sub(began.elapsed());
        let page = match page(peer, cursor, left).await {
            Ok(page) => page,
            Err(error) if ends_list(&error, number) => return Err(ConnectError::NoTools(text_of(&error))),
            Err(error) => {
                list.fail(number, &error);
                cursor = None;
                break;
            }
        };
        page.tools.into_iter().for_each(|tool| list.add(tool, server));
        // An empty cursor is a cursor.
        cursor = page.cursor;
        if cursor.is_none() || list.tools.len() >= MAX_TOOLS {
            break;
        }
    }
    if cursor.is_some() || list.tools.len() > MAX_TOOLS {
        let what = format!("the tools beyond {MAX_TOOLS}, and those beyond {MAX_PAGES} pages: there are too many");
        list.leave_out(None, what);
    }
    list.tools.truncate(MAX_TOOLS);
    let mut names = HashSet::new();
    list.tools.retain(|tool| names.insert(tool.name.clone()));
    Ok(list)
}

/// Returns `true` if the error of a page leaves no list: the connection is over, or the server
/// does not answer at all.
fn ends_list(error: &ServiceError, page: usize) -> bool {
    match error {
        ServiceError::McpError(_) | ServiceError::UnexpectedResponse => false,
        ServiceError::Timeout { .. } => page == 1,
        _ => true,
    }
}

/// Asks for a page.
async fn page(peer: &Peer<RoleClient>, cursor: Option<String>, limit: Duration) -> Result<Page, ServiceError> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ClientRequest::ListToolsRequest(ListToolsRequest {
        method: Default::default(),
        params: Some(params),
        extensions: Default::default(),
    });
    match ask(peer, request, limit).await? {
        ServerResult::ListToolsResult(page) => Ok(Page {
            tools: page.tools.into_iter().map(Ok).collect(),
            cursor: page.next_cursor,
        }),
        ServerResult::CustomResult(page) => Page::read(page.0).ok_or(ServiceError::UnexpectedResponse),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

impl Page {
    /// Reads a page that is no list of tools in the sense of the protocol, tool by tool.
    fn read(mut page: Value) -> Option<Self> {
        let Value::Array(tools) = page.get_mut("tools")?.take() else {
            return None;
        };
        let read = |tool: Value| Tool::deserialize(&tool).map_err(|error| (tool, error.to_string()));
        Some(Self {
            tools: tools.into_iter().map(read).collect(),
            cursor: page.get("nextCursor").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

impl ToolList {
    /// Adds a tool, unless the agent may not have it or it cannot be used.
    fn add(&mut self, tool: Result<Tool, (Value, String)>, server: &McpServer) {
        self.count += 1;
        let (name, problem) = match tool {
            Ok(tool) if !server.admits(&tool.name) => return,
            Ok(tool) => match listed(&tool) {
                Ok(tool) => return self.tools.push(tool),
                Err(problem) => (tool.name.into_owned(), problem),
            },
            Err((tool, problem)) => {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                if !name.is_empty() && !server.admits(name) {
                    return;
                }
                (name.to_owned(), format!("its definition cannot be read: {problem}"))
            }
        };
        let problem = shown(&problem, MAX_REASON);
        if name.is_empty() {
            self.leave_out(None, format!("tool {}, which has no name: {problem}", self.count));
        } else {
            let what = format!("the tool `{}`: {problem}", shown(&name, MAX_NAME));
            self.leave_out(Some(name), what);
        }
    }

    /// Notes that a page failed, and with it the pages after it, which it would have named.
    fn fail(&mut self, page: usize, error: &ServiceError) {
        self.is_partial = true;
        let problem = shown(&text_of(error), MAX_REASON);
        self.leave_out(
            None,
            format!("page {page} of the list of tools, and those after it: {problem}"),
        );
    }

    fn leave_out(&mut self, tool: Option<String>, what: String) {
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.push(LeftOut { tool, what });
        }
    }
}

/// Returns a text of a server on one line, cut to `max` bytes.
fn shown(text: &str, max: usize) -> String {
    one_line(&text[..text.floor_char_boundary(max)]).into_owned()
}

/// Returns the tool, or the reason why it cannot be used.
fn listed(tool: &Tool) -> Result<ListedTool, String> {
    if tool.name.is_empty() || tool.name.len() > MAX_NAME {
        return Err(format!("its name is empty or longer than {MAX_NAME} bytes"));
    }
    let schema = Value::Object((*tool.input_schema).clone());
    ArgumentSchema::compile(&schema).map_err(|error| error.to_string())?;
    Ok(ListedTool {
        sent: (text_of_tool(tool).len() > MAX_DESCRIPTION).then(|| text_of_tool(tool).into()),
        description: description(tool),
        claimed: claimed_effect(tool),
        fingerprint: Digest::of([serde_json::to_vec(tool).unwrap_or_default()]),
        name: tool.name.clone().into_owned(),
        schema,
    })
}

fn text_of_tool(tool: &Tool) -> &str {
    let text = tool.description.as_deref().or(tool.title.as_deref());
    text.unwrap_or_default()
}

fn description(tool: &Tool) -> String {
    let text = text_of_tool(tool);
    if text.len() > MAX_DESCRIPTION {
        format!("{}… (cut)", &text[..text.floor_char_boundary(MAX_DESCRIPTION)])
    } else {
        text.to_owned()
    }
}

/// Returns the effect that the annotations claim. They are hints, so it counts only for trusted
/// servers.
fn claimed_effect(tool: &Tool) -> Effect {
    match &tool.annotations {
        Some(hints) if hints.read_only_hint == Some(true) => Effect::Pure,
        Some(hints) if hints.is_idempotent() => Effect::Idempotent,
        _ => Effect::Mutating,
    }
}

#[cfg(test)]
impl ListedTool {
    /// Returns a tool with this description.
    pub(crate) fn for_test(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            sent: None,
            schema: serde_json::json!({"type": "object"}),
            claimed: Effect::Mutating,
            fingerprint: Digest::of([name, description]),
        }
    }
}
