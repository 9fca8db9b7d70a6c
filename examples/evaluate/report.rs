//! Reports the results, as a Markdown table or as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::meter::Bill;
use super::task::{Kind, Task};
use super::trial::Trial;

/// All trials of one configuration.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) configuration: &'a str,
    pub(crate) trials: Vec<(&'a Task, Trial)>,
}

impl Row<'_> {
    fn of(&self, kind: Option<Kind>) -> (usize, usize) {
        let trials = || {
            let all = self.trials.iter();
            all.filter(move |(task, _)| kind.is_none_or(|kind| task.kind == kind))
        };
        (
            trials().filter(|(_, trial)| trial.verdict.is_ok()).count(),
            trials().count(),
        )
    }

    fn bill(&self) -> Bill {
        self.trials.iter().fold(Bill::default(), |mut sum, (_, trial)| {
            sum.turn += trial.bill.turn;
            sum.out_of_band += trial.bill.out_of_band;
            sum
        })
    }

    fn hollow(&self) -> usize {
        self.trials.iter().filter(|(_, trial)| trial.is_hollow).count()
    }

    fn time(&self) -> Duration {
        self.trials.iter().map(|(_, trial)| trial.time).sum()
    }

    fn cells(&self) -> Vec<String> {
        let of = |(solved, all): (usize, usize)| format!("{solved}/{all}");
        let (solved, _) = self.of(None);
        let bill = self.bill();
        let kinds = Kind::ALL.map(|kind| of(self.of(Some(kind))));
        [self.configuration.to_owned(), of(self.of(None))]
            .into_iter()
            .chain(kinds)
            .chain([
                self.hollow().to_string(),
                for_each(bill.turn.calls, solved, 1),
                for_each(bill.turn.tokens, solved, 0),
                bill.out_of_band.calls.to_string(),
                bill.out_of_band.tokens.to_string(),
                format!("{:.0}", self.time().as_secs_f64()),
            ])
            .collect()
    }

    fn json(&self) -> Value {
        let (solved, all) = self.of(None);
        let trials = self.trials.iter().map(|(task, trial)| {
            json!({
                "task": task.id,
                "hollow": trial.is_hollow,
                "kind": task.kind.name(),
                "solved": trial.verdict.is_ok(),
                "why": trial.verdict.as_ref().err(),
                "turn": trial.bill.turn,
                "outOfBand": trial.bill.out_of_band,
                "seconds": trial.time.as_secs_f64(),
            })
        });
        json!({
            "configuration": self.configuration,
            "solved": solved,
            "tasks": all,
            "turn": self.bill().turn,
            "outOfBand": self.bill().out_of_band,
            "seconds": self.time().as_secs_f64(),
            "trials": trials.collect::<Vec<_>>(),
        })
    }
}

/// Divides what all tasks spent by the number of solved ones.
fn for_each(spent: u64, solved: usize, digits: usize) -> String {
    match solved {
        0 => "-".to_owned(),
        _ => format!("{:.digits$}", spent as f64 / solved as f64),
    }
}

/// Formats a Markdown table. The cost of a solved task includes what the failed ones spent.
pub(crate) fn table(rows: &[Row<'_>]) -> String {
    let head = ["configuration", "solved"].into_iter().chain(Kind::ALL.map(Kind::name));
    let head = head.chain([
        "hollow",
        "calls/solved",
        "tokens/solved",
        "out-of-band calls",
        "out-of-band tokens",
        "seconds",
    ]);
    let head: Vec<_> = head.map(str::to_owned).collect();
    let rule = vec!["---".to_owned(); head.len()];
    let lines = [head, rule].into_iter().chain(rows.iter().map(Row::cells));
    lines.map(|cells| format!("| {} |\n", cells.join(" | "))).collect()
}

pub(crate) fn json(model: &str, rows: &[Row<'_>]) -> Value {
    json!({ "model": model, "configurations": rows.iter().map(Row::json).collect::<Vec<_>>() })
}
