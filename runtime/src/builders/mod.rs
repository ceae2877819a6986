//! Builders of operations that few models have, each with the passes over it: a program is linked with those that its models build.

mod expert;
mod lstm;
mod recurrence;
mod sample;
mod select;
