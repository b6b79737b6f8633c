//! Measuring in a process of its own.
//!
//! A worker is a program that reads requests from its standard input, one JSON object a line, and
//! answers each with one line. A candidate that crashes takes the worker with it, and one that does not
//! end is killed with it: a new worker then goes on with the next one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tilewright_ir::{Error, Result};

use crate::record::Measured;

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The shortest time of a run, in nanoseconds.
    Nanoseconds(f64),
    /// Why there is none.
    Error(String),
}

/// A worker that is started when it is needed.
pub struct Worker {
    command: Box<dyn Fn() -> Command + Send>,
    /// How long an answer may take.
    limit: Duration,
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// Lines for its standard input, written by a thread: it may never read them.
    requests: Sender<String>,
    answers: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    /// A worker that is started by a command. An answer that takes longer than `limit` is given up.
    pub fn new(command: impl Fn() -> Command + Send + 'static, limit: Duration) -> Worker {
        Worker { command: Box::new(command), limit, running: None }
    }

    /// Asks for one measurement. Whatever the candidate does is an answer: what crashes, does not end
    /// or says nothing that can be read has failed.
    ///
    /// # Errors
    /// `Io` if no worker can be started.
    pub fn ask(&mut self, request: &impl Serialize) -> Result<Measured> {
        let line = serde_json::to_string(request);
        let line = line.map_err(|e| Error::internal(format!("a request as JSON: {e}")))?;
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        let answer = self.running.as_mut().map(|r| r.ask(&line, self.limit));
        match answer.unwrap_or(Err("there is no worker".to_owned())) {
            Ok(Answer::Nanoseconds(n)) if n.is_finite() && n > 0.0 => Ok(Measured::Nanoseconds(n)),
            Ok(Answer::Nanoseconds(n)) => Ok(Measured::Failure(format!("a time of {n}"))),
            Ok(Answer::Error(why)) => Ok(Measured::Failure(why)),
            Err(why) => {
                self.running = None;
                Ok(Measured::Failure(why))
            }
        }
    }

    fn start(&self) -> Result<Running> {
        let mut command = (self.command)();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(worker_failed)?;
        let (sender, answers) = channel();
        let (requests, lines) = channel::<String>();
        if let Some(mut stdin) = child.stdin.take() {
            std::thread::Builder::new()
                .spawn(move || {
                    for line in lines {
                        if writeln!(stdin, "{line}").and_then(|()| stdin.flush()).is_err() {
                            break;
                        }
                    }
                })
                .map_err(worker_failed)?;
        }
        if let Some(stdout) = child.stdout.take() {
            std::thread::Builder::new()
                .spawn(move || {
                    for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                        if sender.send(line).is_err() {
                            break;
                        }
                    }
                })
                .map_err(worker_failed)?;
        }
        Ok(Running { child, requests, answers })
    }
}

fn worker_failed(e: std::io::Error) -> Error {
    Error::io(format!("cannot start a worker: {e}"))
}

impl Running {
    fn ask(&mut self, line: &str, limit: Duration) -> std::result::Result<Answer, String> {
        // If it has ended, there is no answer.
        let _ = self.requests.send(line.to_owned());
        match self.answers.recv_timeout(limit) {
            Ok(line) => {
                serde_json::from_str(&line).map_err(|e| format!("an answer that is none: {e}"))
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("no answer within {:.1} s", limit.as_secs_f64()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(exit_text(&mut self.child)),
        }
    }
}

fn exit_text(child: &mut Child) -> String {
    match child.wait() {
        Ok(status) => format!("the process that measured it ended: {status}"),
        Err(e) => format!("the process that measured it ended: {e}"),
    }
}
