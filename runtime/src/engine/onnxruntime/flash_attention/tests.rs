use super::super::lanes::tests::drawn;
use super::*;
use crate::graph::MASKED_SCORE;

#[derive(Clone, Copy, Debug)]
struct Case {
    heads: [usize; 2],
    lengths: [usize; 3],
    sizes: [usize; 2],
    softcap: f32,
}

/// How much results may differ by in single precision, and in bfloat16, which queries, keys, shares and values are rounded to.
const MOST: [f64; 2] = [2e-6, 0.02];

impl Case {
    fn of(self) -> Attention {
        let [heads, kv_heads] = self.heads;
        Attention { heads, kv_heads, scale: 0.3, softcap: self.softcap, in_bf16: false }
    }
}

/// How keys and values lie, and where the first number of one of a text, a head and a position is.
type Layout = (for<'a> fn(&'a [f32], [usize; 4]) -> Laid<'a>, fn([usize; 4], [usize; 3]) -> usize);

const LAYOUTS: [Layout; 3] = [
    (Laid::by_position, |[batch, heads, _, size], [text, head, at]| {
        ((at * batch + text) * heads + head) * size
    }),
    (Laid::by_text, |[_, heads, count, size], [text, head, at]| ((text * count + at) * heads + head) * size),
    (Laid::by_head, |[_, heads, count, size], [text, head, at]| ((text * heads + head) * count + at) * size),
];

/// What is drawn for a case.
struct Drawn {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// Of one query and one head, in double precision.
fn wanted(
    case: Case,
    drawn: &Drawn,
    place: fn([usize; 4], [usize; 3]) -> usize,
    mask: &dyn Fn([usize; 4]) -> f32,
    [text, head, query]: [usize; 3],
) -> Vec<f64> {
    let (Attention { heads, kv_heads, scale, softcap, .. }, [batch, queries, keys]) =
        (case.of(), case.lengths);
    let q = &drawn.q[((text * queries + query) * heads + head) * case.sizes[0]..][..case.sizes[0]];
    let row = |numbers: &[f32], key: usize, size: usize| -> Vec<f64> {
        let first = place([batch, kv_heads, keys, size], [text, head / (heads / kv_heads), key]);
        numbers[first..][..size].iter().copied().map(f64::from).collect()
    };
    let scores: Vec<f64> = (0..keys)
        .map(|key| {
            let products = q.iter().zip(row(&drawn.k, key, case.sizes[0])).map(|(q, k)| f64::from(*q) * k);
            let mut score = products.sum::<f64>() * f64::from(scale);
            if softcap != 0.0 {
                score = f64::from(softcap) * (score / f64::from(softcap)).tanh();
            }
            f64::from(score as f32 + mask([text, head, query, key]))
        })
        .collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f64 = shares.iter().sum();
    let mut result = vec![0.0; case.sizes[1]];
    for (key, share) in shares.iter().enumerate() {
        let values = row(&drawn.v, key, case.sizes[1]);
        result.iter_mut().zip(values).for_each(|(result, value)| *result += share / sum * value);
    }
    result
}

/// A mask's lengths, and what it has at each place.
type Added<'f> = ([usize; 4], &'f dyn Fn([usize; 4]) -> f32);

/// Compares all rows in all layouts, with a mask or none.
fn check(case: Case, mask: Option<Added<'_>>) {
    let (Case { heads: [heads, kv_heads], sizes, .. }, [batch, queries, keys]) = (case, case.lengths);
    let q = drawn(batch * queries * heads * sizes[0], 1).iter().map(|x| x * 3.0).collect();
    let all = keys * batch * kv_heads;
    let drawn = Drawn { q, k: drawn(all * sizes[0], 2), v: drawn(all * sizes[1], 3) };
    let of = |lengths: [usize; 4], of: &dyn Fn([usize; 4]) -> f32| -> Vec<f32> {
        let [a, b, c, d] = lengths;
        let places = (0..a * b * c * d).map(|n| [n / (b * c * d), n / (c * d) % b, n / d % c, n % d]);
        places.map(of).collect()
    };
    let numbers = mask.map(|(lengths, function)| of(lengths, function)).unwrap_or_default();
    let shape = mask.map(|(lengths, _)| lengths.map(|length| length as i64));
    let added = |places: [usize; 4]| {
        let Some((lengths, function)) = mask else { return 0.0 };
        function(std::array::from_fn(|axis| if lengths[axis] == 1 { 0 } else { places[axis] }))
    };
    for ((laid, place), in_bf16) in LAYOUTS.into_iter().flat_map(|layout| [(layout, false), (layout, true)]) {
        let given = Given {
            of: Attention { in_bf16, ..case.of() },
            lengths: case.lengths,
            q: &drawn.q,
            keys: laid(&drawn.k, [batch, kv_heads, keys, sizes[0]]),
            values: laid(&drawn.v, [batch, kv_heads, keys, sizes[1]]),
            mask: shape.map(|shape| Mask::new(&shape, &numbers).unwrap()),
        };
        assert_eq!(given.check().unwrap(), heads * sizes[1]);
        let mut result = vec![f32::NAN; batch * queries * heads * sizes[1]];
        let task = Task::new(&given, &mut result);
        (0..task.units()).rev().for_each(|unit| task.compute(unit));
        task.finish();
        for (index, row) in result.chunks(sizes[1]).enumerate() {
            let places = [index / (queries * heads), index % heads, index / heads % queries];
            for (got, want) in row.iter().zip(wanted(case, &drawn, place, &added, places)) {
                let off = (f64::from(*got) - want).abs();
                assert!(
                    off < MOST[usize::from(in_bf16)],
                    "{case:?} {in_bf16} at {places:?}: {got} for {want}"
                );
            }
        }
    }
}

const CASES: [Case; 8] = [
    Case { heads: [4, 2], lengths: [1, 1, 1], sizes: [5, 5], softcap: 0.0 },
    Case { heads: [8, 1], lengths: [2, 1, 150], sizes: [64, 64], softcap: 0.0 },
    Case { heads: [3, 3], lengths: [1, 1, 300], sizes: [80, 70], softcap: 0.0 },
    Case { heads: [8, 2], lengths: [1, 3, 129], sizes: [16, 24], softcap: 5.0 },
    Case { heads: [2, 2], lengths: [2, 131, 140], sizes: [64, 64], softcap: 0.0 },
    Case { heads: [6, 2], lengths: [1, 40, 40], sizes: [37, 33], softcap: 0.5 },
    Case { heads: [1, 1], lengths: [1, 2, 256], sizes: [128, 129], softcap: 0.0 },
    // Of the last unit's rows there are two.
    Case { heads: [2, 1], lengths: [1, 193, 195], sizes: [4, 3], softcap: 0.0 },
];

#[test]
fn heads_lengths_and_sizes_that_registers_divide_and_that_they_do_not() {
    for case in CASES {
        check(case, None);
    }
}

#[test]
fn masks_of_any_axes_hide_positions() {
    for case in CASES {
        let [batch, queries, keys] = case.lengths;
        let past = keys - queries;
        let when = |seen: bool| if seen { 0.0 } else { MASKED_SCORE };
        let causal = |[_, _, query, key]: [usize; 4]| when(key <= past + query);
        check(case, Some(([1, 1, queries, keys], &causal)));
        let window =
            |[text, _, query, key]: [usize; 4]| when(key <= past + query && key + 3 + text > past + query);
        check(case, Some(([batch, 1, queries, keys], &window)));
        let bias = |[_, head, query, key]: [usize; 4]| {
            causal([0, 0, query, key]) - (past + query).abs_diff(key) as f32 * 0.1 / (head + 1) as f32
        };
        check(case, Some(([1, case.heads[0], queries, keys], &bias)));
        check(case, Some(([1; 4], &|_| -1.0)));
        check(case, Some(([1, 1, 1, keys], &|[.., key]| when(key % 3 != 1))));
    }
}

#[test]
fn a_query_that_sees_nothing_gets_the_mean_of_all_values() {
    for case in CASES {
        let [batch, queries, keys] = case.lengths;
        check(
            case,
            Some(([batch, 1, queries, keys], &|[text, _, query, key]| {
                if (text + query).is_multiple_of(2) || key > query { MASKED_SCORE } else { 0.0 }
            })),
        );
    }
}

/// One head of keys and values of one number.
fn small<'a>(numbers: &'a [f32], mask: Mask<'a>) -> Given<'a> {
    let laid = Laid::by_text(numbers, [1, 1, 2, 1]);
    let of = Attention { heads: 2, kv_heads: 1, scale: 1.0, softcap: 0.0, in_bf16: false };
    Given { of, lengths: [1, 1, 2], q: &[1.0; 2], keys: laid, values: laid, mask: Some(mask) }
}

#[test]
fn what_hides_without_end_leaves_no_share() {
    let given = small(&[1.0, 2.0], Mask::new(&[1, 1, 1, 2], &[f32::NEG_INFINITY; 2]).unwrap());
    let mut result = [f32::NAN; 2];
    let task = Task::new(&given, &mut result);
    (0..task.units()).for_each(|unit| task.compute(unit));
    task.finish();
    assert_eq!(result, [0.0; 2]);
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let checked = |mask: &[i64]| small(&[0.0; 2], Mask::new(mask, &[0.0; 2]).unwrap()).check();
    assert_eq!((checked(&[2]), checked(&[2, 1, 1])), (Ok(2), Ok(2)));
    assert!(checked(&[2, 1, 1, 1]).is_err());
    assert!(checked(&[3]).is_err());
    let more = small(&[0.0; 3], Mask::new(&[2], &[0.0; 2]).unwrap()).check();
    assert_eq!(
        more.unwrap_err(),
        "attention got lengths that do not fit [1, 2, 1, 2], mask Some([1, 1, 1, 2])"
    );
    assert!(Mask::new(&[1; 5], &[0.0]).is_err());
}
