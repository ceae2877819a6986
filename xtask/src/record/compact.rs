//! The committed form of records: one file a backend, what many records share said once, one line a case.
//!
//! ```text
//! {"file":{"format":"weft-results/4","backend":"cpu","shared":[..],"columns":[..],"devices":["CPUExecutionProvider"],"stages":[..]}}
//! {"environment":{"id":"77d01e5b","versions":{..},"machine":{..}}}
//! {"setting":{"id":"3f9a01c2","run":"..","environment":"77d01e5b"}}
//! {"text":{"id":"0c11d2e3","is":"no cuda here: .."}}
//! {"cases":["bert","f32","device","3f9a01c2",1795260240,1,["BertModel"],["last_hidden_state"]]}
//! ["base",0,[[0,6e-7,3.1e-7]],[40],[12,3.5,0.4,1.3],25]
//! {"end":"weft-results/4"}
//! ```
//!
//! The lines of cases belong to the `cases` line before them, which names their classes and outputs; the columns of both are named in
//! the first line, and empty ones at their end are left out. Of the outputs that are close enough only the worst is kept, and of what was
//! lowered neither times nor memory, which are those of the device that it ran on. Ids are hashes of what they stand for, and no
//! line counts what is in the whole file, so that lines of two branches merge.

mod line;
mod reading;
mod writing;

pub use reading::{is_compact, parse};
pub use writing::text;

#[cfg(test)]
mod tests;
