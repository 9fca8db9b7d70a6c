//! Stories: the sentences about one fact, in their order, with the question at the end.

use std::collections::BTreeMap;

use super::grammar::{CORRECTIONS, HABITS, INJECTION, MADE_UP, PROPERTIES, Property, name};
use super::library::{Question, Role, Tuple};
use crate::planted::Numbers;

/// The author of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    /// A web page that a tool has read.
    Page,
}

/// The way in which the agent keeps a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    /// It stands in the conversation log alone.
    Unsaved,
    /// The agent saved it, unless the words were known.
    Saved,
    /// It came with an import, which compares nothing.
    Imported,
    /// It is a correction, which feedback records.
    Feedback,
    /// The agent archives the memory with this text.
    Archives(String),
}

/// A sentence, its author, and the way in which it is kept.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) author: Author,
    pub(super) text: String,
    pub(super) kept: Kept,
}

impl Told {
    pub(super) fn unsaved(author: Author, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            author,
            text,
            kept: Kept::Unsaved,
        }
    }
}

/// All stories of a library.
pub(super) struct Stories {
    pub(super) told: Vec<Vec<Told>>,
    pub(super) tuples: BTreeMap<String, Tuple>,
    questions: Vec<Question>,
    numbers: Numbers,
    /// Number of the next name. Names are spread by a step that is prime to their count.
    next: usize,
}

/// The story of one property of one person.
struct Subject {
    property: &'static Property,
    who: String,
    topic: String,
}

impl Stories {
    /// Tells the stories of a library with so many conversations.
    pub(super) fn new(conversations: usize, seed: u64) -> Self {
        let mut stories = Self {
            told: Vec::new(),
            tuples: BTreeMap::new(),
            questions: Vec::new(),
            numbers: Numbers::new(seed),
            next: seed as usize % 8_000,
        };
        let share = |of: usize| (of * conversations / 60).max(1);
        (0..share(24)).for_each(|_| stories.plain());
        (0..share(16)).for_each(|number| stories.updated(number % 2 == 0));
        (0..share(8)).for_each(|_| stories.contradicted());
        (0..share(8)).for_each(|_| stories.dependent());
        (0..share(6)).for_each(|_| stories.deleted());
        (0..share(6)).for_each(|_| stories.absent());
        (0..share(8)).for_each(|_| stories.imported());
        (0..share(5)).for_each(|_| stories.reworded());
        (0..share(3)).for_each(|_| stories.crowded());
        (0..share(12)).for_each(|_| stories.unsaved());
        (0..share(6)).for_each(|_| stories.of_page());
        HABITS
            .iter()
            .for_each(|of| stories.repeated(of, Role::Habit, Kept::Unsaved));
        CORRECTIONS
            .iter()
            .for_each(|of| stories.repeated(of, Role::Correction, Kept::Feedback));
        (0..share(6)).for_each(|number| stories.injected(number % 2 == 0));
        stories
    }

    /// Returns the questions, each once.
    pub(super) fn questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    fn name(&mut self) -> String {
        self.next = (self.next + 1_237) % 8_000;
        name(self.next)
    }

    fn subject(&mut self) -> Subject {
        let property = &PROPERTIES[self.numbers.below(PROPERTIES.len())];
        let who = self.name();
        let topic = format!("{who}/{}", property.name);
        Subject { property, who, topic }
    }

    /// Makes a sentence from a pattern, and notes its tuple.
    fn sentence(&mut self, of: &Subject, pattern: &str, value: &str) -> String {
        let text = pattern.replace("{who}", &of.who).replace("{value}", value);
        self.note(&text, &of.topic, value, Role::Fact);
        text
    }

    fn note(&mut self, text: &str, topic: &str, value: &str, role: Role) {
        let tuple = Tuple {
            topic: topic.to_owned(),
            value: value.to_owned(),
            role,
            base: None,
        };
        self.tuples.insert(text.to_owned(), tuple);
    }

    fn says(&mut self, of: &Subject, value: &str) -> String {
        let pattern = of.property.says[self.numbers.below(3)];
        self.sentence(of, pattern, value)
    }

    fn tell(&mut self, sentences: Vec<(String, Kept)>) {
        let told = sentences.into_iter().map(|(text, kept)| Told {
            author: Author::User,
            text,
            kept,
        });
        self.told.push(told.collect());
    }

    fn ask(&mut self, kind: &'static str, of: &Subject, expected: Option<&str>, wrong: &[&str]) {
        let pattern = of.property.asks[self.numbers.below(2)];
        self.ask_for(kind, of, pattern, expected, wrong);
    }

    fn ask_for(&mut self, kind: &'static str, of: &Subject, pattern: &str, expected: Option<&str>, wrong: &[&str]) {
        self.questions.push(Question {
            kind,
            text: pattern.replace("{who}", &of.who),
            who: Some(of.who.clone()),
            expected: expected.map(str::to_owned).into_iter().collect(),
            wrong: wrong
                .iter()
                .chain(&[MADE_UP])
                .map(|value| (*value).to_owned())
                .collect(),
        });
    }

    fn plain(&mut self) {
        let (of, value) = (self.subject(), self.name());
        let text = self.says(&of, &value);
        self.tell(vec![(text, Kept::Saved)]);
        self.ask("plain", &of, Some(&value), &[]);
    }

    /// A value changes: in other words, or in the same.
    fn updated(&mut self, in_other_words: bool) {
        let (of, old, new) = (self.subject(), self.name(), self.name());
        let before = self.says(&of, &old);
        let after = if in_other_words {
            self.sentence(&of, of.property.changes, &new)
        } else {
            let now = of.property.says[0].trim_end_matches('.').to_owned() + " now.";
            self.sentence(&of, &now, &new)
        };
        self.tell(vec![(before, Kept::Saved), (after, Kept::Saved)]);
        self.ask("update", &of, Some(&new), &[&old]);
    }

    fn contradicted(&mut self) {
        let (of, old, new) = (self.subject(), self.name(), self.name());
        let before = self.sentence(&of, of.property.says[0], &old);
        let after = self.sentence(&of, of.property.says[0], &new);
        self.tell(vec![(before, Kept::Saved), (after, Kept::Saved)]);
        self.ask("contradiction", &of, Some(&new), &[&old]);
    }

    /// A value that rests on another value, which changes.
    fn dependent(&mut self) {
        let (of, old, new, resting) = (self.subject(), self.name(), self.name(), self.name());
        let base = self.sentence(&of, of.property.says[0], &old);
        let (rests, asks) = of.property.rests;
        let rests = rests
            .replace("{who}", &of.who)
            .replace("{base}", &old)
            .replace("{value}", &resting);
        self.note(&rests, &format!("{} rests", of.topic), &resting, Role::Fact);
        if let Some(tuple) = self.tuples.get_mut(&rests) {
            tuple.base = Some((of.topic.clone(), old.clone()));
        }
        let after = self.sentence(&of, of.property.says[0], &new);
        self.tell([base, rests, after].map(|text| (text, Kept::Saved)).to_vec());
        self.ask("update", &of, Some(&new), &[&old]);
        self.ask_for("dependent", &of, asks, None, &[&resting]);
    }

    fn deleted(&mut self) {
        let (of, value) = (self.subject(), self.name());
        let text = self.says(&of, &value);
        let forget = format!("Please forget the {} of {}.", of.property.name, of.who);
        self.note(&forget, &of.topic, "", Role::Forget);
        self.tell(vec![(text.clone(), Kept::Saved), (forget, Kept::Archives(text))]);
        self.ask("deletion", &of, None, &[&value]);
    }

    fn absent(&mut self) {
        let of = self.subject();
        self.ask("absence", &of, None, &[]);
    }

    fn imported(&mut self) {
        let (of, value) = (self.subject(), self.name());
        let text = self.says(&of, &value);
        self.tell(vec![(text, Kept::Imported); 3]);
        self.ask("duplicate", &of, Some(&value), &[]);
    }

    fn reworded(&mut self) {
        let (of, value) = (self.subject(), self.name());
        let texts = of
            .property
            .says
            .map(|pattern| (self.sentence(&of, pattern, &value), Kept::Saved));
        self.tell(texts.to_vec());
        self.ask("duplicate", &of, Some(&value), &[]);
    }

    /// Four properties of one person, each said three times, and one question about all of them.
    fn crowded(&mut self) {
        let who = self.name();
        let mut values = Vec::new();
        for property in &PROPERTIES[..4] {
            let of = Subject {
                property,
                who: who.clone(),
                topic: format!("{who}/{}", property.name),
            };
            let value = self.name();
            let texts = property
                .says
                .map(|pattern| (self.sentence(&of, pattern, &value), Kept::Saved));
            self.tell(texts.to_vec());
            values.push(value);
        }
        self.questions.push(Question {
            kind: "crowded",
            text: format!("What are the home, the employer, the dog and the car of {who}?"),
            who: Some(who),
            expected: values,
            wrong: vec![MADE_UP.to_owned()],
        });
    }

    fn unsaved(&mut self) {
        let (of, value) = (self.subject(), self.name());
        let text = self.says(&of, &value);
        self.tell(vec![(text, Kept::Unsaved)]);
        self.ask("unsaved", &of, Some(&value), &[]);
    }

    /// A later web page says something else than the user.
    fn of_page(&mut self) {
        let (of, value, other) = (self.subject(), self.name(), self.name());
        let text = self.sentence(&of, of.property.says[0], &value);
        let page = self.sentence(&of, of.property.says[0], &other);
        self.tell(vec![(text, Kept::Saved)]);
        let page = Told {
            author: Author::Page,
            text: page,
            kept: Kept::Saved,
        };
        self.told.last_mut().expect("the user has just spoken").push(page);
        self.ask("page", &of, Some(&value), &[]);
    }

    /// A habit or a correction that comes twice.
    fn repeated(&mut self, (says, asks): &(&str, &str), role: Role, kept: Kept) {
        let value = self.name();
        let text = says.replace("{value}", &value);
        self.note(&text, says, &value, role);
        self.tell(vec![(text, kept); 2]);
        let kind = if role == Role::Habit { "habit" } else { "correction" };
        self.questions.push(Question {
            kind,
            text: (*asks).to_owned(),
            who: None,
            expected: vec![value],
            wrong: vec![MADE_UP.to_owned()],
        });
    }

    /// A page with an instruction, which the agent saves or not.
    fn injected(&mut self, is_saved: bool) {
        let text = INJECTION.replace("{value}", &self.name());
        let kept = if is_saved { Kept::Saved } else { Kept::Unsaved };
        self.told.push(vec![Told {
            author: Author::Page,
            text,
            kept,
        }]);
    }
}
