//! Tests that need a process of their own: for its variables, or to measure its memory.

/// Runs an ignored test in a process of its own, with these variables, and returns whether it
/// passed.
pub(crate) fn passes_alone(test: &str, variables: &[(&str, &str)]) -> bool {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture"]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    text.contains("1 passed")
}

/// Returns by how many bytes the peak of the memory of this process grows beyond what is
/// resident, while `work` runs.
#[cfg(target_os = "linux")]
pub(crate) async fn peak_growth(work: impl Future<Output = ()>) -> usize {
    // Sets the peak back to what is resident.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    work.await;
    // The kernel counts in parts of its own, so what is resident can look more than the peak.
    peak().saturating_sub(before)
}

#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
}
