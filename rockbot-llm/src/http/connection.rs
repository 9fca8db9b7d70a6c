//! The connection to one model of one server: requests, refusals, and bounds in size and time.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Request, Response, Url};
use rockbot_core::chat::{ChatError, ChatRequest, ModelInfo, ModelSettings};
use rockbot_core::support::{deadline_after, run_until_stopped};
use rockbot_core::{CallContext, Clock, SystemClock};
use tokio::time::{Instant, sleep_until};

use super::outgoing::invalid_settings;
use super::report::Reporter;
use super::request_id::request_id;
use super::retry_after::RetryAdvice;
use super::{Fault, Outgoing};
use crate::retry::RetryPolicy;

/// A connection to one model of one server. Connections are pooled inside of the HTTP client.
pub(crate) struct Connection {
    pub(crate) http: reqwest::Client,
    pub(crate) base: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) limits: Limits,
    pub(crate) retry: RetryPolicy,
    /// Settings of the model, for requests that do not set them.
    pub(crate) settings: Option<Arc<ModelSettings>>,
    pub(crate) report: Reporter,
}

/// Bounds of a call in time, and of its answer in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) call: Duration,
    pub(crate) idle: Duration,
    pub(crate) body: usize,
    pub(crate) event: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(600),
            idle: Duration::from_secs(120),
            body: 32 << 20,
            event: 4 << 20,
        }
    }
}

/// Maximum number of bytes that are read of an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A limit beyond this is none; without a bound the clock would overflow.
const MAX_CALL: Duration = Duration::from_secs(365 * 24 * 3600);

impl Connection {
    /// Returns the settings of the model for `request`: the request's own settings, and this client's
    /// where the request sets none.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting has a value that no model takes.
    pub(crate) fn settings_of<'a>(&'a self, request: &'a ChatRequest) -> Result<Cow<'a, ModelSettings>, ChatError> {
        let settings = request.settings_over(self.settings.as_deref());
        settings.check().map_err(invalid_settings)?;
        Ok(settings)
    }

    /// Returns the description of the model.
    pub(crate) fn model_info(&self) -> ModelInfo {
        let takes_images = self.settings.as_ref().and_then(|settings| settings.images);
        ModelInfo::new(self.report.model.clone())
            .with_images(takes_images)
            .with_settings(self.settings.clone())
    }

    /// Returns the URL of `path`, such as `chat/completions`, below the base URL.
    pub(crate) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    /// Sends `request` with this connection's headers and returns the response whatever its status. A
    /// header of the request overrides the connection's.
    // No `async fn`: its future would have room for the request, and be moved with it.
    pub(crate) fn send(&self, mut request: Request) -> impl Future<Output = Result<Response, ChatError>> {
        let own = std::mem::replace(request.headers_mut(), self.headers.clone());
        request.headers_mut().extend(own);
        let sending = self.http.execute(request);
        async { sending.await.map_err(|error| self.report.unreachable(error)) }
    }

    /// Posts `body`, and returns the response if its status is a success.
    pub(crate) fn post(
        &self,
        url: &Url,
        outgoing: impl Into<Outgoing>,
    ) -> impl Future<Output = Result<Response, ChatError>> {
        let Outgoing { body, headers } = outgoing.into();
        let mut request = Request::new(Method::POST, url.clone());
        *request.body_mut() = Some(body.into());
        *request.headers_mut() = headers;
        let sending = self.send(request);
        async {
            let response = sending.await?;
            match response.status().is_success() {
                true => Ok(response),
                // Boxed: every call's future would have room for it otherwise.
                false => Err(Box::pin(self.refusal(response)).await),
            }
        }
    }

    pub(crate) async fn refusal(&self, mut response: Response) -> ChatError {
        let status = response.status().as_u16();
        let advice = RetryAdvice::read(response.headers(), SystemClock.now());
        let id = request_id(response.headers()).map(str::to_owned);
        let mut body = Vec::new();
        // Unreadable bytes of an error's body are not worth another error.
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BYTES - body.len())]);
        }
        let mut error = self.report.refused(Some(status), &body, id);
        if let Some(after) = advice.after {
            error = error.with_retry_after(after.min(self.retry.max_retry_after));
        }
        match advice.should_retry {
            Some(helps) => error.with_retry_advice(helps),
            None => error,
        }
    }

    /// Returns the error of an answer with `fault`.
    pub(crate) fn unusable(&self, fault: &Fault) -> ChatError {
        let error = self.report.unusable(fault);
        match fault {
            // An answer that was too long once will be so again.
            Fault::TooLong(..) => error.with_retry_advice(false),
            _ => error,
        }
    }

    /// Reads the rest of the body behind `first`. A body that came in one piece, as most do, is not
    /// copied.
    pub(crate) async fn collect(&self, first: Bytes, response: &mut Response) -> Result<Bytes, Fault> {
        let announced = response.content_length().unwrap_or(0);
        self.check_size(usize::try_from(announced).unwrap_or(usize::MAX))?;
        let mut body = BytesMut::new();
        let mut last = first;
        while let Some(bytes) = next_chunk(response).await? {
            self.check_size(body.len() + last.len() + bytes.len())?;
            body.extend_from_slice(&last);
            last = bytes;
        }
        if body.is_empty() {
            return Ok(last);
        }
        body.extend_from_slice(&last);
        Ok(body.freeze())
    }

    pub(crate) fn check_size(&self, size: usize) -> Result<(), Fault> {
        if size > self.limits.body {
            Err(Fault::TooLong("the answer", self.limits.body))
        } else {
            Ok(())
        }
    }

    /// Returns the latest end of a call: its deadline, or the end of this client's time limit.
    pub(crate) fn deadline(&self, cx: &CallContext) -> Instant {
        let own = deadline_after(Instant::now(), self.limits.call.min(MAX_CALL));
        cx.deadline().map_or(own, |deadline| deadline.min(own))
    }

    /// Runs `work` until it ends, the deadline passes or the call is cancelled. A stopped call closes
    /// its connection.
    pub(crate) async fn until<T, E: From<ChatError>>(
        &self,
        cx: &CallContext,
        deadline: Instant,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // Pinned here: moved on, it would be in the future twice.
        let stop = pin!(async {
            tokio::select! {
                biased;
                () = cx.cancellation().cancelled() => self.report.cancelled(),
                () = sleep_until(deadline) => self.timed_out(cx),
            }
        });
        let ended = run_until_stopped(pin!(work), stop).await;
        ended.unwrap_or_else(|error| Err(error.into()))
    }

    fn timed_out(&self, cx: &CallContext) -> ChatError {
        let is_ours = cx.time_left().is_none_or(|left| !left.is_zero());
        self.report.timed_out(is_ours.then_some(self.limits.call))
    }
}

pub(crate) async fn next_chunk(response: &mut Response) -> Result<Option<Bytes>, Fault> {
    response
        .chunk()
        .await
        .map_err(|_| Fault::Cut("as the connection broke"))
}

pub(crate) fn has_type(response: &Response, expected: &[u8]) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(expected))
}
