//! Processes that measure, and what they may do wrong.
#![cfg(unix)]

use std::process::Command;
use std::time::{Duration, Instant};

use tilewright_tune::{Measured, Worker};

/// A shell that answers each line as it asks: `crash`, `hang`, `rubbish`, or a number.
const SHELL: &str = r#"
while read line; do
    case "$line" in
        *crash*) kill -SEGV $$ ;;
        *leave*) exit 3 ;;
        *hang*) exec sleep 1000 ;;
        *rubbish*) echo 'what?' ;;
        *error*) echo '{"error":"it does not compile"}' ;;
        *negative*) echo '{"nanoseconds":-4}' ;;
        *) echo '{"nanoseconds":42.5}' ;;
    esac
done
"#;

fn shell() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", SHELL]);
    command
}

#[test]
fn a_candidate_costs_only_itself() {
    let mut worker = Worker::new(shell, Duration::from_secs(2));
    let good = Measured::Nanoseconds(42.5);
    assert_eq!(worker.ask(&"good").expect("a worker"), good);
    for (request, why) in [
        ("crash", "signal"),
        ("leave", "exit status: 3"),
        ("hang", "no answer within 2.0 s"),
        ("rubbish", "an answer that is none"),
        ("error", "it does not compile"),
        ("negative", "a time of -4"),
    ] {
        let start = Instant::now();
        match worker.ask(&request).expect("a worker") {
            Measured::Failure(text) => assert!(text.contains(why), "{request}: {text}"),
            time => panic!("{request}: {time:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{request} is given up");
        // The next one is measured as if nothing had been.
        assert_eq!(worker.ask(&"good").expect("a worker"), good);
    }
}

#[test]
fn a_worker_that_reads_nothing_is_given_up() {
    let sleep = || {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    };
    let mut worker = Worker::new(sleep, Duration::from_millis(300));
    let long = "x".repeat(1 << 20);
    assert!(matches!(worker.ask(&long).expect("a worker"), Measured::Failure(_)));
}

#[test]
fn a_worker_that_cannot_be_started_is_an_error() {
    let mut worker = Worker::new(|| Command::new("/there/is/no/such"), Duration::from_secs(1));
    let error = worker.ask(&"anything").expect_err("no worker").to_string();
    assert!(error.contains("cannot start a worker"), "{error}");
}
