//! One instance for everyone, however it is made.

use crate::*;

#[tokio::test]
async fn a_singleton_is_one_instance_for_everyone_at_every_depth() {
    let app = Application::builder().provide::<Tree>().provide::<Branch>().provide::<Leaf>().create().await.unwrap();
    let tree = app.get::<Tree>().await.unwrap();
    assert!(Arc::ptr_eq(&tree, &app.get::<Tree>().await.unwrap()));
    assert!(Arc::ptr_eq(&tree.leaf, &tree.branch.leaf));
    assert!(Arc::ptr_eq(&tree.leaf, &app.get::<Leaf>().await.unwrap()));
    assert!(Arc::ptr_eq(&tree.branch, &app.scope().get::<Branch>().await.unwrap()));
    assert_eq!(tree.leaf.number, 0);
}

#[tokio::test]
async fn nothing_is_built_before_it_is_needed_and_then_once() {
    let log = log();
    let app = Application::builder().shared(Arc::clone(&log)).factory(pool).provide::<PgRepo>().create().await.unwrap();
    assert!(log.lines().is_empty());
    let (left, right) = tokio::join!(app.get::<PgRepo>(), app.get::<PgRepo>());
    assert!(Arc::ptr_eq(&left.unwrap(), &right.unwrap()));
    assert_eq!(log.lines(), ["built Pool", "built PgRepo"]);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_factory_gives_its_singleton() {
    struct Now(u8);
    struct Checked(u8);
    struct Later(u8);
    struct LaterChecked(u8);
    let app = Application::builder()
        .value(1_u8)
        .factory(|one: Arc<u8>| Now(*one))
        .try_factory(|now: Arc<Now>| Ok::<_, String>(Checked(now.0 + 1)))
        .factory_async(|checked: Arc<Checked>| async move {
            sleep(SECOND).await;
            Later(checked.0 + 1)
        })
        .try_factory_async(|later: Arc<Later>, one: Arc<u8>| async move {
            sleep(SECOND).await;
            Ok::<_, String>(LaterChecked(later.0 + *one))
        })
        .create()
        .await
        .unwrap();
    let started = Instant::now();
    assert_eq!(app.get::<LaterChecked>().await.unwrap().0, 4);
    assert_eq!(started.elapsed(), 2 * SECOND);
    app.get::<Later>().await.unwrap();
    assert_eq!(started.elapsed(), 2 * SECOND);
}
