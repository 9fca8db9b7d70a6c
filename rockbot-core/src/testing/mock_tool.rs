//! A tool whose calls a test answers by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::CallContext;
use crate::tool::{Recovery, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};

/// Creates a tool named `name`, and the handle with which a test answers its calls.
///
/// A call is pending until it is answered, so a test proves which calls overlap and which exclude
/// each other. The tool accepts every object as arguments and is taken to be mutating; setters
/// such as [`Tool::pure`] change that.
///
/// ```
/// use rockbot_core::CallContext;
/// use rockbot_core::testing::mock_tool;
/// use rockbot_core::tool::ToolInvokeRequest;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (tool, mut handle) = mock_tool("look_up");
/// let request = ToolInvokeRequest::new("call_1", "look_up", "{}").with_session_id("session");
/// let cx = CallContext::new("session");
///
/// let (response, ()) = tokio::join!(tool.executor.execute(request, &cx), async {
///     handle.next_call().await.respond("found");
/// });
/// assert_eq!(response.unwrap().content, "found");
/// assert_eq!((handle.started(), handle.finished(), handle.cancelled()), (1, 1, 0));
/// # }
/// ```
pub fn mock_tool(name: &str) -> (Tool, MockToolHandle) {
    let shared = Arc::new(Mutex::new(Shared::default()));
    let (calls, received) = mpsc::unbounded_channel();
    let registration = ToolRegistration::new(name, "A mock tool.", json!({"type": "object"}));
    let executor = MockTool {
        calls,
        shared: shared.clone(),
    };
    let handle = MockToolHandle {
        calls: received,
        shared,
    };
    (Tool::new(registration, executor), handle)
}

/// The handle of a mock tool: answers its calls and counts them.
#[derive(Debug)]
pub struct MockToolHandle {
    calls: mpsc::UnboundedReceiver<MockCall>,
    shared: Arc<Mutex<Shared>>,
}

/// A pending call of a mock tool.
#[derive(Debug)]
pub struct MockCall {
    /// Request of the call.
    pub request: ToolInvokeRequest,
    /// Context of the call: principal, deadline and grants.
    pub cx: CallContext,
    answer: oneshot::Sender<Answer>,
}

impl MockToolHandle {
    /// Waits for the next call and returns it.
    ///
    /// # Panics
    ///
    /// Panics when every copy of the tool is gone: then no call can come any more.
    pub async fn next_call(&mut self) -> MockCall {
        let call = self.calls.recv().await;
        call.expect("no copy of the mock tool is left that could be called")
    }

    /// Returns the next call if one is pending.
    pub fn try_next_call(&mut self) -> Option<MockCall> {
        self.calls.try_recv().ok()
    }

    /// Returns the number of started calls.
    pub fn started(&self) -> usize {
        self.lock().started
    }

    /// Returns the number of answered calls, failures and panics included.
    pub fn finished(&self) -> usize {
        self.lock().finished
    }

    /// Returns the number of calls dropped before they were answered.
    pub fn cancelled(&self) -> usize {
        self.lock().cancelled
    }

    /// Returns the number of pending calls.
    pub fn running(&self) -> usize {
        let shared = self.lock();
        shared.started - shared.finished - shared.cancelled
    }

    /// Sets the recovery that the tool reports for interrupted calls. Default [`Recovery::Unknown`].
    pub fn recovers(&self, recovery: Recovery) {
        self.lock().recovery = Some(recovery);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

impl MockCall {
    /// Answers the call with `text`.
    pub fn respond(self, text: impl Into<String>) {
        self.answer(Answer::Text(text.into()));
    }

    /// Answers the call with an error.
    pub fn fail(self, error: ToolError) {
        self.answer(Answer::Error(error));
    }

    /// Makes the tool panic in the call.
    pub fn panic(self, message: impl Into<String>) {
        self.answer(Answer::Panic(message.into()));
    }

    /// Waits until the caller has dropped the call.
    pub async fn dropped(&mut self) {
        self.answer.closed().await;
    }

    fn answer(self, answer: Answer) {
        // A caller that has gone meanwhile is counted as cancelled.
        let _ = self.answer.send(answer);
    }
}

#[derive(Debug)]
enum Answer {
    Text(String),
    Error(ToolError),
    Panic(String),
}

#[derive(Debug, Default)]
struct Shared {
    started: usize,
    finished: usize,
    cancelled: usize,
    recovery: Option<Recovery>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // No code that can panic runs under the lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct MockTool {
    /// Unbounded: a mock must never hold up the code under test by itself.
    calls: mpsc::UnboundedSender<MockCall>,
    shared: Arc<Mutex<Shared>>,
}

#[async_trait]
impl ToolExecutor for MockTool {
    #[expect(clippy::panic, reason = "a test asked for it with `MockCall::panic`")]
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let running = Running::start(&self.shared);
        let (answer, answered) = oneshot::channel();
        let call = MockCall {
            request: request.clone(),
            cx: cx.clone(),
            answer,
        };
        // When the handle has gone, the answer's sender goes with the call.
        let _ = self.calls.send(call);
        let answer = answered.await;
        running.finish();
        match answer {
            Ok(Answer::Text(text)) => Ok(request.succeed(text)),
            Ok(Answer::Error(error)) => Err(error),
            Ok(Answer::Panic(message)) => panic!("{message}"),
            Err(_) => Err(ToolError::execution_failed(
                "the test dropped the mock call without an answer",
            )),
        }
    }

    async fn recover(&self, _: &ToolInvokeRequest, _: &CallContext) -> Recovery {
        lock(&self.shared).recovery.clone().unwrap_or(Recovery::Unknown)
    }
}

/// Counts a call as cancelled when it is dropped before it finished.
struct Running<'a>(&'a Mutex<Shared>, bool);

impl<'a> Running<'a> {
    fn start(shared: &'a Mutex<Shared>) -> Self {
        lock(shared).started += 1;
        Self(shared, false)
    }

    fn finish(mut self) {
        self.1 = true;
        lock(self.0).finished += 1;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.1 {
            lock(self.0).cancelled += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ToolInvokeRequest {
        ToolInvokeRequest {
            tool_call_id: "call_1".into(),
            tool_name: "mock".into(),
            arguments: "{}".into(),
            session_id: "session".into(),
        }
    }

    fn counts(handle: &MockToolHandle) -> [usize; 4] {
        [
            handle.started(),
            handle.finished(),
            handle.cancelled(),
            handle.running(),
        ]
    }

    #[tokio::test]
    async fn calls_overlap_until_they_are_answered() {
        let (tool, mut handle) = mock_tool("mock");
        let executor = tool.executor;
        let cx = CallContext::new("session");
        let (a, b, ()) = tokio::join!(
            executor.execute(request(), &cx),
            executor.execute(request(), &cx),
            async {
                let first = handle.next_call().await;
                let second = handle.next_call().await;
                assert_eq!(counts(&handle), [2, 0, 0, 2]);
                second.fail(ToolError::execution_failed("broken"));
                first.respond("fine");
            }
        );
        assert_eq!(a.unwrap(), request().succeed("fine"));
        assert_eq!(b.unwrap_err().message(), "broken");
        assert_eq!(counts(&handle), [2, 2, 0, 0]);
    }

    #[tokio::test]
    async fn a_dropped_call_is_counted_and_seen_by_the_test() {
        let (tool, mut handle) = mock_tool("mock");
        let executor = tool.executor;
        let running = tokio::spawn(async move { executor.execute(request(), &CallContext::new("session")).await });
        let mut call = handle.next_call().await;
        running.abort();
        call.dropped().await;
        assert_eq!(counts(&handle), [1, 0, 1, 0]);
    }

    #[tokio::test]
    async fn a_panic_is_a_panic_of_the_caller() {
        let (tool, mut handle) = mock_tool("mock");
        let executor = tool.executor;
        let running = tokio::spawn(async move { executor.execute(request(), &CallContext::new("session")).await });
        handle.next_call().await.panic("boom");
        assert!(running.await.unwrap_err().is_panic());
        assert_eq!(counts(&handle), [1, 1, 0, 0]);
    }
}
