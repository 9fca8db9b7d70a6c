//! A user's statements to an agent over some months, and later questions about them:
//! `benches/data/recall.txt`.

/// Statements, and questions about them.
#[derive(Debug, Default)]
pub struct Talk<'a> {
    /// The statements.
    pub texts: Vec<String>,
    /// The questions.
    pub questions: Vec<Question<'a>>,
}

/// A question about the statements.
#[derive(Debug)]
pub struct Question<'a> {
    /// A language, or a kind of difficulty.
    pub section: &'a str,
    /// The words of the question.
    pub text: &'a str,
    /// The number of the text that answers it.
    pub answer: usize,
}

impl Talk<'static> {
    /// Reads the file.
    pub fn load() -> Self {
        Self::parse(include_str!("../data/recall.txt"))
    }
}

impl<'a> Talk<'a> {
    fn parse(file: &'a str) -> Self {
        let mut data = Self::default();
        let mut section = "";
        let mut names = Vec::new();
        let mut topics = Vec::new();
        for line in file.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            match kind {
                "=" => data.texts.push(rest.to_owned()),
                "?" => data.questions.push(Question {
                    section,
                    text: rest,
                    answer: data.texts.len() - 1,
                }),
                "names" => names = rest.split(", ").collect(),
                "topics" => topics = rest.split(", ").collect(),
                "~" => data.texts.extend(small_talk(rest, &names, &topics)),
                _ if line.starts_with('[') => section = line.trim_matches(['[', ']']),
                _ => {}
            }
        }
        data
    }

    /// Returns the sections, in their order.
    pub fn sections(&self) -> Vec<&'a str> {
        let mut sections: Vec<_> = self.questions.iter().map(|question| question.section).collect();
        sections.dedup();
        sections
    }
}

/// Generates one text for each name and topic.
fn small_talk(frame: &str, names: &[&str], topics: &[&str]) -> Vec<String> {
    let fill = |name: &&str, topic: &str| frame.replace("{name}", name).replace("{topic}", topic);
    let texts = topics
        .iter()
        .flat_map(|topic| names.iter().map(move |name| fill(name, topic)));
    texts.collect()
}
