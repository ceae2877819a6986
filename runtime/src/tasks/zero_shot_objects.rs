//! Zero-shot object detection: what texts of the caller's own say, and where it is in an image.
//!
//! Reference: `ZeroShotObjectDetectionPipeline`, `post_process_object_detection` of the checkpoint's image processor, and
//! `post_process_grounded_object_detection` of `OmDetTurboProcessor`.

use ndarray::{Array2, ArrayView2, Axis};

use super::batches::TextModel;
use super::builder::opened;
use super::inputs::model_inputs;
use super::object_detection::{suppress, two_axes};
use super::outputs::output;
use super::scores::top;
use super::{Bounds, Detection, Pipeline, ScoreFunction, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::image::{Image, ImageProcessor, Pixels};
use crate::text::{Padding, Text};
use crate::{Error, Result, Values};

/// How much boxes of one class overlap, where a task names the classes, before the better one alone is left.
const NMS_THRESHOLD: f32 = 0.5;

/// Finds what texts say in an image, each with a box. Grounding DINO was trained on texts that end with a full stop: `a cat.`
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let detector = weft::tasks::ZeroShotObjectDetection::<A>::open("google/owlvit-base-patch32")?.load()?;
/// let image = Image::open("cats.jpg")?;
/// let found = detector.run(&image, &["a cat", "a remote control"])?;
/// for object in &found {
///     println!("{} {:.3} {:?}", object.label, object.score, object.bounds);
/// }
/// weft::tasks::draw(&image, &found).save("found.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZeroShotObjectDetection<A> {
    text: TextModel<A>,
    processor: ImageProcessor,
}

/// Which objects count.
#[derive(Clone, Debug)]
pub struct ZeroShotDetectionOptions {
    /// Objects count whose score is larger.
    pub threshold: f32,
    /// The most that are given; all where it is none.
    pub top_k: Option<usize>,
    /// Long and empty texts.
    pub text: TextOptions,
}

impl Default for ZeroShotDetectionOptions {
    fn default() -> Self {
        Self { threshold: 0.1, top_k: None, text: TextOptions::default() }
    }
}

impl<A: AnyModel> Pipeline<A> for ZeroShotObjectDetection<A> {
    const TASK: Task = Task::ZeroShotObjectDetection;

    fn from_model(model: A) -> Result<Self> {
        let processor = ImageProcessor::from_checkpoint(model.checkpoint())?;
        Ok(Self { text: TextModel::new(model)?, processor })
    }
}

opened!(ZeroShotObjectDetection: text.model);

impl<A: AnyModel> ZeroShotObjectDetection<A> {
    /// What the texts say, best first, where the score is above 0.1.
    ///
    /// # Errors
    /// When there are no texts, one is longer than the model's positions, or the model fails.
    pub fn run(&self, image: &Image, candidate_labels: &[&str]) -> Result<Vec<Detection>> {
        self.run_with(image, candidate_labels, &ZeroShotDetectionOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`ZeroShotObjectDetection::run`].
    pub fn run_with(
        &self,
        image: &Image,
        candidate_labels: &[&str],
        options: &ZeroShotDetectionOptions,
    ) -> Result<Vec<Detection>> {
        if candidate_labels.is_empty() {
            return Err(Error::input("candidate_labels", "are none", "name what is looked for"));
        }
        let pixels = self.processor.process(std::slice::from_ref(image))?;
        let (height, width) = (image.height(), image.width());
        if self.text.model.inputs().iter().any(|input| input.name == "classes_input_ids") {
            return self.classes_of_a_task(pixels, (height, width), candidate_labels, options);
        }
        if self.processor.class() == "GroundingDino" {
            return self.label_by_label(&pixels, (height, width), candidate_labels, options);
        }
        let (logits, boxes) = self.logits_and_boxes(candidate_labels, pixels, options)?;
        refuse_other_classes(&logits, candidate_labels)?;
        // Boxes are parts of what the processor padded to a square (`_scale_boxes`).
        let size = match self.processor.class() {
            "Owlv2" => (height.max(width), height.max(width)),
            _ => (height, width),
        };
        Ok(best(&logits.view(), &boxes.view(), size, candidate_labels, options))
    }

    /// Objects of a model that has logits of a text's tokens (`GroundingDinoForObjectDetection`): each label is a text by itself, and a
    /// box's score that of its most probable token (`post_process_object_detection`).
    fn label_by_label(
        &self,
        pixels: &Values,
        size: Pixels,
        labels: &[&str],
        options: &ZeroShotDetectionOptions,
    ) -> Result<Vec<Detection>> {
        let each = ZeroShotDetectionOptions { top_k: None, ..options.clone() };
        let mut found = vec![];
        for (class, label) in labels.iter().enumerate() {
            let (logits, boxes) = self.logits_and_boxes(&[label], pixels.clone(), options)?;
            let logits = most_of_tokens(&logits.view());
            let of_label = best(&logits.view(), &boxes.view(), size, &[label], &each);
            found.extend(of_label.into_iter().map(|found| Detection { class, ..found }));
        }
        Ok(sorted(found, options.top_k))
    }

    /// Objects of a model that takes classes, and a task that names them all (`OmDetTurboForObjectDetection`): as many of the best pairs
    /// of query and class as there are queries, without boxes that overlap a better one of their class.
    fn classes_of_a_task(
        &self,
        pixels: Values,
        size: Pixels,
        labels: &[&str],
        options: &ZeroShotDetectionOptions,
    ) -> Result<Vec<Detection>> {
        let TextModel { model, tokenizer } = &self.text;
        let task = format!("Detect {}.", labels.join(", "));
        let mut values = pixels;
        for (name, texts) in [("classes", labels), ("tasks", &[task.as_str()][..])] {
            let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
            let rows = self.text.rows(&texts, &options.text)?;
            let batch = tokenizer.pad(&rows, &Padding::default())?.into_values();
            values.extend(batch.into_iter().map(|(what, value)| (format!("{name}_{what}"), value)));
        }
        let structure = ndarray::arr1(&[labels.len() as i64]).into_dyn();
        values.insert("classes_structure".to_owned(), structure.into());
        let outputs = model.run(model_inputs(model, values))?;
        let (logits, boxes) = of_image(&outputs, ["decoder_class_logits", "decoder_coord_logits"])?;
        refuse_other_classes(&logits, labels)?;
        let scores = ScoreFunction::Sigmoid.apply(&logits.iter().copied().collect::<Vec<_>>());
        let best = top(&scores, logits.nrows());
        let best: Vec<usize> = best.into_iter().filter(|pair| scores[*pair] > options.threshold).collect();
        let edges = |pair: &usize| {
            let (place, class) = (boxes.row(pair / labels.len()), pair % labels.len());
            let edge = |middle: usize, half: f32, pixels: usize| {
                (place[middle] + half * place[middle + 2]) * pixels as f32
            };
            let [low, high] = [-0.5, 0.5].map(|half| [edge(0, half, size.1), edge(1, half, size.0)]);
            ([low[0], low[1], high[0], high[1]], class)
        };
        let placed: Vec<_> = best.iter().map(edges).collect();
        let within = |edge: f32, most: usize| edge.clamp(0.0, most as f32) as i64;
        let kept = suppress(&placed, NMS_THRESHOLD).into_iter().map(|index| {
            let ([left, upper, right, lower], class) = placed[index];
            let [xmin, xmax] = [left, right].map(|edge| within(edge, size.1));
            let [ymin, ymax] = [upper, lower].map(|edge| within(edge, size.0));
            let bounds = Bounds { xmin, ymin, xmax, ymax };
            Detection { score: scores[best[index]], label: labels[class].to_owned(), bounds, class }
        });
        Ok(kept.take(options.top_k.unwrap_or(usize::MAX)).collect())
    }

    /// Of an image, the logits `[queries, …]` and boxes `[queries, 4]` of these texts.
    fn logits_and_boxes(
        &self,
        texts: &[&str],
        pixels: Values,
        options: &ZeroShotDetectionOptions,
    ) -> Result<(Array2<f32>, Array2<f32>)> {
        let TextModel { model, tokenizer } = &self.text;
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let rows = self.text.rows(&texts, &options.text)?;
        let mut values = self.text.inputs(tokenizer.pad(&rows, &Padding::default())?);
        values.extend(pixels);
        let outputs = model.run(model_inputs(model, values))?;
        of_image(&outputs, ["logits", "pred_boxes"])
    }
}

/// Of an image, these outputs: logits `[queries, …]` and boxes `[queries, 4]`.
fn of_image(outputs: &Values, [logits, boxes]: [&str; 2]) -> Result<(Array2<f32>, Array2<f32>)> {
    let two = |name: &str| -> Result<_> {
        let values = output(outputs, name)?.index_axis(Axis(0), 0);
        Ok(two_axes(name, values)?.to_owned())
    };
    let (values, places) = (two(logits)?, two(boxes)?);
    if places.dim() != (values.nrows(), 4) {
        let problem = format!("has shape {:?} beside boxes of {:?}", values.shape(), places.shape());
        return Err(Error::input(logits, problem, "open a detector for this task"));
    }
    Ok((values, places))
}

/// Refuses logits of other than as many classes as there are texts.
fn refuse_other_classes(logits: &Array2<f32>, texts: &[&str]) -> Result<()> {
    if logits.ncols() != texts.len() {
        let problem = format!("has shape {:?} for {} texts", logits.shape(), texts.len());
        return Err(Error::input("logits", problem, "open a detector for this task"));
    }
    Ok(())
}

/// The largest logit of each row: `[queries, tokens]` to `[queries, 1]`.
fn most_of_tokens(logits: &ArrayView2<'_, f32>) -> Array2<f32> {
    let most = logits.map_axis(Axis(1), |row| row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    most.insert_axis(Axis(1))
}

/// Boxes whose score for a text is above the threshold, best first; of equal ones those of the first text.
fn best(
    logits: &ArrayView2<'_, f32>,
    boxes: &ArrayView2<'_, f32>,
    size: Pixels,
    labels: &[&str],
    options: &ZeroShotDetectionOptions,
) -> Vec<Detection> {
    let mut found = vec![];
    for (class, (label, logits)) in labels.iter().zip(logits.columns()).enumerate() {
        let scores = ScoreFunction::Sigmoid.apply(&logits.to_vec());
        for (score, place) in scores.into_iter().zip(boxes.rows()) {
            if score > options.threshold {
                let bounds = Bounds::of_centre(&place, size);
                found.push(Detection { score, label: (*label).to_owned(), bounds, class });
            }
        }
    }
    sorted(found, options.top_k)
}

/// The best first, as many as asked for.
fn sorted(mut found: Vec<Detection>, top_k: Option<usize>) -> Vec<Detection> {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.truncate(top_k.unwrap_or(found.len()));
    found
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_text_is_as_probable_as_its_surest_token() {
        let tokens = array![[-1.0, 3.0, f32::NEG_INFINITY], [0.5, 0.25, f32::NEG_INFINITY]];
        assert_eq!(most_of_tokens(&tokens.view()), array![[3.0], [0.5]]);
    }

    #[test]
    fn boxes_of_all_texts_compete() {
        let logits = array![[-3.0, 1.0], [2.0, -0.5], [0.0, -9.0]];
        let boxes = array![[0.5, 0.5, 0.5, 0.5], [0.25, 0.5, 0.5, 1.0], [0.5, 0.5, 1.0, 1.0]];
        let found = |threshold, top_k| {
            let options = ZeroShotDetectionOptions { threshold, top_k, ..Default::default() };
            let found = best(&logits.view(), &boxes.view(), (40, 100), &["cat", "dog"], &options);
            found
                .into_iter()
                .map(|found| (found.label, found.bounds.xmin, found.bounds.xmax))
                .collect::<Vec<_>>()
        };
        let all = [("cat", 0, 50), ("dog", 25, 75), ("cat", 0, 100), ("dog", 0, 50)];
        let all = all.map(|(label, left, right)| (label.to_owned(), left, right));
        assert_eq!(found(0.1, None), all);
        assert_eq!(found(0.5, None), all[..2]);
        assert_eq!(found(0.1, Some(1)), all[..1]);
    }
}
