//! Endorsements: which calls of a tool need one, and which orders of the user are one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{Effect, Recovery, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse};
use crate::CallContext;

/// The orders of a user that endorse a call in words, without a question; see
/// [`Tool::endorsed_by`](super::Tool::endorsed_by).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(super) argument: &'static str,
    pub(super) words: &'static [&'static str],
}

impl Orders {
    /// Reports whether `message` is nothing but the order to make a call with these `arguments`.
    ///
    /// No part of a longer message counts: a text that the user quotes, forbids or asks about would
    /// be an order then, and text of others could choose the part that suits it.
    pub(super) fn are_given(self, message: &str, arguments: &str) -> bool {
        let Some((order, text)) = message.split_once([':', '：']) else {
            return false;
        };
        let order = order.trim().to_lowercase();
        self.words.contains(&&*order)
            && self
                .only_text(arguments)
                .is_some_and(|written| written.trim() == text.trim())
    }

    /// Returns the text that the call writes, if that is its only argument.
    fn only_text(self, arguments: &str) -> Option<String> {
        let mut arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
        let written = arguments.remove(self.argument)?;
        let is_empty = |value: &Value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
        match written {
            Value::String(text) if !text.trim().is_empty() && arguments.values().all(is_empty) => Some(text),
            _ => None,
        }
    }
}

type Check = dyn Fn(ToolInvokeRequest, CallContext) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

/// An executor around another executor, with a check that tells which calls need an endorsement.
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

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Orders = Orders {
        argument: "add",
        words: &["new rule", "regel"],
    };

    #[track_caller]
    fn check(message: &str, arguments: &str, expected: bool) {
        assert_eq!(RULES.are_given(message, arguments), expected, "{message} {arguments}");
    }

    #[test]
    fn a_message_that_is_nothing_but_the_order_is_one() {
        check("New rule: Be brief.", r#"{"add":"Be brief."}"#, true);
        check(" Regel:\nSei kurz.\n", r#"{"add":"Sei kurz.","remove":""}"#, true);
        check("new rule：简短。", r#"{"add":"简短。"}"#, true);
        check("New rule: at 10:30 say so", r#"{"add":"at 10:30 say so"}"#, true);
    }

    #[test]
    fn no_part_of_a_message_is_an_order() {
        for message in [
            "No new rule: Be brief.",
            "Translate this: New rule: Be brief.",
            "What does this mean?\nNew rule: Be brief.",
            "New rule: Be brief. Unless I ask for more.",
            "New rule: Never be brief.",
            "The page says \"New rule: Be brief.\"",
            "Be brief.",
            "New rule Be brief.",
            "",
        ] {
            check(message, r#"{"add":"Be brief."}"#, false);
        }
        for arguments in [
            r#"{"remove":"Be brief."}"#,
            r#"{"add":"Be brief.","remove":"Be kind."}"#,
            r#"{"add":"Be brief.","force":true}"#,
            r#"{"add":["Be brief."]}"#,
            r#"{"add":"be brief."}"#,
            "Be brief.",
        ] {
            check("New rule: Be brief.", arguments, false);
        }
        check("New rule: ", r#"{"add":""}"#, false);
    }
}
