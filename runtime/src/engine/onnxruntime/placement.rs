//! Which provider each node was assigned to: the engine's own record, read through its C interface.

use std::ffi::{CStr, c_char};
use std::ptr;

use ort::AsPointer;
use ort::session::Session;

use crate::engine::Placement;

/// The name of ONNX Runtime's CPU provider.
pub(super) const CPU: &str = "CPUExecutionProvider";

/// The nodes of a session by provider; it must have been made with `session.record_ep_graph_assignment_info`.
#[allow(unsafe_code)]
pub(super) fn of(session: &Session) -> ort::Result<Placement> {
    let api = ort::api();
    let mut placement = Placement::default();
    let (mut subgraphs, mut count) = (ptr::null(), 0);
    // SAFETY: the session outlives this function; every out-parameter is a valid place; the arrays and texts
    // belong to the session and are copied before it returns; the statuses are consumed by `check`.
    unsafe {
        check((api.Session_GetEpGraphAssignmentInfo)(session.ptr(), &raw mut subgraphs, &raw mut count))?;
        for &subgraph in slice(subgraphs, count) {
            let mut provider: *const c_char = ptr::null();
            check((api.EpAssignedSubgraph_GetEpName)(subgraph, &raw mut provider))?;
            let (mut nodes, mut count) = (ptr::null(), 0);
            check((api.EpAssignedSubgraph_GetNodes)(subgraph, &raw mut nodes, &raw mut count))?;
            let operators = placement.devices.entry(text(provider)).or_default();
            for &node in slice(nodes, count) {
                let mut operator: *const c_char = ptr::null();
                check((api.EpAssignedNode_GetOperatorType)(node, &raw mut operator))?;
                *operators.entry(text(operator)).or_default() += 1;
            }
        }
    }
    Ok(placement)
}

#[allow(unsafe_code)]
pub(super) unsafe fn check(status: ort::sys::OrtStatusPtr) -> ort::Result<()> {
    // SAFETY: the caller hands over a status that the C interface has just returned.
    unsafe { ort::Error::result_from_status(status) }
}

#[allow(unsafe_code)]
unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the C interface gave both, and keeps the array as long as the session.
    unsafe { std::slice::from_raw_parts(start, count) }
}

#[allow(unsafe_code)]
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the C interface gives texts that end with a zero byte.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}
