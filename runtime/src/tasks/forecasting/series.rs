//! Time series as they come in: numbers, JSON, or columns of a CSV file.

use std::path::Path;

use ndarray::Array2;
use serde_json::Value as Json;

use crate::{Error, Result};

/// A time series of one or several channels.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeries {
    /// A row for each time, oldest first, with a value for each channel, `[time, channels]`; NaN where none was observed.
    pub values: Array2<f32>,
}

impl TimeSeries {
    /// Reads a CSV file, whose columns of numbers are the channels, or a JSON file: a list of numbers, or of lists with a
    /// number for each channel, null where a value is missing.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no series.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = crate::files::read_to_string(path).map_err(|e| Error::io(path, e))?;
        let found = match serde_json::from_str(&text) {
            Ok(json @ Json::Array(_)) => Self::from_json(&json),
            _ => Self::from_csv(&text),
        };
        found.map_err(|e| {
            Error::input(path.display().to_string(), e.to_string(), "give a CSV file with columns of numbers")
        })
    }

    /// A series of one channel.
    ///
    /// # Errors
    /// When it has no values.
    pub fn of(values: &[f32]) -> Result<Self> {
        Self::from_rows(&values.iter().map(|value| vec![*value]).collect::<Vec<_>>())
    }

    /// The number of channels.
    pub fn channels(&self) -> usize {
        self.values.ncols()
    }

    /// A list of numbers, or of lists with a number for each channel; null where a value is missing.
    pub(crate) fn from_json(json: &Json) -> Result<Self> {
        let number = |value: &Json| match value {
            Json::Null => Ok(f32::NAN),
            value => value.as_f64().map(|number| number as f32).ok_or_else(|| {
                Error::input(
                    "inputs",
                    format!("{value} is not a number"),
                    "give numbers, and null where one is missing",
                )
            }),
        };
        let row = |value: &Json| match value {
            Json::Array(row) => row.iter().map(number).collect(),
            value => Ok(vec![number(value)?]),
        };
        Self::from_rows(&json.as_array().into_iter().flatten().map(row).collect::<Result<Vec<_>>>()?)
    }

    /// The columns of numbers of a CSV text; an empty cell is a missing value, other columns are left out.
    pub(crate) fn from_csv(text: &str) -> Result<Self> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let separator = [';', '\t'].into_iter().find(|c| lines.first().is_some_and(|line| line.contains(*c)));
        let cells = |line: &&str| -> Vec<String> {
            line.split(separator.unwrap_or(','))
                .map(|cell| cell.trim().trim_matches('"').to_owned())
                .collect()
        };
        let number = |cell: &str| match cell {
            "" | "NaN" | "nan" | "null" => Some(f32::NAN),
            cell => cell.parse().ok(),
        };
        let mut rows: Vec<_> = lines.iter().map(cells).collect();
        if rows.len() > 1 && rows[0].iter().all(|cell| number(cell).is_none_or(f32::is_nan)) {
            rows.remove(0);
        }
        let width = rows.first().map_or(0, Vec::len);
        if let Some(line) = rows.iter().position(|row| row.len() != width) {
            let problem = format!("row {} has {} cells, the first {width}", line + 1, rows[line].len());
            return Err(Error::input("inputs", problem, "give all rows as many cells"));
        }
        let is_channel = |column: &usize| {
            let numbers: Option<Vec<f32>> = rows.iter().map(|row| number(&row[*column])).collect();
            numbers.is_some_and(|numbers| numbers.iter().any(|value| !value.is_nan()))
        };
        let channels: Vec<usize> = (0..width).filter(is_channel).collect();
        let row = |row: &Vec<String>| channels.iter().filter_map(|column| number(&row[*column])).collect();
        Self::from_rows(&rows.iter().map(row).collect::<Vec<_>>())
    }

    fn from_rows(rows: &[Vec<f32>]) -> Result<Self> {
        let (length, channels) = (rows.len(), rows.first().map_or(0, Vec::len));
        let help = "give a list of numbers, or of lists with a number for each channel";
        if length * channels == 0 {
            return Err(Error::input("inputs", "there are no numbers", help));
        }
        let values = Array2::from_shape_vec((length, channels), rows.concat());
        let values =
            values.map_err(|_| Error::input("inputs", "some times have more channels than others", help))?;
        if values.iter().any(|value| value.is_infinite()) {
            return Err(Error::input(
                "inputs",
                "a value is infinite",
                "leave it out, as null or an empty cell",
            ));
        }
        Ok(Self { values })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_of_numbers_are_channels() {
        let text = "date,load,note,heat\n2024-01-01,1.5,a,7\n2024-01-02,2.5,b,8\n";
        assert_eq!(TimeSeries::from_csv(text).unwrap().values, array![[1.5, 7.0], [2.5, 8.0]]);
        let bare = TimeSeries::from_csv("1;2\n\n3;\n").unwrap().values;
        assert_eq!(bare.row(0).to_vec(), [1.0, 2.0]);
        assert!(bare[[1, 0]] == 3.0 && bare[[1, 1]].is_nan());
        let problem = TimeSeries::from_csv("1,2\n3\n").unwrap_err().to_string();
        assert!(problem.contains("row 2 has 1 cells, the first 2"), "{problem}");
        assert!(TimeSeries::from_csv("a,b\nc,d\n").unwrap_err().to_string().contains("there are no numbers"));
    }

    #[test]
    fn json_has_a_number_for_each_channel() {
        assert_eq!(TimeSeries::from_json(&json!([1, 2.5])).unwrap(), TimeSeries::of(&[1.0, 2.5]).unwrap());
        assert!(TimeSeries::from_json(&json!([[1, null]])).unwrap().values[[0, 1]].is_nan());
        let problem = TimeSeries::from_json(&json!([[1, 2], [3]])).unwrap_err().to_string();
        assert!(problem.contains("more channels than others"), "{problem}");
        let problem = TimeSeries::from_json(&json!(["a"])).unwrap_err().to_string();
        assert!(problem.contains("is not a number"), "{problem}");
        assert!(TimeSeries::from_json(&json!({})).is_err());
    }
}
