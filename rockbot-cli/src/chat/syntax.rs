//! Colours of code, by the grammar of its language.
//!
//! The colours are the terminal's own, so they suit a light and a dark background. Without the
//! feature `syntax` no language has a grammar, and code is shown in one colour.

#[cfg(feature = "syntax")]
use std::sync::LazyLock;

#[cfg(feature = "syntax")]
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// Maximum length of a line that is read by a grammar, in bytes: a longer line would hold up the
/// answer.
pub(super) const MAX_LINE: usize = 1_000;

/// The styles of the scopes that begin with these names; the first that fits the innermost scope
/// counts.
#[cfg(feature = "syntax")]
const STYLES: [(&str, &str); 11] = [
    ("comment", "\x1b[2m"),
    ("string", "\x1b[32m"),
    ("constant.character.escape", "\x1b[33m"),
    ("constant", "\x1b[33m"),
    ("keyword.operator", ""),
    ("keyword", "\x1b[35m"),
    ("storage", "\x1b[35m"),
    ("entity.name", "\x1b[34m"),
    ("entity.other.attribute-name", "\x1b[33m"),
    ("support", "\x1b[34m"),
    ("variable.function", "\x1b[34m"),
];

/// Ends each style.
#[cfg(feature = "syntax")]
const END: &str = "\x1b[22;39m";

/// The grammars, read at the first block of code.
#[cfg(feature = "syntax")]
static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

#[cfg(feature = "syntax")]
static SCOPES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    let scope = |(name, style)| Some((Scope::new(name).ok()?, style));
    STYLES.into_iter().filter_map(scope).collect()
});

/// The reading of a block of code.
#[cfg(feature = "syntax")]
#[derive(Debug)]
pub(super) struct Highlighter {
    state: ParseState,
    scopes: ScopeStack,
}

#[cfg(feature = "syntax")]
impl Highlighter {
    /// Returns the reading of a block whose fence names `language`, if it has a grammar.
    pub(super) fn of(language: &str) -> Option<Self> {
        let grammar = grammar(language)?;
        Some(Self {
            state: ParseState::new(grammar),
            scopes: ScopeStack::new(),
        })
    }

    /// Returns a line, without its end, in colours; `None` if the grammar cannot read it.
    pub(super) fn line(&mut self, line: &str) -> Option<String> {
        let whole = [line, "\n"].concat();
        let changes = self.state.parse_line(&whole, &GRAMMARS).ok()?;
        let mut shown = Coloured::default();
        let mut from = 0;
        for (at, change) in changes {
            let to = at.min(line.len());
            shown.push(&line[from..to], self.style());
            from = to;
            self.scopes.apply(&change).ok()?;
        }
        shown.push(&line[from..], self.style());
        Some(shown.finish())
    }

    /// Returns the style of the text that follows: of the innermost scope that has a style.
    fn style(&self) -> &'static str {
        let style = |scope: &Scope| SCOPES.iter().find(|(known, _)| known.is_prefix_of(*scope));
        let mut innermost = self.scopes.as_slice().iter().rev();
        innermost.find_map(style).map_or("", |(_, style)| *style)
    }
}

/// A line in colours, and the style of its last piece.
#[cfg(feature = "syntax")]
#[derive(Default)]
struct Coloured {
    text: String,
    style: &'static str,
}

#[cfg(feature = "syntax")]
impl Coloured {
    fn push(&mut self, piece: &str, style: &'static str) {
        let is_blank = piece.trim().is_empty();
        if !is_blank && style != self.style {
            self.end();
            self.text.push_str(style);
            self.style = style;
        }
        self.text.push_str(piece);
    }

    fn end(&mut self) {
        if !self.style.is_empty() {
            self.text.push_str(END);
        }
    }

    fn finish(mut self) -> String {
        self.end();
        self.text
    }
}

/// Returns the grammar that the first word of a fence names: a language or the ending of a file.
#[cfg(feature = "syntax")]
fn grammar(language: &str) -> Option<&'static SyntaxReference> {
    let word = language.trim().split([' ', ',', '{']).next()?;
    let name = match word {
        "" => return None,
        "jsonc" | "json5" => "json",
        "shell" | "console" | "zsh" => "sh",
        "typescript" | "ts" | "jsx" | "tsx" => "js",
        name => name,
    };
    GRAMMARS.find_syntax_by_token(name)
}

/// The reading of a block of code: none.
#[cfg(not(feature = "syntax"))]
#[derive(Debug)]
pub(super) enum Highlighter {}

#[cfg(not(feature = "syntax"))]
impl Highlighter {
    /// Returns `None`: no language has a grammar.
    pub(super) fn of(_: &str) -> Option<Self> {
        None
    }

    /// Never called, since no block is read.
    pub(super) fn line(&mut self, _: &str) -> Option<String> {
        match *self {}
    }
}
