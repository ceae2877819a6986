//! What all image pipelines share: images to tensors, tensors through the model in batches.

use ndarray::{ArrayD, ArrayViewD, Axis};

use super::inputs::model_inputs;
use super::outputs::output;
use crate::any_model::AnyModel;
use crate::image::{Image, ImageProcessor};
use crate::{Error, Result, Value, Values};

/// How many images run through a model at once, where no option says it.
pub(super) const BATCH_SIZE: usize = 8;

/// A model with its image processor.
#[derive(Debug)]
pub(super) struct ImageModel<A> {
    pub(super) model: A,
    pub(super) processor: ImageProcessor,
}

impl<A: AnyModel> ImageModel<A> {
    pub(super) fn new(model: A) -> Result<Self> {
        let processor = ImageProcessor::from_checkpoint(model.checkpoint())?;
        Ok(Self { model, processor })
    }

    /// Runs images through the model; gives for each output the images' entries in their order.
    pub(super) fn run(
        &self,
        images: &[Image],
        batch_size: usize,
        outputs: &[&str],
    ) -> Result<Vec<Vec<ArrayD<f32>>>> {
        self.run_through(&self.processor, images, batch_size, outputs)
    }

    /// The same with another processor than the checkpoint's.
    ///
    /// Each image is processed by itself, as the reference does, so that no other one decides how far it is
    /// filled up; images that become of one size then run together.
    pub(super) fn run_through(
        &self,
        processor: &ImageProcessor,
        images: &[Image],
        batch_size: usize,
        outputs: &[&str],
    ) -> Result<Vec<Vec<ArrayD<f32>>>> {
        let mut entries = vec![Vec::with_capacity(images.len()); outputs.len()];
        self.each_batch(processor, images, batch_size, &Values::new(), |values| {
            for (name, entries) in outputs.iter().zip(&mut entries) {
                let rows = output(&values, name)?.axis_iter(Axis(0));
                entries.extend(rows.map(|row| row.to_owned()));
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// Runs images through the model, each with `more` beside it, tensors of one row; gives for each image all outputs of numbers by
    /// their names.
    pub(super) fn run_all(&self, images: &[Image], batch_size: usize, more: &Values) -> Result<Vec<Values>> {
        let mut entries: Vec<Values> = vec![];
        self.each_batch(&self.processor, images, batch_size, more, |values| {
            let first = entries.len();
            for (name, value) in values {
                let Value::F32(value) = value else { continue };
                for (index, row) in value.axis_iter(Axis(0)).enumerate() {
                    if entries.len() == first + index {
                        entries.push(Values::new());
                    }
                    entries[first + index].insert(name.clone(), row.to_owned().into());
                }
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// Hands the outputs of one batch after the other to `take`; `more` are tensors of one row that each image has beside it.
    fn each_batch(
        &self,
        processor: &ImageProcessor,
        images: &[Image],
        batch_size: usize,
        more: &Values,
        mut take: impl FnMut(Values) -> Result<()>,
    ) -> Result<()> {
        let mut waiting: Vec<Values> = Vec::new();
        for image in images {
            let mut values = processor.process(std::slice::from_ref(image))?;
            values.extend(more.clone());
            let values = self.inputs(values);
            let full = waiting.len() == batch_size.max(1);
            if full || waiting.first().is_some_and(|first| !alike(first, &values)) {
                take(self.model.run(joined(std::mem::take(&mut waiting))?)?)?;
            }
            waiting.push(values);
        }
        if !waiting.is_empty() {
            take(self.model.run(joined(waiting)?)?)?;
        }
        Ok(())
    }

    /// The tensors that the model takes.
    pub(super) fn inputs(&self, values: Values) -> Values {
        model_inputs(&self.model, values)
    }
}

fn alike(first: &Values, second: &Values) -> bool {
    first.iter().zip(second).all(|((_, a), (_, b))| a.shape() == b.shape())
}

/// One batch of many; one alone is moved.
fn joined(mut batch: Vec<Values>) -> Result<Values> {
    if batch.len() < 2 {
        return Ok(batch.pop().unwrap_or_default());
    }
    let Some(first) = batch.first() else { return Ok(Values::new()) };
    let join = |name: &String| {
        let all: Vec<&Value> = batch.iter().filter_map(|values| values.get(name)).collect();
        let value = match all.first() {
            Some(Value::F32(_)) => {
                let arrays: Result<Vec<_>> = all.iter().map(|value| value.f32(name)).collect();
                concatenated(&arrays?)?.into()
            }
            Some(Value::I64(_)) => {
                let arrays: Result<Vec<_>> = all.iter().map(|value| value.i64(name)).collect();
                concatenated(&arrays?)?.into()
            }
            _ => return Err(Error::input(name, "is no number", "give numbers")),
        };
        Ok((name.clone(), value))
    };
    first.keys().map(join).collect()
}

fn concatenated<T: Copy>(arrays: &[&ArrayD<T>]) -> Result<ArrayD<T>> {
    let views: Vec<ArrayViewD<'_, T>> = arrays.iter().map(|array| array.view()).collect();
    ndarray::concatenate(Axis(0), &views)
        .map_err(|e| Error::input("images", format!("do not fit together: {e}"), "process them one by one"))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, Array4};

    use super::*;

    #[test]
    fn pictures_are_joined_in_order() {
        let values = |level: f32, width: usize| {
            let pixels: Value = Array4::from_elem((1, 3, 2, width), level).into_dyn().into();
            let mask: Value = Array3::<i64>::ones((1, 2, width)).into_dyn().into();
            Values::from([("pixel_values".to_owned(), pixels), ("pixel_mask".to_owned(), mask)])
        };
        assert!(alike(&values(0.0, 2), &values(1.0, 2)) && !alike(&values(0.0, 2), &values(0.0, 3)));
        let joined = joined(vec![values(0.0, 2), values(1.0, 2)]).unwrap();
        let pixels = joined["pixel_values"].f32("pixel_values").unwrap();
        assert_eq!(pixels.shape(), [2, 3, 2, 2]);
        assert_eq!((pixels[[0, 0, 0, 0]], pixels[[1, 0, 0, 0]]), (0.0, 1.0));
        assert_eq!(joined["pixel_mask"].shape(), [2, 2, 2]);
    }
}
