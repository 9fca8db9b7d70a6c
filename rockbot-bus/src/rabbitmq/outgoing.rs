//! A message on its way to the broker, which may get more than one copy of it.

use bytes::Bytes;
use lapin::BasicProperties;

use super::mapping;
use crate::copies::Copies;

/// The address of a message: an exchange and a routing key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route<'a> {
    pub(super) exchange: &'a str,
    pub(super) key: &'a str,
}

impl<'a> Route<'a> {
    /// Creates the address of one queue.
    pub(super) fn queue(name: &'a str) -> Self {
        Self {
            exchange: "",
            key: name,
        }
    }
}

/// A message to publish, with the copies of it so far.
pub(super) struct Outgoing<'a> {
    pub(super) route: Route<'a>,
    pub(super) body: &'a Bytes,
    properties: &'a BasicProperties,
    copies: Copies,
}

impl<'a> Outgoing<'a> {
    /// Creates a message that the broker has no copy of yet.
    pub(super) fn new(route: Route<'a>, body: &'a Bytes, properties: &'a BasicProperties) -> Self {
        Self {
            route,
            body,
            properties,
            copies: Copies::default(),
        }
    }

    /// Returns the properties of the copy that is sent now. From the second one on they tell
    /// receivers so.
    pub(super) fn next_properties(&self) -> BasicProperties {
        if self.copies.add() {
            mapping::resent(self.properties)
        } else {
            self.properties.clone()
        }
    }

    /// Returns the size of the frame of its properties, in bytes.
    pub(super) fn frame_size(&self) -> usize {
        mapping::frame_size(self.properties)
    }

    /// Returns `true` if the broker may have more than one copy.
    pub(super) fn has_copies(&self) -> bool {
        self.copies.are_several()
    }
}
