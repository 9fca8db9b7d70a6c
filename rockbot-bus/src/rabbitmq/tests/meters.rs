//! What a bus counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use rockbot_core::messaging::{Disposition, MessagePublisher as _, MessageSubscriberExt as _, Reach};

use super::broker::{inbox, text, until, with_broker};
use super::connection::behind_proxy;

/// One thread, since the recorder is that of the thread.
#[tokio::test]
async fn messages_and_connections_are_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let mut has_broker = false;
    with_broker(async |broker| {
        has_broker = true;
        let (bus, proxy) = behind_proxy(broker).await;
        assert_eq!(bus.publish("a", text("x").into()).await.unwrap(), Reach::NoSubscribers);
        let (seen, mut inbox) = inbox();
        let subscription = bus.on("a", &broker.name("s"), seen).await.unwrap();
        proxy.cut_at_confirm();
        bus.publish("a", text("y").into()).await.unwrap();
        inbox.next().await;
        until("the connection is back", async || proxy.connections() == 2).await;
        subscription.close().await;
        let stuck = |_| std::future::pending::<Disposition>();
        let name = broker.name("t");
        let first = Arc::clone(&bus);
        let _stuck = first.on("b", &name, stuck).await.unwrap();
        bus.publish("b", text("z").into()).await.unwrap();
        let queue = broker.queue(&name);
        until("the message is taken", async || broker.counts(&queue).await == (0, 1)).await;
        proxy.cut();
        until("the connection is back", async || proxy.connections() == 3).await;
        until("it is consumed again", async || broker.counts(&queue).await == (0, 1)).await;
    })
    .await;
    let counted = counted(&snapshotter);
    if !has_broker {
        return;
    }
    assert_eq!((counted["returned"], counted["reconnects"]), (1, 2));
    assert!(counted["confirmed"] >= 2 && counted["redelivered"] >= 1, "{counted:?}");
    assert!(
        counted["published"] > counted["returned"] + counted["confirmed"],
        "one was sent twice: {counted:?}"
    );
}

/// Returns what was counted, without the prefix that all names share.
pub(super) fn counted(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        if let (Some(name), DebugValue::Counter(count)) =
            (key.key().name().strip_prefix("rockbot.messaging.broker."), value)
        {
            counted.insert(name.to_owned(), count);
        }
    }
    counted
}
