//! The calculator tool and the small recursive-descent parser behind it.

use rockbot::prelude::*;

/// Calculates an arithmetic expression with + - * / ^ and parentheses.
#[derive(Deserialize, JsonSchema)]
struct Calculate {
    /// The whole expression, in numbers.
    expression: String,
}

/// Returns the tool.
pub fn calculator() -> Tool {
    tool("calculate", |args: Calculate| async move {
        evaluate(&args.expression).map(|value| value.to_string())
    })
    .pure()
}

/// Maximum nesting of parentheses: the parser recurses once for each level.
const MAX_DEPTH: u32 = 100;

fn evaluate(expression: &str) -> Result<f64, ToolError> {
    let mut parser = Parser {
        rest: expression.trim(),
        depth: 0,
    };
    let value = parser.sum()?;
    match parser.rest {
        "" if value.is_finite() => Ok(value),
        "" => Err(ToolError::execution_failed("the result is not a number")),
        rest => Err(wrong(&format!("`{rest}` was not understood"))),
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<f64, ToolError> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value += self.product()?;
            } else if self.take('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, ToolError> {
        let mut value = self.power()?;
        loop {
            if self.take('*') {
                value *= self.power()?;
            } else if self.take('/') {
                value /= self.power()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<f64, ToolError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(wrong("it is nested too deeply"));
        }
        let negative = self.take('-');
        let base = if negative { self.power()? } else { self.atom()? };
        let value = if !negative && self.take('^') {
            base.powf(self.power()?)
        } else {
            base
        };
        self.depth -= 1;
        Ok(if negative { -value } else { value })
    }

    fn atom(&mut self) -> Result<f64, ToolError> {
        if self.take('(') {
            let value = self.sum()?;
            return if self.take(')') {
                Ok(value)
            } else {
                Err(wrong("a `)` is missing"))
            };
        }
        let digits = self
            .rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(digits);
        let value = number
            .parse()
            .map_err(|_| wrong(&format!("a number was expected at `{}`", self.rest)))?;
        self.rest = rest.trim_start();
        Ok(value)
    }

    fn take(&mut self, symbol: char) -> bool {
        let rest = self.rest.strip_prefix(symbol).map(str::trim_start);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn wrong(problem: &str) -> ToolError {
    ToolError::invalid_arguments(format!(
        "the expression cannot be calculated: {problem}. Use + - * / ^ and parentheses."
    ))
}
