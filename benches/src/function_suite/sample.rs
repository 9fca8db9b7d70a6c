//! Samples: a question, the functions that are offered, and the calls that are right.

use std::path::Path;

use serde_json::{Map, Value, json};

/// The categories of the suite that need a call: one of one function, one of several functions,
/// several calls.
pub const CATEGORIES: [&str; 3] = ["simple_python", "multiple", "parallel"];

/// A function that is offered to the model.
#[derive(Debug, Clone)]
pub struct Function {
    /// The name, with underscores for the dots that model servers refuse.
    pub name: String,
    /// The description.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub schema: Value,
}

/// A call that is right: for each argument the accepted values.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The name of the function.
    pub name: String,
    /// The accepted values by argument; an empty text among them allows the argument to be left out.
    pub arguments: Map<String, Value>,
}

/// A sample of the suite.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The id of the suite.
    pub id: String,
    /// The user's message.
    pub question: String,
    /// The functions that are offered.
    pub functions: Vec<Function>,
    /// The calls that are right, in any order.
    pub expected: Vec<Expected>,
}

/// Reads `count` samples of `category`, spread evenly over the file.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or has another form.
pub fn load(folder: &Path, category: &str, count: usize) -> Result<Vec<Sample>, String> {
    let file = format!("BFCL_v4_{category}.json");
    let questions = lines(&folder.join(&file))?;
    let answers = lines(&folder.join("possible_answer").join(&file))?;
    let count = count.min(questions.len());
    (0..count)
        .map(|nth| nth * questions.len() / count)
        .map(|at| sample(&questions[at], answers.get(at).unwrap_or(&Value::Null)))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{file}: a sample has another form"))
}

fn lines(file: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let parsed = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    parsed.map_err(|error| format!("{}: {error}", file.display()))
}

fn sample(question: &Value, answer: &Value) -> Option<Sample> {
    let messages = question["question"][0].as_array()?;
    Some(Sample {
        id: question["id"].as_str()?.to_owned(),
        question: messages.last()?["content"].as_str()?.to_owned(),
        functions: question["function"]
            .as_array()?
            .iter()
            .map(function)
            .collect::<Option<_>>()?,
        expected: answer["ground_truth"]
            .as_array()?
            .iter()
            .map(expected)
            .collect::<Option<_>>()?,
    })
}

fn function(declared: &Value) -> Option<Function> {
    Some(Function {
        name: legal(declared["name"].as_str()?),
        description: declared["description"].as_str()?.to_owned(),
        schema: schema(&declared["parameters"]),
    })
}

fn expected(call: &Value) -> Option<Expected> {
    let (name, arguments) = call.as_object()?.iter().next()?;
    Some(Expected {
        name: legal(name),
        arguments: arguments.as_object()?.clone(),
    })
}

fn legal(name: &str) -> String {
    name.replace('.', "_")
}

/// Returns a JSON Schema from the types of Python that the suite names.
fn schema(declared: &Value) -> Value {
    match declared {
        Value::Object(members) => members.iter().map(|(key, value)| member(key, value)).collect(),
        Value::Array(items) => items.iter().map(schema).collect(),
        other => other.clone(),
    }
}

fn member(key: &str, value: &Value) -> (String, Value) {
    let value = match (key, value.as_str()) {
        ("type", Some("dict")) => json!("object"),
        ("type", Some("float")) => json!("number"),
        ("type", Some("tuple")) => json!("array"),
        ("type", Some("any")) => json!("string"),
        _ => schema(value),
    };
    (key.to_owned(), value)
}
