//! The layer of descriptors in files. A descriptor that becomes unreadable keeps its last
//! readable form.

use std::collections::BTreeMap;

use super::Layer;
use crate::tool_services::descriptor::{Descriptor, DescriptorFile, DescriptorProblem};

/// The descriptors in files as they were read last.
#[derive(Debug, Default)]
pub(in crate::tool_services) struct DescriptorFiles {
    seen: Vec<DescriptorFile>,
    /// The last readable form of each file, by place.
    readable: BTreeMap<String, Descriptor>,
    layer: Layer,
}

impl DescriptorFiles {
    /// Takes in all files as they are now. Returns `true` if something has changed.
    pub(in crate::tool_services) fn update(&mut self, files: Vec<DescriptorFile>) -> bool {
        if files == self.seen {
            return false;
        }
        let mut before = std::mem::take(&mut self.readable);
        self.layer = Layer::default();
        for file in &files {
            let DescriptorFile { place, kind, key, text } = file;
            let parsed = text
                .as_ref()
                .map_err(|problem| DescriptorProblem::new(place, problem.clone()))
                .and_then(|text| Descriptor::parse(place, *kind, text));
            let descriptor = match parsed {
                Ok(descriptor) => Some(descriptor),
                Err(problem) => {
                    self.layer.problems.push(problem);
                    before.remove(place)
                }
            };
            if let Some(descriptor) = descriptor {
                self.layer.insert(key, place, descriptor.clone());
                self.readable.insert(place.clone(), descriptor);
            }
        }
        self.seen = files;
        true
    }

    /// Returns the layer of the files.
    pub(in crate::tool_services) fn layer(&self) -> &Layer {
        &self.layer
    }
}
