//! The Gram matrices of what linear layers are given while a model runs, by which a checkpoint is quantized.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::graph::Graph;
use crate::quantization::written::Grams;
use crate::{Error, Result, Value, Values};

/// What the names of the outputs that are Gram matrices begin with.
const OUTPUT: &str = "calibration/";

/// The most bytes of Gram matrices that are gathered at a time: 1 GiB. What has more is run several times.
const ROOM: usize = 1 << 30;

/// Gathers, over all runs of the models that are loaded with it, what calibrated quantization is made by: the Gram matrices
/// `xᵀ · x` of what linear layers are given. Clones share them.
///
/// It is handed out by [`crate::Loader::quantize_calibrated`].
#[derive(Clone, Debug)]
pub struct Calibration(Arc<Mutex<Gathered>>);

#[derive(Debug)]
struct Gathered {
    /// Weights that are to be quantized, by the names they are stored under.
    wanted: BTreeSet<String>,
    /// Weights whose matrices are gathered, each with the output that gives it.
    taken: BTreeMap<String, String>,
    grams: BTreeMap<String, Vec<f32>>,
    /// Bytes that are left for further matrices.
    room: usize,
    /// Whether some found no room.
    left: bool,
    /// Whether any was gathered before.
    ran: bool,
}

impl Calibration {
    /// For these weights, by the names they are stored under.
    pub(super) fn new(wanted: BTreeSet<String>) -> Self {
        Self::with_room(wanted, ROOM)
    }

    fn with_room(wanted: BTreeSet<String>, room: usize) -> Self {
        let (taken, grams) = Default::default();
        Self(Arc::new(Mutex::new(Gathered { wanted, taken, grams, room, left: false, ran: false })))
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a graph give the matrices as outputs, as many as there is room for; the outputs' names. `stored` tells what a weight of
    /// the graph is stored as.
    pub(super) fn ask(
        &self,
        graph: &mut Graph,
        stored: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<String>> {
        let mut outputs = vec![];
        let mut gathered = self.gathered();
        for shared in graph.linear_inputs() {
            let weights = shared.weights.iter().filter_map(|name| stored(name));
            let weights: Vec<String> = weights.filter(|name| gathered.wanted.contains(name)).collect();
            let Some(first) = weights.first() else { continue };
            let output = match gathered.taken.get(first) {
                Some(output) => output.clone(),
                None => {
                    let size = shared.width * shared.width * size_of::<f32>();
                    // One at a time goes, whatever its size.
                    if size > gathered.room && !gathered.taken.is_empty() {
                        gathered.left = true;
                        continue;
                    }
                    gathered.room = gathered.room.saturating_sub(size);
                    format!("{OUTPUT}{first}")
                }
            };
            for weight in weights {
                gathered.taken.entry(weight).or_insert_with(|| output.clone());
            }
            let gram = graph.gram(&shared.inputs)?;
            graph.output(&output, &gram)?;
            outputs.push(output);
        }
        Ok(outputs)
    }

    /// Adds the matrices of a run, which are taken out of its outputs.
    pub(super) fn add(&self, names: &[String], outputs: &mut Values) {
        let mut gathered = self.gathered();
        for name in names {
            let Some(Value::F32(gram)) = outputs.remove(name) else { continue };
            match gathered.grams.get_mut(name) {
                Some(sum) => sum.iter_mut().zip(&gram).for_each(|(sum, more)| *sum += more),
                None => _ = gathered.grams.insert(name.clone(), gram.iter().copied().collect()),
            }
        }
    }

    /// What was gathered; and whether to run again for what found no room, which this makes.
    ///
    /// # Errors
    /// When nothing was run, or what ran has numbers that are not finite.
    pub(super) fn take(&self) -> Result<(Grams, bool)> {
        let mut gathered = self.gathered();
        let refused = |problem: &str, help: &str| Err(Error::input("calibration", problem, help));
        // What is left may be of a part of the model that these inputs do not reach.
        if gathered.grams.is_empty() && !gathered.ran {
            return refused(
                "nothing was run",
                "load the model with the calibration that is given, and run it",
            );
        }
        if gathered.grams.values().flatten().any(|sum| !sum.is_finite()) {
            return refused("an input made activations that are not finite", "leave such inputs out");
        }
        let grams = Grams {
            weights: std::mem::take(&mut gathered.taken),
            matrices: std::mem::take(&mut gathered.grams),
        };
        gathered.wanted.retain(|weight| !grams.weights.contains_key(weight));
        (gathered.room, gathered.ran) = (ROOM, true);
        Ok((grams, std::mem::take(&mut gathered.left)))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayD;

    use super::*;
    use crate::dims;
    use crate::graph::Input;

    fn graph() -> Graph {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![2, 4]));
        let q = g.linear(&g.scope("base").scope("q"), &x, 4).unwrap();
        let k = g.linear(&g.scope("k"), &x, 4).unwrap();
        let o = g.linear(&g.scope("o"), &q, 4).unwrap();
        g.output("k", &k).unwrap();
        g.output("o", &o).unwrap();
        g
    }

    fn of(numbers: [f32; 2]) -> Value {
        Value::F32(ArrayD::from_shape_vec(vec![2], numbers.to_vec()).unwrap())
    }

    #[test]
    fn what_finds_no_room_is_gathered_by_another_run() {
        let wanted = ["q.weight", "k.weight", "o.weight"].map(str::to_owned).into();
        let calibration = Calibration::with_room(wanted, 4 * 4 * 4);
        assert!(calibration.take().unwrap_err().to_string().contains("nothing was run"));
        let stored = |name: &str| Some(name.replace("base.", ""));
        let names = calibration.clone().ask(&mut graph(), &stored).unwrap();
        assert_eq!(names, ["calibration/q.weight"]);
        // Another graph of the model gives the same.
        assert_eq!(calibration.ask(&mut graph(), &stored).unwrap(), names);
        for numbers in [[1.0, 2.0], [0.5, 4.0]] {
            let mut outputs = Values::from([(names[0].clone(), of(numbers)), ("k".to_owned(), of(numbers))]);
            calibration.add(&names, &mut outputs);
            assert_eq!(outputs.keys().collect::<Vec<_>>(), ["k"]);
        }
        let (grams, again) = calibration.take().unwrap();
        assert!(again && grams.matrices[&grams.weights["k.weight"]] == [1.5, 6.0]);
        let names = calibration.ask(&mut graph(), &stored).unwrap();
        assert_eq!(names, ["calibration/o.weight"]);
        calibration.add(&names, &mut Values::from([(names[0].clone(), of([f32::NAN, 0.0]))]));
        assert!(calibration.take().unwrap_err().to_string().contains("not finite"));
    }
}
