//! The two descriptors: of a tool service, which names its queues, and of a tool, which refers to
//! a service.
//!
//! A descriptor is a JSON object under a key: `tool-service/ID` or `tool/NAME`. [`service`] and
//! [`tool`] read one each, member by member (`fields`); `file` finds them, and `resolve` joins a
//! tool with its service. A problem is a [`DescriptorProblem`], which names the place and the
//! field and concerns that descriptor alone.

mod fields;
mod file;
mod problem;
mod resolve;
mod service;
mod tool;

pub(super) use fields::Fields;
pub(super) use file::{DescriptorFile, read_folder};
pub use problem::DescriptorProblem;
pub(super) use resolve::{ResolvedTool, resolve};
pub(super) use service::ServiceDescriptor;
pub(super) use tool::{Argument, ToolDescriptor};

/// The kind of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Service,
    Tool,
}

impl Kind {
    /// Returns the first part of the keys of this kind.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Service => "tool-service",
            Self::Tool => "tool",
        }
    }
}

/// A descriptor of either kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Descriptor {
    Service(ServiceDescriptor),
    Tool(ToolDescriptor),
}

impl Descriptor {
    /// Parses the JSON text of a descriptor. Without a `kind` the text decides: a tool has a `type`,
    /// a service has none.
    pub(super) fn parse(place: &str, kind: Option<Kind>, text: &[u8]) -> Result<Self, DescriptorProblem> {
        let fields = Fields::parse(place, text)?;
        let kind = kind.unwrap_or_else(|| if fields.has("type") { Kind::Tool } else { Kind::Service });
        Self::read(&fields, kind)
    }

    /// Reads a descriptor of this kind.
    pub(super) fn read(fields: &Fields, kind: Kind) -> Result<Self, DescriptorProblem> {
        Ok(match kind {
            Kind::Service => Self::Service(ServiceDescriptor::read(fields)?),
            Kind::Tool => Self::Tool(ToolDescriptor::read(fields)?),
        })
    }
}

#[cfg(test)]
mod tests;
