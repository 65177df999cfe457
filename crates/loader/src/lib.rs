//! Sans-I/O page loader: how a browser fetches a [`Page`](firstflight_page::Page). Events in, commands out.
//!
//! The loader opens no socket and reads no clock: a driver tells it what happened and when
//! ([`Loader::handle`], [`Loader::handle_timeout`]) and carries out what it asks for ([`Loader::poll`]).
//! The lab drives it with kernel sockets, the simulator with a virtual clock. The same events at the same
//! times give the same commands and the same [`LoadRecord`].
//!
//! It models incremental discovery, one main thread, and per-origin pools of HTTP/1.1 connections with
//! priorities and late binding, as Chromium has them, or one connection of HTTP/2 for each https origin. It leaves
//! out, on purpose:
//! - parser-blocking scripts: the preload scanner finds what they would hide, their execution is serialised
//!   on the main thread, but they do not hold back the document's own processing;
//! - Chromium's `ResourceScheduler` (at most ten delayable requests while the head loads), its backup
//!   connect job after 250 ms, preconnect and priority hints;
//! - DNS, but for the time that a lookup took in the recording ([`Config::lookups`]), caches, cookies and
//!   pipelining;
//! - of HTTP/2: priorities and server push; one connection for several origins (RFC 9113, section 9.1.1) there is
//!   only where the recording had one ([`Http2::Recorded`]);
//! - TLS: a connection is writable when the driver says so.
//!
//! ```
//! use firstflight_loader::{Command, Config, Event, Loader};
//! use firstflight_page::Page;
//!
//! let page = Page::from_json(
//!     r#"{"format": "firstflight-profile/1", "name": "one", "resources": [
//!         {"url": "http://a.test/", "kind": "document", "mime": "text/html",
//!          "request_bytes": 300, "header_bytes": 200, "body_bytes": 5}]}"#,
//! ).unwrap();
//! let mut loader = Loader::new(&page, Config::default(), 0);
//! let Some(Command::Open { conn, .. }) = loader.poll() else { panic!() };
//! loader.handle(10, Event::Writable(conn));
//! assert_eq!(loader.poll(), Some(Command::Send { conn, request: 0 }));
//! loader.handle(10, Event::RequestSent { conn, request: 0 });
//! loader.handle(20, Event::Head { conn, request: 0, status: 200, location: None });
//! loader.handle(20, Event::Body { conn, request: 0, bytes: 5 });
//! loader.handle(20, Event::End { conn, request: 0, reusable: true });
//! assert!(loader.is_done());
//! assert_eq!(loader.finish(20).plt, Some(20));
//! ```
#![forbid(unsafe_code)]

mod discovery;
mod interface;
mod load_event;
mod loader;
mod lookup;
mod plan;
mod pool;
mod priority;
mod record;
mod timers;
mod transfer;

pub use interface::{
    Command, Config, ConnId, Event, Http2, MAX_STREAMS, NANOS_PER_MS, Nanos, OriginId, Quic, RACE, TOO_EARLY,
};
pub use loader::Loader;
pub use plan::Plan;
pub use record::{ConnectionRecord, LoadRecord, RequestRecord};
