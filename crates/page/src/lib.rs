//! The page model: everything that one navigation loads, and its JSON form.
//!
//! A [`Page`] is a list of [`Resource`]s: sizes, types, server and processing times, and for each the resource that
//! discovers it, and when. Serialised as JSON it is a *profile*: a page without content, safe to share. Both clocks
//! (the lab and the simulator) load the same `Page`.
//!
//! This crate does no I/O. It does not model content encodings (sizes are those on the wire), caching, or pages
//! that change between loads.
#![forbid(unsafe_code)]

mod error;
mod hosts;
mod model;
mod parse;
mod scheme;
mod validate;

pub mod synth;

pub use error::PageError;
pub use model::{Host, HttpSpoken, Initiator, Kind, Link, Missing, Origin, Page, Resource, Via};
pub use parse::{FORMAT, json_schema};
pub use scheme::Scheme;
pub use validate::{MAX_BODY_BYTES, MAX_HOSTS, MAX_RESOURCES, canonical_url};
