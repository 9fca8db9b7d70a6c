//! All-or-nothing capacity reservation over all subscriptions that a message goes to.
//!
//! A publish that fails, or is dropped while it waits, must have delivered the message to no
//! subscription; otherwise a publisher that tries again would duplicate it for some of them. So
//! capacity is reserved everywhere before the message is pushed anywhere, and pushing cannot fail
//! for lack of capacity.

use std::time::Duration;

use rockbot_core::messaging::{BusError, Delivery};
use tokio::sync::SemaphorePermit;
use tokio::time;

use super::group::{ConsumerGroup, TryReserve};
use super::routes::TopicRoute;

/// Reserved capacity for one message in one subscription. Dropping it gives the capacity back.
pub(super) struct CapacityPermit<'a> {
    group: &'a ConsumerGroup,
    permit: SemaphorePermit<'a>,
}

impl CapacityPermit<'_> {
    /// Spends the permit on a message. Returns `false` if the subscription has ended meanwhile.
    pub(super) fn push(self, delivery: Delivery) -> bool {
        self.group.push(self.permit, delivery)
    }
}

/// Reserves capacity in every subscription of `route`, waiting up to `wait` for each subscription
/// that is full.
///
/// Cancellation-safe: a caller that stops waiting gives back everything it has reserved.
///
/// # Errors
///
/// Returns [`BusError::QueueFull`] if a full subscription rejects instead of waiting, or has no
/// capacity in time.
pub(super) async fn reserve(route: &TopicRoute, wait: Duration) -> Result<Vec<CapacityPermit<'_>>, BusError> {
    let mut permits = try_reserve(route, None);
    while let Err(full) = permits {
        if full.rejects_when_full() {
            return Err(full.queue_full(Duration::ZERO));
        }
        let permit = time::timeout(wait, full.reserve()).await;
        let permit = permit.map_err(|_| full.queue_full(wait))?;
        permits = try_reserve(route, permit.map(|permit| CapacityPermit { group: full, permit }));
    }
    Ok(permits.unwrap_or_default())
}

/// Reserves capacity everywhere without waiting, or nowhere, and then returns the first
/// subscription that is full.
///
/// Deadlock freedom: on failure all permits are dropped before the caller waits, and the only
/// permit that is carried into the next attempt is `waited_for`, the permit that the caller has
/// just waited for. No publisher ever waits while it holds a permit, so two publishers that
/// reserve the same subscriptions in different orders cannot block each other. The price is
/// fairness: a message to many full subscriptions may lose a race for a full subscription and
/// wait again.
fn try_reserve<'a>(
    route: &'a TopicRoute,
    mut waited_for: Option<CapacityPermit<'a>>,
) -> Result<Vec<CapacityPermit<'a>>, &'a ConsumerGroup> {
    let mut permits = Vec::with_capacity(route.groups.len());
    for group in &route.groups {
        if let Some(permit) = waited_for.take_if(|permit| std::ptr::eq(permit.group, &**group)) {
            permits.push(permit);
            continue;
        }
        match group.try_reserve() {
            TryReserve::Reserved(permit) => permits.push(CapacityPermit { group, permit }),
            TryReserve::Ended => {}
            TryReserve::Full => return Err(group),
        }
    }
    Ok(permits)
}
