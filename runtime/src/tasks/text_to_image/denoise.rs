//! The denoising loop: noise, or an image's latents with noise, from which a scheduler takes what the denoiser predicts.

use std::ops::ControlFlow;

use ndarray::{Array4, ArrayD, Axis, concatenate};

use super::angles::Angle;
use super::image_to_image::{InitialLatents, Start};
use super::latents::{packed, prediction, tokens, without_variance};
use super::pipelines::{Guidance, Layout, Shift, Time};
use super::{DenoisingStep, TextToImage, TextToImageOptions, floats, guidance, misshapen};
use crate::any_model::AnyModel;
use crate::diffusion::Generator;
use crate::diffusion::schedulers::Scheduler;
use crate::{Error, GraphKind, Result, Values};

/// Noise of one seed for all images, or of one seed for each.
#[derive(Debug)]
pub(super) struct Noise(Vec<Generator>);

impl Noise {
    pub(super) fn new(seeds: &[u64]) -> Self {
        Self(seeds.iter().copied().map(Generator::new).collect())
    }

    /// Standard normal numbers, of each seed as many (`randn_tensor`).
    pub(super) fn randn(&mut self, count: usize) -> Vec<f32> {
        let each = count / self.0.len().max(1);
        self.0.iter_mut().flat_map(|generator| generator.randn(each)).collect()
    }

    /// The generators of all seeds.
    pub(super) fn all(&mut self) -> &mut [Generator] {
        &mut self.0
    }

    /// The first seed's, which draws for an image that all have in common.
    pub(super) fn first(&mut self) -> &mut [Generator] {
        let count = self.0.len().min(1);
        &mut self.0[..count]
    }
}

/// What is made: prompts, how, from what, its size and the seeds.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub prompts: &'a [&'a str],
    pub options: &'a TextToImageOptions,
    pub start: Option<Start<'a>>,
    pub size: [usize; 2],
    pub seeds: &'a [u64],
}

impl<A: AnyModel> TextToImage<A> {
    /// The latents after the last step, `[images, channels, rows, columns]`.
    pub(super) fn denoise(
        &self,
        request: &Request<'_>,
        on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
    ) -> Result<Array4<f32>> {
        let Request { prompts, options, start, size, seeds } = *request;
        let images = prompts.len() * options.num_images_per_prompt;
        let [rows, columns] = size.map(|side| side / self.settings.scale);
        let shape = [images, self.settings.channels, rows, columns];
        let mut noise = Noise::new(seeds);
        let mut scheduler = self.scheduler()?;
        self.space(&mut *scheduler, self.steps(options), size)?;
        let mut conditioning = self.conditioning(prompts, options, size)?;
        let data = scheduler.sigma_data().unwrap_or(1.0);
        let InitialLatents { begin, mut latents, preserved } = match start {
            Some(start) => self.noised(&start, self.steps(options), (&*scheduler, shape), &mut noise)?,
            None => {
                let scale = match self.class.time {
                    Time::Angle => data,
                    // Flow matching begins with noise alone, and pipelines of packed latents with it whatever the scheduler.
                    _ if self.class.layout == Layout::Packed => 1.0,
                    _ => scheduler.init_noise_sigma(),
                };
                let latents = first_latents(options, shape, &mut noise)?.mapv(|x| x * scale);
                InitialLatents { begin: 0, latents, preserved: None }
            }
        };
        let timesteps = scheduler.timesteps().to_vec();
        let count = timesteps.len() - begin;
        for (index, &timestep) in timesteps.iter().enumerate().skip(begin) {
            let sample: Vec<f32> = latents.iter().copied().collect();
            let seen = scheduler.scale_model_input(index, &sample);
            let mut seen = Array4::from_shape_vec(shape, seen).map_err(|error| misshapen(&error))?;
            if let Some(preserved) = &preserved {
                seen = preserved.beside(seen)?;
            }
            if let Some(scale) = self.control_scale(options, index, timesteps.len()) {
                for values in &mut conditioning {
                    values.insert("conditioning_scale".to_owned(), scale.clone());
                }
            }
            let predicted = match self.class.time {
                Time::Angle => {
                    let angle = Angle::new(timestep as f32, data);
                    let seen = seen.mapv(|x| angle.seen(x));
                    let predicted = self.predict(&seen, f64::from(angle.noise), &conditioning, options)?;
                    seen.iter()
                        .zip(predicted)
                        .map(|(seen, predicted)| angle.velocity(*seen, predicted))
                        .collect()
                }
                _ => self.predict(&seen, timestep, &conditioning, options)?,
            };
            let next = scheduler.step(index, &predicted, &sample, &mut |count| noise.randn(count));
            latents = Array4::from_shape_vec(shape, next).map_err(|error| misshapen(&error))?;
            if let Some(preserved) = &preserved {
                let next = (index + 1 < timesteps.len()).then(|| scheduler.noise_scales(index + 1));
                latents = preserved.restored(latents, next);
            }
            let step = DenoisingStep { index: index - begin, count, timestep, latents: &latents };
            if on_step(&step).is_break() {
                let problem = format!("was cancelled after step {} of {count}", step.index + 1);
                return Err(Error::input("text-to-image", problem, "run it again"));
            }
        }
        Ok(if self.class.time == Time::Angle { latents / data } else { latents })
    }

    /// Spaces and shifts a scheduler's sigmas as the pipeline does.
    fn space(&self, scheduler: &mut dyn Scheduler, steps: usize, size: [usize; 2]) -> Result<()> {
        let tokens = self.settings.tokens(size);
        if let Some((spacing, _)) = self.class.sigmas {
            scheduler.set_sigmas(spacing);
        }
        match self.class.sigmas.map(|(_, shift)| shift) {
            None | Some(Shift::Tokens) => scheduler.set_image_tokens(tokens),
            Some(Shift::Channels) => scheduler.set_image_tokens(self.settings.channels),
            Some(Shift::Empirical) => scheduler.set_shift(empirical_shift(tokens, steps)),
            Some(Shift::Fixed) => {}
        }
        scheduler.set_timesteps(steps)
    }

    /// `num_inference_steps`.
    pub(super) fn steps(&self, options: &TextToImageOptions) -> usize {
        options.num_inference_steps.unwrap_or(self.class.steps)
    }

    /// What the denoiser predicts, with guidance.
    fn predict(
        &self,
        seen: &Array4<f32>,
        timestep: f64,
        conditioning: &[Values],
        options: &TextToImageOptions,
    ) -> Result<Vec<f32>> {
        let guided = self.guided(options);
        let sample = match self.class.guidance {
            _ if !guided || conditioning.len() > 1 => seen.clone(),
            Guidance::Image => {
                // First without the image.
                let mut none = seen.clone();
                none.slice_axis_mut(Axis(1), (self.settings.channels..).into()).fill(0.0);
                concatenate(Axis(0), &[none.view(), seen.view(), seen.view()])
                    .map_err(|error| misshapen(&error))?
            }
            _ => concatenate(Axis(0), &[seen.view(), seen.view()]).map_err(|error| misshapen(&error))?,
        };
        let rows = sample.shape()[0];
        let sample = match self.class.layout {
            Layout::Maps => sample.into_dyn(),
            Layout::Frame => sample.insert_axis(Axis(2)).into_dyn(),
            Layout::Packed => packed(&sample).into_dyn(),
            Layout::Tokens => tokens(&sample).into_dyn(),
        };
        let timestep = match self.class.time {
            Time::Timestep => timestep as f32 * self.settings.timestep_scale,
            Time::Noise => timestep as f32 / 1000.0,
            Time::Image => (1000.0 - timestep as f32) / 1000.0,
            Time::Angle => timestep as f32,
        };
        let run = |conditioning: &Values| {
            let mut inputs = conditioning.clone();
            inputs.insert(self.class.sample().to_owned(), sample.clone().into());
            inputs.insert(self.class.timestep().to_owned(), ArrayD::from_elem(vec![rows], timestep).into());
            floats(self.model.run_graph(GraphKind::Forward, inputs)?, "sample")
        };
        let predicted = conditioning.iter().map(run).collect::<Result<Vec<_>>>()?;
        let predicted: Vec<_> = predicted.iter().map(|predicted| predicted.view()).collect();
        let predicted = concatenate(Axis(0), &predicted).map_err(|error| misshapen(&error))?;
        let predicted = without_variance(predicted, self.settings.channels);
        let predicted = if guided { self.moved(&predicted, options)? } else { predicted };
        let (_, _, height, width) = seen.dim();
        let predicted = prediction(predicted, self.class.layout, [height, width])?;
        let sign = if self.class.time == Time::Image { -1.0 } else { 1.0 };
        Ok(predicted.iter().map(|x| sign * x).collect())
    }

    /// What is predicted for prompts, moved away from what is predicted for negative ones, which stands before it.
    fn moved(&self, predicted: &ArrayD<f32>, options: &TextToImageOptions) -> Result<ArrayD<f32>> {
        let values: Vec<f32> = predicted.iter().copied().collect();
        let scale = self.guidance_scale(options);
        let mut shape = predicted.shape().to_vec();
        if self.class.guidance == Guidance::Image {
            shape[0] /= 3;
            let (none, both) = values.split_at(values.len() / 3);
            let (image, prompt) = both.split_at(none.len());
            let edited = guidance::edited([none, image, prompt], scale, options.image_guidance_scale);
            return ArrayD::from_shape_vec(shape, edited).map_err(|error| misshapen(&error));
        }
        let (away, towards) = values.split_at(values.len() / 2);
        let scale = if self.class.guidance == Guidance::Added { 1.0 + scale } else { scale };
        shape[0] /= 2;
        let mut moved = guidance::moved(away, towards, scale);
        if matches!(self.class.guidance, Guidance::Normalized { .. }) {
            guidance::normalize(&mut moved, towards, shape.last().copied().unwrap_or(1));
        }
        if options.guidance_rescale > 0.0 {
            guidance::rescale(&mut moved, towards, shape[0], options.guidance_rescale);
        }
        ArrayD::from_shape_vec(shape, moved).map_err(|error| misshapen(&error))
    }
}

/// What sigmas of FLUX.2 are shifted by (`compute_empirical_mu`).
fn empirical_shift(tokens: usize, steps: usize) -> f64 {
    let tokens = tokens as f64;
    let many = 0.00016927 * tokens + 0.45666666;
    if tokens > 4300.0 {
        return many;
    }
    let slope = (many - (8.73809524e-05 * tokens + 1.89833333)) / 190.0;
    slope * steps as f64 + (many - 200.0 * slope)
}

/// The latents that are given, or noise.
fn first_latents(options: &TextToImageOptions, shape: [usize; 4], noise: &mut Noise) -> Result<Array4<f32>> {
    match &options.latents {
        Some(latents) if latents.shape() == shape => Ok(latents.clone()),
        Some(latents) => {
            let problem = format!("has shape {:?}, not {shape:?}", latents.shape());
            Err(Error::input("latents", problem, "give a batch of latents for the images' size"))
        }
        None => Array4::from_shape_vec(shape, noise.randn(shape.iter().product()))
            .map_err(|error| misshapen(&error)),
    }
}
