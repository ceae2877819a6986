//! What stands for an image in the text that a model reads: its features' tokens, and those around them and its parts.
//!
//! Reference: `replace_image_token` of `LlavaProcessor`, `LlavaNextProcessor`, `Gemma3Processor`, `InternVLProcessor`,
//! `AyaVisionProcessor`, `Cohere2VisionProcessor`, `Idefics3Processor`, `GraniteDoclingProcessor`, `PixtralProcessor`,
//! `Emu3Processor`.

use crate::config::Ratio;
use crate::image::{AnyRes, ImageProcessor};
use crate::{Error, Result, Value, Values};

/// The text of an image.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Replacement {
    /// A token for each feature between two texts.
    Features { feature: String, around: [String; 2], count: Count },
    /// Numbered tiles and the whole image after them, each of so many features (`AyaVisionProcessor`).
    NumberedTiles { feature: String, each: usize, tile: String, whole: String, around: [String; 2] },
    /// Tiles of so many features, each with a token at its end (`Cohere2VisionProcessor`).
    EndedTiles { feature: String, each: usize, end: String, around: [String; 2] },
    /// The whole image, and rows and columns of tiles where there are several, each of so many features (`Ovis2Processor`).
    Grid { feature: String, each: usize },
    /// Lines of an image of its own size, a feature for each square of this edge in pixels, each with a token at its end, the last one
    /// with another (`PixtralProcessor`).
    Lines { feature: String, ends: [String; 2], edge: usize },
    /// Rows and columns of codes of an image of its own size, a code for each square of this edge in pixels and one more for the end
    /// of a row, after their numbers (`Emu3Processor`).
    Codes { feature: String, edge: usize, around: [String; 2], wrapper: String },
    /// The same for every image.
    Same(String),
    /// Tiles of a canvas, each a feature for so many patches of this edge, with tokens between columns and behind rows, and the
    /// whole image (`Llama4Processor`).
    Canvas { feature: String, edge: usize, shrinks: usize },
    /// Rows of a feature for each patch, each with a token at its end (`FuyuProcessor`).
    Rows { feature: String, line_end: String },
    /// Rows and columns of squares of so many features, and the whole image (`Idefics3Processor`).
    Squares { feature: String, each: usize, around: String, whole: String },
    /// Rows and columns of tiles of so many features, and the whole image where there are several (`GraniteDoclingProcessor`).
    PageTiles { feature: String, each: usize, around: String, whole: String },
}

/// How many features an image has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Count {
    /// As many for every image.
    Fixed(usize),
    /// As many for every tile of an image.
    Tiles(usize),
    /// One for each square of so many by so many patches.
    Squares(usize),
    /// The same with one behind each row of squares, and marks (`HunYuanVLProcessor`).
    EndedRows { merge: usize, marks: usize },
    /// One for each square of so many by so many patches that are no padding (`Gemma4Processor`).
    PooledPatches(usize),
    /// One for each square of this edge, in pixels, of an image of its own size.
    NativeSquares(usize),
    /// Those of tiles of so many by so many, of images that have features of no more than so many tiles (`anyres_max_9`).
    MostTiles { patches: usize, most_tiles: usize, additional: isize },
    /// One for each patch, which has this edge in pixels, and one more for the class token, or one less where the first
    /// patch stands for it and is left out. `rate` is that of rows and columns of features to those of patches.
    Patches { edge: usize, additional: isize, rate: Option<Ratio> },
}

impl Replacement {
    /// The text of the image of this index, of which the processor made `processed` together with others.
    pub(super) fn text(
        &self,
        processor: &ImageProcessor,
        processed: &Values,
        image: usize,
    ) -> Result<String> {
        Ok(match self {
            Self::Features { feature, around: [before, after], count } => {
                format!("{before}{}{after}", feature.repeat(count.of(processor, processed, image)?))
            }
            Self::NumberedTiles { feature, each, tile, whole, around: [before, after] } => {
                let features = feature.repeat(*each);
                let tiles = number(processed, "num_patches", image)?;
                let tiles: String = (1..tiles).map(|index| format!("{tile}_{index}{features}")).collect();
                format!("{before}{tiles}{whole}{features}{after}")
            }
            Self::EndedTiles { feature, each, end, around: [before, after] } => {
                let tile = format!("{}{end}", feature.repeat(*each));
                format!("{before}{}{after}", tile.repeat(number(processed, "num_patches", image)?))
            }
            Self::Grid { feature, each } => {
                let features = feature.repeat(*each);
                let [rows, columns] = [0, 1].map(|axis| number(processed, "grids", 2 * image + axis));
                let (rows, columns) = (rows?, columns?);
                let row = vec![features.as_str(); columns].join("<IMG_COL>");
                let tiles =
                    if rows * columns > 1 { vec![row; rows].join("<IMG_ROW>") } else { String::new() };
                format!("<IMG_START>{features}<IMG_GRID>{tiles}<IMG_END>")
            }
            Self::Same(text) => text.clone(),
            Self::Canvas { feature, edge, shrinks } => {
                let pixels = processed.get("pixel_values").map(Value::shape).unwrap_or_default();
                let [.., height, width] = pixels else { return Ok(String::new()) };
                let features = feature.repeat((height / edge) * (width / edge) / shrinks);
                let [rows, columns] = [0, 1].map(|axis| number(processed, "grids", 2 * image + axis));
                let (rows, columns) = (rows?, columns?);
                let row =
                    vec![features.as_str(); columns].join("<|tile_x_separator|>") + "<|tile_y_separator|>";
                let tiles = if rows * columns > 1 { row.repeat(rows) } else { String::new() };
                format!("<|image_start|>{tiles}<|image|>{features}<|image_end|>")
            }
            Self::Rows { feature, line_end } => {
                let [rows, columns] =
                    [0, 1].map(|axis| number(processed, "spatial_shapes", 2 * image + axis));
                format!("{}{line_end}", feature.repeat(columns?)).repeat(rows?)
            }
            Self::Lines { feature, ends: [line_end, end], edge } => {
                let (rows, columns) = native(processed, image, *edge)?;
                let line = feature.repeat(columns);
                let lines = format!("{line}{line_end}").repeat(rows.saturating_sub(1));
                format!("{lines}{line}{end}")
            }
            Self::Codes { feature, edge, around: [before, after], wrapper } => {
                let (rows, columns) = native(processed, image, *edge)?;
                let features = feature.repeat(rows * (columns + 1));
                format!("{before}{rows}*{columns}{wrapper}{features}{after}")
            }
            Self::Squares { feature, each, around, whole } => {
                let features = feature.repeat(*each);
                let (mut text, count) = numbered_squares(processed, image, around, &features)?;
                if count > 0 {
                    text.push('\n');
                }
                text + &format!("{around}{whole}{features}{around}")
            }
            Self::PageTiles { feature, each, around, whole } => {
                let features = feature.repeat(*each);
                let (text, count) = numbered_squares(processed, image, around, &features)?;
                let page =
                    if count > 1 { format!("\n{around}{whole}{features}{around}") } else { String::new() };
                text + &page
            }
        })
    }
}

/// Rows of squares of one image on a line each, each square with its row and column; and how many there are.
fn numbered_squares(
    processed: &Values,
    image: usize,
    around: &str,
    features: &str,
) -> Result<(String, usize)> {
    let [rows, columns] = ["rows", "cols"].map(|name| number(processed, name, image));
    let (rows, columns) = (rows?, columns?);
    let square = |row, column| format!("{around}<row_{row}_col_{column}>{features}");
    let line = |row| (1..=columns).map(|column| square(row, column)).collect::<String>() + "\n";
    Ok(((1..=rows).map(line).collect(), rows * columns))
}

impl Count {
    fn of(self, processor: &ImageProcessor, processed: &Values, image: usize) -> Result<usize> {
        let (edge, additional, rate) = match self {
            Self::Fixed(count) => return Ok(count),
            Self::Tiles(each) => return Ok(each * number(processed, "num_patches", image)?),
            Self::Squares(merge) => {
                let sides = [0, 1, 2].map(|axis| number(processed, "image_grid_thw", 3 * image + axis));
                let patches = sides.into_iter().product::<Result<usize>>()?;
                return Ok(patches / (merge * merge).max(1));
            }
            Self::EndedRows { merge, marks } => {
                let side = |axis| number(processed, "image_grid_thw", 3 * image + axis);
                return Ok(side(1)? / merge * (side(2)? / merge + 1) + marks);
            }
            Self::PooledPatches(pool) => {
                let places = processed.get("image_position_ids").and_then(|places| places.i64("").ok());
                let places = places.filter(|places| image < places.shape()[0]).ok_or_else(unsaid)?;
                let columns = places.index_axis(ndarray::Axis(0), image);
                return Ok(columns.iter().filter(|place| **place >= 0).count() / 2 / (pool * pool));
            }
            Self::NativeSquares(edge) => {
                let (rows, columns) = native(processed, image, edge)?;
                return Ok(rows * columns);
            }
            Self::MostTiles { patches, most_tiles, additional } => {
                let pixels =
                    processed.get("pixel_values").map(|pixels| pixels.shape().to_vec()).unwrap_or_default();
                let grid = processor.image_grid_pinpoints().into_iter().flatten();
                let grid = grid.map(|(height, width)| vec![*height, *width]).collect();
                let tile = pixels.last().copied().unwrap_or_default();
                let packing = AnyRes { grid, tile, patches, most_tiles: Some(most_tiles) };
                return Ok(packing.count(processed, image)?.saturating_add_signed(additional));
            }
            Self::Patches { edge, additional, rate } => (edge, additional, rate),
        };
        let pixels = processed.get("pixel_values").map(|pixels| pixels.shape().to_vec()).unwrap_or_default();
        let [.., height, width] = pixels.as_slice() else { return Ok(0) };
        let side = |length: &usize| rate.map_or(length / edge, |rate| rate.of(length / edge));
        let Some(grid) = processor.image_grid_pinpoints() else {
            return Ok((side(height) * side(width)).saturating_add_signed(additional));
        };
        let grid = grid.iter().map(|(height, width)| vec![*height, *width]).collect();
        let packing = AnyRes { grid, tile: *height, patches: side(height), most_tiles: None };
        Ok(packing.count(processed, image)?.saturating_add_signed(additional))
    }
}

/// Rows and columns of squares of this edge, in pixels, in one image.
fn native(processed: &Values, image: usize, edge: usize) -> Result<(usize, usize)> {
    let side = |axis| number(processed, "image_sizes", 2 * image + axis).map(|side| side / edge.max(1));
    Ok((side(0)?, side(1)?))
}

/// What is wrong where patches do not say where they are.
fn unsaid() -> Error {
    let problem = "of the checkpoint's image processor do not say `image_position_ids`";
    Error::input("pixel_values", problem, "take the image processor's file from the model's checkpoint")
}

/// What the processor says of one image.
fn number(processed: &Values, name: &str, image: usize) -> Result<usize> {
    let said = processed.get(name).and_then(|value| value.i64(name).ok());
    let said = said.and_then(|numbers| numbers.iter().nth(image).copied());
    said.and_then(|number| usize::try_from(number).ok()).ok_or_else(|| {
        let problem = format!("of the checkpoint's image processor do not say `{name}`");
        let help = "take the image processor's file from the checkpoint that the model came with";
        Error::input("pixel_values", problem, help)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The text of the second of two images, of which a processor said these numbers.
    fn second(replacement: &Replacement, said: &[(&str, [i64; 2])]) -> String {
        let value = |numbers: [i64; 2]| ndarray::Array1::from(numbers.to_vec()).into_dyn().into();
        let values: Values =
            said.iter().map(|(name, numbers)| ((*name).to_owned(), value(*numbers))).collect();
        second_of(replacement, &values)
    }

    /// The same of what a processor gave.
    fn second_of(replacement: &Replacement, values: &Values) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = json!({"image_processor_type": "ViTImageProcessor"}).to_string();
        std::fs::write(folder.path().join("preprocessor_config.json"), file).unwrap();
        let checkpoint = crate::hub::Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        let processor = ImageProcessor::from_checkpoint(&checkpoint).unwrap();
        replacement.text(&processor, values, 1).unwrap_or_else(|error| error.to_string())
    }

    fn named<const N: usize>(names: [&str; N]) -> [String; N] {
        names.map(str::to_owned)
    }

    #[test]
    fn tiles_are_numbered_before_the_whole_image() {
        let [feature, tile, whole] = named(["x", "<T", "<G>"]);
        let tiles = Replacement::NumberedTiles { feature, each: 2, tile, whole, around: named(["[", "]"]) };
        assert_eq!(second(&tiles, &[("num_patches", [9, 3])]), "[<T_1xx<T_2xx<G>xx]");
        assert_eq!(second(&tiles, &[("num_patches", [9, 1])]), "[<G>xx]");
        assert!(second(&tiles, &[]).contains("do not say `num_patches`"));
    }

    #[test]
    fn every_tile_has_an_end() {
        let [feature, end] = named(["x", "/"]);
        let tiles = Replacement::EndedTiles { feature, each: 2, end, around: named(["[", "]"]) };
        assert_eq!(second(&tiles, &[("num_patches", [9, 2])]), "[xx/xx/]");
    }

    #[test]
    fn rows_of_squares_stand_on_lines_before_the_whole_image() {
        let [feature, around, whole] = named(["x", "|", "<G>"]);
        let squares = Replacement::Squares { feature, each: 1, around, whole };
        let text = second(&squares, &[("rows", [0, 2]), ("cols", [0, 1])]);
        assert_eq!(text, "|<row_1_col_1>x\n|<row_2_col_1>x\n\n|<G>x|");
        assert_eq!(second(&squares, &[("rows", [2, 0]), ("cols", [2, 0])]), "|<G>x|");
    }

    #[test]
    fn a_page_of_one_tile_is_not_shown_again() {
        let [feature, around, whole] = named(["x", "|", "<G>"]);
        let tiles = Replacement::PageTiles { feature, each: 2, around, whole };
        assert_eq!(second(&tiles, &[("rows", [2, 1]), ("cols", [2, 1])]), "|<row_1_col_1>xx\n");
        let text = second(&tiles, &[("rows", [1, 1]), ("cols", [1, 2])]);
        assert_eq!(text, "|<row_1_col_1>xx|<row_1_col_2>xx\n\n|<G>xx|");
    }

    #[test]
    fn a_grid_follows_the_whole_image_where_it_has_tiles() {
        let grid = Replacement::Grid { feature: "x".to_owned(), each: 2 };
        let text = second_of(&grid, &grids([[1, 1], [2, 2]]));
        assert_eq!(text, "<IMG_START>xx<IMG_GRID>xx<IMG_COL>xx<IMG_ROW>xx<IMG_COL>xx<IMG_END>");
        assert_eq!(second_of(&grid, &grids([[2, 2], [1, 1]])), "<IMG_START>xx<IMG_GRID><IMG_END>");
    }

    #[test]
    fn a_canvas_has_separators_and_the_whole_image_behind_them() {
        let canvas = Replacement::Canvas { feature: "x".to_owned(), edge: 2, shrinks: 2 };
        let mut values = grids([[1, 1], [2, 2]]);
        let pixels = ndarray::ArrayD::<f32>::zeros(vec![6, 3, 4, 4]);
        values.insert("pixel_values".to_owned(), pixels.into());
        let row = "xx<|tile_x_separator|>xx<|tile_y_separator|>";
        let text = format!("<|image_start|>{row}{row}<|image|>xx<|image_end|>");
        assert_eq!(second_of(&canvas, &values), text);
        let rows = Replacement::Rows { feature: "x".to_owned(), line_end: "/".to_owned() };
        let mut values = grids([[1, 1], [2, 3]]);
        let shapes = values.remove("grids").unwrap();
        values.insert("spatial_shapes".to_owned(), shapes);
        assert_eq!(second_of(&rows, &values), "xxx/xxx/");
    }

    fn grids(rows_and_columns: [[i64; 2]; 2]) -> Values {
        let grids = ndarray::arr2(&rows_and_columns).into_dyn();
        Values::from([("grids".to_owned(), grids.into())])
    }

    #[test]
    fn lines_end_with_a_token_and_the_last_one_with_another() {
        let [feature, line_end, end] = named(["x", "/", "."]);
        let sizes = ndarray::array![[4_i64, 4], [8, 13]].into_dyn();
        let values = Values::from([("image_sizes".to_owned(), sizes.into())]);
        let lines = Replacement::Lines { feature, ends: [line_end, end], edge: 4 };
        assert_eq!(second_of(&lines, &values), "xxx/xxx.");
        let [feature] = named(["x"]);
        let codes = Replacement::Codes {
            feature: feature.clone(),
            edge: 4,
            around: named(["[", "]"]),
            wrapper: "|".to_owned(),
        };
        assert_eq!(second_of(&codes, &values), "[2*3|xxxxxxxx]");
        let count = Count::NativeSquares(4);
        let squares = Replacement::Features { feature, around: Default::default(), count };
        assert_eq!(second_of(&squares, &values), "xxxxxx");
    }
}
