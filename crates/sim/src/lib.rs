//! Page loads on a virtual clock: TCP simulated packet by packet, Fast Open included.
//!
//! The [loader](firstflight_loader) that drives kernel sockets in the lab drives simulated ones here, over the
//! same [path](firstflight_path). The difference that is left is TCP itself, modelled after Linux 6.18 where a
//! page load feels it. `docs/simulator.md` lists what is modelled, with sources, and what is not.
//!
//! Over QUIC it speaks for [quinn's](firstflight_quic), which both clocks run.
//!
//! No operating system, no threads, no clock: the same page, job and seed give the same record on any platform.
//!
//! ```
//! use firstflight_page::Page;
//! use firstflight_sim::{Job, SimPage, simulate};
//!
//! let page = Page::from_json(
//!     r#"{"format": "firstflight-profile/1", "name": "one", "resources": [
//!         {"url": "http://a.test/", "kind": "document", "mime": "text/html",
//!          "request_bytes": 300, "header_bytes": 200, "body_bytes": 5}]}"#,
//! ).unwrap();
//! let page = SimPage::new(&page);
//! let job = |mode| Job::from_json(&format!(
//!     r#"{{"path": {{"rtt_ms": 100}}, "mode": "{mode}", "cookies": "warm"}}"#
//! ));
//! let tcp = simulate(&page, &job("tcp")?)?;
//! let tfo = simulate(&page, &job("tfo")?)?;
//! assert_eq!(tcp.plt_ms, Some(200.0));
//! assert_eq!(tfo.plt_ms, Some(100.0));
//! # Ok::<(), firstflight_sim::SimError>(())
//! ```
#![forbid(unsafe_code)]

mod channel;
mod client;
mod connection;
mod host;
mod http2;
mod job;
mod load;
mod page;
mod pieces;
mod proof;
mod quic;
mod record;
mod server;
mod tls;
mod trace;
mod what_if;

pub use firstflight_load::record::{Connection, Request, Totals};
pub use firstflight_tcp::Algorithm;
pub use job::{Job, Keep, Traced};
pub use page::SimPage;
pub use proof::Proof;
pub use record::{Record, Relay};
pub use tls::{Flights, Session, quic_lengths};
pub use what_if::{Since, Unproven, WhatIf};

/// Why a load cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The job is malformed.
    #[error("the job: {0}")]
    Job(#[from] serde_json::Error),
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] firstflight_path::PathError),
}

/// Loads `page` once, with the settings of `job`. A load that fails is a record that says so.
///
/// # Errors
/// [`SimError`] when the path is invalid.
pub fn simulate(page: &SimPage, job: &Job) -> Result<Record, SimError> {
    let loaded = load::load(page, job)?;
    Ok(Record::new(page, job, &loaded))
}

/// As [`simulate`], and traces every segment, one line each: time, event, direction, connection, flags, range,
/// acknowledgment, window, options.
///
/// # Errors
/// [`SimError`] when the path is invalid.
pub fn trace(page: &SimPage, job: &Job) -> Result<(Record, Vec<String>), SimError> {
    traced(page, job, Traced::All)
}

/// As [`trace`], with the packets that `of` selects.
///
/// # Errors
/// [`SimError`] when the path is invalid.
pub fn traced(page: &SimPage, job: &Job, of: Traced) -> Result<(Record, Vec<String>), SimError> {
    let job = Job {
        trace: of,
        ..job.clone()
    };
    let loaded = load::load(page, &job)?;
    Ok((Record::new(page, &job, &loaded), loaded.trace.lines()))
}
