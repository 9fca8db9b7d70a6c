//! Runs every driver that needs neither a broker nor files of others, and prints one table.
//!
//! Usage: `all [--instructions] [NAME]...`. Builds the drivers first. With `--instructions` the
//! rows that have a floor are counted by valgrind, in thousands of instructions, since times of a
//! busy machine lie; without it their times are printed. The waits are times in any case. With
//! names, such as `W1a`, only those rows are run.

use std::error::Error;
use std::process::Command;

use rockbot_benches::callgrind::{Driver, LENGTH};
use rockbot_benches::{dispatch, median, mock};
use serde_json::Value;

/// Number of tool turns of a conversation, unless a row says otherwise.
const TURNS: &str = "2";

/// Number of answers that the conversations of a whole host begin with.
const ANSWERS: usize = 3;

/// A figure over its floor.
struct Ratio<'a> {
    id: &'static str,
    what: &'static str,
    floor: Driver<'a>,
    ours: Driver<'a>,
    /// Lengths of the two runs that are compared.
    lengths: [usize; 2],
    /// Number of units in one step of the length.
    units: f64,
    must: &'static str,
}

/// A time in milliseconds, of the driver `name`.
struct Wait {
    id: &'static str,
    what: &'static str,
    name: &'static str,
    arguments: &'static [&'static str],
    figure: &'static str,
    must: &'static str,
}

const WAITS: [Wait; 6] = [
    wait(
        "L1",
        "message after quiet, 10 000 memories, p99",
        &["quiet", "10000"],
        "p99",
        "5",
    ),
    wait("L1", "the same, 100 000 memories", &["quiet", "100000"], "p99", "20"),
    wait(
        "L2",
        "start with 100 000 finished turns",
        &["journal", "100000"],
        "started",
        "500",
    ),
    wait(
        "L2",
        "first answer, 100 000 memories, 10 000 sessions",
        &["start", "100000", "10000"],
        "first_answer",
        "1000",
    ),
    wait(
        "L3",
        "end of a host with 10 000 changed sessions beyond its 5 s",
        &[],
        "total_s",
        "6 s",
    )
    .of("ends"),
    wait("L4", "added to the time to the first token", &[], "added", "0.2").of("first_token"),
];

const fn wait(
    id: &'static str,
    what: &'static str,
    arguments: &'static [&'static str],
    figure: &'static str,
    must: &'static str,
) -> Wait {
    Wait {
        id,
        what,
        name: "waits",
        arguments,
        figure,
        must,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (flags, names): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|text| text.starts_with("--"));
    let by_instructions = flags.iter().any(|flag| flag == "--instructions");
    let is_wanted = |id: &str| names.is_empty() || names.iter().any(|name| name == id);
    build()?;
    let [base, long, whole] = [2, 20, 2 + ANSWERS].map(|turns| format!("http://{}/v1", mock::start(turns)));
    let unit = if by_instructions {
        "thousand instructions"
    } else {
        "µs of CPU"
    };
    println!("| id | workload | floor | ours ({unit}) | ratio | must |\n|---|---|---|---|---|---|");
    for row in turns(&base, &long, &whole).into_iter().chain(dispatches()).chain(mcp()) {
        // The drivers of MCP print no time.
        if is_wanted(row.id) && (by_instructions || row.id != "W7") {
            let [floor, ours] = if by_instructions {
                row.instructions()?
            } else {
                row.times()?
            };
            let Ratio { id, what, must, .. } = row;
            println!(
                "| {id} | {what} | {floor:.2} | {ours:.2} | **{:.3}** | {must} |",
                ours / floor
            );
        }
    }
    if is_wanted("W1h") && by_instructions {
        nested(&base)?;
    }
    if is_wanted("W1d") {
        memory(&base)?;
    }
    println!("\n| id | workload | ms | must |\n|---|---|---|---|");
    for row in WAITS.iter().filter(|row| is_wanted(row.id)) {
        println!("| {} | {} | **{}** | {} |", row.id, row.what, row.measured()?, row.must);
    }
    Ok(())
}

/// Builds the drivers, which stand beside this program.
fn build() -> Result<(), Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let drivers = ["turn", "dispatch", "mcp", "waits", "ends", "first_token"]
        .iter()
        .flat_map(|name| ["--bin", *name]);
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "-p", "rockbot-benches"])
        .args(drivers)
        .status()?;
    if built.success() {
        Ok(())
    } else {
        Err("the drivers cannot be built".into())
    }
}

/// Returns a run of the agent loop: 16 conversations at a time.
fn turn<'a>(flags: &[&'a str], base: &'a str, turns: &'a str, tools: &'a str, stream: bool) -> Driver<'a> {
    let stream = if stream { "1" } else { "0" };
    Driver {
        name: "turn",
        arguments: [flags, &[base, "16", LENGTH, tools, stream]].concat(),
        environment: vec![("TURNS", turns)],
    }
}

fn turns<'a>(base: &'a str, long: &'a str, whole: &'a str) -> Vec<Ratio<'a>> {
    let row = |id, what, floor, ours, must| Ratio {
        id,
        what,
        floor,
        ours,
        lengths: [100, 400],
        units: 3.0,
        must,
    };
    let plain = |flags, stream| turn(flags, base, TURNS, "8", stream);
    let many = |flags| turn(flags, base, TURNS, "64", false);
    let of_many = |flags| Ratio {
        lengths: [20, 60],
        units: 21.0,
        ..row(
            "W1e",
            "20 tool turns",
            turn(&["--floor"], long, "20", "8", false),
            turn(flags, long, "20", "8", false),
            "1.1",
        )
    };
    vec![
        row(
            "W1a",
            "model turn, 8 tools",
            plain(&["--floor"], false),
            plain(&[], false),
            "1.5",
        ),
        row("W1b", "model turn, 64 tools", many(&["--floor"]), many(&[]), ""),
        row("W1c", "streaming", plain(&["--floor"], true), plain(&[], true), "1.25"),
        of_many(&[]),
        row(
            "W1f",
            "whole host over W1a",
            plain(&[], false),
            turn(&["--host"], whole, TURNS, "8", false),
            "+ 150",
        ),
        row(
            "W1g",
            "all policies, over W1a",
            plain(&[], false),
            plain(&["--policies"], false),
            "1.05",
        ),
    ]
}

fn dispatches<'a>() -> Vec<Ratio<'a>> {
    let driver = |tools, side| Driver {
        name: "dispatch",
        arguments: vec![tools, LENGTH, side],
        environment: Vec::new(),
    };
    let row = |what, tools| Ratio {
        id: "W2",
        what,
        floor: driver(tools, "floor"),
        ours: driver(tools, "ours"),
        lengths: [500, 2_500],
        units: dispatch::LOOPS as f64,
        must: "2.1",
    };
    vec![row("tool call, 1 tool", "1"), row("tool call, 4 096 tools", "4096")]
}

/// Counts the instructions of a conversation that an agent holds below a call of another agent,
/// over the same conversation without a caller.
fn nested(base: &str) -> Result<(), Box<dyn Error>> {
    let cost = |flags: &[&'static str]| turn(flags, base, TURNS, "8", false).per_unit(100, 400);
    let plain = cost(&[])?;
    let below = cost(&["--below"])? - cost(&["--beside"])? + plain;
    let [plain, below] = [plain, below].map(|instructions| instructions / 3e3);
    println!(
        "| W1h | turn below a call, over W1a | {plain:.2} | {below:.2} | **{:.3}** | 1.2 |",
        below / plain
    );
    Ok(())
}

/// Measures the peak memory of the agent loop and of its floor at 256 conversations, three times
/// in turn, and prints the medians in MiB.
fn memory(base: &str) -> Result<(), Box<dyn Error>> {
    let driver = |flags: &[&'static str]| {
        let mut driver = turn(flags, base, TURNS, "8", false);
        driver.arguments[flags.len() + 1] = "256";
        driver
    };
    let mut peaks = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        for (peaks, flags) in peaks.iter_mut().zip([&["--floor"][..], &[]]) {
            let line = run(&driver(flags), 2_560)?;
            peaks.push(line["peak_rss_mib"].as_f64().ok_or("a driver prints its memory")?);
        }
    }
    let [floor, ours] = peaks.map(median);
    println!("\n| id | workload | floor | ours (MiB) | ratio | must |\n|---|---|---|---|---|---|");
    println!(
        "| W1d | peak memory, 256 conversations | {floor:.1} | {ours:.1} | **{:.2}** | 1.3 |",
        ours / floor
    );
    Ok(())
}

/// Returns the rows of MCP, which are counted by instructions alone.
fn mcp<'a>() -> Vec<Ratio<'a>> {
    let driver = |arguments: &[&'a str]| Driver {
        name: "mcp",
        arguments: [arguments, &[LENGTH]].concat(),
        environment: Vec::new(),
    };
    let row = |what, kind, must| Ratio {
        id: "W7",
        what,
        floor: driver(&["floor-calls", kind]),
        ours: driver(&["calls", kind]),
        lengths: [320, 3_200],
        units: 1.0,
        must,
    };
    let find = Ratio {
        lengths: [100, 2_100],
        floor: driver(&["floor-find"]),
        ours: driver(&["find"]),
        ..row("`mcp_find_tools` among 2 000 tools", "", "")
    };
    vec![
        row("MCP call over stdio, over `rmcp`", "stdio", "1.15"),
        row("MCP call over HTTP, over `rmcp`", "http", "0.95"),
        find,
    ]
}

impl Ratio<'_> {
    /// Counts thousands of instructions of floor and ours for each unit.
    fn instructions(&self) -> Result<[f64; 2], Box<dyn Error>> {
        let [short, long] = self.lengths;
        let count = |driver: &Driver<'_>| Ok::<_, Box<dyn Error>>(driver.per_unit(short, long)? / self.units / 1e3);
        Ok([count(&self.floor)?, count(&self.ours)?])
    }

    /// Measures floor and ours five times in turn, and returns the least of each in microseconds for
    /// a unit.
    fn times(&self) -> Result<[f64; 2], Box<dyn Error>> {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..5 {
            for (least, driver) in least.iter_mut().zip([&self.floor, &self.ours]) {
                let line = run(driver, 4 * self.lengths[1])?;
                let turn = line["cpu_us_per_turn"].as_f64();
                let call = line["ns_per_call"].as_f64().map(|time| time / 1e3);
                *least = least.min(turn.or(call).ok_or("a driver prints its time")?);
            }
        }
        Ok(least)
    }
}

impl Wait {
    const fn of(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Runs the driver once and returns its figure.
    fn measured(&self) -> Result<f64, Box<dyn Error>> {
        let driver = Driver {
            name: self.name,
            arguments: self.arguments.to_vec(),
            environment: Vec::new(),
        };
        let line = run(&driver, 0)?;
        Ok(line[self.figure].as_f64().ok_or("a driver prints its figure")?)
    }
}

/// Runs a driver and parses the line that it prints.
fn run(driver: &Driver<'_>, length: usize) -> Result<Value, Box<dyn Error>> {
    let output = driver.command(&[], length)?.output()?;
    if !output.status.success() {
        return Err(format!("`{}` failed: {}", driver.name, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
