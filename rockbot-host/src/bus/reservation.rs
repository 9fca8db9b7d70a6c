//! Room for a message in every subscription that it reaches, taken before any of them gets it: a publish that
//! fails, or is dropped while it waits, has delivered to nobody.

use std::time::Duration;

use rockbot_core::messaging::BusError;
use tokio::sync::SemaphorePermit;
use tokio::time;

use super::group::{ConsumerGroup, Room};
use super::routes::TopicRoute;

/// A subscription, and the room in it.
pub(super) type CapacityPermit<'a> = (&'a ConsumerGroup, SemaphorePermit<'a>);

/// Takes a seat in every subscription of `route`; waits up to `wait` for each one that is full, unless it rejects.
///
/// # Errors
///
/// Fails with [`BusError::QueueFull`] when one rejects, or has no room in time.
pub(super) async fn reserve(route: &TopicRoute, wait: Duration) -> Result<Vec<CapacityPermit<'_>>, BusError> {
    let mut seats = try_reserve(route, None);
    while let Err(full) = seats {
        if full.rejects_when_full() {
            return Err(full.is_full(Duration::ZERO));
        }
        let permit = time::timeout(wait, full.reserve()).await;
        let permit = permit.map_err(|_| full.is_full(wait))?;
        seats = try_reserve(route, permit.map(|permit| (full, permit)));
    }
    Ok(seats.unwrap_or_default())
}

/// Takes all seats, or none and says which subscription is full. No seat is held while another one is waited
/// for, except `kept`, for which the caller has just waited: so two publishers never block each other.
fn try_reserve<'a>(
    route: &'a TopicRoute,
    mut kept: Option<CapacityPermit<'a>>,
) -> Result<Vec<CapacityPermit<'a>>, &'a ConsumerGroup> {
    let mut seats = Vec::with_capacity(route.groups.len());
    for group in &route.groups {
        if let Some(seat) = kept.take_if(|(known, _)| std::ptr::eq(*known, &**group)) {
            seats.push(seat);
            continue;
        }
        match group.try_reserve() {
            Room::CapacityPermit(permit) => seats.push((&**group, permit)),
            Room::Gone => {}
            Room::Full => return Err(group),
        }
    }
    Ok(seats)
}
