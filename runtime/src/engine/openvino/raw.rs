//! What the safe bindings lack: the nodes that a request executes, and weight files as memory.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::ptr;

use memmap2::Mmap;
use openvino::{InferRequest, InferenceError};
use openvino_sys::{
    ov_infer_request_get_profiling_info, ov_infer_request_t, ov_profiling_info_list_free,
    ov_profiling_info_list_t, ov_profiling_info_t_Status,
};

/// One node of the graph that a device executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Its operation, in OpenVINO's words: `FullyConnected`, `MVN`, `Subgraph` …
    pub operation: String,
    /// The implementation and the element type it computes in: `jit_avx512_f32`; `undef` where it was fused
    /// into another node.
    pub implementation: String,
    /// Whether the device left it out.
    pub left_out: bool,
}

// `nodes` reads the handle out of a request: the one field of the type, in the version that Cargo.toml pins.
const _: () = assert!(size_of::<InferRequest>() == size_of::<*mut ov_infer_request_t>());

/// The nodes of the device's graph. They are known once the graph is compiled, before it runs.
#[allow(unsafe_code)]
pub(super) fn nodes(request: &InferRequest) -> Result<Vec<Node>, InferenceError> {
    let mut list = ov_profiling_info_list_t { profiling_infos: ptr::null_mut(), size: 0 };
    // SAFETY: the only field of a request is its handle, as the assertion above checks by size, and the request
    // outlives the call; the list is a valid place, and its texts are copied before it is freed.
    unsafe {
        let handle = ptr::from_ref(request).cast::<*mut ov_infer_request_t>().read();
        let status = ov_infer_request_get_profiling_info(handle, &raw mut list);
        InferenceError::convert(status, openvino::get_last_error_message())?;
        let infos = if list.profiling_infos.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts(list.profiling_infos, list.size)
        };
        let nodes = infos.iter().map(|info| Node {
            operation: text(info.node_type),
            implementation: text(info.exec_type),
            left_out: info.status == ov_profiling_info_t_Status::OPTIMIZED_OUT,
        });
        let nodes = nodes.collect();
        ov_profiling_info_list_free(&raw mut list);
        Ok(nodes)
    }
}

#[allow(unsafe_code)]
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the C interface gives texts that end with a zero byte.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

/// A weights file as memory.
#[allow(unsafe_code)]
pub(super) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only; a file that another program truncates meanwhile is the one risk, as for
    // every reader of mapped weights.
    unsafe { Mmap::map(file) }
}
