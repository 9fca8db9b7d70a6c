//! A bounded number of places that the peers of a server take. No peer locks out another peer.
//!
//! No client of the MCP server locks out another client: once all sessions or connections are
//! taken, the client with the most gives up a session or connection, first an unused one. A
//! request under the id of a running request is refused.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// The places, each under a key. Once all places are taken, the peer with the most places gives
/// up a place: first a place that was never used, then the place that was used least recently,
/// last a place that is in use.
#[derive(Debug)]
pub struct Places<K, T> {
    max: usize,
    taken: HashMap<K, Place<T>>,
    /// Number of uses so far; it tells the least recent use.
    uses: u64,
}

#[derive(Debug)]
struct Place<T> {
    peer: IpAddr,
    value: T,
    was_used: bool,
    last_use: u64,
    /// Number of uses that have not ended.
    running: usize,
}

impl<K: Eq + Hash + Clone, T> Places<K, T> {
    /// Creates `max` places, all free.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            taken: HashMap::new(),
            uses: 0,
        }
    }

    /// Takes a place. Returns the places that give way to it.
    pub fn take(&mut self, key: K, peer: IpAddr, value: T) -> Vec<(K, T)> {
        let mut left = Vec::new();
        while self.taken.len() >= self.max
            && let Some(key) = self.next_to_leave()
            && let Some(value) = self.free(&key)
        {
            left.push((key, value));
        }
        self.uses += 1;
        let place = Place {
            peer,
            value,
            was_used: false,
            last_use: self.uses,
            running: 0,
        };
        self.taken.insert(key, place);
        left
    }

    /// Notes that a place is used from now on. Returns `None` if the place was given up.
    pub fn begin_use(&mut self, key: &K) -> Option<&mut T> {
        self.uses += 1;
        let place = self.taken.get_mut(key)?;
        place.was_used = true;
        place.last_use = self.uses;
        place.running += 1;
        Some(&mut place.value)
    }

    /// Notes that a use of a place has ended.
    pub fn end_use(&mut self, key: &K) -> Option<&mut T> {
        self.uses += 1;
        let place = self.taken.get_mut(key)?;
        place.last_use = self.uses;
        place.running = place.running.saturating_sub(1);
        Some(&mut place.value)
    }

    /// Gives a place up.
    pub fn free(&mut self, key: &K) -> Option<T> {
        self.taken.remove(key).map(|place| place.value)
    }

    fn next_to_leave(&self) -> Option<K> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for place in self.taken.values() {
            *counts.entry(place.peer).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let of_greedy = self.taken.iter().filter(|(_, place)| counts[&place.peer] == most);
        let next = of_greedy.min_by_key(|(_, place)| (place.running > 0, place.was_used, place.last_use));
        next.map(|(key, _)| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn the_peer_with_the_most_places_gives_one_up_that_it_needs_least() {
        let mut places = Places::new(4);
        for key in ["running", "used", "new"] {
            assert!(places.take(key, peer(1), ()).is_empty());
        }
        assert!(places.take("other", peer(2), ()).is_empty());
        for key in ["running", "used"] {
            places.begin_use(&key);
        }
        places.end_use(&"used");
        assert_eq!(places.take("a", peer(2), ()), [("new", ())]);
        // Both have two now: the place that was never used is the one that is needed least.
        assert_eq!(places.take("b", peer(3), ()), [("other", ())]);
        assert_eq!(places.take("c", peer(3), ()), [("used", ())]);
        assert_eq!(places.begin_use(&"used"), None, "it was given up");
        assert_eq!(places.take("d", peer(3), ()), [("b", ())]);
        assert_eq!(places.free(&"running"), Some(()));
        assert!(places.take("e", peer(3), ()).is_empty());
    }
}
