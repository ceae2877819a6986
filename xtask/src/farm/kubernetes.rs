//! Kubernetes: an Indexed Job for each batch, on nodes with the backend's label.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value as Json, json};

use super::folder::{Batch, Folder};
use super::follow::Engine;
use super::{Constraint, feature};

pub struct Kubernetes {
    pub run: String,
    pub image: String,
    pub claim: String,
    pub constraints: Vec<Constraint>,
}

/// Where the claim is mounted.
const MOUNT: &str = "/weft";

/// The resource that a device plugin gives nodes of a backend.
fn resource(backend: &str) -> Option<&'static str> {
    match backend {
        "cuda" => Some("nvidia.com/gpu"),
        "rocm" => Some("amd.com/gpu"),
        _ => None,
    }
}

impl Kubernetes {
    /// The manifest of a batch's Job.
    fn manifest(&self, batch: &Batch) -> Json {
        let script = format!("exec sh {MOUNT}/task.sh {MOUNT} {} \"$JOB_COMPLETION_INDEX\"", batch.number);
        let mut limits = json!({ "memory": "8Gi" });
        if let Some(resource) = resource(&batch.backend) {
            limits[resource] = json!(1);
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": batch.name(&self.run), "labels": { "app": "weft-farm" } },
            "spec": {
                "completionMode": "Indexed",
                "completions": batch.tasks.len(),
                "parallelism": batch.tasks.len(),
                // Each task alone: one that fails is handed out again by the farm, in a batch of its own.
                "backoffLimitPerIndex": 0,
                "maxFailedIndexes": batch.tasks.len(),
                // A node that is drained or lost does not count as a failure of its task.
                "podFailurePolicy": { "rules": [
                    { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] }
                ] },
                "ttlSecondsAfterFinished": 86_400,
                "template": {
                    "metadata": { "labels": { "app": "weft-farm" } },
                    "spec": {
                        "restartPolicy": "Never",
                        "nodeSelector": { "weft/backend": feature(&self.constraints, &batch.backend) },
                        "containers": [{
                            "name": "tests",
                            "image": self.image,
                            "command": ["sh", "-c", script],
                            "resources": { "limits": limits, "requests": { "cpu": "1" } },
                            "volumeMounts": [{ "name": "run", "mountPath": MOUNT }],
                        }],
                        "volumes": [{ "name": "run", "persistentVolumeClaim": { "claimName": self.claim } }],
                    },
                },
            },
        })
    }
}

impl Engine for Kubernetes {
    fn submit(&self, folder: &Folder, batch: &Batch) -> Result<String> {
        let file = folder.path().join("batches").join(format!("{}.job.json", batch.number));
        crate::record::write(&file, &format!("{:#}", self.manifest(batch)))?;
        kubectl(Command::new("kubectl").args(["apply", "-f"]).arg(&file))?;
        Ok(batch.name(&self.run))
    }

    fn alive(&self, batches: &[Batch]) -> Result<BTreeSet<usize>> {
        if batches.is_empty() {
            return Ok(BTreeSet::new());
        }
        let said =
            kubectl(Command::new("kubectl").args(["get", "jobs", "-l", "app=weft-farm", "-o", "json"]))?;
        let jobs: Json = serde_json::from_str(&said).context("reading what kubectl says of jobs")?;
        let mut alive = BTreeSet::new();
        for job in jobs["items"].as_array().into_iter().flatten() {
            let name = job["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(batch) = batches.iter().find(|batch| batch.name(&self.run) == name) {
                let left = left(job, batch.tasks.len());
                alive.extend(left.into_iter().map(|place| batch.tasks[place]));
            }
        }
        Ok(alive)
    }

    fn cancel(&self, batches: &[Batch]) -> Result<()> {
        for batch in batches {
            kubectl(Command::new("kubectl").args([
                "delete",
                "job",
                "--ignore-not-found",
                &batch.name(&self.run),
            ]))?;
        }
        Ok(())
    }
}

/// The places of a Job that neither succeeded nor failed; none where the Job has ended.
fn left(job: &Json, tasks: usize) -> BTreeSet<usize> {
    let status = &job["status"];
    let ended = status["conditions"].as_array().into_iter().flatten().any(|condition| {
        condition["status"] == "True" && ["Complete", "Failed"].iter().any(|end| condition["type"] == *end)
    });
    if ended {
        return BTreeSet::new();
    }
    let of = |key: &str| indexes(status[key].as_str().unwrap_or_default());
    let (done, failed) = (of("completedIndexes"), of("failedIndexes"));
    (0..tasks).filter(|place| !done.contains(place) && !failed.contains(place)).collect()
}

/// `1,3-5` as Kubernetes writes it.
fn indexes(text: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

fn kubectl(command: &mut Command) -> Result<String> {
    let output =
        command.output().context("cannot run `kubectl`: install it, and name the cluster in KUBECONFIG")?;
    if !output.status.success() {
        bail!("kubectl failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_job() {
        assert_eq!(indexes("1,3-5,7"), [1, 3, 4, 5, 7].into());
        assert_eq!(indexes(""), BTreeSet::new());
        let running = json!({ "status": { "completedIndexes": "0,2-3", "failedIndexes": "5" } });
        assert_eq!(left(&running, 7), [1, 4, 6].into());
        let ended = json!({ "status": { "conditions": [{ "type": "Failed", "status": "True" }] } });
        assert_eq!(left(&ended, 7), BTreeSet::new());
    }

    #[test]
    fn a_batch_is_an_indexed_job() {
        let kubernetes = Kubernetes {
            run: "2026-01-31T12-00-00Z-linux-x86_64-cuda-7".into(),
            image: "debian:12".into(),
            claim: "shared".into(),
            constraints: vec!["cuda=h200".parse().unwrap()],
        };
        let batch = Batch { number: 3, backend: "cuda".into(), tasks: vec![4, 9], job: None };
        insta::assert_snapshot!(format!("{:#}", kubernetes.manifest(&batch)));
    }
}
