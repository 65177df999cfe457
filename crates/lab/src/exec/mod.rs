//! Any program inside a lab, with the lab's path, pages and services around it.

mod job;
mod terminal;
mod traffic;

pub use job::{ExecJob, ExecRecord, SETTLING, ServedPage};
pub use terminal::Terminal;
pub use traffic::{Directory, Line, Traffic, lines};
