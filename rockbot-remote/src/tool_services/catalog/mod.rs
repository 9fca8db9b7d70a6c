//! The descriptors that an agent has, and the tools that follow from them.
//!
//! Descriptors come in layers: the files of the operator, then the announcements of running
//! services. A defect concerns one descriptor, and nothing of a layer is lost when another layer
//! changes: services and tools are both kept, and joined anew.
//!
//! Descriptors of both kinds are kept and joined anew at each change, and an unreadable one keeps
//! its last form: in the original of this idea a change of one kind loses the tools of the other,
//! and one bad descriptor all of them.

mod announcements;
mod files;

use std::collections::BTreeMap;

pub(super) use announcements::Announcements;
pub(super) use files::DescriptorFiles;

use super::descriptor::{Descriptor, DescriptorProblem, ResolvedTool, ServiceDescriptor, ToolDescriptor, resolve};

/// The descriptors of one origin, by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layer {
    services: BTreeMap<String, Placed<ServiceDescriptor>>,
    tools: BTreeMap<String, Placed<ToolDescriptor>>,
    pub(super) problems: Vec<DescriptorProblem>,
}

/// A descriptor and its place.
#[derive(Debug, Clone, PartialEq)]
struct Placed<D> {
    place: String,
    descriptor: D,
}

impl Layer {
    /// Adds a descriptor. A second descriptor of a key is a problem.
    pub(super) fn insert(&mut self, key: &str, place: &str, descriptor: Descriptor) {
        let is_new = match descriptor {
            Descriptor::Service(descriptor) => {
                self.problems.extend(descriptor.hints.iter().cloned());
                insert(&mut self.services, key, place, descriptor)
            }
            Descriptor::Tool(descriptor) => insert(&mut self.tools, key, place, descriptor),
        };
        if let Err(first) = is_new {
            let message = format!("the key `{key}` is taken by `{first}`: rename one of the two");
            self.problems.push(DescriptorProblem::new(place, message));
        }
    }

    /// Returns the service of this key, else the service with this id.
    fn service(&self, name: &str) -> Option<&ServiceDescriptor> {
        let by_id = || self.services.values().find(|placed| placed.descriptor.id == name);
        let placed = self.services.get(name).or_else(by_id);
        placed.map(|placed| &placed.descriptor)
    }
}

/// Adds a descriptor under a key. Returns the place of the descriptor that has the key already as
/// the error.
fn insert<D>(map: &mut BTreeMap<String, Placed<D>>, key: &str, place: &str, descriptor: D) -> Result<(), String> {
    if let Some(taken) = map.get(key) {
        return Err(taken.place.clone());
    }
    let place = place.to_owned();
    map.insert(key.to_owned(), Placed { place, descriptor });
    Ok(())
}

/// The tools of all layers, and the problems of the others.
#[derive(Debug, Default)]
pub(super) struct Derived {
    pub(super) tools: Vec<ResolvedTool>,
    pub(super) problems: Vec<DescriptorProblem>,
}

/// Joins the tools of all layers with their services. The operator's files go before
/// announcements, which go in the given order: the first tool of a name is used.
pub(super) fn derive<'a>(files: &Layer, announced: &(impl Iterator<Item = &'a Layer> + Clone)) -> Derived {
    let mut derived = Derived::default();
    let layers = std::iter::once((files, false)).chain(announced.clone().map(|layer| (layer, true)));
    for (layer, is_announced) in layers {
        derived.problems.extend(layer.problems.iter().cloned());
        for Placed { place, descriptor } in layer.tools.values() {
            let of_operator = files.service(&descriptor.service).map(|service| (service, false));
            let found = of_operator.or_else(|| {
                let mut services = announced.clone().filter_map(|layer| layer.service(&descriptor.service));
                services.next().map(|service| (service, true))
            });
            let Some((service, is_announced_service)) = found else {
                let message = format!("is `{}`: no tool service has this key or id", descriptor.service);
                derived
                    .problems
                    .push(DescriptorProblem::in_field(place, "service", message));
                continue;
            };
            match resolve(place, descriptor, service, &mut derived.problems) {
                Ok(tool) => derived.add(ResolvedTool {
                    is_announced: is_announced || is_announced_service,
                    ..tool
                }),
                Err(problem) => derived.problems.push(problem),
            }
        }
    }
    derived
}

impl Derived {
    /// Adds a tool, unless its name is taken.
    fn add(&mut self, tool: ResolvedTool) {
        let name = &tool.descriptor.name;
        let Some(first) = self.tools.iter().find(|other| other.descriptor.name == *name) else {
            return self.tools.push(tool);
        };
        // Several processes of one service announce the same tool.
        let is_same = tool.is_announced && (&first.descriptor, &first.config) == (&tool.descriptor, &tool.config);
        if !is_same {
            let message = format!(
                "is `{name}`, the name of the tool in `{}`: rename one of the two",
                first.place
            );
            self.problems
                .push(DescriptorProblem::in_field(&tool.place, "name", message));
        }
    }
}

#[cfg(test)]
mod tests;
