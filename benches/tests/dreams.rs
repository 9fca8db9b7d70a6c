//! Dreams of a model that is right help, and dreams of a model that talks nonsense in a fifth of
//! its answers do no harm: a small form of what `dreams` measures.

use rockbot_benches::dreams::{Dreamer, Library, MEASURED, before, week};

#[tokio::test(start_paused = true)]
async fn a_week_of_dreams_helps() {
    let library = Library::new(15, 1);
    let none = before(&library).await.unwrap();
    for nonsense in [0, 20] {
        let all = week(&library, Dreamer::new(&library, nonsense), &MEASURED)
            .await
            .unwrap();
        println!("{} | {}\n{} | {}", none.row(), none.kinds(), all.row(), all.kinds());
        assert!(
            all.right() > none.right(),
            "{nonsense}: {} and {}",
            all.row(),
            none.row()
        );
        assert!(
            all.recall() >= none.recall(),
            "{nonsense}: {} and {}",
            all.row(),
            none.row()
        );
        assert_eq!(all.injected, 0, "{nonsense}: {}", all.row());
    }
}
