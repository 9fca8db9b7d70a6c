//! A tree of the elements and texts of a page, in one vector.
//!
//! Children stand behind their parents, so a walk over the numbers is a walk over the tree, and
//! nothing here recurses: a page of 20 000 nested elements needs no more stack than any other.

use std::ops::{Index, IndexMut};

use html5ever::LocalName;
use html5ever::tendril::StrTendril;

/// The number of a node. The document is number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// The document.
pub(crate) const DOCUMENT: NodeId = NodeId(0);

/// A node of a tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: NodeId,
    pub(crate) first_child: Option<NodeId>,
    last_child: Option<NodeId>,
    previous: Option<NodeId>,
    pub(crate) next: Option<NodeId>,
    pub(crate) data: NodeData,
    /// `true` for a node that no walk visits, and none of its children.
    pub(crate) is_dropped: bool,
}

/// The content of a node.
#[derive(Debug)]
pub(crate) enum NodeData {
    Element(Element),
    Text(StrTendril),
}

/// An element with the attributes that matter here.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: LocalName,
    pub(crate) attributes: Vec<(LocalName, StrTendril)>,
}

impl Element {
    /// Returns the value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(own, _)| &**own == name)
            .map(|(_, value)| &**value)
    }

    /// Returns the value of an attribute; empty if it is missing.
    pub(crate) fn text_of(&self, name: &str) -> &str {
        self.attribute(name).unwrap_or_default()
    }

    /// Returns `true` if a class of the element is `name`.
    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.text_of("class")
            .split_ascii_whitespace()
            .any(|class| class == name)
    }
}

/// The tree of a page.
#[derive(Debug)]
pub(crate) struct Dom {
    nodes: Vec<Node>,
    /// `true` if the page was longer than the bounds, and the rest is missing.
    pub(crate) is_cut: bool,
}

impl Index<NodeId> for Dom {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}

impl IndexMut<NodeId> for Dom {
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }
}

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Dom {
    /// Creates a tree of a document without content.
    pub(crate) fn new() -> Self {
        let root = Element {
            name: LocalName::from("#document"),
            attributes: Vec::new(),
        };
        let nodes = vec![Node {
            parent: DOCUMENT,
            first_child: None,
            last_child: None,
            previous: None,
            next: None,
            data: NodeData::Element(root),
            is_dropped: false,
        }];
        Self { nodes, is_cut: false }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the numbers of all nodes: parents before their children.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Appends a node to `parent`. Nodes are bounded far below the number that does not fit.
    pub(crate) fn append(&mut self, parent: NodeId, data: NodeData) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let previous = self[parent].last_child;
        self.nodes.push(Node {
            parent,
            first_child: None,
            last_child: None,
            previous,
            next: None,
            data,
            is_dropped: false,
        });
        match self[parent].last_child.replace(id) {
            Some(last) => self[last].next = Some(id),
            None => self[parent].first_child = Some(id),
        }
        id
    }

    /// Appends a text to `parent`, joined with the text that it ends with.
    pub(crate) fn append_text(&mut self, parent: NodeId, text: StrTendril) {
        if let Some(last) = self[parent].last_child
            && let NodeData::Text(before) = &mut self[last].data
        {
            return before.push_tendril(&text);
        }
        self.append(parent, NodeData::Text(text));
    }

    /// Returns the element, unless the node is a text.
    pub(crate) fn element(&self, id: NodeId) -> Option<&Element> {
        match &self[id].data {
            NodeData::Element(element) => Some(element),
            NodeData::Text(_) => None,
        }
    }

    /// Returns the name of the element; empty for a text.
    pub(crate) fn name(&self, id: NodeId) -> &str {
        self.element(id).map_or("", |element| &element.name)
    }

    /// Returns the children that are not dropped.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let first = self[id].first_child;
        let all = std::iter::successors(first, |id| self[*id].next);
        all.filter(|id| !self[*id].is_dropped)
    }

    /// Returns the element before a node, past texts and dropped nodes.
    pub(crate) fn element_before(&self, id: NodeId) -> Option<NodeId> {
        let before = |id: &NodeId| self[*id].previous;
        let mut all = std::iter::successors(before(&id), before).take(16);
        all.find(|id| !self[*id].is_dropped && self.element(*id).is_some())
    }

    /// Returns the parents of a node, the nearest first, without the document.
    pub(crate) fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let up = |id: &NodeId| Some(self[*id].parent).filter(|parent| *parent != DOCUMENT);
        std::iter::successors(up(&id), up)
    }

    /// Returns a walk over `root` and everything below it.
    pub(crate) fn walk(&self, root: NodeId) -> Walk<'_> {
        Walk {
            dom: self,
            root,
            next: Some(Step::Enter(root)),
        }
    }

    /// Returns the first element of this name that is not dropped.
    pub(crate) fn find(&self, name: &str) -> Option<NodeId> {
        self.ids().find(|id| !self[*id].is_dropped && self.name(*id) == name)
    }

    /// Returns the text of a node and everything below it, as it stands in the page.
    pub(crate) fn text(&self, root: NodeId) -> String {
        let mut text = String::new();
        for step in self.walk(root) {
            if let Step::Enter(id) = step
                && let NodeData::Text(own) = &self[id].data
            {
                text.push_str(own);
            }
        }
        text
    }
}

/// A step of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// The node, before its children.
    Enter(NodeId),
    /// The element, after its children. Texts are not left.
    Leave(NodeId),
}

/// A walk over a part of a tree, without the dropped nodes.
#[derive(Debug)]
pub(crate) struct Walk<'d> {
    dom: &'d Dom,
    root: NodeId,
    next: Option<Step>,
}

impl Walk<'_> {
    /// Skips the children of the element that was just entered, and does not leave it.
    pub(crate) fn skip_children(&mut self) {
        if let Some(Step::Enter(child)) = self.next {
            self.next = self.after(self.dom[child].parent);
        } else if let Some(Step::Leave(id)) = self.next {
            self.next = self.after(id);
        }
    }

    fn enter_or_leave(&self, first: Option<NodeId>, parent: NodeId) -> Option<Step> {
        let mut next = first;
        while let Some(id) = next {
            if !self.dom[id].is_dropped {
                return Some(Step::Enter(id));
            }
            next = self.dom[id].next;
        }
        Some(Step::Leave(parent))
    }

    fn after(&self, id: NodeId) -> Option<Step> {
        if id == self.root {
            None
        } else {
            self.enter_or_leave(self.dom[id].next, self.dom[id].parent)
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let step = self.next?;
        self.next = match step {
            Step::Enter(id) => match &self.dom[id].data {
                NodeData::Text(_) => self.after(id),
                NodeData::Element(_) => self.enter_or_leave(self.dom[id].first_child, id),
            },
            Step::Leave(id) => self.after(id),
        };
        Some(step)
    }
}
