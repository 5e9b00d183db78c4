//! P6 by hand: what a driver says of itself before it connects.

use messaging::{DeliveryCount, Order};

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::stage::Stage;

cases! { ProvenAtBoot;
    capabilities_do_not_change,
    capabilities_agree_with_each_other,
    a_dead_letter_queue_has_a_name_of_its_own,
}

async fn capabilities_do_not_change(stage: Stage) -> Verdict {
    let process = stage.process();
    let before = process.driver().capabilities();
    ensure_eq!(before, *stage.capabilities(), "the capabilities of another driver to the same broker");
    process.connect().await?;
    ensure_eq!(process.driver().capabilities(), before, "the capabilities once it is connected");
    process.close().await?;
    ensure_eq!(process.driver().capabilities(), before, "the capabilities once it is closed");
    Ok(())
}

async fn capabilities_agree_with_each_other(stage: Stage) -> Verdict {
    let can = stage.capabilities();
    ensure!(
        can.native_delay != can.max_native_delay.is_zero(),
        "native_delay is {}, and max_native_delay {:?}",
        can.native_delay,
        can.max_native_delay
    );
    ensure!(
        can.native_delay_granularity <= can.max_native_delay,
        "native delays are whole {:?}, and the longest is {:?}",
        can.native_delay_granularity,
        can.max_native_delay
    );
    ensure!(
        !can.crash_counts || can.delivery_count != DeliveryCount::None,
        "crash_counts, and the broker counts nothing by which a crash would be seen"
    );
    ensure!(can.order != Order::Key || can.keys, "the order of a key is kept, and keys mean nothing");
    ensure!(can.max_run.is_none_or(|longest| !longest.is_zero()), "max_run is zero: no run would ever end");
    Ok(())
}

async fn a_dead_letter_queue_has_a_name_of_its_own(stage: Stage) -> Verdict {
    let (one, other) = (stage.process(), stage.process());
    let mut names = Vec::new();
    for queue in ["orders", "orders-2", "orders.2"] {
        let name = one.driver().dead_letter_name(queue);
        ensure!(!name.is_empty() && name != queue, "the dead-letter queue of `{queue}` is `{name}`");
        ensure_eq!(other.driver().dead_letter_name(queue), name, "the dead-letter queue of `{queue}`, asked twice");
        ensure!(!names.contains(&name), "two queues have the dead-letter queue `{name}`");
        names.push(name);
    }
    Ok(())
}
