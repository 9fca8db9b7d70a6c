//! A limit on the pauses of a stream, at the cost of one timer for the whole stream.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use rockbot_core::support::deadline_after;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that ends a stream that pauses too long.
///
/// Setting a timer for each piece costs more than reading a small piece. So the timer runs on,
/// and when it fires too early, because a piece arrived meanwhile, it is set again from the last
/// piece.
pub(crate) struct IdleTimer {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

/// The error of a stream that paused too long.
#[derive(Debug)]
pub(crate) struct Idle;

impl IdleTimer {
    /// Creates a timer that fires `limit` after the last piece.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None }
    }

    /// Waits for the next piece.
    pub(crate) async fn watch<T>(&mut self, piece: impl Future<Output = T>) -> Result<T, Idle> {
        let mut piece = pin!(piece);
        tokio::select! {
            biased;
            piece = piece.as_mut() => return Ok(piece),
            // A piece that is there already needs no timer at all.
            () = std::future::ready(()) => {}
        }
        let until = deadline_after(Instant::now(), self.limit);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        loop {
            tokio::select! {
                biased;
                piece = piece.as_mut() => return Ok(piece),
                () = timer.as_mut() => {}
            }
            if Instant::now() >= until {
                return Err(Idle);
            }
            timer.as_mut().reset(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_a_limit_may_pause_for_long() {
        let mut idle = IdleTimer::new(Duration::MAX);
        let day = Duration::from_secs(86_400);
        assert!(idle.watch(sleep(day)).await.is_ok());
        assert!(idle.watch(sleep(day)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_counts_from_each_piece() {
        let mut idle = IdleTimer::new(Duration::from_secs(10));
        for _ in 0..5 {
            idle.watch(sleep(Duration::from_secs(9))).await.unwrap();
        }
        let started = Instant::now();
        idle.watch(std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(started.elapsed(), Duration::from_secs(10));
    }
}
