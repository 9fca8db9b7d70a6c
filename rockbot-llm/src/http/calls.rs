//! Assembles tool calls from the pieces of a stream, however sloppily the server labels them.
//!
//! Above all, the arguments of two calls never end up in one: a piece that cannot be assigned for
//! certain is an error.

use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, FinishReason, ToolCall};
use rockbot_core::{CallId, IdSource, ToolName};

use super::Fault;

/// More calls than this in one answer are not meant.
const MAX_CALLS: usize = 1024;

/// An id longer than this is not one.
const MAX_ID_BYTES: usize = 128;

/// A piece of a tool call. Members that the server left out are empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallPiece<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
}

/// The calls of one answer while it arrives.
pub(crate) struct CallAssembler<'a> {
    calls: Vec<PartialCall>,
    ids: CallIds<'a>,
}

#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    /// Position of the call among the others: its index, or behind all that were known when it began.
    order: u64,
    id: String,
    name: String,
    arguments: String,
    /// Final id, once the call was announced to the sink.
    known_as: Option<CallId>,
}

impl<'a> CallAssembler<'a> {
    /// Creates the assembler of an answer to `messages`, whose calls get ids that occur nowhere in
    /// them.
    pub(crate) fn new(ids: &'a dyn IdSource, messages: &'a [Arc<ChatMessage>]) -> Self {
        Self {
            calls: Vec::new(),
            ids: CallIds {
                source: ids,
                messages,
                given: Vec::new(),
            },
        }
    }

    /// Adds a call that arrived in one piece.
    pub(crate) fn push_whole(&mut self, piece: CallPiece<'_>) -> Result<(), Fault> {
        let at = self.begin(None)?;
        self.calls[at].append(piece);
        Ok(())
    }

    /// Adds a piece of a streamed call; `announce` is told of a call whose name is complete.
    pub(crate) fn push(
        &mut self,
        piece: CallPiece<'_>,
        announce: impl FnOnce(&CallId, &ToolName),
    ) -> Result<(), Fault> {
        let at = match self.find(piece)? {
            Some(at) if self.calls[at].continues_with(piece) => at,
            _ => self.begin(piece.index)?,
        };
        let call = &mut self.calls[at];
        call.append(piece);
        if call.known_as.is_none() && !call.arguments.is_empty() && !call.name.is_empty() {
            let id = self.ids.choose(&call.id);
            announce(&id, &ToolName::from(call.name.as_str()));
            call.known_as = Some(id);
        }
        Ok(())
    }

    /// Returns the calls of an answer that ended with `reason`, in the server's order. The calls of
    /// an answer that was cut are dropped. An answer with calls that does not say that it is complete
    /// is a fault: the model is asked again.
    pub(crate) fn finish(mut self, reason: FinishReason) -> Result<Vec<ToolCall>, Fault> {
        if self.calls.is_empty() || reason.is_cut() {
            return Ok(Vec::new());
        }
        if !reason.allows_calls() {
            return Err(Fault::Cut("before it said that its tool calls are complete"));
        }
        self.calls.sort_by_key(|call| call.order);
        let calls = std::mem::take(&mut self.calls);
        calls.into_iter().map(|call| self.complete(call)).collect()
    }

    fn complete(&mut self, call: PartialCall) -> Result<ToolCall, Fault> {
        if call.name.is_empty() {
            return Err(Fault::Malformed("a tool call has no name".into()));
        }
        let id = call.known_as.unwrap_or_else(|| self.ids.choose(&call.id));
        let arguments = match call.arguments.trim() {
            "" => Arc::from("{}"),
            _ => Arc::from(call.arguments),
        };
        Ok(ToolCall::new(id, call.name, arguments))
    }

    /// Finds the call that `piece` seems to belong to; `None` if it begins one.
    fn find(&self, piece: CallPiece<'_>) -> Result<Option<usize>, Fault> {
        let last = |is: &dyn Fn(&PartialCall) -> bool| self.calls.iter().rposition(is);
        if let Some(index) = piece.index {
            return Ok(last(&|call| call.index == Some(index)));
        }
        if !piece.id.is_empty() {
            let same = last(&|call| call.id == piece.id);
            if same.is_some() || !piece.name.is_empty() {
                return Ok(same);
            }
        }
        match (last(&|call| call.index.is_none()), self.calls.len()) {
            (Some(at), _) => Ok(Some(at)),
            (None, 0) => Ok(None),
            (None, 1) => Ok(Some(0)),
            (None, _) if !piece.name.is_empty() => Ok(None),
            (None, _) => Err(Fault::Malformed("a piece of a tool call does not say of which".into())),
        }
    }

    fn begin(&mut self, index: Option<u64>) -> Result<usize, Fault> {
        if self.calls.len() == MAX_CALLS {
            return Err(Fault::Malformed(format!("it has more than {MAX_CALLS} tool calls")));
        }
        let behind_all = self.calls.iter().map(|call| call.order.saturating_add(1)).max();
        self.calls.push(PartialCall {
            index,
            order: index.or(behind_all).unwrap_or(0),
            ..PartialCall::default()
        });
        Ok(self.calls.len() - 1)
    }
}

impl PartialCall {
    /// Returns `true` if `piece` continues this call: servers reuse an index, or an id, for the next
    /// call.
    fn continues_with(&self, piece: CallPiece<'_>) -> bool {
        let same_id = piece.id.is_empty() || self.id.is_empty() || piece.id == self.id;
        // Some servers make up a new id for each piece; only a name begins a call.
        if piece.name.is_empty() {
            return true;
        }
        if !same_id {
            return false;
        }
        // A name that comes behind arguments is the same one repeated, or the next call's.
        let next_object = self.arguments.ends_with('}') && piece.arguments.starts_with('{');
        self.arguments.is_empty() || (piece.name == self.name && !next_object)
    }

    fn append(&mut self, piece: CallPiece<'_>) {
        if self.id.is_empty() {
            self.id.push_str(piece.id);
        }
        if self.name != piece.name {
            self.name.push_str(piece.name);
        }
        self.arguments.push_str(piece.arguments);
    }
}

/// Sees to it that each call of a conversation has an id of its own.
struct CallIds<'a> {
    source: &'a dyn IdSource,
    messages: &'a [Arc<ChatMessage>],
    given: Vec<CallId>,
}

impl CallIds<'_> {
    /// Returns the server's id, or a generated one if that is no id or taken.
    fn choose(&mut self, wanted: &str) -> CallId {
        let id = if is_id(wanted) && !self.is_taken(wanted) {
            CallId::from(wanted)
        } else {
            made(&self.source.next_id())
        };
        self.given.push(id.clone());
        id
    }

    fn is_taken(&self, id: &str) -> bool {
        let earlier = self.messages.iter().flat_map(|message| &message.tool_calls);
        self.given.iter().any(|given| *given == id) || earlier.into_iter().any(|call| call.id == id)
    }
}

/// Returns an id of nine letters and digits: the templates of some models accept no other ids.
fn made(id: &str) -> CallId {
    let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    CallId::from(format!("c{:0>8}", &id[id.len().saturating_sub(8)..]))
}

/// Numbers are no ids: they count the calls of one answer and come again in the next.
fn is_id(text: &str) -> bool {
    let counts = text.bytes().all(|byte| byte.is_ascii_digit());
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    !text.is_empty() && text.len() <= MAX_ID_BYTES && printable && !counts
}
