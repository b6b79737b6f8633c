//! What the system says of a file, to tell whether it has changed.

use std::path::Path;
use std::time::SystemTime;

/// What the system says of a file that changes with it.
pub(super) fn state(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    let modified = found.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    #[cfg(unix)]
    let more = {
        use std::os::unix::fs::MetadataExt;
        [
            found.dev(),
            found.ino(),
            found.ctime().cast_unsigned(),
            found.ctime_nsec().cast_unsigned(),
        ]
    };
    #[cfg(not(unix))]
    let more = ();
    Some(format!("{} {modified:?} {more:?}", found.len()))
}

/// The state of a database file: also of what is not yet moved into it.
pub(super) fn with_log(file: &Path) -> String {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    format!("{:?} {:?}", state(file), state(Path::new(&log)))
}
