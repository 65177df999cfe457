//! Tests of the loader over a simple virtual network.

mod discovery;
mod driving;
mod failures;
mod holds;
mod load_event;
mod network;
mod pages;
mod pooling;
mod properties;
mod recorded;
mod robustness;
mod round_trips;
mod run;
