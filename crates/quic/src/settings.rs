//! The settings of both ends of a connection.

use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig, TransportConfig};

use crate::crypto::NoKey;

/// Concurrent requests on a connection, as many as with HTTP/2.
pub const MAX_STREAMS: u32 = firstflight_loader::MAX_STREAMS;

/// Bytes that a segment of the initial window counts for: quinn's smallest datagram (RFC 9000, section 14).
pub const SEGMENT_BYTES: u64 = 1_200;

/// Unidirectional streams that a client of HTTP/3 and its server may open; three are in use.
const MAX_UNI_STREAMS: u32 = 16;

/// quinn's congestion control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// CUBIC (RFC 9438) without HyStart.
    #[default]
    Cubic,
    /// New Reno (RFC 9002, section 7).
    NewReno,
    /// BBR, version 1.
    Bbr,
}

/// The settings that a treatment can change.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Congestion control at both ends.
    pub congestion_control: CongestionControl,
    /// Initial congestion window, in segments of [`SEGMENT_BYTES`] (RFC 9002, section 7.2).
    pub initial_window: u32,
}

impl Settings {
    /// The settings for quinn-proto.
    pub fn transport(self) -> Arc<TransportConfig> {
        let bytes = u64::from(self.initial_window) * SEGMENT_BYTES;
        let congestion: Arc<dyn ControllerFactory + Send + Sync> = match self.congestion_control {
            CongestionControl::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(bytes);
                Arc::new(config)
            }
            CongestionControl::NewReno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(bytes);
                Arc::new(config)
            }
            CongestionControl::Bbr => {
                let mut config = BbrConfig::default();
                config.initial_window(bytes);
                Arc::new(config)
            }
        };
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(congestion)
            .max_concurrent_bidi_streams(MAX_STREAMS.into())
            .max_concurrent_uni_streams(MAX_UNI_STREAMS.into())
            .enable_segmentation_offload(false);
        Arc::new(transport)
    }
}

/// The seed of one end of a load's connection number `conn`.
pub fn seed(load: u64, conn: u32, is_client: bool) -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&load.to_le_bytes());
    seed[8..12].copy_from_slice(&conn.to_le_bytes());
    seed[12] = u8::from(is_client);
    seed
}

/// An endpoint's configuration without randomness. `number` makes its connection IDs differ from other endpoints'.
pub fn deterministic_endpoint(number: u32) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(NoKey));
    config
        .cid_generator(move || Box::new(Counted(u64::from(number) << 32)))
        .grease_quic_bit(false);
    config
}

/// Generates connection IDs by counting.
#[derive(Debug)]
struct Counted(u64);

impl ConnectionIdGenerator for Counted {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        size_of::<u64>()
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}
