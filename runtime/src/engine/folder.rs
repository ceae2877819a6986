//! Folders that belong to this process alone: of names that nobody guesses, closed to others, and gone after a crash.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in a folder that its process keeps locked: the system unlocks it however the process ends.
const LOCK: &str = "weft.lock";

/// How long a process may take from making a folder to locking it.
const YOUNG: Duration = Duration::from_secs(600);

/// What makes a folder that others cannot read, where there are permissions.
#[cfg(unix)]
fn for_its_owner() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(not(unix))]
fn for_its_owner() -> DirBuilder {
    DirBuilder::new()
}

/// A folder that is removed when this is dropped, or by the next process that makes one.
pub(super) struct OwnFolder {
    path: PathBuf,
    /// Keeps the folder from being swept.
    _lock: File,
}

impl OwnFolder {
    /// Makes one in a folder that others may write to as well, and removes those of processes that have ended.
    pub(super) fn new(place: &Path, prefix: &str) -> io::Result<Self> {
        loop {
            let path = place.join(format!("{prefix}{:016x}{:016x}", random(), random()));
            // Neither a folder nor a link of this name is used where one is there.
            match for_its_owner().create(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e),
            }
            let locked = File::create_new(path.join(LOCK)).and_then(|file| file.lock().map(|()| file));
            return match locked {
                Ok(lock) => {
                    let own = Self { path, _lock: lock };
                    sweep(place, prefix, &own.path);
                    Ok(own)
                }
                Err(e) => {
                    let _ = fs::remove_dir_all(&path);
                    Err(e)
                }
            };
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        if let Err(reason) = fs::remove_dir_all(&self.path)
            && reason.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.path.display(), %reason, "a folder stays until the next process");
        }
    }
}

/// A number that nobody guesses: of the standard library's keys, which come from the system.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Removes the folders whose processes have ended. Those of other users are not looked into: what stands there for a lock may be
/// a pipe that nobody ever opens.
fn sweep(place: &Path, prefix: &str, own: &Path) {
    let Ok(own_meta) = fs::symlink_metadata(own) else { return };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(prefix) || entry.path() == own {
            continue;
        }
        // Of a link this is about the link, which is no folder.
        let mine = entry.metadata().is_ok_and(|meta| meta.is_dir() && same_owner(&meta, &own_meta));
        let lock = fs::symlink_metadata(entry.path().join(LOCK));
        if !mine || lock.is_ok_and(|meta| !meta.is_file()) {
            continue;
        }
        let abandoned = match File::open(entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let made = entry.metadata().and_then(|meta| meta.modified());
                made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > YOUNG))
            }
            Err(_) => false,
        };
        if abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(unix)]
fn same_owner(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.uid() == other.uid()
}

#[cfg(not(unix))]
fn same_owner(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(place: &Path) -> Vec<String> {
        let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_belongs_to_its_process_and_goes_with_it() {
        let place = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| OwnFolder::new(place.path(), "weft-").unwrap());
        assert_ne!(first.path(), second.path());
        assert_eq!(names(place.path()).len(), 2, "a folder in use is not swept");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(first.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        drop((first, second));
        assert!(names(place.path()).is_empty());
    }

    #[test]
    fn what_a_crash_leaves_is_swept_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        for folder in ["weft-crashed", "weft-young", "other"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        fs::write(place.path().join("weft-crashed").join(LOCK), "").unwrap();
        #[cfg(unix)]
        {
            let elsewhere = place.path().join("other");
            fs::write(elsewhere.join(LOCK), "").unwrap();
            std::os::unix::fs::symlink(&elsewhere, place.path().join("weft-link")).unwrap();
        }
        drop(OwnFolder::new(place.path(), "weft-").unwrap());
        let left =
            if cfg!(unix) { &["other", "weft-link", "weft-young"][..] } else { &["other", "weft-young"] };
        assert_eq!(names(place.path()), left);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_a_lock_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let trap = place.path().join("weft-trap");
        fs::create_dir(&trap).unwrap();
        let made = std::process::Command::new("mkfifo").arg(trap.join(LOCK)).status().unwrap();
        assert!(made.success());
        // Opening a pipe that nobody writes to waits for ever.
        drop(OwnFolder::new(place.path(), "weft-").unwrap());
        assert_eq!(names(place.path()), ["weft-trap"]);
    }
}
