//! The same flow on a kernel and on the model of its TCP: the same packets lost, delayed, duplicated and marked, and
//! both packet sequences compared.
//!
//! A [`Case`] is a [`Flow`], a [`Script`] that says what happens to the k-th packet of each direction, and the kernel's
//! [`Trace`]; it is read and written as text. [`run`] puts a flow on the model and on a path, [`follow`] on the model
//! alone, whose packets then arrive when the kernel's did: what differs there is TCP's, not the path's or the
//! machine's. [`compare`] finds the first difference, [`draw`] makes cases of a seed, [`shrink`] makes them short. The
//! kernel's side, on real sockets, is the laboratory's (`firstflight-lab replay`).
//!
//! Left out: windows and timestamps are not compared; the MSS is what the model knows, 1,460 bytes.
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
