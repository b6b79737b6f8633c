//! The file of measurements.

use std::collections::BTreeMap;

use tempfile::TempDir;
use tilewright_tune::{Calibration, Key, Kind, Measured, MeasuredPlan, Record, Scope, Store};

fn scope() -> Scope {
    Scope { target: "a machine".to_owned(), threads: 1 }
}

/// A measurement of the `k`-th thing.
fn record(k: usize, measured: Measured) -> Record {
    Record::now(&key(k), &scope(), Kind::Contraction, &format!("thing {k}"), 100.0, measured)
}

fn key(k: usize) -> Key {
    Key(format!("{k:064x}"))
}

fn time(n: f64) -> Measured {
    Measured::Nanoseconds(n)
}

#[test]
fn the_shorter_time_counts_and_a_time_more_than_a_failure() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("below/tuning.sqlite");
    let store = Store::open(&path).expect("a new file");
    let failed = || Measured::Failure("it crashed".to_owned());
    let now = |store: &Store| store.get(&key(1)).expect("it reads").map(|r| r.measured);
    assert_eq!(now(&store), None);
    for (given, expected) in [
        (failed(), failed()),
        (time(9.0), time(9.0)),
        (time(12.0), time(9.0)),
        (failed(), time(9.0)),
        (time(7.5), time(7.5)),
    ] {
        let kept = store.put(&record(1, given.clone())).expect("it writes");
        assert_eq!(now(&store), Some(expected.clone()));
        assert_eq!(kept, given == expected);
    }
    drop(store);
    let again = Store::open_existing(&path).expect("it opens").expect("it is there");
    assert_eq!(now(&again), Some(time(7.5)));
    assert_eq!(again.of_scope(&scope()).expect("it reads").len(), 1);
    let other = Scope { threads: 2, ..scope() };
    assert!(again.of_scope(&other).expect("it reads").is_empty());
    assert!(Store::open_existing(&folder.path().join("none")).expect("no file").is_none());
}

#[test]
fn what_cannot_be_a_measurement_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let store = Store::open(&folder.path().join("t")).expect("a new file");
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        store.put(&record(1, time(wrong))).expect_err("no time");
    }
    let key = |text: &str| Record { key: text.to_owned(), ..record(1, time(1.0)) };
    store.put(&key("ab")).expect_err("no key");
    store.put(&key(&"g".repeat(64))).expect_err("no key");
    assert!(store.all().expect("it reads").is_empty());
}

#[test]
fn several_tuners_share_a_file() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("t");
    std::thread::scope(|threads| {
        for worker in 0..4 {
            let path = &path;
            threads.spawn(move || {
                let store = Store::open(path).expect("it opens");
                for k in 0..50 {
                    store.put(&record(k, time((1 + (worker + k) % 4) as f64))).expect("it waits");
                }
            });
        }
    });
    let all = Store::open(&path).expect("it opens").all().expect("it reads");
    assert_eq!(all.len(), 50);
    assert!(all.iter().all(|r| r.measured == time(1.0)));
}

#[test]
fn measurements_are_exported_and_merged() {
    let folder = TempDir::new().expect("a folder");
    let open = |name: &str| Store::open(&folder.path().join(name)).expect("a new file");
    let (from, to) = (open("from"), open("to"));
    for (k, n) in [(1, 10.0), (2, 20.0), (3, 30.0)] {
        from.put(&record(k, time(n))).expect("it writes");
    }
    from.put(&record(4, Measured::Failure("no \"answer\"\n".to_owned()))).expect("it writes");
    to.put(&record(1, time(5.0))).expect("it writes");
    to.put(&record(2, time(25.0))).expect("it writes");
    let text = from.export().expect("a text");
    assert_eq!(text.lines().count(), 4);
    assert_eq!(to.import(&text).expect("it merges"), (3, 4));
    let times: Vec<Measured> =
        to.all().expect("it reads").into_iter().map(|r| r.measured).collect();
    let failed = Measured::Failure("no \"answer\"\n".to_owned());
    assert_eq!(times, [time(5.0), time(20.0), time(30.0), failed]);
    assert_eq!(to.import(&text).expect("it merges").0, 0);

    // All or none.
    let fresh = open("fresh");
    let broken = text.replacen("\"nanoseconds\":30.0", "\"nanoseconds\":-30.0", 1);
    let error = fresh.import(&broken).expect_err("a wrong line").to_string();
    assert!(error.contains("line 3"), "{error}");
    assert!(fresh.import("{}").expect_err("no record").to_string().contains("line 1"));
    assert!(fresh.all().expect("it reads").is_empty());
}

#[test]
fn a_file_of_another_kind_is_an_error_with_its_name() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "this is no database, and long enough to look at".repeat(40)).unwrap();
    for error in [Store::open(&path).err(), Store::open_existing(&path).err()] {
        let error = error.expect("no database").to_string();
        assert!(error.contains("notes.txt"), "{error}");
    }
    let newer = folder.path().join("newer");
    drop(Store::open(&newer).expect("a new file"));
    let database = rusqlite::Connection::open(&newer).expect("it opens");
    database.pragma_update(None, "user_version", 99).expect("it writes");
    drop(database);
    let error = Store::open(&newer).err().expect("another format").to_string();
    assert!(error.contains("99"), "{error}");
}

/// A measurement of a plan.
fn planned(k: usize) -> Record {
    let plan = MeasuredPlan { model: key(1000), ways: format!("way {k}") };
    Record { kind: Kind::Model, plan: Some(plan), ..record(k, time(5.0)) }
}

#[test]
fn plans_are_kept_with_what_they_are() {
    let folder = TempDir::new().expect("a folder");
    let open = |name: &str| Store::open(&folder.path().join(name)).expect("a new file");
    let (from, to) = (open("from"), open("to"));
    from.put(&planned(1)).expect("it writes");
    from.put(&record(2, time(1.0))).expect("it writes");
    assert_eq!(to.import(&from.export().expect("a text")).expect("it merges"), (2, 2));
    assert_eq!(to.all().expect("it reads"), from.all().expect("it reads"));
    assert_eq!(to.get(&key(1)).expect("it reads").and_then(|r| r.plan), planned(1).plan);
    let nameless = MeasuredPlan { model: Key("x".to_owned()), ways: String::new() };
    to.put(&Record { plan: Some(nameless), ..record(3, time(1.0)) }).expect_err("no model");
}

#[test]
fn a_file_from_before_plans_is_read_and_gets_them_when_it_is_written_to() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("old");
    let old = rusqlite::Connection::open(&path).expect("a new file");
    let table =
        "CREATE TABLE measured (key TEXT PRIMARY KEY, scope TEXT NOT NULL, kind TEXT NOT NULL,
         what TEXT NOT NULL, estimate REAL NOT NULL, nanoseconds REAL, failure TEXT,
         made INTEGER NOT NULL) STRICT; PRAGMA user_version = 1;";
    old.execute_batch(table).expect("a table");
    let values = (&key(7).0, scope().text(), "conversion", "old", 10.0, 4.0, 9);
    let insert = "INSERT INTO measured (key, scope, kind, what, estimate, nanoseconds, made)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    old.execute(insert, values).expect("it writes");
    drop(old);
    let reader = Store::open_existing(&path).expect("it opens").expect("it is there");
    let known = reader.get(&key(7)).expect("it reads").expect("it is there");
    assert_eq!((known.measured.clone(), known.plan.clone()), (time(4.0), None));
    std::thread::scope(|threads| {
        for k in 0..4 {
            let path = &path;
            threads.spawn(move || {
                Store::open(path).expect("it opens").put(&planned(k)).expect("it writes")
            });
        }
    });
    let all = Store::open(&path).expect("it opens").all().expect("it reads");
    assert_eq!(all.len(), 5);
    assert!(all.contains(&known) && all.contains(&Record { made: all[0].made, ..planned(0) }));
    // Who opened it before reads on.
    assert_eq!(reader.all().expect("it reads").len(), 5);
}

/// A calibration of a machine at some time.
fn calibration(machine: &str, cycle: f64, made: u64) -> Calibration {
    let costs = BTreeMap::from([("line".to_owned(), 0.5)]);
    Calibration { made, ..Calibration::now(machine, &scope(), cycle, costs) }
}

#[test]
fn the_latest_calibration_of_a_machine_counts() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("t");
    let store = Store::open(&path).expect("a new file");
    let known = |store: &Store, machine| store.calibration(machine, &scope()).expect("it reads");
    assert_eq!(known(&store, "a"), None);
    for (cycle, made, expected) in [(0.3, 10, 0.3), (0.4, 20, 0.4), (0.2, 15, 0.4), (0.5, 20, 0.5)]
    {
        let kept = store.calibrate(&calibration("a", cycle, made)).expect("it writes");
        assert_eq!(kept, cycle == expected);
        assert_eq!(known(&store, "a").map(|c| c.cycle), Some(expected));
    }
    store.calibrate(&calibration("b", 0.9, 1)).expect("it writes");
    assert_eq!(known(&store, "b"), Some(calibration("b", 0.9, 1)));
    // It is for all numbers of threads, and for one target.
    let more = Scope { threads: 8, ..scope() };
    assert!(store.calibration("a", &more).expect("it reads").is_some());
    let other = Scope { target: "another".to_owned(), ..scope() };
    assert!(store.calibration("a", &other).expect("it reads").is_none());
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        store.calibrate(&calibration("a", wrong, 99)).expect_err("no cycle");
    }
    // It goes along with the measurements.
    store.put(&record(1, time(5.0))).expect("it writes");
    let to = Store::open(&folder.path().join("to")).expect("a new file");
    let text = store.export().expect("a text");
    assert_eq!(to.import(&text).expect("it merges"), (3, 3));
    assert_eq!(to.calibrations().expect("it reads"), store.calibrations().expect("it reads"));
    assert_eq!(to.all().expect("it reads").len(), 1);
    let wrong = text.replace("\"cycle\":0.9", "\"cycle\":-0.9");
    let error = to.import(&wrong).expect_err("no cycle").to_string();
    assert!(error.contains("line 2: the cycle is not positive"), "{error}");
    let reader = Store::open_existing(&path).expect("it opens").expect("it is there");
    assert!(known(&reader, "a").is_some());
}
