//! The routing table of a bus: which subscriptions a topic reaches, cached per topic.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use rockbot_core::messaging::{TopicError, check_topic, without_domain};

use super::group::ConsumerGroup;
use super::meters::{PublishMeters, TEMPORARY, UNSUBSCRIBED};
use crate::telemetry::MeterBook;

/// Maximum number of cached topics. Programs may use topics without end, such as one for each
/// reply.
const MAX_CACHED_TOPICS: usize = 1024;

/// The subscriptions of a bus by topic.
///
/// Publishing reads the table without a lock on the subscriptions. A change of the subscriptions
/// replaces the table and its cache as a whole, so no cached route can outlive the subscriptions
/// that it was resolved from.
#[derive(Debug, Default)]
pub(super) struct Routes {
    table: ArcSwap<RouteTable>,
    meters: MeterBook<PublishMeters>,
}

#[derive(Debug, Default)]
struct RouteTable {
    groups: Vec<Arc<ConsumerGroup>>,
    cache: RwLock<HashMap<Arc<str>, Arc<TopicRoute>>>,
}

/// The subscriptions that a topic reaches.
#[derive(Debug)]
pub(super) struct TopicRoute {
    pub(super) topic: Arc<str>,
    pub(super) groups: Vec<Arc<ConsumerGroup>>,
    pub(super) meters: Arc<PublishMeters>,
}

impl Routes {
    /// Replaces the subscriptions. Capacity is reserved in this order.
    pub(super) fn replace(&self, groups: Vec<Arc<ConsumerGroup>>) {
        self.table.store(Arc::new(RouteTable {
            groups,
            cache: RwLock::default(),
        }));
    }

    /// Returns the route of `topic`.
    ///
    /// # Errors
    ///
    /// Returns an error if `topic` is not a valid topic. Cached topics are valid, so only new
    /// topics are checked.
    pub(super) fn find(&self, topic: &str) -> Result<Arc<TopicRoute>, TopicError> {
        let table = self.table.load();
        // The map is consistent between any two operations, so a poisoned lock is safe to use.
        if let Some(route) = table.cache.read().unwrap_or_else(PoisonError::into_inner).get(topic) {
            return Ok(Arc::clone(route));
        }
        check_topic(topic)?;
        // Resolved without the lock: two publishers may resolve the same topic at once, with equal
        // results.
        let route = Arc::new(table.resolve(&without_domain(topic), &self.meters));
        let mut cache = table.cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_TOPICS {
            // Cleared instead of LRU: topics in use come back at once, and a hit needs no write to the cache.
            cache.clear();
        }
        cache.insert(topic.into(), Arc::clone(&route));
        Ok(route)
    }

    #[cfg(test)]
    pub(super) fn cached(&self) -> usize {
        self.table.load().cache.read().unwrap().len()
    }
}

impl RouteTable {
    fn resolve(&self, topic: &str, meters: &MeterBook<PublishMeters>) -> TopicRoute {
        let groups = self.groups.iter().filter(|group| group.matches(topic));
        let groups: Vec<_> = groups.cloned().collect();
        let destination = match groups.iter().all(|group| group.is_ephemeral()) {
            false => topic,
            true if groups.is_empty() => UNSUBSCRIBED,
            true => TEMPORARY,
        };
        TopicRoute {
            topic: topic.into(),
            groups,
            meters: meters.of(destination, PublishMeters::new),
        }
    }
}
