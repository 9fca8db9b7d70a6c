//! Which subscriptions a topic reaches: worked out once per topic, forgotten when subscriptions change.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use rockbot_core::messaging::{TopicError, check_topic};

use super::group::ConsumerGroup;
use super::meters::{NOBODY, PublishMeters, TEMPORARY};
use crate::telemetry::MeterBook;

/// How many topics are remembered. Programs may make up topics without end, such as one for each reply.
const REMEMBERED: usize = 1024;

/// The subscriptions of a bus, found by topic.
#[derive(Debug, Default)]
pub(super) struct Routes {
    table: ArcSwap<RouteTable>,
    meters: MeterBook<PublishMeters>,
}

#[derive(Debug, Default)]
struct RouteTable {
    groups: Vec<Arc<ConsumerGroup>>,
    known: RwLock<HashMap<Arc<str>, Arc<TopicRoute>>>,
}

/// The way of a topic.
#[derive(Debug)]
pub(super) struct TopicRoute {
    pub(super) topic: Arc<str>,
    pub(super) groups: Vec<Arc<ConsumerGroup>>,
    pub(super) meters: Arc<PublishMeters>,
}

impl Routes {
    /// Replaces the subscriptions. They are asked in this order.
    pub(super) fn replace(&self, groups: Vec<Arc<ConsumerGroup>>) {
        self.table.store(Arc::new(RouteTable {
            groups,
            known: RwLock::default(),
        }));
    }

    /// The way of `topic`.
    ///
    /// # Errors
    ///
    /// Fails when it is not a topic.
    pub(super) fn find(&self, topic: &str) -> Result<Arc<TopicRoute>, TopicError> {
        let table = self.table.load();
        // The map is whole at every moment, so a panic elsewhere cannot have left it half changed.
        if let Some(route) = table.known.read().unwrap_or_else(PoisonError::into_inner).get(topic) {
            return Ok(Arc::clone(route));
        }
        check_topic(topic)?;
        let route = Arc::new(table.resolve(topic, &self.meters));
        let mut known = table.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(Arc::clone(&route.topic), Arc::clone(&route));
        Ok(route)
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.table.load().known.read().unwrap().len()
    }
}

impl RouteTable {
    fn resolve(&self, topic: &str, meters: &MeterBook<PublishMeters>) -> TopicRoute {
        let groups = self.groups.iter().filter(|group| group.matches(topic));
        let groups: Vec<_> = groups.cloned().collect();
        let destination = match groups.iter().all(|group| group.is_ephemeral()) {
            false => topic,
            true if groups.is_empty() => NOBODY,
            true => TEMPORARY,
        };
        TopicRoute {
            topic: topic.into(),
            groups,
            meters: meters.of(destination, PublishMeters::new),
        }
    }
}
