//! What samples between the places of a feature map are made of where a backend has no `GridSample`.

use crate::Result;
use crate::dims;
use crate::graph::{Binary, Dim, Dtype, Graph, Op, Operation, Tensor, Unary, product};

/// Bilinear samples as sums of the four places around each, gathered as rows of channels.
pub(in crate::lower) fn grid_sample_by_gather(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::GridSample { align_corners }, [x, grid]) = (it.op, it.operands) else { return Ok(None) };
    let ([batch, channels, height, width], [_, rows, columns, _]) = (x.shape(), grid.shape()) else {
        return Ok(None);
    };
    let places = product(&[batch.clone(), rows.clone(), columns.clone()]);
    let flat = g.transpose(x, &[0, 2, 3, 1])?;
    let flat = g.reshape(&flat, dims![product(&[batch.clone(), height.clone(), width.clone()]), channels])?;
    let start = g.arange(batch);
    let start = g.cast(&start, Dtype::F32);
    let area = g.length(&product(&[height.clone(), width.clone()]))?;
    let start = g.mul(&start, &area)?;
    let start = g.reshape(&start, dims![batch, 1, 1])?;
    let across = neighbours(g, grid, 0, width, *align_corners)?;
    let down = neighbours(g, grid, 1, height, *align_corners)?;
    let columns_of_map = g.length(width)?;
    let mut sum: Option<Tensor> = None;
    for (row, row_weight) in &down {
        let row = g.mul(row, &columns_of_map)?;
        let row = g.add(&row, &start)?;
        for (column, column_weight) in &across {
            let index = g.add(&row, column)?;
            let index = g.cast(&index, Dtype::I64);
            let index = g.reshape(&index, dims![&places])?;
            let weight = g.mul(row_weight, column_weight)?;
            let weight = g.reshape(&weight, dims![&places, 1])?;
            let value = g.gather(&flat, &index, 0)?;
            let value = g.mul(&value, &weight)?;
            sum = Some(match sum {
                Some(sum) => g.add(&sum, &value)?,
                None => value,
            });
        }
    }
    let Some(sum) = sum else { return Ok(None) };
    let sum = g.reshape(&sum, dims![batch, rows, columns, channels])?;
    Ok(Some(g.transpose(&sum, &[0, 3, 1, 2])?))
}

/// Along one axis, the two indices around each place, within the map, and their weights, which are 0 beyond its edge:
/// `[batch, rows, columns]` f32.
fn neighbours(
    g: &mut Graph,
    grid: &Tensor,
    axis: usize,
    length: &Dim,
    align_corners: bool,
) -> Result<[(Tensor, Tensor); 2]> {
    let (zero, half, one) = (g.scalar(0.0), g.scalar(0.5), g.scalar(1.0));
    let length = g.length(length)?;
    let last = g.sub(&length, &one)?;
    let place = g.slice(grid, 3, axis..axis + 1)?;
    let place = g.squeeze(&place, 3)?;
    let place = g.add(&place, &one)?;
    let place = g.mul(&place, &half)?;
    let place = match align_corners {
        true => g.mul(&place, &last)?,
        false => {
            let place = g.mul(&place, &length)?;
            g.sub(&place, &half)?
        }
    };
    // What lies further out is nothing; whole numbers stay exact.
    let (before, behind) = (g.scalar(-1.0), length);
    let place = g.binary(Binary::Max, &place, &before)?;
    let place = g.binary(Binary::Min, &place, &behind)?;
    let first = g.unary(Unary::Floor, &place);
    let share = g.sub(&place, &first)?;
    let rest = g.sub(&one, &share)?;
    let second = g.add(&first, &one)?;
    let mut within = |index: &Tensor, weight: &Tensor| -> Result<(Tensor, Tensor)> {
        let clamped = g.binary(Binary::Max, index, &zero)?;
        let clamped = g.binary(Binary::Min, &clamped, &last)?;
        let inside = g.binary(Binary::Equal, &clamped, index)?;
        let inside = g.cast(&inside, Dtype::F32);
        Ok((clamped, g.mul(weight, &inside)?))
    };
    Ok([within(&first, &rest)?, within(&second, &share)?])
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn};

    use super::*;
    use crate::engine::{self, Options};
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, HEIGHT, WIDTH};
    use crate::lower::passes::Pass;
    use crate::lower::{Target, lower, unsupported_ops};
    use crate::{Hardware, Precision, Value, Values};

    /// Two maps of two channels, 2 by 3, sampled at a row of six places each: within, between, on the edge and beyond it.
    const PLACES: [f32; 24] = [
        -1.0, -1.0, 1.0, 1.0, 0.0, 0.0, 0.25, -0.4, -1.3, 0.9, 40.0, 0.0, //
        -0.3, 0.2, 0.66, -0.5, 1.1, 0.3, -0.9, -0.9, 0.0, -1.6, -1.0, 0.5,
    ];

    fn sampled(align_corners: bool, target: &Target) -> Vec<f32> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 2, HEIGHT, WIDTH]));
        let grid = g.input(Input::f32("grid", dims![BATCH, 1, 6, 2]));
        let y = g.grid_sample(&x, &grid, align_corners).unwrap();
        assert_eq!(*y.shape(), dims![BATCH, 2, 1, 6]);
        g.output("y", &y).unwrap();
        let lowered = lower(&g, &[], target).unwrap();
        let compiled = engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
        let map: Vec<f32> = (0..24).map(|n| ((n * 7) % 11) as f32 - 4.0).collect();
        let given = [("x", vec![2, 2, 2, 3], map), ("grid", vec![2, 1, 6, 2], PLACES.to_vec())];
        let given: Values = given
            .into_iter()
            .map(|(name, shape, values)| {
                let array = ArrayD::from_shape_vec(IxDyn(&shape), values).unwrap();
                (name.to_owned(), Value::F32(array))
            })
            .collect();
        compiled.run(&given).unwrap()["y"].f32("y").unwrap().iter().copied().collect()
    }

    #[test]
    fn gathered_samples_are_those_of_the_operator() {
        if let Err(error) = engine::available(Hardware::Cpu) {
            eprintln!("skipped: {error}");
            return;
        }
        let target = Target::of(Hardware::Cpu, Precision::F32);
        let gathered = target.clone().and(Pass::each("samples", grid_sample_by_gather));
        for align_corners in [false, true] {
            let (want, got) = (sampled(align_corners, &target), sampled(align_corners, &gathered));
            let far = want.iter().zip(&got).any(|(want, got)| (want - got).abs() > 1e-5);
            assert!(!far, "{align_corners}: got {got:?}, want {want:?}");
        }
        // The first map is -4, 3, -1, 6, 2, -2: its corner, its last, and half of the two in the middle.
        let aligned = sampled(true, &target);
        assert_eq!(aligned[..3], [-4.0, -2.0, 2.5]);
        // A quarter of the corner is within the map.
        assert_eq!(sampled(false, &target)[..3], [-1.0, -0.5, 2.5]);
        // Beyond the edge is nothing.
        assert_eq!([aligned[5], aligned[11]], [0.0, 0.0]);
    }

    #[test]
    fn backends_without_the_operator_get_none() {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![2, 3, 4, 5]));
        let grid = g.input(Input::f32("grid", dims![2, 6, 7, 2]));
        let y = g.grid_sample(&x, &grid, false).unwrap();
        g.output("y", &y).unwrap();
        for hardware in [Hardware::Qnn, Hardware::Webgpu, Hardware::Webnn] {
            let lowered = lower(&g, &[], &Target::of(hardware, Precision::F16)).unwrap();
            let nodes = &lowered.model.graph.as_ref().unwrap().node;
            assert!(nodes.iter().all(|node| node.op_type != "GridSample"), "{hardware}");
        }
        for hardware in [Hardware::Cuda, Hardware::Rocm, Hardware::Metal] {
            let lowered = lower(&g, &[], &Target::of(hardware, Precision::F32)).unwrap();
            assert_eq!(unsupported_ops(&lowered.model, hardware), Default::default(), "{hardware}");
        }
    }
}
