//! Fields of `config` as names that expressions may use.

use super::{Config, Field};
use crate::expression::{Item, Kind, Name, Names, Wrong};
use crate::spec::model::ConfigType;

/// The fields of a configuration, read from code where it has this name.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// What code calls it: `c` in graphs, `self` in its own methods.
    pub root: &'a str,
}

impl Names for Fields<'_> {
    fn name(&self, path: &str) -> Result<Name, Wrong> {
        let mut config = self.config;
        let mut rust = self.root.to_owned();
        let mut rest = path;
        while let Some((first, after)) = rest.split_once('.') {
            let Some(field) = config.field(first) else { return Err(self.unknown(path)) };
            rust = format!("{rust}.{}", field.ident);
            if let (Some(ConfigType::Pair), "height" | "width") = (field.kind, after) {
                let name = Name { min: field.min, ..name(Kind::Usize, format!("{rust}.{after}")) };
                return if field.optional { Err(may_be_absent(first)) } else { Ok(name) };
            }
            let Some(within) = config.nested.get(first) else { return Err(self.unknown(path)) };
            if field.optional {
                return Err(may_be_absent(first));
            }
            (config, rest) = (within, after);
        }
        if rest == "num_labels" && config.labels.is_some() {
            return Ok(name(Kind::Usize, format!("{rust}.num_labels()")));
        }
        let Some(field) = config.field(rest) else { return Err(self.unknown(path)) };
        let call = if field.method { "()" } else { "" };
        Ok(Name {
            optional: field.optional && !field.method,
            min: field.min,
            of: field.of.clone(),
            ..name(kind(field), format!("{rust}.{}{call}", field.ident))
        })
    }
}

impl Fields<'_> {
    fn unknown(&self, path: &str) -> Wrong {
        if self.config.has(path) {
            // What is wrong with the field is told where it stands.
            return Wrong::new("");
        }
        let nearest = path.strip_prefix("c.").filter(|name| self.config.has(name)).map(str::to_owned);
        Wrong {
            message: format!("`{path}` is not a field of config"),
            nearest: nearest.or_else(|| self.config.nearest(path)),
        }
    }
}

fn name(kind: Kind, rust: String) -> Name {
    Name { kind, optional: false, rust, min: 0, of: vec![] }
}

fn may_be_absent(field: &str) -> Wrong {
    Wrong::new(format!("`{field}` may be absent, and expressions read nothing within it"))
}

/// What expressions take a field for.
pub(super) fn kind(field: &Field) -> Kind {
    match field.kind {
        None => Kind::Other("a configuration"),
        Some(kind) => match kind {
            ConfigType::Usize | ConfigType::Edge | ConfigType::Period => Kind::Usize,
            ConfigType::I64 => Kind::I64,
            ConfigType::F64 => Kind::F64,
            ConfigType::Bool => Kind::Bool,
            ConfigType::String => Kind::Text,
            ConfigType::Usizes => Kind::List(Item::Usize),
            ConfigType::Floats => Kind::List(Item::F64),
            ConfigType::Strings => Kind::List(Item::Text),
            ConfigType::Bools => Kind::List(Item::Bool),
            ConfigType::Pairs => Kind::Other("heights and widths"),
            ConfigType::Ints => Kind::Other("whole numbers"),
            ConfigType::IntLists
            | ConfigType::UsizeLists
            | ConfigType::PairLists
            | ConfigType::ConvBlocks
            | ConfigType::NumberLists => Kind::Other("a list of lists"),
            ConfigType::DepthBins => Kind::Other("bins of depth"),
            ConfigType::RelativeBiases => Kind::Other("relative attention biases"),
            ConfigType::Pair => Kind::Other("a height and a width"),
            ConfigType::Tokens => Kind::Other("ids of tokens"),
            ConfigType::Layers => Kind::Other("states of layers"),
            ConfigType::Ratio => Kind::Other("a ratio"),
            ConfigType::PerLayer => Kind::Other("a size of each layer"),
            ConfigType::LayerOverrides => Kind::Other("fields of some layers"),
            ConfigType::Words => Kind::Other("words"),
            ConfigType::Rope => Kind::Other("rotary position embeddings"),
            ConfigType::Ropes => Kind::Other("rotary position embeddings by kind of layer"),
            ConfigType::Activation => Kind::Other("an activation function"),
            ConfigType::FeedForward => Kind::Other("a kind of feed-forward layer"),
            ConfigType::Counts => Kind::Other("counts by name"),
            ConfigType::Labels => Kind::Other("names of classes"),
        },
    }
}
