//! `cargo xtask gallery`: one drawn result of each task of images, as `docs/gallery.md`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use weft_generator::spec::hardware::Hardware;

use crate::binaries::{self, Profile};
use crate::terminal::note;
use crate::workspace::{root, select};

/// Run each task of images on a small picture, or a small video, and write what is drawn as docs/gallery.md.
///
/// Checkpoints are those of the goldens, whose weights a rule makes: results show what a task gives, not what models find.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask gallery
  cargo xtask gallery --task depth-estimation")]
pub struct Args {
    /// Run this task alone, and leave the pictures of the others (repeatable).
    #[arg(long, value_name = "TASK")]
    task: Vec<String>,
}

/// A task, and what is run.
struct Entry {
    task: &'static str,
    about: &'static str,
    model: &'static str,
    /// The pictures of `docs/gallery`, the first of which is shown beside the result.
    pictures: &'static [&'static str],
    parameters: &'static str,
}

const FOLDER: &str = "docs/gallery";
const PAGE: &str = "docs/gallery.md";

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    entry("object-detection", "Boxes with labels and scores", "yolos", &["scene.png"], r#"{"threshold": 0.0}"#),
    entry("zero-shot-object-detection", "Boxes of what texts say", "owlvit", &["scene.png"], r#"{"candidate_labels": ["a red disc", "blue bars"], "threshold": 0.0, "top_k": 3}"#),
    entry("image-segmentation", "Masks of all pixels of a label", "segformer", &["scene.png"], "{}"),
    entry("mask-generation", "Masks of points and boxes", "sam", &["scene.png"], r#"{"input_points": [[[110, 54]]]}"#),
    entry("object-tracking", "Masks of objects in every frame, by points and boxes in one", "sam2_video", &["moving.gif"], r#"{"prompts": [{"frame_idx": 0, "obj_ids": [1], "input_points": [[[6, 8]]]}, {"frame_idx": 0, "obj_ids": [2], "input_boxes": [[16, 4, 31, 20]]}], "mask_threshold": 9.974}"#),
    entry("zero-shot-object-tracking", "Masks of all that texts name, in every frame", "sam3_video", &["moving.gif"], r#"{"candidate_labels": ["a red disc", "blue bars"]}"#),
    entry("depth-estimation", "The depth of each pixel", "depth_anything", &["scene.png"], "{}"),
    entry("image-super-resolution", "The same image with more pixels", "swin2sr", &["line.png"], "{}"),
    entry("image-matting", "How much of each pixel is foreground, by a trimap", "vitmatte", &["small.png", "trimap.png"], "{}"),
    entry("pose-estimation", "Keypoints of what boxes show, joined", "vitpose", &["scene.png"], r#"{"boxes": [[20, 20, 70, 100], [95, 25, 60, 80]]}"#),
    entry("keypoint-detection", "Keypoints of the whole image", "superpoint", &["scene.png"], "{}"),
    entry("keypoint-matching", "Keypoints of two images that match, the surest ones, joined", "superglue", &["scene.png", "small.png"], r#"{"threshold": 0.03}"#),
    entry("text-detection", "Quadrilaterals around text", "pp_ocrv6_small_det", &["page.png"], r#"{"threshold": 0.53, "box_threshold": 0.53}"#),
    entry("text-recognition", "The text of a line", "pp_ocrv5_mobile_rec", &["line.png"], "{}"),
];

const fn entry(
    task: &'static str,
    about: &'static str,
    model: &'static str,
    pictures: &'static [&'static str],
    parameters: &'static str,
) -> Entry {
    Entry { task, about, model, pictures, parameters }
}

impl Entry {
    /// The checkpoint of the task's golden.
    fn checkpoint(&self) -> PathBuf {
        root().join("tests/goldens").join(self.model).join("tasks").join(self.task)
    }

    /// Whether the result is an image.
    fn is_drawn(&self) -> bool {
        self.task != "text-recognition"
    }

    /// That of the result: a video's frames are drawn as one.
    fn ending(&self) -> &'static str {
        if self.pictures.first().is_some_and(|name| name.ends_with(".gif")) { "gif" } else { "png" }
    }

    fn drawn(&self) -> String {
        format!("{}.{}", self.task, self.ending())
    }

    /// Runs it; the answer.
    fn run(&self, binary: &Path) -> Result<Value> {
        let path = |name: &str| root().join(FOLDER).join(name).to_string_lossy().into_owned();
        let inputs = match self.pictures {
            [first, second] if self.task == "keypoint-matching" => json!([path(first), path(second)]),
            [image, trimap] => json!({"image": path(image), "trimap": path(trimap)}),
            [image, ..] => json!(path(image)),
            [] => bail!("{} has no picture", self.task),
        };
        let parameters: Value = serde_json::from_str(self.parameters)?;
        let mut command = binaries::command(binary);
        command.args(["--task", self.task, "--hw", "cpu", "--json", "--checkpoint"]).arg(self.checkpoint());
        if self.is_drawn() {
            command.arg("--out").arg(path(&self.drawn()));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("the model has no standard input")?;
        writeln!(input, "{}", json!({"inputs": inputs, "parameters": parameters}))?;
        drop(input);
        let output = child.wait_with_output()?;
        let line = String::from_utf8(output.stdout)?;
        let answer: Value = serde_json::from_str(line.lines().next().unwrap_or_default())
            .with_context(|| format!("{}: not an answer: {line}", self.task))?;
        match answer["error"].as_str() {
            Some(error) => bail!("{}: {error}", self.task),
            None => Ok(answer["output"].clone()),
        }
    }

    /// Its section of the page.
    fn section(&self, answer: &Value) -> String {
        let mut text = format!("## {}\n\n{}, by `{}`.\n\n", self.task, self.about, self.model);
        let out = if self.is_drawn() { format!(" --out result.{}", self.ending()) } else { String::new() };
        let set = serde_json::from_str::<serde_json::Map<String, Value>>(self.parameters).unwrap_or_default();
        let set: String = set.iter().map(|(name, value)| format!(" --set '{name}={value}'")).collect();
        let inputs = match self.pictures {
            [first, second] if self.task == "keypoint-matching" => format!("'[\"{first}\", \"{second}\"]'"),
            [image, trimap] => format!("'{{\"image\": \"{image}\", \"trimap\": \"{trimap}\"}}'"),
            _ => self.pictures.join(" "),
        };
        let _ = writeln!(text, "```sh\nweft run CHECKPOINT {inputs}{set}{out}\n```\n");
        let shown = |name: &str| format!("<img src=\"gallery/{name}\" alt=\"{name}\" width=\"276\">");
        let mut images: Vec<String> = self.pictures.iter().map(|name| shown(name)).collect();
        if self.is_drawn() {
            images.push(shown(&self.drawn()));
        }
        text.push_str(&images.join("\n"));
        if !self.is_drawn() {
            let _ = write!(text, "\n\n```json\n{answer}\n```");
        }
        text.push_str("\n\n");
        text
    }
}

const HEAD: &str = "# Gallery

What each task of images and videos gives, drawn by `--out`: the picture that goes in, and what comes out. **The checkpoints are those of the
tests: tiny, with weights that a rule makes and nobody trained**, so that results show their form, not what a published checkpoint
finds. `cargo xtask gallery` makes this page again, on the CPU.

";

/// Runs the verb.
pub fn run(args: &Args) -> Result<bool> {
    for task in &args.task {
        if !ENTRIES.iter().any(|entry| entry.task == *task) {
            let known = ENTRIES.iter().map(|entry| entry.task);
            return Err(crate::terminal::unknown("task", task, known).into());
        }
    }
    crate::setup::ensure(&[Hardware::Cpu])?;
    let chosen: Vec<&Entry> = ENTRIES
        .iter()
        .filter(|entry| args.task.is_empty() || args.task.iter().any(|task| task == entry.task))
        .collect();
    let models: Vec<String> = chosen.iter().map(|entry| entry.model.to_owned()).collect();
    let members = select(root(), &[], &models)?;
    let built = binaries::build(&members, Profile::Dev)?;
    let page = root().join(PAGE);
    let before = fs::read_to_string(&page).unwrap_or_default();
    let mut text = HEAD.to_owned();
    for entry in ENTRIES {
        if !chosen.iter().any(|other| other.task == entry.task) {
            text.push_str(kept(&before, entry.task));
            continue;
        }
        let member = members.iter().find(|member| member.model == entry.model);
        let binary = member.and_then(|member| built.get(&member.package));
        let binary = binary.with_context(|| format!("the crate of {} was not built", entry.model))?;
        text.push_str(&entry.section(&entry.run(binary)?));
        note(format!("{}: {}", entry.task, entry.model));
    }
    let text = format!("{}\n", text.trim_end());
    fs::write(&page, text).with_context(|| format!("writing {}", page.display()))?;
    Ok(true)
}

/// The section of a task that a page has already.
fn kept<'a>(page: &'a str, task: &str) -> &'a str {
    let Some(start) = page.find(&format!("## {task}\n")) else { return "" };
    let end = page[start + 3..].find("\n## ").map_or(page.len(), |end| start + 3 + end + 1);
    &page[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_golden_and_a_picture() {
        for entry in ENTRIES {
            assert!(entry.checkpoint().join("task.json").is_file(), "{}", entry.task);
            for picture in entry.pictures {
                assert!(root().join(FOLDER).join(picture).is_file(), "{picture}");
            }
            assert!(serde_json::from_str::<Value>(entry.parameters).is_ok_and(|value| value.is_object()));
        }
    }

    #[test]
    fn sections_of_other_tasks_are_kept() {
        let page = "# Gallery\n\n## a\n\none\n\n## b\n\ntwo\n";
        assert_eq!(kept(page, "a"), "## a\n\none\n\n");
        assert_eq!(kept(page, "b"), "## b\n\ntwo\n");
        assert_eq!(kept(page, "c"), "");
    }

    #[test]
    fn a_section_shows_the_command_and_both_pictures() {
        let matting = ENTRIES.iter().find(|entry| entry.task == "image-matting").unwrap();
        let text = matting.section(&Value::Null);
        assert!(
            text.contains(
                r#"weft run CHECKPOINT '{"image": "small.png", "trimap": "trimap.png"}' --out result.png"#
            ),
            "{text}"
        );
        assert!(text.contains("gallery/trimap.png") && text.contains("gallery/image-matting.png"), "{text}");
    }
}
