//! Time series forecasting: the values that follow a series, with quantiles where the model gives them.
//!
//! Reference: `TimesFmModelForPrediction`, `PatchTSTForPrediction`, `PatchTSMixerForPrediction`, which no pipeline wraps.

mod series;

use ndarray::{Array2, ArrayD, Axis};

use super::builder::opened;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::{Error, Result, Value, Values};
pub use series::TimeSeries;

/// Forecasts time series.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{TimeSeries, TimeSeriesForecasting};
///
/// let forecasting = TimeSeriesForecasting::<A>::open("google/timesfm-2.0-500m-pytorch")?.load()?;
/// let forecast = forecasting.run(&TimeSeries::open("sales.csv")?)?;
/// println!("{}", forecast.mean);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TimeSeriesForecasting<A> {
    model: A,
}

/// What follows a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The forecast: `[horizon, channels]`.
    pub mean: Array2<f32>,
    /// The quantiles that the model gives, lowest first; none where it gives a single forecast.
    pub quantiles: Vec<Quantile>,
}

/// A quantile of a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantile {
    /// The share of outcomes below it, from 0 to 1.
    pub level: f64,
    /// Its values: `[horizon, channels]`.
    pub values: Array2<f32>,
}

/// What else a forecast depends on.
#[derive(Clone, Debug, Default)]
pub struct ForecastOptions {
    /// How often the series has values, for models that are told (`freq` of TimesFM): 0 often, 1 weekly or monthly, 2 more
    /// rarely.
    pub freq: Option<i64>,
}

impl<A: AnyModel> Pipeline<A> for TimeSeriesForecasting<A> {
    const TASK: Task = Task::TimeSeriesForecasting;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { model })
    }
}

opened!(TimeSeriesForecasting: model);

impl<A: AnyModel> TimeSeriesForecasting<A> {
    /// The forecast of a series, from its last values: as many as the model reads.
    ///
    /// # Errors
    /// When the series has other channels than the model, too few values, or values are missing for a model that takes none
    /// such; or the model fails.
    pub fn run(&self, series: &TimeSeries) -> Result<Forecast> {
        self.run_with(series, &ForecastOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`TimeSeriesForecasting::run`]; and when an option is not the model's.
    pub fn run_with(&self, series: &TimeSeries, options: &ForecastOptions) -> Result<Forecast> {
        let takes = |name: &str| self.model.inputs().iter().find(|input| input.name == name);
        let shape = takes("past_values").map(|input| input.shape.clone()).unwrap_or_default();
        let lengths: Vec<_> = shape.iter().skip(1).map(|dim| dim.fixed().unwrap_or_default()).collect();
        let mut values = match lengths[..] {
            [context] => univariate(series, context)?,
            [context, channels] => multivariate(series, context, channels)?,
            _ => {
                return Err(Error::input("model", "it takes no time series", "choose a class for forecasts"));
            }
        };
        values.retain(|name, _| takes(name).is_some());
        match (options.freq, takes("freq")) {
            (Some(freq), Some(_)) => {
                let all = Array2::from_elem((series.channels(), 1), freq);
                values.insert("freq".to_owned(), Value::I64(all.into_dyn()));
            }
            (Some(_), None) => {
                return Err(Error::input(
                    "freq",
                    "the model is not told how often values come",
                    "leave it out",
                ));
            }
            (None, _) => {}
        }
        let given = self.model.run(values)?;
        if given.contains_key("prediction_outputs") {
            let mean = rows(&output(&given, "prediction_outputs")?.index_axis(Axis(0), 0).to_owned())?;
            return Ok(Forecast { mean, quantiles: vec![] });
        }
        let mean = rows(output(&given, "mean_predictions")?)?.reversed_axes();
        let full = output(&given, "full_predictions")?;
        let levels = self.model.raw_config()["quantiles"].as_array().cloned().unwrap_or_default();
        let quantile = |(index, level): (usize, &serde_json::Value)| {
            let values = rows(&full.index_axis(Axis(2), index + 1).to_owned())?.reversed_axes();
            Ok(Quantile { level: level.as_f64().unwrap_or_default(), values })
        };
        let count = full.shape()[2] - 1;
        Ok(Forecast {
            mean,
            quantiles: levels.iter().take(count).enumerate().map(quantile).collect::<Result<_>>()?,
        })
    }
}

fn rows(x: &ArrayD<f32>) -> Result<Array2<f32>> {
    x.clone().into_dimensionality().map_err(|e| {
        Error::input("output", format!("a forecast has a time and a channel: {e}"), "report this model")
    })
}

/// Each channel as a series of its own, `[channels, context]`, with padding before short ones (`_preprocess`).
fn univariate(series: &TimeSeries, context: usize) -> Result<Values> {
    if series.values.iter().any(|value| value.is_nan()) {
        let help = "fill the gaps first, as by the mean of the values around each";
        return Err(Error::input("inputs", "a value is missing, and the model takes none such", help));
    }
    let (length, channels) = series.values.dim();
    if length == 0 || channels == 0 {
        let problem = "the series has no values";
        return Err(Error::input("inputs", problem, "give at least one value of each channel"));
    }
    let kept = length.min(context);
    let mut values = Array2::zeros((channels, context));
    let mut padding = Array2::ones((channels, context));
    for step in 0..kept {
        let place = context - kept + step;
        values.column_mut(place).assign(&series.values.row(length - kept + step));
        padding.column_mut(place).fill(0);
    }
    Ok(Values::from([
        ("past_values".to_owned(), Value::F32(values.into_dyn())),
        ("past_values_padding".to_owned(), Value::I64(padding.into_dyn())),
    ]))
}

/// All channels side by side, `[1, context, channels]`, and which values were observed; those that were not are 0.
fn multivariate(series: &TimeSeries, context: usize, channels: usize) -> Result<Values> {
    let (length, own) = series.values.dim();
    if own != channels {
        let problem = format!("the series has {own} channels, and the model takes {channels}");
        return Err(Error::input("inputs", problem, "give as many columns as `num_input_channels` says"));
    }
    if length < context {
        let problem = format!("the series has {length} values, and the model reads {context}");
        return Err(Error::input("inputs", problem, "give as many as `context_length` says, or more"));
    }
    let last = series.values.slice(ndarray::s![length - context.., ..]);
    let observed = last.mapv(|value| !value.is_nan()).insert_axis(Axis(0)).into_dyn();
    let values = last.mapv(|value| if value.is_nan() { 0.0 } else { value }).insert_axis(Axis(0)).into_dyn();
    Ok(Values::from([
        ("past_values".to_owned(), Value::F32(values)),
        ("past_observed_mask".to_owned(), Value::Bool(observed.clone())),
        ("observed_mask".to_owned(), Value::Bool(observed)),
    ]))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn short_series_are_padded_and_long_ones_cut() {
        let series = TimeSeries { values: array![[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]] };
        let short = univariate(&series, 4).unwrap();
        assert_eq!(
            short["past_values"],
            Value::F32(array![[0.0, 1.0, 2.0, 3.0], [0.0, 4.0, 5.0, 6.0]].into_dyn())
        );
        assert_eq!(short["past_values_padding"], Value::I64(array![[1, 0, 0, 0], [1, 0, 0, 0]].into_dyn()));
        let long = univariate(&series, 2).unwrap();
        assert_eq!(long["past_values"], Value::F32(array![[2.0, 3.0], [5.0, 6.0]].into_dyn()));
        let missing = univariate(&TimeSeries { values: array![[f32::NAN]] }, 2).unwrap_err().to_string();
        assert!(missing.contains("a value is missing"), "{missing}");
        let none = univariate(&TimeSeries { values: Array2::zeros((0, 1)) }, 2).unwrap_err().to_string();
        assert!(none.contains("has no values"), "{none}");
    }

    #[test]
    fn missing_values_are_not_observed() {
        let series = TimeSeries { values: array![[9.0, 9.0], [1.0, f32::NAN], [3.0, 4.0]] };
        let values = multivariate(&series, 2, 2).unwrap();
        assert_eq!(values["past_values"], Value::F32(array![[[1.0, 0.0], [3.0, 4.0]]].into_dyn()));
        assert_eq!(values["observed_mask"], Value::Bool(array![[[true, false], [true, true]]].into_dyn()));
        let channels = multivariate(&series, 2, 3).unwrap_err().to_string();
        assert!(channels.contains("2 channels, and the model takes 3"), "{channels}");
        let short = multivariate(&series, 4, 2).unwrap_err().to_string();
        assert!(short.contains("3 values, and the model reads 4"), "{short}");
    }
}
