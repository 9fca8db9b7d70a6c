//! The outputs of the steps that have run, as templates read them.

/// The outputs by step, found without regard to case.
#[derive(Debug, Default)]
pub(super) struct Outputs<'a>(Vec<Output<'a>>);

#[derive(Debug)]
struct Output<'a> {
    step: &'a str,
    /// `None` if the step was skipped, or failed.
    text: Option<&'a str>,
    output_to: Option<&'a str>,
}

impl<'a> Outputs<'a> {
    pub(super) fn push(&mut self, step: &'a str, text: Option<&'a str>, output_to: Option<&'a str>) {
        self.0.push(Output { step, text, output_to });
    }

    /// Returns the output of a step.
    pub(super) fn get(&self, step: &str) -> Option<&'a str> {
        self.find(step)?.text
    }

    /// Returns the name that a step gave to its output.
    pub(super) fn output_to(&self, step: &str) -> Option<&'a str> {
        self.find(step)?.output_to
    }

    /// Returns the steps that have an output, each with its output.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(|output| Some((output.step, output.text?)))
    }

    fn find(&self, step: &str) -> Option<&Output<'a>> {
        self.0.iter().find(|output| output.step.eq_ignore_ascii_case(step))
    }

    #[cfg(test)]
    pub(super) fn of(outputs: &[(&'a str, &'a str, Option<&'a str>)]) -> Self {
        let mut all = Self::default();
        for (step, text, output_to) in outputs {
            all.push(step, Some(text), *output_to);
        }
        all
    }
}
