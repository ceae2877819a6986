//! Forecasts of time series: the input is a list of numbers, a list of lists with a number for each channel, or the path of a
//! CSV or JSON file.

use ndarray::Array2;
use serde_json::{Map, Value as Json, json};

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::start_of;
use crate::any_model::DynModel;
use crate::tasks::{ForecastOptions, TimeSeries, TimeSeriesForecasting};
use crate::{Error, Result};

impl JsonPipeline for TimeSeriesForecasting<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = ForecastOptions { freq: parameters.get("freq")? };
        parameters.finish()?;
        let series = match inputs {
            Json::String(path) => TimeSeries::open(path)?,
            Json::Array(_) => TimeSeries::from_json(inputs)?,
            other => {
                let problem = format!("{} is not a time series", start_of(other));
                let help = "give a list of numbers, or of lists with a number for each channel, or the path of a file";
                return Err(Error::input("inputs", problem, help));
            }
        };
        let forecast = self.run_with(&series, &options)?;
        let mut answer = Map::from_iter([("mean".to_owned(), listed(&forecast.mean))]);
        if !forecast.quantiles.is_empty() {
            let quantiles = forecast.quantiles.iter();
            let quantiles = quantiles.map(|of| (of.level.to_string(), listed(&of.values)));
            answer.insert("quantiles".to_owned(), Json::Object(quantiles.collect()));
        }
        Ok(Json::Object(answer))
    }
}

/// A number for each time, or where there are several channels a list of them.
fn listed(values: &Array2<f32>) -> Json {
    match values.ncols() {
        1 => json!(values.iter().collect::<Vec<_>>()),
        _ => values.rows().into_iter().map(|row| json!(row.to_vec())).collect(),
    }
}
