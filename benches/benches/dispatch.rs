//! Measures tool dispatch over a bare dynamic async call. `cargo bench -p rockbot-benches --bench
//! dispatch`.

use rockbot_benches::dispatch::Bench;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("{:>8}  {:>9}  {:>9}  {:>6}", "tools", "floor ns", "ours ns", "ratio");
    for tools in [1, 64, 4096] {
        let bench = Bench::new(tools, 200_000);
        let floor = bench.floor().await;
        let ours = bench.ours().await;
        println!("{tools:>8}  {floor:>9.0}  {ours:>9.0}  {:>6.2}", ours / floor);
    }
}
