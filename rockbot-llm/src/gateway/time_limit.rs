//! The time limit layer: how long a call may take, and how long its stream may pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, DeltaSink};
use rockbot_core::support::run_until_stopped;
use tokio::time::{Instant, sleep_until};

use super::layer::{GatewayLayer, layer_of};
use crate::limits::TimeLimit;

impl TimeLimit {
    /// Returns the error of the limit that is exceeded at `time` after the beginning of a call whose
    /// last piece came at `last_piece`.
    fn exceeded(&self, time: Duration, last_piece: Option<Duration>) -> Option<ChatError> {
        let is_over = |time: Duration, limit: Duration| !limit.is_zero() && time >= limit;
        if is_over(time, self.call) {
            return Some(too_slow("did not finish its answer", self.call));
        }
        match last_piece.map(|at| time.saturating_sub(at)) {
            None if is_over(time, self.first) => Some(too_slow("did not begin its answer", self.first)),
            Some(silence) if is_over(silence, self.pause) => {
                Some(too_slow("did not go on with its answer", self.pause))
            }
            _ => None,
        }
    }

    /// Returns the time of the next check, from the beginning of the call; `None` if no limit is left.
    fn next_check(&self, time: Duration, last_piece: Option<Duration>) -> Option<Duration> {
        // If no piece has come so far, a piece may come right now.
        let pause = last_piece.unwrap_or(time).saturating_add(self.pause);
        let looks = [(self.call, self.call), (self.first, self.first), (self.pause, pause)];
        let ahead = looks.into_iter().filter(|(limit, at)| !limit.is_zero() && *at > time);
        ahead.map(|(_, at)| at).min()
    }
}

fn too_slow(what: &str, limit: Duration) -> ChatError {
    let message = format!("the model {what} within {limit:?}: try again later, or raise the gateway's time limit");
    ChatError::new(ChatErrorKind::TimedOut, message)
}

#[async_trait]
impl GatewayLayer for TimeLimit {
    async fn call(&self, mut call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let began = Instant::now();
        let limit = match call.deltas {
            Some(_) => *self,
            None => Self::of(self.call),
        };
        let pieces = Pieces::watch(&mut call, began);
        let stop = async {
            loop {
                let time = began.elapsed();
                let last = pieces.last();
                if let Some(error) = limit.exceeded(time, last) {
                    return error;
                }
                // A piece does not move the timer: the timer fires where the last check put it, and is set again
                // from there.
                match limit.next_check(time, last).and_then(|look| began.checked_add(look)) {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            }
        };
        run_until_stopped(next.chat(call), stop).await.unwrap_or_else(Err)
    }
}

layer_of!(TimeLimit);

/// The time of the last piece of an answer, in microseconds after the beginning of the call; 0
/// before the first piece.
struct Pieces(Arc<AtomicU64>);

impl Pieces {
    fn watch(call: &mut ChatCall, began: Instant) -> Self {
        let last = Arc::new(AtomicU64::new(0));
        call.deltas = call.deltas.take().map(|sink| {
            let last = last.clone();
            DeltaSink::new(move |delta| {
                let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                // Relaxed: only this one value is shared, and a check that misses the newest piece is repeated
                // in time.
                last.store(micros.max(1), Ordering::Relaxed);
                sink.send(delta);
            })
        });
        Self(last)
    }

    fn last(&self) -> Option<Duration> {
        let micros = self.0.load(Ordering::Relaxed);
        (micros > 0).then_some(Duration::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::{ChatDelta, ModelInfo, ModelTier};
    use tokio::time::sleep;

    use super::*;
    use crate::gateway::ModelGateway;
    use crate::testing::{call, streamed};

    /// Writes a word after each of these pauses, in seconds, and ends with the last.
    struct Pauses(&'static [u64]);

    #[async_trait]
    impl ChatClient for Pauses {
        async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
            for pause in self.0 {
                sleep(Duration::from_secs(*pause)).await;
                call.deltas.iter().for_each(|sink| sink.send(ChatDelta::Text("word ")));
            }
            Ok(ChatResponse::text("done"))
        }

        fn describe(&self, _: ModelTier) -> ModelInfo {
            ModelInfo::unknown()
        }
    }

    /// Limits in seconds: of the call, for the first piece, for a pause.
    async fn check(limits: [u64; 3], is_streamed: bool, pauses: &'static [u64], expected: Result<u64, (u64, &str)>) {
        let [call_limit, first, pause] = limits.map(Duration::from_secs);
        let limit = TimeLimit {
            call: call_limit,
            first,
            pause,
        };
        let gateway = ModelGateway::builder(Pauses(pauses)).layer(limit).build();
        let call = if is_streamed { streamed().0 } else { call() };
        let began = Instant::now();
        let answer = gateway.chat(call).await;
        let seconds = began.elapsed().as_secs();
        let ended = answer.map(|_| seconds).map_err(|error| {
            assert_eq!(error.kind(), ChatErrorKind::TimedOut);
            (seconds, error.to_string())
        });
        let expected = expected.map_err(|(seconds, what)| {
            (
                seconds,
                format!("the model {what}: try again later, or raise the gateway's time limit"),
            )
        });
        assert_eq!(ended, expected, "{limits:?} {pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_holds() {
        check([10, 0, 0], false, &[9], Ok(9)).await;
        check(
            [10, 0, 0],
            false,
            &[5, 6],
            Err((10, "did not finish its answer within 10s")),
        )
        .await;
        check([0, 0, 0], true, &[1_000_000], Ok(1_000_000)).await;
        check([0, 5, 0], true, &[6], Err((5, "did not begin its answer within 5s"))).await;
        check([0, 5, 0], true, &[4, 60], Ok(64)).await;
        check([0, 0, 5], true, &[60, 4, 4, 4], Ok(72)).await;
        check(
            [0, 0, 5],
            true,
            &[60, 4, 6],
            Err((69, "did not go on with its answer within 5s")),
        )
        .await;
        check([100, 20, 5], true, &[19, 4, 4], Ok(27)).await;
        check(
            [25, 20, 5],
            true,
            &[19, 4, 4],
            Err((25, "did not finish its answer within 25s")),
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn limits_of_pieces_are_none_for_whole_answers() {
        check([0, 5, 5], false, &[60], Ok(60)).await;
        check([u64::MAX, 0, 0], false, &[60], Ok(60)).await;
    }
}
