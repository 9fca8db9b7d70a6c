//! What this bus does beyond the suite that all buses pass.

use rockbot_core::testing::conformance;

use super::*;

#[tokio::test(start_paused = true)]
async fn conforms() {
    conformance::bus::all(async || Arc::new(InProcessBus::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_on_several_threads() {
    conformance::bus::all(async || Arc::new(InProcessBus::new())).await;
}
