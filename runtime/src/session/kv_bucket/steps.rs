//! Steps on a backend of fixed lengths give what the whole text gives, however positions are encoded, and few graphs are
//! made ready for them.

use std::sync::Arc;

use ndarray::{Array2, ArrayD, s};

use super::super::cache::Cache as KvState;
use super::super::executable::Executable;
use super::super::subgraph::{Signature, Subgraph};
use crate::GraphKind;
use crate::engine::{self, Options};
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{CacheBits, CacheCodes, Graph, Input, InputDefault, Tensor};
use crate::lower::Target;
use crate::nn::{self, Attention, Cache, RelativeBuckets, Rotary};
use crate::weights::Weights;
use crate::{Hardware, Precision, Result, Value, Values, dims};

const WIDTH: usize = 16;
const HEADS: usize = 4;
const LENGTH: usize = 70;

#[derive(Clone, Copy, Debug, PartialEq)]
enum PositionKind {
    Rotary,
    RelativeBias,
    Alibi,
    AlibiByKey,
    Sinusoidal,
    Learned,
}

const ALL: [PositionKind; 6] = [
    PositionKind::Rotary,
    PositionKind::RelativeBias,
    PositionKind::Alibi,
    PositionKind::AlibiByKey,
    PositionKind::Sinusoidal,
    PositionKind::Learned,
];

/// One layer of attention with one kind of position encoding.
fn graph(
    positions: PositionKind,
    window: Option<usize>,
    kind: GraphKind,
    codes: Option<CacheCodes>,
) -> Result<Graph> {
    let mut g = Graph::new();
    g.cache_codes = codes;
    let cache = Cache::new(&mut g, kind);
    let ids = g.input(Input::i64("input_ids", dims![BATCH, SEQUENCE]));
    let seen = g.input(Input::i64("attention_mask", dims![BATCH, cache.keys()]).or(InputDefault::Ones));
    let w = g.scope("layer");
    let mut x = g.embedding(&w.scope("tokens"), &ids, 50, WIDTH)?;
    if positions == PositionKind::Sinusoidal {
        let positions = nn::positions_from_mask(&mut g, &seen, &cache.past(), 1)?;
        let placed = nn::sinusoidal(&mut g, &positions, WIDTH, 0, 1)?;
        x = g.add(&x, &placed)?;
    }
    if positions == PositionKind::Learned {
        let positions = cache.positions(&mut g);
        let placed = g.embedding(&w.scope("positions"), &positions, LENGTH, WIDTH)?;
        x = g.add(&x, &placed)?;
    }
    let mut q = g.linear(&w.scope("query"), &x, WIDTH)?;
    let mut k = g.linear(&w.scope("key"), &x, WIDTH)?;
    let v = g.linear(&w.scope("value"), &x, WIDTH)?;
    if positions == PositionKind::Rotary {
        let positions =
            g.input(Input::i64("position_ids", dims![BATCH, SEQUENCE]).or(InputDefault::Positions));
        let rotary = Rotary::new(&mut g, &positions, &[0.5, 0.25], 1.0)?;
        q = rotary.apply(&mut g, &q, HEADS)?;
        k = rotary.apply(&mut g, &k, HEADS)?;
    }
    let (k, v) = cache.update(&mut g, 0, k, v, HEADS)?;
    let mask = mask(&mut g, positions, window, &cache, &seen)?;
    let options = Attention { heads: HEADS, kv_heads: HEADS, mask: Some(&mask), ..Attention::default() };
    let mixed = g.attention(&q, &k, &v, &options)?;
    g.output("mixed", &mixed)?;
    Ok(g)
}

fn mask(
    g: &mut Graph,
    positions: PositionKind,
    window: Option<usize>,
    cache: &Cache,
    seen: &Tensor,
) -> Result<Tensor> {
    let mask = nn::causal_mask(g, seen, &cache.past(), window)?;
    match positions {
        PositionKind::Rotary | PositionKind::Sinusoidal | PositionKind::Learned => Ok(mask),
        PositionKind::Alibi => nn::alibi(g, &mask, seen, &nn::alibi_slopes(HEADS)),
        PositionKind::AlibiByKey => nn::alibi_by_key(g, &mask, &nn::alibi_slopes(HEADS)),
        PositionKind::RelativeBias => {
            let all = g.arange(&cache.keys());
            let own = g.slice_dims(&all, 0, cache.past(), cache.keys())?;
            let buckets = RelativeBuckets { count: 8, max_distance: 20, causal: true };
            let bias = nn::relative_bias(g, &g.scope("table"), [&own, &all], HEADS, buckets)?;
            nn::masked_bias(g, &mask, &bias)
        }
    }
}

fn subgraph(
    positions: PositionKind,
    window: Option<usize>,
    kind: GraphKind,
    fixed_shapes: bool,
) -> Result<Subgraph> {
    ready(graph(positions, window, kind, None)?, fixed_shapes)
}

fn ready(graph: Graph, fixed_shapes: bool) -> Result<Subgraph> {
    ready_as(graph, Target { fixed_shapes, ..Target::of(Hardware::Openvino, Precision::F32) })
}

fn ready_as(graph: Graph, target: Target) -> Result<Subgraph> {
    let parameters = graph.weights().iter().map(|weight| (weight.name.clone(), weight.shape.clone()));
    let weights = Weights::Rule(parameters.collect()).locate(graph.weights(), &Default::default())?;
    let inputs = graph.inputs().to_vec();
    let executable = Executable::new(graph, weights, target, Hardware::Cpu, Options::default(), None)?;
    let signature = Signature { inputs, limits: Default::default(), unused: vec![], probes: vec![] };
    let signature = Arc::new(signature);
    Ok(Subgraph { signature, executable, graph_ms: 0.0, note: None, usage: None, calibration: None })
}

/// Two rows of tokens, the second padded on the left.
fn inputs(start: usize, end: usize) -> Values {
    let ids = Array2::from_shape_fn((2, end - start), |(row, i)| ((start + i) * (row + 3) % 50) as i64);
    let seen = Array2::from_shape_fn((2, end), |(row, i)| i64::from(row == 0 || i >= 2));
    Values::from([
        ("input_ids".to_owned(), Value::I64(ids.into_dyn())),
        ("attention_mask".to_owned(), Value::I64(seen.into_dyn())),
    ])
}

/// The positions of both rows that hold tokens.
fn tokens(mixed: &ArrayD<f32>, start: usize) -> Vec<f32> {
    let filled = 2_usize.saturating_sub(start);
    let (first, second) = (mixed.slice(s![0, .., ..]), mixed.slice(s![1, filled.., ..]));
    first.iter().chain(second.iter()).copied().collect()
}

#[test]
fn steps_share_few_graphs_and_give_what_the_whole_gives() -> Result<()> {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return Ok(());
    }
    for (positions, window) in ALL.into_iter().flat_map(|positions| [(positions, None), (positions, Some(5))])
    {
        let whole = subgraph(positions, window, GraphKind::Forward, false)?.run(inputs(0, LENGTH))?;
        let whole = whole["mixed"].f32("mixed")?;
        let step = subgraph(positions, window, GraphKind::Decode, true)?;
        let mut kept = KvState::new();
        let mut start = 0;
        for end in 7..=LENGTH {
            let got = step.run_cached(GraphKind::Decode, inputs(start, end), &mut kept)?;
            let got = tokens(got["mixed"].f32("mixed")?, start);
            let want = whole.slice(s![.., start..end, ..]).to_owned().into_dyn();
            for (got, want) in got.iter().zip(tokens(&want, start)) {
                assert!((got - want).abs() < 1e-5, "{positions:?} {window:?} to {end}: {got}, not {want}");
            }
            start = end;
        }
        assert_eq!(kept.len(), LENGTH);
        // Keys and values of two rows, as many as there is room for.
        assert_eq!(kept.bytes(), 2 * 2 * WIDTH * 128 * size_of::<f32>());
        // The prompt, then steps with room for 32, 64 and 128.
        assert_eq!(step.executable.made(), 4, "{positions:?}");
    }
    Ok(())
}

#[test]
fn beams_go_on_from_rows_of_the_cache() -> Result<()> {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return Ok(());
    }
    let (step, reorder) = (
        subgraph(PositionKind::Rotary, None, GraphKind::Decode, true)?,
        subgraph(PositionKind::Rotary, None, GraphKind::BeamDecode, true)?,
    );
    let mut kept = KvState::new();
    step.run_cached(GraphKind::Decode, inputs(0, 6), &mut kept)?;
    let mut beams = inputs(6, 7);
    beams.insert("beam_idx".to_owned(), Value::I64(ndarray::arr1(&[0, 0]).into_dyn()));
    // Both rows go on from the first, with its next token and its mask.
    let same = |value: &mut Value| {
        if let Value::I64(a) = value {
            let first = a.slice(s![0, ..]).to_owned();
            a.slice_mut(s![1, ..]).assign(&first);
        }
    };
    ["input_ids", "attention_mask"].iter().filter_map(|name| beams.get_mut(*name).map(same)).for_each(drop);
    let got = reorder.run_cached(GraphKind::BeamDecode, beams, &mut kept)?;
    let got = got["mixed"].f32("mixed")?;
    let whole = subgraph(PositionKind::Rotary, None, GraphKind::Forward, false)?.run(inputs(0, 7))?;
    let want = whole["mixed"].f32("mixed")?.slice(s![0, 6, ..]).to_owned();
    for row in 0..2 {
        let difference = &got.slice(s![row, 0, ..]) - &want;
        assert!(difference.iter().all(|x| x.abs() < 1e-5), "row {row}: {difference}");
    }
    Ok(())
}

#[test]
fn a_cache_of_few_bits_gives_nearly_what_the_whole_gives() -> Result<()> {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return Ok(());
    }
    let whole = subgraph(PositionKind::Rotary, None, GraphKind::Forward, false)?.run(inputs(0, LENGTH))?;
    let whole = whole["mixed"].f32("mixed")?;
    let largest = whole.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    // One after the other, and of fixed lengths, where what is before the tokens has a scale of zero.
    let asked = [8, 4].into_iter().flat_map(|bits| [(bits, false), (bits, true)]);
    for ((bits, fixed), as_floats) in asked.flat_map(|asked| [(asked, false), (asked, true)]) {
        let most = if bits == 8 { 0.01 } else { 0.15 };
        let codes = CacheCodes { bits: CacheBits::of(bits).unwrap(), as_floats };
        let build = |kind| ready(graph(PositionKind::Rotary, None, kind, Some(codes))?, fixed);
        let (step, reorder) = (build(GraphKind::Decode)?, build(GraphKind::BeamDecode)?);
        let mut kept = KvState::new();
        let (mut start, mut worst) = (0, 0.0_f32);
        for end in [7, 8, 9, 40, 41, LENGTH - 1, LENGTH] {
            let mut given = inputs(start, end);
            let beams = end == 9;
            if beams {
                given.insert("beam_idx".to_owned(), Value::I64(ndarray::arr1(&[0, 1]).into_dyn()));
            }
            let (graph, kind) =
                if beams { (&reorder, GraphKind::BeamDecode) } else { (&step, GraphKind::Decode) };
            let got = graph.run_cached(kind, given, &mut kept)?;
            let got = tokens(got["mixed"].f32("mixed")?, start);
            let want = tokens(&whole.slice(s![.., start..end, ..]).to_owned().into_dyn(), start);
            worst = got.iter().zip(want).fold(worst, |worst, (got, want)| worst.max((got - want).abs()));
            start = end;
        }
        assert!(worst > 0.0 && worst < most * largest, "{codes:?}: {worst} of {largest}");
    }
    Ok(())
}

#[test]
fn bytes_as_numbers_are_whole_in_half_precision_too() -> Result<()> {
    if let Err(error) = engine::available(Hardware::Cpu) {
        eprintln!("skipped: {error}");
        return Ok(());
    }
    let half = Target::of(Hardware::Rocm, Precision::F16);
    let mut texts = vec![];
    for as_floats in [false, true] {
        let codes = CacheCodes { bits: CacheBits::of(4).unwrap(), as_floats };
        let step =
            ready_as(graph(PositionKind::Rotary, None, GraphKind::Decode, Some(codes))?, half.clone())?;
        let (mut kept, mut mixed) = (KvState::new(), vec![]);
        for (start, end) in [(0, 7), (7, 8), (8, 40), (40, 41)] {
            let got = step.run_cached(GraphKind::Decode, inputs(start, end), &mut kept)?;
            mixed.extend(tokens(got["mixed"].f32("mixed")?, start));
        }
        texts.push(mixed);
    }
    assert!(texts[0] == texts[1], "codes are not what they were cached as");
    Ok(())
}
