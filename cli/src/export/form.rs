//! The form that exported graphs have: plain operators of ONNX's own set, which every engine reads.

use weft::lower::{Kernels, Target};
use weft::{Dtype, Hardware, Precision};

/// What graphs of a precision are lowered to.
pub fn target(precision: Precision) -> Target {
    // Attention, rotary embeddings and norms in basic operators of opset 21: engines find and fuse these themselves.
    let mut target = Target::of(Hardware::Openvino, Precision::F32);
    if precision == Precision::F16 {
        target.float = Dtype::F16;
    }
    if precision.is_quantized() {
        // ONNX Runtime's `MatMulNBits`, and embeddings by their values, as exporters write them.
        let kernels = Target::of(Hardware::Cpu, precision).kernels;
        target.kernels = Kernels { embedding_bits: &[], accuracy_level: 0, ..kernels };
    }
    target
}
