//! Equal operations on equal values, computed once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::Result;
use crate::graph::{Constant, Graph, Tensor};
use crate::lower::Target;

/// Lets every operation that computes what an earlier one did stand for that one: masks as numbers, transposed weights
/// and angles, which each layer's lowering asks for.
pub(in crate::lower) fn equal(g: &mut Graph, _: &Target) -> Result<()> {
    let mut known: HashMap<String, Tensor> = HashMap::new();
    g.rewrite(|g, it| {
        let operands: Vec<_> = it.operands.iter().map(|x| identity(g, x)).collect();
        let key = format!("{:?} {operands:?} {} {:?}", it.op, it.result.dtype(), it.result.shape());
        Ok(match known.get(&key) {
            Some(first) => Some(first.clone()),
            None => {
                known.insert(key, it.result.clone());
                None
            }
        })
    })
}

/// What tells a value from others: literals by what they hold.
fn identity(g: &Graph, x: &Tensor) -> (usize, u64) {
    let Some(literal) = g.literal(x) else { return (x.id, 0) };
    let mut hasher = DefaultHasher::new();
    (x.dtype(), x.shape()).hash(&mut hasher);
    match literal {
        Constant::F32(numbers) => numbers.iter().for_each(|x| x.to_bits().hash(&mut hasher)),
        Constant::I64(numbers) => numbers.hash(&mut hasher),
    }
    (usize::MAX, hasher.finish())
}
