//! The jobs of a lab, one per process. The rest of the crate knows none of them.

pub mod calibrate;
pub mod check;
pub mod exec;
pub mod load;
pub mod prove;
pub mod replay;
pub mod stress;
