//! Values and types of fields as Rust.

use indexmap::IndexMap;

use crate::spec::document::nearest_name;
use crate::spec::model::{ConfigField, ConfigType, Scalar};

/// The runtime's variant of an activation function, by the name that configurations use for it.
pub fn activation(name: &str) -> Option<&'static str> {
    ACTIVATIONS.iter().find(|(known, _)| *known == name).map(|(_, variant)| *variant)
}

/// The names that configurations use for activation functions, and the runtime's variants for them.
const ACTIVATIONS: [(&str, &str); 18] = [
    ("gelu", "Gelu"),
    ("gelu_python", "Gelu"),
    ("gelu_new", "GeluNew"),
    ("gelu_fast", "GeluNew"),
    ("gelu_pytorch_tanh", "GeluNew"),
    ("gelu_python_tanh", "GeluNew"),
    ("gelu_accurate", "GeluNew"),
    ("quick_gelu", "QuickGelu"),
    ("relu", "Relu"),
    ("relu2", "Relu2"),
    ("relu6", "Relu6"),
    ("silu", "Silu"),
    ("swish", "Silu"),
    ("sigmoid", "Sigmoid"),
    ("tanh", "Tanh"),
    ("mish", "Mish"),
    ("hardswish", "Hardswish"),
    ("linear", "Linear"),
];

impl Scalar {
    /// The value as `config.json` has it.
    pub(super) fn show(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Names and plain values as an array of pairs of Rust, whose second are JSON.
pub(super) fn pairs(values: &IndexMap<String, Scalar>) -> String {
    let pair = |(name, value): (&String, &Scalar)| format!("({name:?}, {}.into())", value.show());
    format!("[{}]", values.iter().map(pair).collect::<Vec<_>>().join(", "))
}

/// The share of a head that turns, where that is not all of it.
pub(super) fn share(field: &ConfigField) -> Option<f64> {
    field.partial_rotary_factor.filter(|share| *share != 1.0)
}

/// The rotary position embeddings of an architecture where its file says nothing of them.
pub(super) fn rope(field: &ConfigField, base: &Scalar) -> Result<String, (String, Option<String>)> {
    let mut rope = literal(ConfigType::Rope, base)?;
    if let Some(share) = share(field) {
        rope = format!("RopeParameters {{ partial_rotary_factor: {share:?}, ..{rope} }}");
    }
    if let Some(scaling) = &field.rope_scaling {
        rope = format!("{rope}.scaled({})", pairs(scaling));
    }
    Ok(rope)
}

pub(super) fn rust(kind: ConfigType) -> &'static str {
    match kind {
        ConfigType::Usize | ConfigType::Edge | ConfigType::Period => "usize",
        ConfigType::I64 => "i64",
        ConfigType::F64 => "f64",
        ConfigType::Bool => "bool",
        ConfigType::String => "String",
        ConfigType::Usizes => "Vec<usize>",
        ConfigType::Floats => "Vec<f64>",
        ConfigType::Strings => "Vec<String>",
        ConfigType::Bools => "Vec<bool>",
        ConfigType::Ints => "Vec<i64>",
        ConfigType::IntLists => "Vec<Vec<i64>>",
        ConfigType::UsizeLists => "Vec<Vec<usize>>",
        ConfigType::Pairs => "Vec<ImageSize>",
        ConfigType::PairLists => "Vec<Vec<ImageSize>>",
        ConfigType::ConvBlocks => "Vec<Vec<ConvBlock>>",
        ConfigType::NumberLists => "Vec<Vec<LayerNumbers>>",
        ConfigType::DepthBins => "Vec<DepthBins>",
        ConfigType::RelativeBiases => "Vec<RelativeBias>",
        ConfigType::Pair => "ImageSize",
        ConfigType::Tokens => "TokenIds",
        ConfigType::Layers => "LayerIndices",
        ConfigType::Ratio => "Ratio",
        ConfigType::PerLayer => "PerLayer",
        ConfigType::LayerOverrides => "LayerOverrides",
        ConfigType::Words => "StringSet",
        ConfigType::Rope => "RopeParameters",
        ConfigType::Ropes => "BTreeMap<String, RopeParameters>",
        ConfigType::Activation => "Activation",
        ConfigType::FeedForward => "FeedForward",
        ConfigType::Counts => "BTreeMap<String, usize>",
        ConfigType::Labels => "BTreeMap<String, String>",
    }
}

/// A value as a Rust expression of this type; or what is wrong with it, and the nearest valid name.
pub(super) fn literal(kind: ConfigType, value: &Scalar) -> Result<String, (String, Option<String>)> {
    let layer = match kind {
        ConfigType::ConvBlocks => Some(conv_block as fn(&Scalar) -> _),
        ConfigType::NumberLists => Some(layer_numbers as fn(&Scalar) -> _),
        _ => None,
    };
    if let (Some(layer), Scalar::List(stages)) = (layer, value) {
        let stage = |stage: &Scalar| match stage {
            Scalar::List(layers) => {
                let layers: Result<Vec<_>, _> = layers.iter().map(layer).collect();
                layers.map(|layers| format!("vec![{}]", layers.join(", ")))
            }
            other => Err((format!("`{}` is not a list of layers", other.show()), None)),
        };
        let stages: Result<Vec<_>, _> = stages.iter().map(stage).collect();
        return stages.map(|stages| format!("vec![{}]", stages.join(", ")));
    }
    let element = match kind {
        ConfigType::Usizes => Some(ConfigType::Usize),
        ConfigType::Floats => Some(ConfigType::F64),
        ConfigType::Strings => Some(ConfigType::String),
        ConfigType::Bools => Some(ConfigType::Bool),
        ConfigType::Ints => Some(ConfigType::I64),
        ConfigType::IntLists => Some(ConfigType::Ints),
        ConfigType::UsizeLists => Some(ConfigType::Usizes),
        ConfigType::Pairs => Some(ConfigType::Pair),
        ConfigType::PairLists => Some(ConfigType::Pairs),
        _ => None,
    };
    if let (Some(element), Scalar::List(values)) = (element, value) {
        let values: Result<Vec<_>, _> = values.iter().map(|value| literal(element, value)).collect();
        return values.map(|values| format!("vec![{}]", values.join(", ")));
    }
    let text = match (kind, value) {
        (ConfigType::Usize | ConfigType::Edge | ConfigType::Period, Scalar::Int(number)) if *number >= 0 => {
            grouped(*number)
        }
        (ConfigType::I64, Scalar::Int(number)) => grouped(*number),
        (ConfigType::F64, Scalar::Int(number)) => format!("{number}.0"),
        (ConfigType::F64, Scalar::Float(number)) => format!("{number:?}"),
        (ConfigType::Bool, Scalar::Bool(value)) => value.to_string(),
        (ConfigType::String, Scalar::Text(text)) => format!("{text:?}.to_owned()"),
        (ConfigType::Pair, Scalar::Int(number)) if *number >= 0 => {
            format!("ImageSize::square({})", grouped(*number))
        }
        (ConfigType::Pair, Scalar::List(values)) => match values.as_slice() {
            [Scalar::Int(height), Scalar::Int(width)] if *height >= 0 && *width >= 0 => {
                format!("ImageSize {{ height: {}, width: {} }}", grouped(*height), grouped(*width))
            }
            _ => return Err((format!("`{}` is not a height and a width", value.show()), None)),
        },
        (ConfigType::Tokens, Scalar::Int(number)) if *number >= 0 => {
            format!("TokenIds(vec![{}])", grouped(*number))
        }
        (ConfigType::Layers, Scalar::Int(number)) => format!("LayerIndices(vec![{}])", grouped(*number)),
        (ConfigType::Layers, Scalar::List(values)) => {
            let layers: Result<Vec<_>, _> =
                values.iter().map(|value| literal(ConfigType::I64, value)).collect();
            format!("LayerIndices(vec![{}])", layers?.join(", "))
        }
        (ConfigType::PerLayer, Scalar::Int(_)) => {
            format!("PerLayer(vec![{}])", literal(ConfigType::Usize, value)?)
        }
        (ConfigType::PerLayer, Scalar::List(_)) => {
            format!("PerLayer({})", literal(ConfigType::Usizes, value)?)
        }
        (ConfigType::Counts, Scalar::List(pairs)) => {
            let pairs: Result<Vec<_>, _> = pairs.iter().map(count).collect();
            format!("BTreeMap::from([{}])", pairs?.join(", "))
        }
        (ConfigType::Words, Scalar::Bool(value)) => {
            format!("StringSet(vec![{}])", if *value { "\"true\".to_owned()" } else { "" })
        }
        (ConfigType::Words, Scalar::Text(text)) => format!("StringSet(vec![{text:?}.to_owned()])"),
        (ConfigType::Words, Scalar::List(_)) => {
            format!("StringSet({})", literal(ConfigType::Strings, value)?)
        }
        (ConfigType::Tokens, Scalar::List(_)) => {
            format!("TokenIds({})", literal(ConfigType::Usizes, value)?)
        }
        (ConfigType::Rope, Scalar::Int(_) | Scalar::Float(_)) => {
            format!("RopeParameters::of({})", literal(ConfigType::F64, value)?)
        }
        (ConfigType::FeedForward, Scalar::Text(name)) => {
            let (gated, function) = match name.strip_prefix("gated-") {
                Some("gelu") => (true, "gelu_new"),
                Some(function) => (true, function),
                None => (false, name.as_str()),
            };
            let activation = literal(ConfigType::Activation, &Scalar::Text(function.to_owned()))?;
            format!("FeedForward {{ gated: {gated}, activation: {activation} }}")
        }
        (ConfigType::Activation, Scalar::Text(name)) => {
            let variant = ACTIVATIONS.iter().find(|(known, _)| known == name);
            let names = || ACTIVATIONS.iter().map(|(known, _)| *known);
            let Some((_, variant)) = variant else {
                let message = format!(
                    "`{name}` is not an activation function that is known; expected one of {}",
                    names().collect::<Vec<_>>().join(", ")
                );
                return Err((message, nearest_name(name, names()).map(str::to_owned)));
            };
            format!("Activation::{variant}")
        }
        _ => return Err((format!("`{}` does not fit its type, {}", value.show(), rust(kind)), None)),
    };
    Ok(text)
}

/// A depthwise separable convolution, as [`literal`].
fn conv_block(layer: &Scalar) -> Result<String, (String, Option<String>)> {
    let unfit = || (format!("`{}` is not [kernel, in, out, stride, squeeze_excitation]", layer.show()), None);
    let Scalar::List(values) = layer else { return Err(unfit()) };
    let [kernel, from, out, stride, Scalar::Bool(squeeze)] = values.as_slice() else { return Err(unfit()) };
    let size = |value: &Scalar| literal(ConfigType::Usize, value);
    let (kernel, from, out) = (size(kernel)?, size(from)?, size(out)?);
    let stride = literal(ConfigType::Pair, stride)?;
    Ok(format!("ConvBlock::new({kernel}, [{from}, {out}], {stride}, {squeeze})"))
}

/// A name and its count, as [`literal`].
fn count(pair: &Scalar) -> Result<String, (String, Option<String>)> {
    let unfit = || (format!("`{}` is not a name and a count", pair.show()), None);
    let Scalar::List(values) = pair else { return Err(unfit()) };
    let [name, count] = values.as_slice() else { return Err(unfit()) };
    let (name, count) = (literal(ConfigType::String, name)?, literal(ConfigType::Usize, count)?);
    Ok(format!("({name}, {count})"))
}

/// The numbers of a layer, as [`literal`].
fn layer_numbers(layer: &Scalar) -> Result<String, (String, Option<String>)> {
    let unfit = || (format!("`{}` is not a list of numbers and truth values", layer.show()), None);
    let Scalar::List(values) = layer else { return Err(unfit()) };
    let number = |value: &Scalar| match value {
        Scalar::Bool(value) => Ok(usize::from(*value).to_string()),
        other => literal(ConfigType::Usize, other),
    };
    let numbers: Result<Vec<_>, _> = values.iter().map(number).collect();
    Ok(format!("LayerNumbers(vec![{}])", numbers?.join(", ")))
}

/// `30522` as `30_522`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}
