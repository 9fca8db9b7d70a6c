//! A recorder that reads the metrics of the framework.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, Snapshotter};

/// Returns how often each series was recorded since the last call, as `name key=value …`.
pub(crate) fn measured(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let mut measured = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let (_, key) = key.into_parts();
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        let count = match value {
            DebugValue::Histogram(values) => values.len() as u64,
            DebugValue::Counter(count) => count,
            DebugValue::Gauge(_) => continue,
        };
        measured.insert(format!("{}{}", key.name(), labels.collect::<String>()), count);
    }
    measured
}
