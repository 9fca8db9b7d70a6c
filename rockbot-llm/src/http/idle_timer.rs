//! How long a stream may stand still, at the cost of one timer for the whole stream.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Notices when nothing has come for a while.
///
/// Setting a timer for each piece costs more than reading a small one. So the timer is left to run, and when it
/// fires it is set again to where the last piece would have it.
pub(crate) struct IdleTimer {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

/// Nothing came in time.
#[derive(Debug)]
pub(crate) struct Idle;

impl IdleTimer {
    /// A timer that fires `limit` after the last piece.
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
        let until = Instant::now() + self.limit;
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
