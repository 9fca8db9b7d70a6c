//! Runs conversations concurrently on the calling thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Instant;

/// Runs `total` conversations, `concurrency` at a time, and returns the duration of each in
/// milliseconds.
///
/// Must be called inside a `LocalSet`.
pub async fn run<F, Fut>(total: usize, concurrency: usize, conversation: F) -> Vec<f64>
where
    F: Fn(usize) -> Fut + Clone + 'static,
    Fut: Future<Output = String> + 'static,
{
    let left = Rc::new(Cell::new(total));
    let latencies = Rc::new(RefCell::new(Vec::with_capacity(total)));
    let workers = (0..concurrency).map(|_| {
        let left = left.clone();
        let latencies = latencies.clone();
        let conversation = conversation.clone();
        tokio::task::spawn_local(async move {
            while left.get() > 0 {
                left.set(left.get() - 1);
                let started = Instant::now();
                let text = conversation(left.get()).await;
                assert!(text.starts_with("FINAL"), "{text}");
                latencies.borrow_mut().push(started.elapsed().as_secs_f64() * 1e3);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("a worker does not fail");
    }
    latencies.take()
}
