//! Paths of the tree: `root.sg.d1.s1`, and patterns of them.
//!
//! A node whose name has other characters than letters, digits and `_:@#${}`, or digits alone, stands in
//! backquotes. The text of a path always has the same quotes, whatever the client wrote, so that equal
//! paths have equal texts.

use crate::status::IotDbFault;
use std::fmt::{self, Write};

/// Nodes of a path.
const NODES_MAX: usize = 128;

/// Whether a character may stand in a node without backquotes.
pub(crate) fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "_:@#${}".contains(char)
}

/// Writes a node, in backquotes if it needs them.
fn write_node(name: &str, out: &mut impl Write) -> fmt::Result {
    let has_letter = name.chars().any(|char| !char.is_ascii_digit());
    if has_letter && name.chars().all(is_plain) {
        return out.write_str(name);
    }
    write!(out, "`{}`", name.replace('`', "``"))
}

/// The text of one node.
pub fn node_text(name: &str) -> String {
    let mut text = String::new();
    let _ = write_node(name, &mut text);
    text
}

/// A path without wildcards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath {
    nodes: Vec<String>,
}

impl TreePath {
    /// The path that a client names outside of SQL.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(text: &str) -> Result<Self, IotDbFault> {
        let pattern = PathPattern::parse(text)?;
        pattern
            .as_path()
            .ok_or_else(|| IotDbFault::path(format!("{text} must not have wildcards")))
    }

    /// The path of these nodes.
    pub fn from_nodes(nodes: Vec<String>) -> Self {
        Self { nodes }
    }

    /// Its nodes.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Whether it begins at the root.
    pub fn is_absolute(&self) -> bool {
        self.nodes.first().is_some_and(|node| node == "root")
    }

    /// The path without its last node, and that node; `None` if it has no two nodes.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        let (last, parent) = self.nodes.split_last()?;
        (!parent.is_empty()).then(|| {
            let nodes = parent.to_vec();
            (Self { nodes }, last.as_str())
        })
    }

    /// The path of a child.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let mut nodes = self.nodes.clone();
        nodes.push(name.to_owned());
        Self { nodes }
    }

    /// The first `count` nodes.
    #[must_use]
    pub fn prefix(&self, count: usize) -> Self {
        let nodes = self.nodes.iter().take(count).cloned().collect();
        Self { nodes }
    }

    /// Whether this path is `other`, or above it.
    pub fn contains(&self, other: &Self) -> bool {
        other.nodes.starts_with(&self.nodes)
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, node) in self.nodes.iter().enumerate() {
            if place > 0 {
                f.write_char('.')?;
            }
            write_node(node, f)?;
        }
        Ok(())
    }
}

/// A node of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathNode {
    /// The node with this name.
    Name(String),
    /// Nodes whose name this pattern matches, in which `*` stands for any characters; `*` alone is any
    /// node.
    Glob(String),
    /// `**`: one node or more.
    AnyDepth,
}

impl PathNode {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Glob(glob) => glob_matches(glob, name),
            Self::AnyDepth => true,
        }
    }

    /// Whether it stands for any node.
    pub fn is_any(&self) -> bool {
        matches!(self, Self::AnyDepth) || matches!(self, Self::Glob(glob) if glob == "*")
    }
}

/// Whether a pattern with `*` matches a name.
fn glob_matches(glob: &str, name: &str) -> bool {
    let mut pieces = glob.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// A path in which nodes may be wildcards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    nodes: Vec<PathNode>,
}

impl PathPattern {
    /// The pattern that a client names outside of SQL. Nodes without backquotes may have any characters
    /// but spaces there.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(text: &str) -> Result<Self, IotDbFault> {
        let illegal = || IotDbFault::path(format!("{text} is not a legal path"));
        let (mut nodes, mut rest) = (Vec::new(), text);
        loop {
            let (node, after) = next_node(rest).ok_or_else(illegal)?;
            nodes.push(node);
            rest = match after.strip_prefix('.') {
                Some(rest) => rest,
                None if after.is_empty() => break,
                None => return Err(illegal()),
            };
        }
        Self::from_nodes(nodes)
    }

    /// The pattern of these nodes.
    ///
    /// # Errors
    /// If there are too many.
    pub fn from_nodes(nodes: Vec<PathNode>) -> Result<Self, IotDbFault> {
        if nodes.len() > NODES_MAX {
            return Err(IotDbFault::path(format!(
                "a path has more than {NODES_MAX} nodes"
            )));
        }
        Ok(Self { nodes })
    }

    /// The pattern that only matches a path.
    pub fn for_path(path: &TreePath) -> Self {
        let nodes = path.nodes.iter().cloned().map(PathNode::Name).collect();
        Self { nodes }
    }

    /// Its nodes.
    pub fn nodes(&self) -> &[PathNode] {
        &self.nodes
    }

    /// The path, if there are no wildcards.
    pub fn as_path(&self) -> Option<TreePath> {
        let nodes = self.nodes.iter().map(|node| match node {
            PathNode::Name(name) => Some(name.clone()),
            _ => None,
        });
        Some(TreePath {
            nodes: nodes.collect::<Option<_>>()?,
        })
    }

    /// Whether it begins at the root.
    pub fn is_absolute(&self) -> bool {
        matches!(self.nodes.first(), Some(PathNode::Name(name)) if name == "root")
    }

    /// This pattern, continued by another.
    ///
    /// # Errors
    /// If there are too many nodes.
    pub fn join(&self, other: &Self) -> Result<Self, IotDbFault> {
        Self::from_nodes([self.nodes.as_slice(), &other.nodes].concat())
    }

    /// The pattern without its last node.
    #[must_use]
    pub fn parent(&self) -> Self {
        let count = self.nodes.len().saturating_sub(1);
        Self {
            nodes: self.nodes[..count].to_vec(),
        }
    }

    /// Whether it matches a path.
    pub fn matches(&self, path: &[impl AsRef<str>]) -> bool {
        self.match_ends(path)[path.len()]
    }

    /// Whether it matches the path or a beginning of it, or the path is above what it matches.
    pub fn touches(&self, path: &[impl AsRef<str>]) -> bool {
        if self.match_ends(path).iter().any(|ends| *ends) {
            return true;
        }
        // The path is above if the first nodes of the pattern match all of it.
        (1..self.nodes.len()).any(|count| {
            let beginning = Self {
                nodes: self.nodes[..count].to_vec(),
            };
            beginning.matches(path)
        })
    }

    /// For each number of the path's first nodes, whether the pattern matches just them.
    fn match_ends(&self, path: &[impl AsRef<str>]) -> Vec<bool> {
        let mut ends = vec![false; path.len() + 1];
        ends[0] = true;
        for node in &self.nodes {
            let mut next = vec![false; path.len() + 1];
            for (place, name) in path.iter().enumerate() {
                let is_reached = ends[place] || (*node == PathNode::AnyDepth && next[place]);
                next[place + 1] = is_reached && node.matches(name.as_ref());
            }
            ends = next;
        }
        ends
    }

    /// A regular expression that matches the texts of the paths that the pattern matches.
    pub fn regex(&self) -> String {
        const NODE: &str = "(?:`(?:[^`]|``)*`|[^.`]+)";
        let mut regex = "^".to_owned();
        for (place, node) in self.nodes.iter().enumerate() {
            if place > 0 {
                regex.push_str("\\.");
            }
            match node {
                PathNode::Name(name) => push_literal(&node_text(name), &mut regex),
                PathNode::AnyDepth => {
                    let _ = write!(regex, "{NODE}(?:\\.{NODE})*");
                }
                PathNode::Glob(_) if node.is_any() => regex.push_str(NODE),
                PathNode::Glob(glob) => {
                    // Quoted nodes match, too: whoever reads the rows checks them again.
                    regex.push_str("(?:`(?:[^`]|``)*`|");
                    for (place, piece) in glob.split('*').enumerate() {
                        if place > 0 {
                            regex.push_str("[^.`]*");
                        }
                        push_literal(piece, &mut regex);
                    }
                    regex.push(')');
                }
            }
        }
        regex.push('$');
        regex
    }
}

/// Adds a text of which a regular expression shall match each character.
fn push_literal(text: &str, regex: &mut String) {
    for char in text.chars() {
        if char.is_ascii() && !char.is_ascii_alphanumeric() {
            regex.push('\\');
        }
        regex.push(char);
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, node) in self.nodes.iter().enumerate() {
            if place > 0 {
                f.write_char('.')?;
            }
            match node {
                PathNode::Name(name) => write_node(name, f)?,
                PathNode::Glob(glob) => f.write_str(glob)?,
                PathNode::AnyDepth => f.write_str("**")?,
            }
        }
        Ok(())
    }
}

/// The first node of a text, and what follows it.
fn next_node(text: &str) -> Option<(PathNode, &str)> {
    if text.starts_with('`') {
        let (name, rest) = quoted(text, '`')?;
        return (!name.is_empty()).then_some((PathNode::Name(name), rest));
    }
    let end = text.find('.').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is_strange =
        |char: char| char.is_whitespace() || char.is_control() || "`'\"".contains(char);
    if word.is_empty() || word.contains(is_strange) {
        return None;
    }
    Some((node_of_word(word)?, rest))
}

/// The node that a word without backquotes stands for.
pub(crate) fn node_of_word(word: &str) -> Option<PathNode> {
    Some(match word {
        "**" => PathNode::AnyDepth,
        word if word.contains("**") => return None,
        word if word.contains('*') => PathNode::Glob(word.to_owned()),
        word => PathNode::Name(word.to_owned()),
    })
}

/// What stands between quotes at the begin of a text, a doubled quote for one, and what follows.
pub(crate) fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        if char != quote {
            name.push(char);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            name.push(quote);
        } else {
            return Some((name, &text[at + quote.len_utf8()..]));
        }
    }
    None
}

#[cfg(test)]
mod tests;
