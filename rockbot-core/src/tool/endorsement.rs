//! Tools of which some calls need an endorsement.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Effect, Recovery, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse};
use crate::CallContext;

type Check = dyn Fn(ToolInvokeRequest, CallContext) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

/// An executor around another one, with a check that tells which calls need an endorsement.
pub(super) struct EndorsedWhen {
    executor: Arc<dyn ToolExecutor>,
    check: Box<Check>,
}

impl EndorsedWhen {
    pub(super) fn around<F, Checking>(executor: Arc<dyn ToolExecutor>, check: F) -> Arc<dyn ToolExecutor>
    where
        F: Fn(ToolInvokeRequest, CallContext) -> Checking + Send + Sync + 'static,
        Checking: Future<Output = bool> + Send + 'static,
    {
        Arc::new(Self {
            executor,
            check: Box::new(move |request, cx| Box::pin(check(request, cx))),
        })
    }
}

impl fmt::Debug for EndorsedWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EndorsedWhen").field(&self.executor).finish()
    }
}

#[async_trait]
impl ToolExecutor for EndorsedWhen {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        self.executor.execute(request, cx).await
    }

    async fn needs_endorsement(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Option<bool> {
        Some((self.check)(request.clone(), cx.clone()).await)
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        self.executor.recover(request, cx).await
    }

    fn effect_of(&self, request: &ToolInvokeRequest) -> Option<Effect> {
        self.executor.effect_of(request)
    }

    fn needs_approval(&self, request: &ToolInvokeRequest) -> Option<bool> {
        self.executor.needs_approval(request)
    }

    fn checks_arguments(&self) -> bool {
        self.executor.checks_arguments()
    }
}
