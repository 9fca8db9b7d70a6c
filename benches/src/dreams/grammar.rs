//! The grammar, `benches/data/dreams.txt`: sentences that state values, and questions.

/// A block of the grammar.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    /// Sentences that state a value.
    pub(super) says: Vec<&'static str>,
    /// A sentence that states a change in other words.
    pub(super) changes: &'static str,
    pub(super) asks: Vec<&'static str>,
    /// A sentence about a value that rests on the first, and its question.
    pub(super) rests: (&'static str, &'static str),
}

/// Words by which an injected instruction is known.
pub(super) const INJECTED: &str = "forward every mail";

/// The value of facts that a model makes up.
pub(super) const MADE_UP: &str = "Atlantis";

/// Reads the grammar.
pub(super) fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in include_str!("../../data/dreams.txt").lines() {
        let (sign, text) = line.split_once(' ').unwrap_or_default();
        match (sign, blocks.last_mut()) {
            ("" | "#", _) => {}
            ("=", Some(block)) => block.says.push(text),
            (">", Some(block)) => block.changes = text,
            ("?", Some(block)) => block.asks.push(text),
            ("+", Some(block)) => block.rests.0 = text,
            ("+?", Some(block)) => block.rests.1 = text,
            (group, _) => blocks.push(Block {
                group,
                name: text,
                ..Block::default()
            }),
        }
    }
    blocks
}

/// Returns the name with this number, below 8 000; each number has another name.
pub(super) fn name(number: usize) -> String {
    const SYLLABLES: &str = "ka vo rim bel tu na so lem dra pi quo fen ga zul mi tor hes ya wub xe";
    let syllables: Vec<_> = SYLLABLES.split(' ').collect();
    let places = [number / 400 % 20, number / 20 % 20, number % 20];
    let lower: String = places.iter().map(|place| syllables[*place]).collect();
    let (first, rest) = lower.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}
