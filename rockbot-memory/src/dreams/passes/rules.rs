//! Proposes standing rules from corrections that came up several times. A person decides about
//! each rule.

use std::time::Duration;

use rockbot_core::store::{FeedbackSignal, Rule, StoreError};
use serde::Deserialize;

use super::super::ask::{Item, Question};
use super::super::pass_context::PassContext;
use super::super::plan::DreamChange;
use super::anti_patterns::signals_of;

/// Time for which corrections are looked at.
const SINCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Maximum number of corrections.
const MAX_CORRECTIONS: usize = 50;

/// Minimum number of corrections behind a rule.
const MIN_SOURCES: usize = 2;

/// Maximum length of a rule, in characters.
const MAX_RULE: usize = 200;

/// Maximum number of rules of one answer.
const MAX_RULES: usize = 2;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"rules\": [{\"rule\": \"one short sentence\", \
    \"sourceIds\": [\"id\", \"id\"]}]}. `sourceIds` are the corrections that show that the rule is wanted. Leave the list \
    empty if there is none.";

#[derive(Debug, Deserialize)]
struct Proposed {
    #[serde(default)]
    rules: Vec<ProposedRule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProposedRule {
    rule: String,
    #[serde(default)]
    source_ids: Vec<String>,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let Some(rules) = cx.stores.rules.clone() else {
        return Ok(());
    };
    let mut items = signals_of(cx, SINCE, MAX_CORRECTIONS, &[FeedbackSignal::Correction]).await?;
    let corrections: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
    if corrections.len() < MIN_SOURCES {
        return Ok(());
    }
    let known = rules.list(cx.who).await?;
    items.extend(known.iter().enumerate().map(|(number, rule)| Item {
        id: format!("rule{}", number + 1),
        text: format!("(a rule that stands) {rule}"),
        from: rockbot_core::content::Provenance::USER,
    }));
    let question = Question {
        intro: "Corrections by the user, and the rules that stand".to_owned(),
        items,
        shape: SHAPE,
    };
    let Some((digest, proposed)) = cx.ask::<Proposed>(&question).await else {
        return Ok(());
    };
    for proposal in proposed.rules.into_iter().take(MAX_RULES) {
        match checked(&proposal, &corrections, &known) {
            Ok(rule) => {
                let count = proposal.source_ids.len();
                let change = DreamChange::Rule {
                    rule: rule.to_string(),
                    reason: format!("{count} corrections: {}", proposal.source_ids.join(", ")),
                };
                cx.draft(format!("propose the rule \"{rule}\""), vec![change], Some(digest));
            }
            Err(problem) => cx.remark(format!("a rule was rejected: {problem}")),
        }
    }
    Ok(())
}

fn checked(proposal: &ProposedRule, corrections: &[String], known: &[Rule]) -> Result<Rule, String> {
    let rule = Rule::new(&proposal.rule).ok_or("it has no words")?;
    let mut sources = proposal.source_ids.clone();
    sources.sort_unstable();
    sources.dedup();
    if sources.len() < MIN_SOURCES || !sources.iter().all(|id| corrections.contains(id)) {
        return Err(format!("it does not name {MIN_SOURCES} corrections that were shown"));
    }
    if rule.as_str().chars().count() > MAX_RULE {
        return Err(format!("it has more than {MAX_RULE} characters"));
    }
    if known.iter().any(|known| known.is_same_as(&rule)) {
        return Err("it stands already".to_owned());
    }
    Ok(rule)
}
