//! Tests that need a process of their own: for its variables, or to measure its memory.

/// Asserts that an ignored test of the test program that calls passes in a process of its own,
/// with these environment variables.
///
/// # Panics
///
/// Panics with the output of the process if the test does not pass.
#[track_caller]
pub fn assert_passes_alone(test: &str, variables: &[(&str, &str)]) {
    let program = std::env::current_exe().expect("a test program knows its path");
    let mut command = std::process::Command::new(program);
    command.args(["--exact", test, "--include-ignored", "--nocapture"]);
    let output = command.envs(variables.iter().copied()).output();
    let output = output.expect("the test program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("1 passed"), "{text}{errors}");
}

/// Returns by how many bytes the peak of the memory of this process grows beyond what is
/// resident, while `work` runs.
///
/// # Panics
///
/// Panics if the system tells nothing about the process.
#[cfg(target_os = "linux")]
pub async fn peak_growth(work: impl Future<Output = ()>) -> usize {
    // Sets the peak back to what is resident.
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak is set back");
    let before = peak();
    work.await;
    // The kernel counts in parts of its own, so what is resident can look more than the peak.
    peak().saturating_sub(before)
}

#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the state of the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    1024 * kilobytes.expect("the peak in kilobytes")
}
