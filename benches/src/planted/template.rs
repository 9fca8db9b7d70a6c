//! The files of records, questions and values.

use std::collections::BTreeMap;

/// The contents of a file such as `benches/data/planted.txt`.
#[derive(Debug, Default)]
pub(super) struct Data {
    /// Values by the names of their pools.
    pub(super) pools: BTreeMap<&'static str, Vec<&'static str>>,
    pub(super) kinds: Vec<Kind>,
    /// Sentences about nothing.
    pub(super) fillers: Vec<&'static str>,
}

/// A kind of record: templates of how it is written, and of what is asked about it.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Texts that no two records share.
    pub(super) identities: Vec<&'static str>,
    pub(super) prose: &'static str,
    /// Names and values.
    pub(super) fields: Vec<(&'static str, &'static str)>,
    pub(super) log: &'static str,
    pub(super) code: String,
    pub(super) asked: Vec<&'static str>,
    pub(super) held_out: Vec<&'static str>,
}

impl Data {
    /// Reads a file.
    pub(super) fn read(file: &'static str) -> Self {
        let mut data = Self::default();
        for line in file.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "" | "#" => {}
                "pool" => {
                    let (name, values) = rest.split_once(": ").expect("a pool has a name and values");
                    data.pools.insert(name, values.split(", ").collect());
                }
                "filler" => data.fillers.push(rest),
                "kind" => data.kinds.push(Kind {
                    name: rest,
                    ..Kind::default()
                }),
                _ => data
                    .kinds
                    .last_mut()
                    .expect("a kind stands before its lines")
                    .read(word, rest),
            }
        }
        data
    }
}

impl Kind {
    fn read(&mut self, word: &str, rest: &'static str) {
        match word {
            "identity" => self.identities.push(rest),
            "prose" => self.prose = rest,
            "fields" => {
                let field = |text: &'static str| text.split_once('=').expect("a field has a name and a value");
                self.fields = rest.split('|').map(field).collect();
            }
            "log" => self.log = rest,
            "code" => self.code = rest.replace("\\n", "\n"),
            "ask" => self.asked.push(rest),
            "held" => self.held_out.push(rest),
            word => panic!("`{word}` begins no line of planted.txt"),
        }
    }
}
