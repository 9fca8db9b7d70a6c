//! Variables in the values of a configuration: `${NAME}`, `${NAME:-default}` and `${env:NAME}`.

/// The values of variables.
pub(super) type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Returns `text` with its variables replaced. A `$` without a brace stays as it is.
///
/// # Errors
///
/// Returns the problem in words if a variable is not set or of another kind, such as
/// `${input:key}`.
pub(super) fn expand(text: &str, variables: &Variables<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, end)) = after.split_once('}') else {
            return Err("a `${` has no `}`".to_owned());
        };
        out.push_str(&value(inside, variables)?);
        rest = end;
    }
    Ok(out + rest)
}

fn value(inside: &str, variables: &Variables<'_>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        return Err(format!(
            "`${{{inside}}}` is no variable of the environment: use `${{NAME}}`"
        ));
    }
    let set = variables(name).filter(|value| !value.is_empty());
    set.or_else(|| default.map(str::to_owned))
        .ok_or_else(|| format!("the variable `{name}` is not set: set it, or write `${{{name}:-default}}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_common_clients_are_understood() {
        let variables = |name: &str| (name == "KEY").then(|| "k$1".to_owned());
        let expand = |text| expand(text, &variables);
        assert_eq!(
            expand("Bearer ${KEY}, ${env:KEY}; $KEY"),
            Ok("Bearer k$1, k$1; $KEY".to_owned())
        );
        assert_eq!(expand("${OTHER:-a:-b}|${OTHER:-}"), Ok("a:-b|".to_owned()));
        assert!(expand("${OTHER}").unwrap_err().contains("`OTHER` is not set"));
        assert!(expand("${input:key}").unwrap_err().contains("no variable"));
        assert!(expand("${KEY").unwrap_err().contains("no `}`"));
    }
}
