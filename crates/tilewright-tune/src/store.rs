//! The file that keeps measurements.
//!
//! An SQLite database with one table. Each measurement is written at once and for good, so that a tuner
//! that is killed loses none that it has finished, and several tuners share a file: SQLite locks it for
//! each. It can be written out as lines of JSON and merged into another file.
//!
//! Of two measurements of one thing the shorter counts, since whatever disturbs one makes it longer.
//!
//! A second table holds the constants of the cost model that machines were calibrated to, of which the
//! latest counts. It is made when it is first written to, so that programs from before it read the file
//! as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior, params};
use serde::Serialize;
use tilewright_ir::{Error, Result};
use tilewright_runtime::file;

use crate::key::{Key, Scope};
use crate::record::{Calibration, Kind, Measured, MeasuredPlan, Record};

/// The layout of the table. A file of [`WITHOUT_PLANS`] gets what it lacks when it is next written to;
/// one of another layout is refused.
const FORMAT: i64 = 2;
/// The first layout: without the columns of plans.
const WITHOUT_PLANS: i64 = 1;
/// How long another process may hold the lock.
const PATIENCE: Duration = Duration::from_secs(20);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS measured (
    key TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    what TEXT NOT NULL,
    estimate REAL NOT NULL,
    nanoseconds REAL,
    failure TEXT,
    made INTEGER NOT NULL,
    model TEXT,
    ways TEXT
) STRICT;
";

const CALIBRATED: &str = "
CREATE TABLE IF NOT EXISTS calibrated (
    machine TEXT NOT NULL,
    scope TEXT NOT NULL,
    cycle REAL NOT NULL,
    costs TEXT NOT NULL,
    made INTEGER NOT NULL,
    PRIMARY KEY (machine, scope)
) STRICT;
";

const ADD_PLANS: &str = "
ALTER TABLE measured ADD COLUMN model TEXT;
ALTER TABLE measured ADD COLUMN ways TEXT;
";

/// A line of an exported file.
#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Calibration(Calibration),
    Measurement(Record),
}

impl Line {
    fn parse(text: &str) -> std::result::Result<Line, String> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let line = match value.get("machine") {
            Some(_) => serde_json::from_value(value).map(Line::Calibration),
            None => serde_json::from_value(value).map(Line::Measurement),
        };
        let line = line.map_err(|e| e.to_string())?;
        let fault = match &line {
            Line::Calibration(calibration) => calibration.fault(),
            Line::Measurement(record) => record.fault(),
        };
        fault.map_or(Ok(line), |fault| Err(fault.to_owned()))
    }
}

/// A file of measurements.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Whether the table has the columns of plans.
    has_plans: bool,
}

impl Store {
    /// Opens a file for reading and writing; it is made where it is missing, with its folder.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, or is no file of this kind.
    pub fn open(path: &Path) -> Result<Store> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| failed(path, &e))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut store = Store::with(path, flags)?;
        if store.format()? != FORMAT {
            store.prepare().map_err(|e| failed(path, &e))?;
        }
        store.has_plans = true;
        Ok(store)
    }

    /// Makes the table, or adds what it lacks; another process may be about to do the same.
    fn prepare(&mut self) -> rusqlite::Result<()> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let format: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match format {
            0 => change.execute_batch(SCHEMA)?,
            WITHOUT_PLANS => change.execute_batch(ADD_PLANS)?,
            _ => {}
        }
        change.pragma_update(None, "user_version", FORMAT)?;
        change.commit()
    }

    /// Opens a file for reading; `None` where there is none.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, or is no file of this kind.
    pub fn open_existing(path: &Path) -> Result<Option<Store>> {
        if !path.exists() {
            return Ok(None);
        }
        let mut store = Store::with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let format = store.format()?;
        store.has_plans = format == FORMAT;
        // A file that another process is just making has no table yet.
        Ok((format != 0).then_some(store))
    }

    fn with(path: &Path, flags: OpenFlags) -> Result<Store> {
        check_files(path)?;
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .and_then(|c| c.busy_timeout(PATIENCE).map(|()| c))
            .map_err(|e| failed(path, &e))?;
        Ok(Store { connection, path: path.to_owned(), has_plans: false })
    }

    /// The version of the file's format; 0 for a new one.
    fn format(&self) -> Result<i64> {
        let format = self.connection.pragma_query_value(None, "user_version", |row| row.get(0));
        let format: i64 = format.map_err(|e| self.failed(&e))?;
        match format {
            0 | WITHOUT_PLANS | FORMAT => Ok(format),
            _ => Err(Error::io(format!(
                "{}: measurements in format {format}, and this version reads {FORMAT}",
                self.path.display()
            ))),
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The measurement of a key.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn get(&self, key: &Key) -> Result<Option<Record>> {
        let all = self.select("WHERE key = ?1", &[&key.0])?;
        Ok(all.into_iter().next())
    }

    /// All measurements of a scope, by their keys.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn of_scope(&self, scope: &Scope) -> Result<BTreeMap<Key, Record>> {
        let all = self.select("WHERE scope = ?1", &[&scope.text()])?;
        Ok(all.into_iter().map(|r| (Key(r.key.clone()), r)).collect())
    }

    /// All measurements, in the order of their keys.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn all(&self) -> Result<Vec<Record>> {
        self.select("", &[])
    }

    fn select(&self, condition: &str, values: &[&str]) -> Result<Vec<Record>> {
        let plans = if self.has_plans { "model, ways" } else { "NULL, NULL" };
        let text = format!(
            "SELECT key, scope, kind, what, estimate, nanoseconds, failure, made, {plans} \
             FROM measured {condition} ORDER BY key"
        );
        let mut query = self.connection.prepare(&text).map_err(|e| self.failed(&e))?;
        let rows = query.query_map(rusqlite::params_from_iter(values), record);
        let all: rusqlite::Result<Vec<Option<Record>>> = rows.and_then(Iterator::collect);
        // What is not a measurement was not written here.
        Ok(all.map_err(|e| self.failed(&e))?.into_iter().flatten().collect())
    }

    /// Keeps a measurement, unless a better one of the same thing is there. Whether it was kept.
    ///
    /// # Errors
    /// `Io` if the file cannot be written, `Input` for what cannot be a measurement.
    pub fn put(&self, record: &Record) -> Result<bool> {
        if let Some(fault) = record.fault() {
            return Err(Error::input(format!("a measurement of `{}`: {fault}", record.what)));
        }
        let (time, failure) = match &record.measured {
            Measured::Nanoseconds(n) => (Some(*n), None),
            Measured::Failure(text) => (None, Some(text)),
        };
        let done = self.connection.execute(
            "INSERT INTO measured VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (key) DO UPDATE SET estimate = excluded.estimate,
                 nanoseconds = excluded.nanoseconds, failure = excluded.failure, made = excluded.made,
                 model = excluded.model, ways = excluded.ways
             WHERE excluded.nanoseconds < coalesce(nanoseconds, 9e999)",
            params![
                record.key,
                record.scope,
                record.kind.name(),
                record.what,
                record.estimate,
                time,
                failure,
                i64::try_from(record.made).unwrap_or(i64::MAX),
                record.plan.as_ref().map(|plan| &plan.model.0),
                record.plan.as_ref().map(|plan| &plan.ways)
            ],
        );
        Ok(done.map_err(|e| self.failed(&e))? > 0)
    }

    /// Keeps a calibration, unless a later one of the same machine and code is there. Whether it was kept.
    ///
    /// # Errors
    /// `Io` if the file cannot be written, `Input` for what cannot be a calibration.
    pub fn calibrate(&self, calibration: &Calibration) -> Result<bool> {
        if let Some(fault) = calibration.fault() {
            return Err(Error::input(format!("a calibration: {fault}")));
        }
        let costs = serde_json::to_string(&calibration.costs);
        let costs = costs.map_err(|e| Error::internal(format!("costs as JSON: {e}")))?;
        let Calibration { machine, scope, cycle, made, .. } = calibration;
        let write = || {
            self.connection.execute_batch(CALIBRATED)?;
            self.connection.execute(
                "INSERT INTO calibrated VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (machine, scope) DO UPDATE SET cycle = excluded.cycle,
                     costs = excluded.costs, made = excluded.made
                 WHERE excluded.made >= made",
                params![machine, scope, cycle, costs, i64::try_from(*made).unwrap_or(i64::MAX)],
            )
        };
        Ok(write().map_err(|e| self.failed(&e))? > 0)
    }

    /// The calibration of a machine for some code.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn calibration(&self, machine: &str, scope: &Scope) -> Result<Option<Calibration>> {
        let all = self.calibrations()?;
        let scope = scope.code();
        Ok(all.into_iter().find(|c| c.machine == machine && c.scope == scope))
    }

    /// All calibrations, in the order of machines and code.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn calibrations(&self) -> Result<Vec<Calibration>> {
        let read = || {
            let there = "SELECT count(*) FROM sqlite_master WHERE name = 'calibrated'";
            let there: i64 = self.connection.query_row(there, [], |row| row.get(0))?;
            if there == 0 {
                return Ok(Vec::new());
            }
            let text = "SELECT machine, scope, cycle, costs, made FROM calibrated
                 ORDER BY machine, scope";
            let mut query = self.connection.prepare(text)?;
            let rows = query.query_map([], calibration);
            rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        };
        // What is not a calibration was not written here.
        Ok(read().map_err(|e| self.failed(&e))?.into_iter().flatten().collect())
    }

    /// All calibrations and measurements as lines of JSON.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn export(&self) -> Result<String> {
        let mut text = String::new();
        let calibrations = self.calibrations()?.into_iter().map(Line::Calibration);
        for line in calibrations.chain(self.all()?.into_iter().map(Line::Measurement)) {
            let line = serde_json::to_string(&line);
            text += &line.map_err(|e| Error::internal(format!("a measurement as JSON: {e}")))?;
            text.push('\n');
        }
        Ok(text)
    }

    /// Merges lines of JSON into the file, all or none: how many were kept, of how many.
    ///
    /// # Errors
    /// `Input` with the line that is wrong, `Io` if the file cannot be written.
    pub fn import(&self, text: &str) -> Result<(usize, usize)> {
        let transaction = self.connection.unchecked_transaction().map_err(|e| self.failed(&e))?;
        let (mut kept, mut all) = (0, 0);
        for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let is_kept = match Line::parse(line)
                .map_err(|why| Error::input(format!("line {}: {why}", number + 1)))?
            {
                Line::Calibration(calibration) => self.calibrate(&calibration)?,
                Line::Measurement(record) => self.put(&record)?,
            };
            kept += usize::from(is_kept);
            all += 1;
        }
        transaction.commit().map_err(|e| self.failed(&e))?;
        Ok((kept, all))
    }

    fn failed(&self, e: &rusqlite::Error) -> Error {
        failed(&self.path, e)
    }
}

/// Refuses what is no plain file: SQLite would wait for the writer of a pipe, which may also lie where
/// it keeps a log beside the file.
fn check_files(path: &Path) -> Result<()> {
    for ending in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        let file = Path::new(&name);
        if file.exists() {
            file::check_plain(file).map_err(|e| file::unreadable(file, &e))?;
        }
    }
    Ok(())
}

fn failed(path: &Path, why: &dyn std::error::Error) -> Error {
    Error::io(format!("{}: {why}", path.display()))
        .help("the file of measurements can be removed: only times are lost")
}

/// A row as a measurement; `None` where it is none.
fn record(row: &Row<'_>) -> rusqlite::Result<Option<Record>> {
    let kind: String = row.get(2)?;
    let (time, failure): (Option<f64>, Option<String>) = (row.get(5)?, row.get(6)?);
    let measured = match (time, failure) {
        (Some(n), _) => Measured::Nanoseconds(n),
        (None, Some(text)) => Measured::Failure(text),
        (None, None) => return Ok(None),
    };
    let Some(kind) = Kind::parse(&kind) else { return Ok(None) };
    let made: i64 = row.get(7)?;
    let (model, ways): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
    let record = Record {
        key: row.get(0)?,
        scope: row.get(1)?,
        kind,
        what: row.get(3)?,
        estimate: row.get(4)?,
        measured,
        made: u64::try_from(made).unwrap_or(0),
        plan: model.zip(ways).map(|(model, ways)| MeasuredPlan { model: Key(model), ways }),
    };
    Ok(record.fault().is_none().then_some(record))
}

/// A row as a calibration; `None` where it is none.
fn calibration(row: &Row<'_>) -> rusqlite::Result<Option<Calibration>> {
    let (costs, made): (String, i64) = (row.get(3)?, row.get(4)?);
    let Ok(costs) = serde_json::from_str(&costs) else { return Ok(None) };
    let (machine, scope, cycle) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let made = u64::try_from(made).unwrap_or(0);
    let calibration = Calibration { machine, scope, cycle, costs, made };
    Ok(calibration.fault().is_none().then_some(calibration))
}
