//! Runs the same flow on a kernel and on the model of its TCP, with the same packets lost, delayed, duplicated and
//! marked, and compares both packet sequences.
//!
//! A [`Case`] is a [`Flow`], a [`Script`] with the faults of single packets, and the kernel's [`Trace`]. It is read
//! and written as text. [`run`] puts a flow on the model and a path. [`follow`] runs the model alone, with packets
//! that arrive when the kernel's did: a difference there is one of TCP, not of the path or the machine. [`compare`]
//! finds the first difference, [`draw`] makes cases from a seed, [`shrink`] shortens them. The laboratory runs the
//! kernel's side, on real sockets (`firstflight-lab replay`).
//!
//! Left out: windows and timestamps are not compared; the MSS is fixed to the model's 1,460 bytes.
//!
//! ```
//! use firstflight_replay::{Case, Machine, Difference, Direction, compare, run};
//!
//! let lossless: Case = "flow rtt=80ms down=10mbit up=2mbit\nexchange up=200 down=30000".parse()?;
//! let lossy: Case = format!("{lossless}lose down 5").parse()?;
//! let [one, other] = [&lossless, &lossy].map(|case| run(&case.flow, &case.script, Machine::default()));
//! let divergence = compare(&one?, &other?, 4_000_000).expect("a loss shows");
//! // The client's acknowledgment that would have answered the lost segment answers the one behind it, with a SACK block.
//! assert_eq!((divergence.direction, divergence.what), (Direction::Up, Difference::Packet));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod case;
mod compare;
mod draw;
mod model;
mod path;
mod text;
mod trace;

pub use firstflight_path::Direction;
pub use firstflight_tcp::pair::{Closes, Fault};

pub use case::{Case, Exchange, FastOpen, Flow, Machine, Recorded, Script};
pub use compare::{Difference, Divergence, TOLERANCE, compare};
pub use draw::{draw, shrink};
pub use model::{follow, run};
pub use path::Path;
pub use text::ParseError;
pub use trace::{Info, PHASES, Packet, Sent, TfoOption, Trace};
