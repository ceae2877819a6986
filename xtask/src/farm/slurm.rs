//! Slurm: a job array for each batch, on nodes with the backend's feature.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::folder::{Batch, Folder};
use super::follow::Engine;
use super::{Constraint, feature};

pub struct Slurm {
    run: String,
    folder: PathBuf,
    constraints: Vec<Constraint>,
}

impl Slurm {
    pub fn new(folder: &Folder, constraints: Vec<Constraint>) -> Self {
        Self { run: folder.plan().run.clone(), folder: folder.path().to_owned(), constraints }
    }
}

impl Engine for Slurm {
    fn submit(&self, folder: &Folder, batch: &Batch) -> Result<String> {
        let (path, logs) = (&self.folder, folder.logs());
        let mut sbatch = Command::new("sbatch");
        sbatch.args(["--parsable", "--requeue", "--open-mode=append", "--ntasks=1"]);
        sbatch.arg(format!("--array=0-{}", batch.tasks.len() - 1));
        sbatch.arg(format!("--constraint={}", feature(&self.constraints, &batch.backend)));
        sbatch.arg(format!("--job-name={}", batch.name(&self.run)));
        sbatch.arg(format!("--chdir={}", path.display()));
        sbatch.arg(format!("--output={}/batch-{}-%a.txt", logs.display(), batch.number));
        let script = format!(
            "#!/bin/sh\nexec sh {0}/task.sh {0} {1} \"$SLURM_ARRAY_TASK_ID\"\n",
            quoted(&path.to_string_lossy()),
            batch.number
        );
        let file = path.join("batches").join(format!("{}.sh", batch.number));
        crate::record::write(&file, &script)?;
        let said = output(sbatch.arg(&file), "sbatch")?;
        Ok(said.trim().split(';').next().unwrap_or_default().to_owned())
    }

    fn alive(&self, batches: &[Batch]) -> Result<BTreeSet<usize>> {
        let said = output(Command::new("squeue").args(["-h", "-r", "--me", "-o", "%j %K"]), "squeue")?;
        Ok(tasks(&said, &self.run, batches))
    }

    fn cancel(&self, batches: &[Batch]) -> Result<()> {
        for batch in batches {
            output(Command::new("scancel").arg(format!("--name={}", batch.name(&self.run))), "scancel")?;
        }
        Ok(())
    }
}

/// The tasks that a queue's lines, `name index`, are of.
fn tasks(queue: &str, run: &str, batches: &[Batch]) -> BTreeSet<usize> {
    let named: std::collections::HashMap<_, _> =
        batches.iter().map(|batch| (batch.name(run), batch)).collect();
    let task = |line: &str| {
        let (name, place) = line.trim().split_once(' ')?;
        named.get(name)?.tasks.get(place.trim().parse::<usize>().ok()?).copied()
    };
    queue.lines().filter_map(task).collect()
}

fn output(command: &mut Command, name: &str) -> Result<String> {
    let output = command.output().with_context(|| {
        format!("cannot run `{name}`: run this where Slurm's client is (Debian: `apt install slurm-client`)")
    })?;
    if !output.status.success() {
        bail!("{name} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A word of a shell's line.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_read_by_the_batches_names() {
        let batch = |number, tasks: &[usize]| Batch {
            number,
            backend: "cpu".into(),
            tasks: tasks.to_vec(),
            job: None,
        };
        let batches = [batch(0, &[0, 1, 2]), batch(1, &[2])];
        let queue = "weft-r-0 1\nweft-r-1 0\nother 0\nweft-r-0 9\nweft-x-0 0\n";
        assert_eq!(tasks(queue, "r", &batches), [1, 2].into());
        assert_eq!(quoted("a'b"), r"'a'\''b'");
    }
}
