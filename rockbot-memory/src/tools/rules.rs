//! The tools of rules, and of the user's time zone.

use std::sync::Arc;

use rockbot_core::CallContext;
use rockbot_core::context::Trust;
use rockbot_core::store::{Rule, RulesStore, StoreError};
use rockbot_core::tool::{State, Tool, ToolError, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::edited;
use super::{ToolDeps, failed, invalid, time_zone};

/// State of the tools.
#[derive(Debug, Clone)]
pub(crate) struct RuleTools {
    pub(crate) rules: Arc<dyn RulesStore>,
    pub(crate) deps: ToolDeps,
}

pub(crate) fn tools(rules: &RuleTools) -> [Tool; 5] {
    [
        stateful_tool("add_rule", rules.clone(), add).idempotent(),
        stateful_tool("edit_rule", rules.clone(), edit),
        stateful_tool("remove_rule", rules.clone(), remove).idempotent(),
        stateful_tool("list_rules", rules.clone(), list).pure(),
        stateful_tool("set_timezone", rules.clone(), set_time_zone).idempotent(),
    ]
    .map(|tool| tool.source("memory"))
}

/// Adds a rule that you follow in every conversation. Use it only when the user asks for one.
#[derive(Debug, Deserialize, JsonSchema)]
struct AddRule {
    /// The rule, in one line.
    rule: String,
}

async fn add(this: State<RuleTools>, args: AddRule, cx: CallContext) -> Result<String, ToolError> {
    this.may_change("rules are", &cx)?;
    let rule = rule(&args.rule)?;
    match this.rules.add(cx.principal(), rule).await.map_err(failed)? {
        true => this.shown(&cx).await,
        false => Ok("That rule is there already.".to_owned()),
    }
}

/// Replaces a part of a rule.
#[derive(Debug, Deserialize, JsonSchema)]
struct EditRule {
    /// The text to replace, exactly as it stands in the rules; it must occur once.
    old_string: String,
    /// The new text; empty to remove the old one.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

async fn edit(this: State<RuleTools>, args: EditRule, cx: CallContext) -> Result<String, ToolError> {
    this.may_change("rules are", &cx)?;
    let before = this.rules.list(cx.principal()).await.map_err(failed)?;
    let texts: Vec<_> = before.iter().map(Rule::as_str).collect();
    // A rule is one line, so an edit must neither join nor split lines.
    if [&args.old_string, &args.new_string]
        .iter()
        .any(|text| text.contains('\n'))
    {
        return Err(ToolError::invalid_arguments(
            "a rule is one line: change one after the other",
        ));
    }
    let after = edited(&texts.join("\n"), &args.old_string, &args.new_string, args.replace_all);
    let after = after.map_err(|error| invalid(&error))?;
    let changed = before.iter().zip(after.split('\n'));
    for (before, after) in changed.filter(|(before, after)| before.as_str() != *after) {
        this.replace(before, Rule::new(after), &cx).await.map_err(failed)?;
    }
    this.shown(&cx).await
}

/// Removes a rule.
#[derive(Debug, Deserialize, JsonSchema)]
struct RemoveRule {
    /// The rule, exactly as list_rules shows it.
    rule: String,
}

async fn remove(this: State<RuleTools>, args: RemoveRule, cx: CallContext) -> Result<String, ToolError> {
    this.may_change("rules are", &cx)?;
    let rule = rule(&args.rule)?;
    match this.rules.remove(cx.principal(), &rule).await.map_err(failed)? {
        true => this.shown(&cx).await,
        false => Err(ToolError::invalid_arguments(
            "there is no such rule: give one exactly as list_rules shows it",
        )),
    }
}

/// Lists the rules that apply in every conversation.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListRules {}

async fn list(this: State<RuleTools>, _: ListRules, cx: CallContext) -> Result<String, ToolError> {
    this.shown(&cx).await
}

/// Sets the user's time zone, when they tell you where they are. From their next message on, times are given in
/// that zone.
#[derive(Debug, Deserialize, JsonSchema)]
struct SetTimezone {
    /// The IANA name of the zone, such as Europe/Paris.
    timezone_id: String,
}

async fn set_time_zone(this: State<RuleTools>, args: SetTimezone, cx: CallContext) -> Result<String, ToolError> {
    this.may_change("the time zone is", &cx)?;
    let zone = time_zone::find(&args.timezone_id).map_err(|error| invalid(&error).with_source(error))?;
    let kept = this.rules.set_time_zone(cx.principal(), zone.name()).await;
    kept.map_err(failed)?;
    Ok(format!("Kept. {}", zone.local_time(this.deps.clock.now())))
}

impl RuleTools {
    /// Refuses the change in a turn that read untrusted text, of this turn or an earlier one.
    ///
    /// A rule is an instruction in every later turn, so untrusted text must not become one; nor may it move the
    /// user to another time zone.
    fn may_change(&self, what: &str, cx: &CallContext) -> Result<(), ToolError> {
        let origin = self.deps.taint.origin(cx);
        match origin.trust {
            Trust::Untrusted => Err(ToolError::invalid_arguments(format!(
                "{what} not changed while the conversation shows text of others (here {}): tell the user what you would \
                 change, and that they can ask for it in a new conversation",
                origin.source
            ))),
            Trust::User | Trust::Host => Ok(()),
        }
    }

    /// Replaces a rule.
    ///
    /// Ordering: the new rule is added first, unless the store treats both as equal. A crash in between leaves one
    /// rule too many, never one too few.
    async fn replace(&self, before: &Rule, after: Option<Rule>, cx: &CallContext) -> Result<(), StoreError> {
        let (first, last) = match after {
            Some(after) if after.is_same_as(before) => (None, Some(after)),
            after => (after, None),
        };
        if let Some(first) = first {
            self.rules.add(cx.principal(), first).await?;
        }
        self.rules.remove(cx.principal(), before).await?;
        if let Some(last) = last {
            self.rules.add(cx.principal(), last).await?;
        }
        Ok(())
    }

    async fn shown(&self, cx: &CallContext) -> Result<String, ToolError> {
        let rules = self.rules.list(cx.principal()).await.map_err(failed)?;
        self.deps.taint.note(cx, []);
        match rules.is_empty() {
            true => Ok("There are no rules.".to_owned()),
            false => Ok(rules
                .iter()
                .map(|rule| format!("- {rule}"))
                .collect::<Vec<_>>()
                .join("\n")),
        }
    }
}

fn rule(text: &str) -> Result<Rule, ToolError> {
    Rule::new(text).ok_or_else(|| ToolError::invalid_arguments("the rule is empty: say what to keep to, in one line"))
}
