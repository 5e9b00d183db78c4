//! The suite finds what is wrong with a driver: each mutation breaks a case that names the promise.
#![allow(clippy::wildcard_enum_match_arm)]

mod mutant;

use std::time::Duration;

use messaging_memory::MemoryDriver;
use messaging_testkit::conformance::{Report, Suite, Timing};
use mutant::{Broker, Mutation};

fn suite(mutation: Mutation, timing: Timing) -> Suite {
    Suite::new("mutant", Broker { queues: MemoryDriver::new(), mutation, timing })
}

/// A driver that spins is left behind soon.
fn timing() -> Timing {
    Timing::paused().limit(Duration::from_secs(2))
}

fn failures(report: &Report) -> Vec<&str> {
    report.failures().filter_map(|(name, _)| name.strip_prefix("mutant::")).collect()
}

#[test]
fn a_driver_with_nothing_wrong_keeps_every_promise() {
    let report = suite(Mutation::Nothing, Timing::paused()).check();
    assert!(failures(&report).is_empty(), "{report}");
}

#[test]
fn a_driver_that_blocks_its_thread_is_left_behind() {
    let timing = Timing::paused().limit(Duration::from_millis(500));
    let report = suite(Mutation::BlocksItsThread, timing).only("a_confirmed_publish_is_delivered").check();
    let (name, what) = report.failures().next().expect("it fails");
    assert_eq!(name, "mutant::p1_no_loss::a_confirmed_publish_is_delivered");
    assert!(what.starts_with("this breaks P1, no loss"), "{what}");
    assert!(what.contains("did not end within 500ms and is left behind"), "{what}");
    assert!(what.contains("a publish to `conf-"), "{what}");
}

#[test]
fn a_driver_that_panics_has_failed() {
    let report = suite(Mutation::PanicsInPublish, timing()).only("a_confirmed_publish_is_delivered").check();
    let (_, what) = report.failures().next().expect("it fails");
    assert!(what.contains("it panicked: the driver is broken"), "{what}");
}

macro_rules! mutations {
    ($($test:ident: $mutation:ident breaks $case:literal;)+) => {$(
        #[test]
        fn $test() {
            let report = suite(Mutation::$mutation, timing()).check();
            let failures = failures(&report);
            assert!(failures.contains(&$case), "`{}` holds; what fails is {failures:#?}", $case);
        }
    )+};
}

mutations! {
    a_driver_that_acks_on_receipt_is_found:
        AcksOnReceipt breaks "p1_no_loss::a_dropped_settler_gives_the_message_back";
    a_driver_that_acks_releases_is_found:
        AcksReleases breaks "p1_no_loss::a_released_message_comes_back";
    a_driver_that_acks_retries_is_found:
        AcksRetries breaks "p1_no_loss::a_retried_message_comes_back_as_the_next_attempt";
    a_driver_that_keeps_dropped_settlers_is_found:
        KeepsDroppedSettlers breaks "p1_no_loss::a_dropped_settler_gives_the_message_back";
    a_driver_that_drops_messages_is_found:
        DropsEverySeventh breaks "p1_no_loss::every_publish_of_a_burst_that_is_confirmed_is_delivered";
    a_driver_that_confirms_copies_without_storing_them_is_found:
        ConfirmsCopiesWithoutStoring breaks "p1_no_loss::a_dead_letter_is_acked_only_after_its_copy_is_confirmed";
    a_driver_that_forgets_the_attempt_is_found:
        ForgetsTheAttempt breaks "p1_no_loss::a_retried_message_comes_back_as_the_next_attempt";

    a_driver_that_publishes_twice_is_found:
        PublishesTwice breaks "p2_at_least_once::without_faults_every_message_is_handled_exactly_once";
    a_driver_that_tells_twice_is_found:
        TellsTwice breaks "p2_at_least_once::each_settlement_is_told_exactly_once";
    a_driver_that_never_tells_is_found:
        NeverTells breaks "p2_at_least_once::each_settlement_is_told_exactly_once";
    a_driver_that_tells_failures_as_done_is_found:
        TellsFailuresAsDone breaks "p2_at_least_once::a_settlement_after_a_close_is_told_as_failed";
    a_driver_that_lies_about_late_settlements_is_found:
        TellsFailuresAsDone breaks "p2_at_least_once::what_is_told_of_a_settlement_after_a_lost_connection_is_true";
    a_driver_that_claims_what_it_lost_is_found:
        ClosesAndSaysItIsOurs breaks "p2_at_least_once::a_settlement_after_a_close_is_told_as_failed";

    a_driver_of_which_one_stop_stops_all_is_found:
        OneStopStopsAll breaks "p3_isolation::stopping_one_subscription_leaves_another_alone";
    a_driver_of_which_one_refusal_refuses_all_is_found:
        OneRefusalRefusesAll breaks "p3_isolation::a_refused_publish_leaves_the_others_alone";

    a_driver_that_forgets_its_waker_is_found:
        ForgetsItsWaker breaks "p4_self_healing::a_waiting_lane_is_woken_by_a_message";
    a_driver_that_never_heals_is_found:
        NeverHealsOnceCut breaks "p4_self_healing::a_queue_is_consumed_again_after_a_lost_connection";
    a_driver_that_never_heals_is_found_under_an_application:
        NeverHealsOnceCut breaks "p4_self_healing::an_application_consumes_again_after_a_lost_connection";
    a_driver_that_does_not_say_that_it_healed_is_found:
        SilentlyHealed breaks "p4_self_healing::a_queue_is_consumed_again_after_a_lost_connection";

    a_driver_with_a_lane_too_few_is_found:
        OneLaneFewer breaks "p5_bounded::there_are_as_many_lanes_as_asked";
    a_driver_that_gives_more_than_asked_is_found:
        GivesMoreThanAsked breaks "p5_bounded::a_lane_gives_no_more_than_it_is_asked_for";
    a_driver_that_receives_unasked_is_found:
        ReceivesUnasked breaks "p5_bounded::nothing_is_received_before_the_first_poll";
    a_driver_that_charges_releases_is_found:
        ChargesReleases breaks "p5_bounded::a_release_is_not_charged";
    a_driver_that_charges_retries_twice_is_found:
        ChargesRetriesTwice breaks "p5_bounded::attempts_are_exactly_those_of_the_policy";
    a_driver_that_forgets_crashes_is_found:
        ForgetsCrashes breaks "p5_bounded::a_run_that_was_cut_off_counts";

    a_driver_that_changes_its_capabilities_is_found:
        ChangesItsCapabilities breaks "p6_proven_at_boot::capabilities_do_not_change";

    a_driver_that_keeps_no_room_for_copies_is_found:
        TakesWhatIsTooLarge breaks "p7_dead_letters::room_for_a_copy_is_kept_in_every_message";

    a_driver_that_swaps_messages_is_found:
        SwapsNeighbours breaks "p8_same_answer::messages_come_in_the_order_they_were_published";
    a_driver_that_ignores_retry_delays_is_found:
        IgnoresRetryDelays breaks "p8_same_answer::a_retry_waits_in_process_as_long_as_asked";
    a_driver_that_ignores_publish_delays_is_found:
        IgnoresPublishDelays breaks "p8_same_answer::a_delayed_publish_waits_and_holds_up_no_other";
    a_driver_that_loses_headers_is_found:
        LosesHeaders breaks "p8_same_answer::everything_that_is_said_of_a_message_arrives";
    a_driver_that_labels_no_dead_letter_is_found:
        LosesHeaders breaks "p8_same_answer::a_dead_letter_says_the_same_on_every_driver";
    a_driver_that_reads_bytes_as_text_is_found:
        ReadsBytesAsText breaks "p8_same_answer::bytes_arrive_as_they_were";

    a_driver_that_hands_out_after_a_stop_is_found:
        HandsOutAfterStop breaks "p9_shutdown::after_stop_receiving_a_lane_gives_nothing_and_ends";
    a_driver_whose_lanes_do_not_end_is_found:
        StopsWithoutAWord breaks "p9_shutdown::stop_receiving_ends_a_lane_that_waits";
    a_driver_that_stops_without_a_signal_is_found:
        StopsWithoutASignal breaks "p9_shutdown::a_stop_fires_the_signal_of_what_runs";
    a_driver_that_flushes_nothing_is_found:
        FlushesNothing breaks "p9_shutdown::flush_waits_for_every_settlement";
    a_driver_that_waits_out_retries_is_found:
        WaitsOutRetriesAtAStop breaks "p9_shutdown::a_stop_does_not_wait_for_a_retry";
    a_driver_that_cannot_be_closed_is_found:
        CloseHangs breaks "p9_shutdown::close_may_be_called_twice_at_once_and_first";
    a_driver_that_publishes_after_a_close_is_found:
        PublishesAfterClose breaks "p9_shutdown::a_closed_driver_refuses_at_once";
}
