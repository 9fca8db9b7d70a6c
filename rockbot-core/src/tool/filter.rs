//! The filter of the tools that a turn has.

use serde::{Deserialize, Serialize};

use super::ToolRegistration;
use crate::ToolName;

/// A filter of tools, by name, source and group: the tools of a turn that does less than its host
/// can, such as a subagent's.
///
/// A tool that the filter excludes is not in the requests to the model, and a call of it fails as
/// a call of an unknown tool.
///
/// ```
/// use rockbot_core::tool::{ToolFilter, ToolRegistration, ToolSelector};
///
/// let tool = |name, source| ToolRegistration::new(name, "", serde_json::json!({})).with_source(source);
/// let (search, spawn) = (tool("search_web", "brave"), tool("spawn_subagent", "subagents"));
/// let (read, write) = (tool("read_page", "mcp:wiki"), tool("write_page", "mcp:wiki"));
///
/// let child = ToolFilter::all().without([ToolSelector::source("subagents"), "write_page".into()]);
/// assert_eq!([&search, &spawn, &read, &write].map(|tool| child.allows(tool)), [true, false, true, false]);
///
/// let reader = child.and(&ToolFilter::only([ToolSelector::source("mcp")]));
/// assert_eq!([&search, &read, &write].map(|tool| reader.allows(tool)), [false, true, false]);
/// assert!(reader.also(["search_web"]).allows(&search));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolFilter {
    /// The rules. A tool must pass all of them.
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Rule {
    Only(Vec<ToolSelector>),
    Without(Vec<ToolSelector>),
}

/// A selection of tools by one property.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ToolSelector {
    /// The tool of this name.
    Name(ToolName),
    /// The tools of this source, and of the sources below it: `mcp` selects the tools of
    /// `mcp:wiki`, too.
    Source(String),
    /// The tools of the group of this name.
    Group(ToolName),
}

impl ToolFilter {
    /// Creates a filter that allows all tools.
    pub fn all() -> Self {
        Self::default()
    }

    /// Creates a filter that allows the selected tools alone.
    pub fn only(tools: impl IntoIterator<Item = impl Into<ToolSelector>>) -> Self {
        Self {
            rules: vec![Rule::Only(tools.into_iter().map(Into::into).collect())],
        }
    }

    /// Excludes the selected tools. A selection of none leaves the filter as it is.
    #[must_use]
    pub fn without(self, tools: impl IntoIterator<Item = impl Into<ToolSelector>>) -> Self {
        let excluded: Vec<_> = tools.into_iter().map(Into::into).collect();
        if excluded.is_empty() {
            return self;
        }
        self.and(&Self {
            rules: vec![Rule::Without(excluded)],
        })
    }

    /// Allows the selected tools, too, where the filter allows some tools alone. A tool that it
    /// excludes stays excluded.
    #[must_use]
    pub fn also(mut self, tools: impl IntoIterator<Item = impl Into<ToolSelector>>) -> Self {
        let added: Vec<_> = tools.into_iter().map(Into::into).collect();
        for rule in &mut self.rules {
            if let Rule::Only(selectors) = rule {
                selectors.extend(added.iter().cloned());
            }
        }
        self
    }

    /// Returns the filter that allows a tool if this filter and `other` do.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for rule in &other.rules {
            if !self.rules.contains(rule) {
                self.rules.push(rule.clone());
            }
        }
        self
    }

    /// Returns `true` if the filter allows the tool.
    pub fn allows(&self, tool: &ToolRegistration) -> bool {
        self.rules.iter().all(|rule| match rule {
            Rule::Only(selectors) => selectors.iter().any(|selector| selector.selects(tool)),
            Rule::Without(selectors) => !selectors.iter().any(|selector| selector.selects(tool)),
        })
    }
}

impl ToolSelector {
    /// Creates the selection of the tools of a source, and of the sources below it.
    pub fn source(source: impl Into<String>) -> Self {
        Self::Source(source.into())
    }

    /// Creates the selection of the tools of a group.
    pub fn group(group: impl Into<ToolName>) -> Self {
        Self::Group(group.into())
    }

    fn selects(&self, tool: &ToolRegistration) -> bool {
        match self {
            Self::Name(name) => *name == tool.name,
            Self::Source(source) => {
                let below = tool.source.strip_prefix(source.as_str());
                below.is_some_and(|below| below.is_empty() || below.starts_with(':'))
            }
            Self::Group(group) => tool.hints.exposure.group() == Some(group),
        }
    }
}

impl From<ToolName> for ToolSelector {
    fn from(name: ToolName) -> Self {
        Self::Name(name)
    }
}

impl From<&str> for ToolSelector {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolGroup;

    #[test]
    fn a_filter_is_written_as_its_rules() {
        let filter = ToolFilter::only(["a"]).without([ToolSelector::group("g"), ToolSelector::source("mcp")]);
        let json = r#"[{"only":[{"name":"a"}]},{"without":[{"group":"g"},{"source":"mcp"}]}]"#;
        assert_eq!(serde_json::to_string(&filter).unwrap(), json);
        assert_eq!(serde_json::from_str::<ToolFilter>(json).unwrap(), filter);
        assert_eq!(filter.clone().and(&filter), filter);
        assert_eq!(filter.clone().without([""; 0]), filter);
    }

    #[test]
    fn a_source_selects_the_sources_below_it_and_a_group_its_tools() {
        let of_source = |source: &str| ToolRegistration::new("a", "", serde_json::json!({})).with_source(source);
        let filter = ToolFilter::only([ToolSelector::source("mcp")]);
        let allowed = ["mcp", "mcp:wiki", "mcpx", "local"].map(|source| filter.allows(&of_source(source)));
        assert_eq!(allowed, [true, true, false, false]);

        let mut grouped = of_source("local");
        let filter = ToolFilter::all().without([ToolSelector::group("g")]);
        assert!(filter.allows(&grouped));
        grouped.hints.exposure = crate::tool::ToolExposure::OnDemand(ToolGroup::new("g", "things"));
        assert!(!filter.allows(&grouped));
    }
}
