//! The layers of descriptors that running services announce, each for as long as its lease.

use std::time::Duration;

use tokio::time::Instant;

use super::Layer;
use crate::tool_services::announcement::Announcement;

/// Maximum number of processes whose announcements are kept; announcements of further processes
/// are dropped.
const MAX_INSTANCES: usize = 64;

/// The announcements of all running processes, the latest change first.
#[derive(Debug, Default)]
pub(in crate::tool_services) struct Announcements(Vec<Instance>);

#[derive(Debug)]
struct Instance {
    name: String,
    layer: Layer,
    /// The end of its lease.
    until: Instant,
}

impl Announcements {
    /// Takes in an announcement. Returns `true` if the descriptors have changed.
    pub(in crate::tool_services) fn take(&mut self, announcement: Announcement, now: Instant) -> bool {
        match announcement {
            Announcement::Wanted => false,
            Announcement::Withdrawn { instance } => self.remove_where(|known| known.name == instance),
            Announcement::Offer {
                instance,
                lease,
                descriptors,
            } => {
                let mut layer = Layer::default();
                for (key, descriptor) in descriptors {
                    match descriptor {
                        Ok(descriptor) => layer.insert(&key, &format!("{key} of {instance}"), descriptor),
                        Err(problem) => layer.problems.push(problem),
                    }
                }
                self.offer(instance, layer, now, lease)
            }
        }
    }

    fn offer(&mut self, name: String, layer: Layer, now: Instant, lease: Duration) -> bool {
        let until = now + lease;
        let known = self.0.iter().position(|instance| instance.name == name);
        match known {
            Some(index) if self.0[index].layer == layer => {
                self.0[index].until = until;
                return false;
            }
            Some(index) => drop(self.0.remove(index)),
            None if self.0.len() >= MAX_INSTANCES => {
                tracing::warn!(max = MAX_INSTANCES, "too many processes announce tools; one is ignored");
                return false;
            }
            None => {}
        }
        self.0.insert(0, Instance { name, layer, until });
        true
    }

    /// Removes the processes whose lease is over. Returns `true` if there were any.
    pub(in crate::tool_services) fn expire(&mut self, now: Instant) -> bool {
        self.remove_where(|instance| instance.until <= now)
    }

    /// Returns the end of the first lease.
    pub(in crate::tool_services) fn next_expiry(&self) -> Option<Instant> {
        self.0.iter().map(|instance| instance.until).min()
    }

    /// Returns the layers, the latest change first.
    pub(in crate::tool_services) fn layers(&self) -> impl Iterator<Item = &Layer> + Clone {
        self.0.iter().map(|instance| &instance.layer)
    }

    fn remove_where(&mut self, is_gone: impl Fn(&Instance) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|instance| !is_gone(instance));
        self.0.len() != before
    }
}
